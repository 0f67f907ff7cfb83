// Running tensor programs, without types.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/jit/executable.hpp"
#include "tessera/jit/sequence.hpp"
#include "tessera/tensors/lazy_node.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Computes the values on the stream, by default their device's, into new dense tensors. The first run of a program
/// fuses and traces it; later runs of programs that differ only in their tensors' addresses and scalars do not.
/// With `fuse` false each op has a kernel of its own, as with TESSERA_FUSION=off.
std::vector<detail::AnyTensor> run_lazy(const std::vector<LazyRef>& values, const Stream* stream = nullptr,
                                        bool fuse = true);
/// Computes one value into a tensor. Error if its type or its extents differ.
void run_lazy_into(const LazyRef& value, const detail::AnyTensor& out, const Stream* stream = nullptr);
/// The program, a value a line: what it computes, of which values, its type and extents, and the author's place.
std::string lazy_text(const std::vector<LazyRef>& values);
/// For the program's device or, without running anything, for GPUs of an architecture.
std::string describe_lazy(const std::vector<LazyRef>& values, std::optional<Arch> arch = {});
/// The program, kernel by kernel: the values that each computes, and of which.
std::string lazy_graph(const std::vector<LazyRef>& values, std::optional<Arch> arch = {});
std::string explain_lazy(const std::vector<LazyRef>& values);
std::vector<std::shared_ptr<const Executable>> lazy_kernels(const std::vector<LazyRef>& values,
                                                            std::optional<Arch> arch = {});
std::string lazy_cuda_source(const std::vector<LazyRef>& values, Arch arch);
/// The launches of a run as a sequence with memory of its own, and the results that each run of it computes again.
struct LazySequence {
  Sequence sequence;
  std::vector<detail::AnyTensor> results;
};

}  // namespace internal
}  // namespace tessera
