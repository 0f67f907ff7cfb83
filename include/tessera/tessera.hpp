// The public header of Tessera: the language, tensors, devices, launches.
#pragma once
#include "tessera/dsl/expr.hpp"  // before the headers that include it, as compilers list the whole include path in each
                                 // error

#include "tessera/api/dlpack.hpp"    // IWYU pragma: export
#include "tessera/api/kernel.hpp"    // IWYU pragma: export
#include "tessera/api/sequence.hpp"  // IWYU pragma: export
#include "tessera/api/tensor.hpp"    // IWYU pragma: export
#include "tessera/jit/choose.hpp"    // IWYU pragma: export
#include "tessera/jit/version.hpp"   // IWYU pragma: export

/// The public names of Tessera, which docs/language.md, docs/ops.md and docs/host.md describe. They are implemented in
/// tessera::internal, which may change from one version to the next.
namespace tessera {

// Element types, and the concepts that users' own templates need.
#define TYPE(name, ...) using internal::name;
#include "tessera/graph/types.def"
using internal::Element, internal::Operand, internal::Stored, internal::TileExpr;

// Kernels and launches.
using internal::choose, internal::MatmulFamily, internal::MatmulShape, internal::MatmulTiles;
using internal::cuda_kernel, internal::cuda_source, internal::CudaLaunch, internal::CudaSource, internal::In,
    internal::InOut, internal::Kernel, internal::kernel, internal::KernelInfo, internal::launch, internal::List,
    internal::Optional, internal::Out, internal::plan_text, internal::Remark, internal::Scalar, internal::Sequence,
    internal::to_json, internal::to_string, internal::warm_up;

// The host.
using internal::Arch, internal::CapturedGraph, internal::Device, internal::DeviceInfo, internal::Error,
    internal::Event, internal::from_dlpack, internal::Location, internal::Stream, internal::Tensor, internal::to_dlpack,
    internal::version;

// The grid, control flow, and reports to the host.
using internal::blocks, internal::check, internal::Hints, internal::hints, internal::if_, internal::print,
    internal::range, internal::require, internal::same_extents, internal::while_;

// Values.
using internal::argmax, internal::argmin, internal::argsort, internal::histogram, internal::inverse_permutation,
    internal::max_with_index, internal::mean, internal::min_with_index, internal::put_along_axis, internal::reduce,
    internal::scan, internal::sort, internal::sort_with_index, internal::take_along_axis, internal::top_k;
using internal::axis, internal::bitcast, internal::broadcast, internal::cast, internal::concat, internal::constant,
    internal::cuda_op, internal::expand_dims, internal::extract, internal::flip, internal::full, internal::gelu,
    internal::gelu_tanh, internal::inf, internal::insert, internal::interleave, internal::iota, internal::item,
    internal::log2e, internal::mma, internal::Nan, internal::permute, internal::reshape, internal::roll,
    internal::sigmoid, internal::silu, internal::slice, internal::split, internal::squeeze, internal::transpose,
    internal::where, internal::zeros;
using internal::Index, internal::Tile, internal::Var;
using internal::ScanOptions, internal::SortOptions, internal::TopKOptions;

// Memory.
using internal::gather, internal::load, internal::MemoryOrder, internal::MemoryScope, internal::scatter,
    internal::store;

// Every op that is called by its own name.
#define UNARY(name, ...) using internal::name;
#define BINARY(name, ...) using internal::name;
#define TERNARY(name, ...) using internal::name;
#define REDUCTION(name, ...) using internal::name;
#define SCAN(name, ...) using internal::name;
#define ATOMIC(name, ...) using internal::name;
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"

}  // namespace tessera
