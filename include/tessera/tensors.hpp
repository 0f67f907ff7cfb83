// Tensors that fuse themselves: expressions of whole tensors, run by a few kernels. docs/tensors.md describes them.
#pragma once
#include "tessera/tessera.hpp"  // IWYU pragma: export

#include "tessera/tensors/analyze.hpp"    // IWYU pragma: export
#include "tessera/tensors/compile.hpp"    // IWYU pragma: export
#include "tessera/tensors/forms.hpp"      // IWYU pragma: export
#include "tessera/tensors/functions.hpp"  // IWYU pragma: export
#include "tessera/tensors/lazy.hpp"       // IWYU pragma: export

namespace tessera {

using internal::analyze, internal::attention, internal::compile, internal::Compiled, internal::describe,
    internal::embedding, internal::layer_norm, internal::linear, internal::log_softmax, internal::map, internal::matmul,
    internal::random_uniform, internal::relu, internal::rms_norm, internal::run, internal::scalar, internal::softmax,
    internal::softplus, internal::tile, internal::var;
using internal::AttentionOptions, internal::AttentionTiles, internal::Lazy, internal::MatmulAnalysis,
    internal::MatmulOptions, internal::MatmulPrecision, internal::TensorAnalysis;
// Overloads for tensors of functions that tiles have, too.
using internal::concat, internal::to_string, internal::gather, internal::gelu, internal::gelu_tanh, internal::iota,
    internal::mean, internal::sigmoid, internal::silu, internal::where, internal::argmax, internal::argmin,
    internal::argsort, internal::broadcast, internal::cast, internal::expand_dims, internal::flip, internal::full,
    internal::permute, internal::reshape, internal::slice, internal::sort, internal::squeeze, internal::top_k,
    internal::transpose;
#define UNARY(name, ...) using internal::name;
#define BINARY(name, ...) using internal::name;
#define TERNARY(name, ...) using internal::name;
#define REDUCTION(name, ...) using internal::name;
#define SCAN(name, ...) using internal::name;
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"

}  // namespace tessera
