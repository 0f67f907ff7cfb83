// Which kernels run before others, and what each reads.
#pragma once
#include <set>

#include "tensors/fusion.hpp"

namespace tessera::internal {

/// Does the kernel compute the value?
bool computes(const FusedKernel& kernel, int value);
/// For each kernel, those that write what it reads.
std::vector<std::set<std::size_t>> predecessors(const TensorProgram& program, const Fusion& fusion);
/// Puts kernels in an order in which they can run, by their first results where several are possible.
void order_kernels(const TensorProgram& program, Fusion& fusion);
/// Lists the stored values that each kernel reads, and in which use.
void collect_reads(const TensorProgram& program, Fusion& fusion);

}  // namespace tessera::internal
