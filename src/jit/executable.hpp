// A kernel ready to be launched: its graph, lowered once, and what a launch must check and compute.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/evaluate.hpp"
#include "jit/backend.hpp"
#include "jit/growing_list.hpp"

namespace tessera {

class Executable {
 public:
  /// Runs the passes. The graph is as the language leaves it.
  explicit Executable(Graph graph);

  const std::string& name() const { return traced_.name; }
  const Graph& traced() const { return traced_; }
  /// After the passes: what executors are given.
  const Graph& graph() const { return graph_; }

  /// Checks the arguments and what the kernel requires, computes the grid, and hands the launch to the stream's device.
  /// Throws Error naming kernel, argument and reason. Does no tracing, hashing or string work, and compiles only for
  /// the first launch of its class on the device.
  void launch(const Stream& stream, std::span<const Argument> arguments) const;

 private:
  void check(std::span<const Argument> arguments) const;
  void check_overlap(std::span<const Argument> arguments, std::size_t written) const;
  [[noreturn]] void refuse(std::span<const Argument> arguments, std::string_view why) const;

  Graph traced_, graph_;
  std::vector<std::string> requirements_;
  UniformProgram uniform_;                                                            // the requirements, then the grid
  mutable GrowingList<const DeviceBackend*, std::unique_ptr<DeviceKernel>> kernels_;  // of devices launched on
};

}  // namespace tessera
