// Clusters whose CTAs load operands for each other.
#include <algorithm>

#include "codegen/plan/effects.hpp"
#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class MulticastCheck {
 public:
  MulticastCheck(Diagnostics& diagnostics, const Phase& phase)
      : diagnostics_(diagnostics), plan_(diagnostics.plan), phase_(phase), cluster_(phase.schedule.multicast) {}

  void run() {
    diagnostics_.about(nullptr);
    diagnostics_.require(cluster_ == 1 || cluster_ == 2, "a cluster of {} CTAs multicasts", cluster_);
    const auto ends = [](const Body& body) {
      const auto last =
          std::find_if_not(body.rbegin(), body.rend(), [](const Step& s) { return s.action.is<Stamp>(); });
      return last != body.rend() && last->action.is<ClusterBarrier>();
    };
    if (multicasts()) {
      diagnostics_.require(phase_.schedule.kind == Schedule::Kind::tiles && phase_.schedule.split_k == SplitK::none,
                           "CTAs that multicast do not have neighboring tiles");
      diagnostics_.require(ends(phase_.prologue), "CTAs that multicast do not wait for each other's mbarriers");
    }
    for (const Role& role : phase_.roles) {
      role_ = &role;
      barriers_ = 0;
      walk(role.body, false);
      diagnostics_.about(nullptr);
      diagnostics_.require(!multicasts() || (ends(role.body) && barriers_ == 1),
                           "role {} ends while other CTAs of the cluster may load for it", role.name);
    }
    diagnostics_.require(multicasts() == (loads_ > 0), "{} loads are multicast to {} CTAs", loads_, cluster_);
    if (plan_.phases.size() > 1) return;
    for (const Pipeline& pipeline : plan_.pipelines)
      diagnostics_.require(pipeline.cluster == 1 || pipeline.cluster == cluster_,
                           "{} CTAs fill the stages of a pipeline together, and {} multicast", pipeline.cluster,
                           cluster_);
  }

 private:
  bool multicasts() const { return cluster_ > 1; }
  void walk(const Body& steps, bool in_grid) {
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      if (const TmaLoad* load = step.action.as<TmaLoad>(); load && load->multicast_axis >= 0) check(*load);
      barriers_ += step.action.is<ClusterBarrier>();
      const bool guards = step.action.is<IfInGrid>();
      diagnostics_.require(!guards || multicasts(), "each CTA has a tile of the grid");
      const auto writes = [](const Effect& effect) { return effect.space == Effect::Space::tensor && effect.write; };
      const bool stores = step.action.is<TmaStore>() || std::ranges::any_of(effects(plan_, *role_, step), writes);
      diagnostics_.require(!multicasts() || in_grid || !stores, "a CTA without a tile writes a tensor");
      each_body(step, [&](const Body& body) { walk(body, in_grid || guards); });
    }
  }
  void check(const TmaLoad& load) {
    ++loads_;
    const Pipeline& pipeline = plan_.pipelines[plan_.states[load.state].pipeline];
    const TmaTensor& tensor = plan_.tensor_maps[load.map].tensor;
    const auto axis = static_cast<std::size_t>(load.multicast_axis);
    const int rows = plan_.buffers[load.buffer].rows;
    diagnostics_.require(pipeline.cluster == cluster_, "{} CTAs release the stage that {} fill", pipeline.cluster,
                         cluster_);
    diagnostics_.require(axis > 0 && axis < load.at.size() && tensor.box[axis] * cluster_ == rows &&
                             tensor.box[axis] % 8 == 0 && !tensor.clipped,
                         "{} CTAs do not load equal parts of {} rows", cluster_, rows);
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Phase& phase_;
  const int cluster_;
  const Role* role_ = nullptr;
  int barriers_ = 0, loads_ = 0;
};

}  // namespace

void check_multicast(Diagnostics& diagnostics) {
  for (const Phase& phase : diagnostics.plan.phases) MulticastCheck(diagnostics, phase).run();
}

}  // namespace tessera::internal::codegen
