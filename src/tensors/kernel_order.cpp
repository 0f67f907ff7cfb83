#include "tensors/kernel_order.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::internal {
namespace {

std::size_t at(int value) { return static_cast<std::size_t>(value); }

void collect_reads(const TensorProgram& program, const Fusion& fusion, FusedKernel& kernel) {
  std::set<std::pair<int, std::string>> seen;
  const auto walk = [&](const auto& self, int v, const Use& use) -> void {
    if (program.values[at(v)].is_number()) return;
    std::string key;
    for (const AxisUse& axis : use)
      key += fmt::format("{},{},{},{},{},{};", axis.axis, axis.extent, axis.start, axis.step, axis.group, axis.chunk);
    if (!seen.emplace(v, key).second) return;
    if (is_read(program, fusion, kernel, v)) {
      kernel.reads.emplace_back(v, use);
      return;
    }
    const Value& x = program.values[at(v)];
    if (x.in.empty() || x.op == TensorOp::broadcast) kernel.made.push_back(use);
    if (x.op == TensorOp::iota && use[at(x.axis())].axis >= 0) kernel.fixed |= 1u << use[at(x.axis())].axis;
    for (std::size_t i = 0; i < x.in.size(); ++i) {
      if (x.op == TensorOp::gather && i == 0) {
        Use table = operand_use(program, v, use, 0);
        kernel.reads.emplace_back(x.in[0], std::move(table));
      } else {
        self(self, x.in[i], operand_use(program, v, use, i));
      }
    }
  };
  for (const Result& result : kernel.results) {
    walk(walk, result.value, whole_domain(program.values[at(result.value)].extents));
  }
}

}  // namespace

bool computes(const FusedKernel& kernel, int v) {
  return std::find(kernel.members.begin(), kernel.members.end(), v) != kernel.members.end();
}

std::vector<std::set<std::size_t>> predecessors(const TensorProgram& program, const Fusion& fusion) {
  const auto& kernels = fusion.kernels;
  const auto storage = [&](int v) { return fusion.storage[at(v)]; };
  std::vector<std::vector<std::size_t>> writers(program.values.size());
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (const Result& result : kernels[k].results) {
      writers[at(result.stored)].push_back(k);
      if (storage(result.value) == Storage::part) writers[at(result.value)].push_back(k);
    }
  std::vector<std::set<std::size_t>> before(kernels.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto follow = [&](const auto& self, int v) -> void {
      for (std::size_t writer : writers[at(v)])
        if (writer != k) before[k].insert(writer);
      if (storage(v) == Storage::view || (storage(v) == Storage::none && indexes(program, v)))
        self(self, program.values[at(v)].in[0]);
    };
    for (int member : kernels[k].members)
      for (int operand : program.values[at(member)].in) follow(follow, operand);
    for (const Result& result : kernels[k].results)
      if (!computes(kernels[k], result.value)) follow(follow, result.value);
  }
  return before;
}

void order_kernels(const TensorProgram& program, Fusion& fusion) {
  auto& kernels = fusion.kernels;
  const auto before = predecessors(program, fusion);
  std::vector<FusedKernel> ordered;
  std::vector<bool> done(kernels.size());
  std::vector<std::size_t> by_value(kernels.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) by_value[k] = k;
  std::sort(by_value.begin(), by_value.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(kernels[a].results[0].value, a) < std::pair(kernels[b].results[0].value, b);
  });
  const auto place = [&](const auto& self, std::size_t k) -> void {
    if (done[k]) return;
    done[k] = true;
    for (std::size_t earlier : before[k]) self(self, earlier);
    std::sort(kernels[k].members.begin(), kernels[k].members.end());
    ordered.push_back(std::move(kernels[k]));
  };
  for (std::size_t k : by_value) place(place, k);
  kernels = std::move(ordered);
}

void collect_reads(const TensorProgram& program, Fusion& fusion) {
  for (FusedKernel& kernel : fusion.kernels) collect_reads(program, fusion, kernel);
}

}  // namespace tessera::internal
