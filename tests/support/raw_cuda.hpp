// Kernels written by hand, and their execution in the emulator.
#pragma once
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/emulator.hpp"
#include "support/catch.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/element.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

struct Tensor {
  Parameter parameter;
  Argument argument;
};

template <class T>
Tensor tensor(Access access, const std::vector<T>& values) {
  return {{access, element_type<T>, 1},
          {.data = const_cast<T*>(values.data()), .extent = {static_cast<std::int64_t>(values.size())}, .stride = {1}}};
}
template <class T>
Tensor in(const std::vector<T>& values) {
  return tensor(Access::in, values);
}
template <class T>
Tensor out(std::vector<T>& values) {
  return tensor(Access::out, values);
}
template <class T>
Tensor in_out(std::vector<T>& values) {
  return tensor(Access::in_out, values);
}

/// A kernel that has a pointer for each of its tensors, and possibly more parameters. Line 1 of author.cpp is the first
/// line of `body`.
struct HandWritten {
  std::string parameters{}, body{};
  int threads = 32, shared_bytes = 0;
  int blocks = 1;  ///< of a multiprocessor, at least
  std::int64_t workspace_bytes = 0;
  bool persistent = false, clusters = false, shares_grid = false;
  std::vector<KernelParameter> more{};
  std::vector<TmaTensor> tma_tensors{};  ///< for parameters that are tensor maps
};

/// A compiled kernel, with the tensors that it runs on.
struct Prepared {
  Emulator emulator;
  Graph graph{};
  std::vector<Argument> arguments{};

  Report run(const RunOptions& options = {}, std::vector<std::int64_t> grid = {}) const {
    return emulator.run(0, graph, arguments, grid, options);
  }
};

inline Prepared prepare(const HandWritten& kernel, const std::vector<Tensor>& tensors) {
  KernelSource source;
  source.name = "raw_cuda";
  source.text = "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(kernel.threads) + ", " +
                std::to_string(kernel.blocks) + ") raw_cuda(" + kernel.parameters + ") {\n";
  std::istringstream body(kernel.body);
  int number = 0;
  for (std::string line; std::getline(body, line);)
    source.text += "#line " + std::to_string(++number) + " \"author.cpp\"\n" + line + "\n";
  source.text += "}\n";
  source.threads = kernel.threads;
  source.shared_bytes = kernel.shared_bytes;
  source.workspace_bytes = kernel.workspace_bytes;
  source.persistent = kernel.persistent;
  if (kernel.clusters) source.split_k = SplitK::cluster;
  if (kernel.shares_grid) source.split_k = SplitK::stream_k;
  Graph graph;
  std::vector<Argument> arguments;
  for (const Tensor& tensor : tensors) {
    if (tensor.parameter.access != Access::scalar) {
      source.parameters.push_back({.argument = static_cast<int>(arguments.size())});
    }
    graph.parameters.push_back(tensor.parameter);
    arguments.push_back(tensor.argument);
  }
  source.tma_tensors = kernel.tma_tensors;
  source.parameters.insert(source.parameters.end(), kernel.more.begin(), kernel.more.end());
  return {.emulator = Emulator::compile(std::span(&source, 1)), .graph = graph, .arguments = arguments};
}

inline Report run(const HandWritten& kernel, const std::vector<Tensor>& tensors, const RunOptions& options = {},
                  std::vector<std::int64_t> grid = {}) {
  return prepare(kernel, tensors).run(options, std::move(grid));
}

/// The report's only fault; an empty one if there are none or several.
inline Fault only(const Report& report) {
  INFO(report.text());
  CHECK(report.faults.size() == 1);
  return report.faults.size() == 1 ? report.faults.front() : Fault{};
}

}  // namespace tessera::internal
