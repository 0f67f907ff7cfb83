#include "codegen/lower/role_duty.hpp"

#include "codegen/plan/effects.hpp"

namespace tessera::lowering {
namespace {

// What threads read may have come to a multiprocessor's cache before the launch before wrote it; what the copy engine
// reads has not.
bool reads_by_threads(const Plan& plan) {
  bool reads = false;
  Walk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
    for (const Effect& effect : effects(plan, role, step))
      reads |= effect.space == Effect::Space::tensor && !effect.write;
  });
  return reads;
}

}  // namespace

// All this needs nothing of the launch before, and is done while that ends.
void begin_roles(Plan& plan) {
  Elected ahead{.threads = plan.threads(), .body = {}};
  for (int i = 0; i < plan.tensor_maps.size(); ++i) ahead.body.push_back({PrefetchMap{TensorMapId{i}}});
  Body& prologue = plan.phases.back().prologue;
  prologue = {{std::move(ahead)}};
  for (int i = 0; i < plan.rings.size(); ++i) prologue.push_back({InitRing{RingId{i}}});
  prologue.push_back({LetNextBegin{}});
  if (!reads_by_threads(plan)) prologue.push_back({WaitForPrevious{}});
  prologue.push_back({Barrier{}});
}

}  // namespace tessera::lowering
