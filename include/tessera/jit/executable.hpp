// A kernel ready to launch: its graph, lowered once, and the checks and computations of a launch.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
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

/// The extents of a launch's grid; for a raw CUDA kernel they are followed by its other launch parameters.
struct Grid {
  std::array<std::int64_t, 16> extent{};
  std::size_t rank = 0;  ///< of all extents
  std::size_t axes = 0;  ///< of the grid
  /// Is the grid empty, so that nothing runs?
  bool is_empty() const {
    return std::any_of(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(axes),
                       [](std::int64_t blocks) { return blocks == 0; });
  }
};

/// The code of a launch on a device. Launches with equal `id` have the same code.
struct LaunchCode {
  const void* id;
  std::function<void()> make;  ///< from any thread; does nothing if it has been made, and waits if it is being made
  bool is_made = false;        ///< known to be made; false where that takes no time
};

struct DeviceLaunch;
struct Flattened;
struct Specialization;

class Executable {
 public:
  /// Runs the passes on a graph as traced by the language.
  explicit Executable(Graph graph);
  /// For launches of another executable whose arguments have this property.
  Executable(const Executable& general, const Specialization& specialization);
  ~Executable();

  const std::string& name() const { return traced_.name; }
  const Graph& traced() const { return traced_; }
  /// The graph after the passes, which executors take.
  const Graph& graph() const { return graph_; }

  /// Checks the arguments and the kernel's requirements, and computes the grid. Throws Error that names kernel,
  /// argument and reason.
  Grid prepare(std::span<const Argument> arguments) const;
  /// Enqueues a launch on the stream's device, with the grid that prepare() returned for the arguments. Compiles only
  /// for the first launch of its variant on the device. Neither function does any tracing, hashing or string work.
  void launch(const Stream& stream, std::span<const Argument> arguments, const Grid& grid) const;
  /// Does both.
  void launch(const Stream& stream, std::span<const Argument> arguments) const {
    launch(stream, arguments, prepare(arguments));
  }
  /// The code of such a launch. It must not outlive this object and the device.
  LaunchCode code(const Stream& stream, std::span<const Argument> arguments, const Grid& grid) const;
  /// Such a launch as the device gets it. It must not outlive this object and the device.
  DeviceLaunch on_device(DeviceBackend& device, std::span<const Argument> arguments, const Grid& grid) const;

 private:
  Executable(Graph graph, const Specialization& specialization);
  const Executable* specialized(std::span<const Argument> arguments) const;
  void check(std::span<const Argument> arguments) const;
  void check_text(std::span<const Argument> arguments, const Grid& grid) const;
  void check_flattened(std::span<const Argument> arguments, const Flattened& flattened) const;
  DeviceKernel& kernel_on(DeviceBackend& device) const;
  std::vector<Argument> with_steps(std::span<const Argument> arguments) const;
  void check_overlap(std::span<const Argument> arguments) const;
  [[noreturn]] void refuse_overlap(std::span<const Argument> arguments, std::size_t written, std::size_t other) const;
  bool runs_in_place(std::size_t in, std::size_t out) const;
  [[noreturn]] void refuse(std::span<const Argument> arguments, std::string_view why) const;

  struct State;  // the checks and computations of a launch, and the code of each device

  Graph traced_, graph_;
  std::unique_ptr<State> state_;
};

}  // namespace internal
}  // namespace tessera
