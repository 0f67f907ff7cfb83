// A kernel ready to be launched: its graph, lowered once, and what a launch must check and compute.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/jit/device.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The extents of a launch's blocks; of a kernel in CUDA C++ what else a launch of it needs stands behind them.
struct Grid {
  std::array<std::int64_t, 16> extent{};
  std::size_t rank = 0;  ///< of all
  std::size_t axes = 0;  ///< of the blocks
  /// Does it have no blocks, so that nothing runs?
  bool is_empty() const {
    return std::any_of(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(axes),
                       [](std::int64_t blocks) { return blocks == 0; });
  }
};

struct Flattened;

class Executable {
 public:
  /// Runs the passes. The graph is as the language leaves it.
  explicit Executable(Graph graph);
  ~Executable();

  const std::string& name() const { return traced_.name; }
  const Graph& traced() const { return traced_; }
  /// After the passes: what executors are given.
  const Graph& graph() const { return graph_; }

  /// Checks the arguments and what the kernel requires, and computes the grid. Throws Error naming kernel, argument and
  /// reason.
  Grid prepare(std::span<const Argument> arguments) const;
  /// Hands a launch to the stream's device; the grid is what prepare() made of the arguments. Compiles only for the
  /// first launch of its class on the device. Neither does any tracing, hashing or string work.
  void launch(const Stream& stream, std::span<const Argument> arguments, const Grid& grid) const;
  /// Both.
  void launch(const Stream& stream, std::span<const Argument> arguments) const {
    launch(stream, arguments, prepare(arguments));
  }

 private:
  void check(std::span<const Argument> arguments) const;
  void check_text(std::span<const Argument> arguments, const Grid& grid) const;
  void check_flattened(std::span<const Argument> arguments, const Flattened& flattened) const;
  std::vector<Argument> with_steps(std::span<const Argument> arguments) const;
  void check_overlap(std::span<const Argument> arguments, std::size_t written) const;
  [[noreturn]] void refuse(std::span<const Argument> arguments, std::string_view why) const;

  struct State;  // what a launch checks and computes, and the code of devices

  Graph traced_, graph_;
  std::unique_ptr<State> state_;
};

}  // namespace internal
}  // namespace tessera
