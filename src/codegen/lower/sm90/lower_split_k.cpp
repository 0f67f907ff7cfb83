#include "codegen/lower/sm90/lower_split_k.hpp"

namespace tessera::internal::lowering {

void lower_shared_tile(Steps& steps, Id id, SplitK split_k, ValueId sums, const SplitKRange& share,
                       const std::function<void()>& late) {
  const bool by_grid = split_k == SplitK::stream_k;
  const ScratchId parts = steps.plan.scratch.add({.type = ElementType::f32,
                                                  .bytes = steps.node(id).shape.size() * info(ElementType::f32).bytes,
                                                  .in_workspace = by_grid});
  const auto within = [&](auto step, const std::function<void()>& inside) {
    steps.within(step.body, inside);
    steps.push(id, std::move(step));
  };
  const auto of_part = [&](bool first, const std::function<void()>& inside) {
    within(IfFirstSplit{.first = first, .body = {}, .share = by_grid ? share.first : ValueId{}}, inside);
  };
  const auto elected = [&](auto step) { steps.elect(id, steps.threads, [&] { steps.push(id, step); }); };
  if (!by_grid) {
    of_part(false, [&] { steps.push(id, StorePartial{parts, sums}); });
    steps.push(id, ClusterBarrier{});
    of_part(true, [&] { steps.push(id, ReducePartials{parts, sums}); });
    steps.push(id, ClusterBarrier{});
    return of_part(true, late);
  }
  // A CTA starts with the last k-iterations of its first tile, and ends with the first k-iterations of its last tile.
  // So the partials that a CTA waits for were started as early as its own.
  of_part(false, [&] {
    steps.push(id, StorePartial{parts, sums});
    steps.push(id, Barrier{});
    elected(SignalPartial{});
  });
  of_part(true, [&] {
    within(ForEachPeer{.body = {}, .k_iterations = share.k_iterations}, [&] {
      elected(WaitPartial{});
      steps.push(id, Barrier{});
      steps.push(id, ReducePartials{parts, sums});
    });
    late();
  });
}

}  // namespace tessera::internal::lowering
