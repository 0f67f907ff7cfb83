// Helpers that all roles of warp-specialized kernels share: steps around those of the graph.
#pragma once
#include "codegen/lower/lower.hpp"
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Registers of a producer thread, where TMA does all loads and one thread issues them.
inline constexpr int of_producer = 24;

class WarpRole : public RoleLowering {
 public:
  bool stages() const override { return false; }

 protected:
  /// Steps are attributed to node `about`.
  explicit WarpRole(Id about) : about_(about) {}

  template <class Kind>
  void push(Steps& steps, Kind kind) const {
    steps.push(about_, std::move(kind));
  }
  /// One of every `threads` threads runs it.
  template <class Inside>
  void elected(Steps& steps, int threads, const Inside& inside) const {
    ElectOne step{.threads = threads, .body = {}};
    steps.within(step.body, inside);
    push(steps, std::move(step));
  }
  template <class Inside>
  void tiles(Steps& steps, int step, const Inside& inside) const {
    TileLoop loop{.first = 0, .step = step, .body = {}};
    steps.within(loop.body, inside);
    push(steps, std::move(loop));
  }
  /// Loads the panels of a buffer into its current stage; `place(panel)` is where a panel begins in the tensor.
  template <class Place>
  void load_panels(Steps& steps, TensorMapId map, BufferId id, PipelineStateId at, const Place& place) const {
    const Buffer& buffer = steps.plan.buffers[id];
    for (int panel = 0; panel < buffer.columns / buffer.panel_columns(); ++panel)
      push(steps, TmaLoad{map, id, at, panel * buffer.panel_bytes(), place(panel)});
  }
  void set_registers(Steps& steps, int registers, bool more) const {
    if (registers > 0) push(steps, SetMaxNReg{registers, more});
  }

 private:
  const Id about_;
};

/// The prologue before the roles: prefetches tensor maps and initializes the pipelines.
void begin_roles(Plan& plan);

}  // namespace tessera::internal::lowering
