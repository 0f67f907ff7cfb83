#include "codegen/passes/plan/plan_dce.hpp"

#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {
namespace {

bool is_pure(const Step& step) {
  return step.action.is<Compute>() || step.action.is<Load>() || step.action.is<LoadScratch>();
}

class DeadSteps {
 public:
  explicit DeadSteps(Plan& plan)
      : plan_(plan),
        uses_(static_cast<std::size_t>(plan.storages.size())),
        made_by_(static_cast<std::size_t>(plan.storages.size())) {}

  void run() {
    PlanWalk walk(plan_);
    walk.each([&](const Role&, const Step& step, int, const auto&) {
      for (ValueId id : operands(step)) ++uses_[at(id)];
      if (is_pure(step)) made_by_[at(results(step)[0])].push_back(&step);
    });
    for (int i = 0; i < plan_.storages.size(); ++i) check(static_cast<std::size_t>(i));
    while (!dead_.empty()) {
      const std::size_t storage = dead_.back();
      dead_.pop_back();
      for (const Step* step : made_by_[storage])
        for (ValueId id : operands(*step))
          if (--uses_[at(id)] == 0) check(at(id));
    }
    for (Phase& phase : plan_.phases)
      for (Role& role : phase.roles) erase(role.body);
  }

 private:
  std::size_t at(ValueId id) const { return static_cast<std::size_t>(plan_.values[id].storage.index); }
  bool is_dead(std::size_t storage) const {
    return uses_[storage] == 0 && !plan_.storages[StorageId{static_cast<int>(storage)}].changes;
  }
  void check(std::size_t storage) {
    if (is_dead(storage) && !made_by_[storage].empty()) dead_.push_back(storage);
  }
  void erase(Body& steps) {
    for (Step& step : steps) each_body(step, [&](Body& inner) { erase(inner); });
    std::erase_if(steps, [&](const Step& step) { return is_pure(step) && is_dead(at(results(step)[0])); });
  }

  Plan& plan_;
  std::vector<int> uses_;                          // by storage
  std::vector<std::vector<const Step*>> made_by_;  // by storage: pure steps
  std::vector<std::size_t> dead_;
};

}  // namespace

void eliminate_dead_steps(Plan& plan) { DeadSteps(plan).run(); }

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::plan_dce(lowering::Planning& planning) {
  codegen::eliminate_dead_steps(planning.plan);
  return true;
}
