#include "codegen/plan/steps.hpp"

namespace tessera::internal::codegen {

Bodies bodies_of(Step& step) {
  Bodies found;
  const auto add = [&](auto&... bodies) { ((found.at[found.count++] = &bodies), ...); };
  visit_kind(Overloaded{
                 []<Leaf T>(T&) {},
                 [&]<OneOf<Reduce, Argmax, LaneReduce> T>(T& reduction) { add(reduction.across); },
                 [&](CrossWarpReduce& partials) { add(partials.per_chunk); },
                 [&](Loop& loop) { add(loop.arrive, loop.ahead, loop.issued, loop.body); },
                 [&]<OneOf<Branch, ElectOne, IfConsumerGroup, IfFirstSplit, ForEachPeer, TileLoop, PrefetchBeforeWait,
                           IfNotPrefetched>
                         T>(T& s) { add(s.body); },
             },
             step.action);
  return found;
}

}  // namespace tessera::internal::codegen
