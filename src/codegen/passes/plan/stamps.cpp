// Stamps a kernel that the profiler looks into: where a role begins to wait, load, multiply, compute and store.
// A stamp before setmaxnreg cost uniform registers as well.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/plan_text.hpp"

namespace tessera::internal::codegen {
namespace {

using Kind = StampTable::Activity::Kind;

// None: the step takes little time, and belongs to what comes before it.
std::optional<Kind> kind_of_action(const Step& step) {
  // clang-format off
  const Overloaded kind{
      []<OneOf<WaitEmpty, WaitFull, WgmmaWait, CpAsyncWait, TmaStoreWait, Barrier, ClusterBarrier, GridDependencyWait,
               WaitPartial> T>(const T&) { return std::optional(Kind::wait); },
      [](const NamedBarrier& s) { return s.arrives ? std::nullopt : std::optional(Kind::wait); },
      [](const OrderedBarrier& s) {
        return s.kind == OrderedBarrier::Kind::wait ? std::optional(Kind::wait) : std::nullopt;
      },
      []<OneOf<TmaLoad, Load, Fetch, LoadFragment, PrefetchBeforeWait, IfNotPrefetched> T>(const T&) { return std::optional(Kind::load); },
      []<OneOf<WgmmaFence, Wgmma, Mma> T>(const T&) { return std::optional(Kind::matmul); },
      []<OneOf<Store, Atomic, TmaStore, StorePartial> T>(const T&) { return std::optional(Kind::store); },
      []<OneOf<Compute, Reduce, Argmax, LaneReduce, CrossWarpReduce, Scan, WriteScanTotals, AddScanPrefix, Sort, Merge,
               HistogramUpdate, HistogramReduce, StoreScratch, LoadScratch, GatherScratch, StoreShared, ZeroFill,
               ZeroFillRows, ZeroFillPastEnd, PromoteSums, ReducePartials> T>(const T&) {
        return std::optional(Kind::compute);
      },
      [](const auto&) { return std::optional<Kind>(); },
  };
  // clang-format on
  return visit_kind(kind, step.action);
}

class Stamping {
 public:
  explicit Stamping(Plan& plan) : plan_(plan) {}

  void run() {
    for (Phase& phase : plan_.phases)
      for (Role& role : phase.roles) {
        role.stamp_row = static_cast<int>(plan_.stamps.rows.size());
        for (int group = 0; group < role.consumer_groups; ++group)
          plan_.stamps.rows.push_back(role.consumer_groups > 1 ? fmt::format("{} {}", role.name, group) : role.name);
        // A consumer's first warp shares its scheduler with the producer's thread, so that the others wait for it.
        const bool is_one_thread = &body_of(role.body) != &role.body;
        role.stamp_thread = phase.roles.size() > 1 && !is_one_thread ? 32 : 0;
        body(role.body, role.stamp_thread);
        const bool has_loop = phase.schedule.kind == Schedule::Kind::tiles;
        const bool sets_registers = !role.body.empty() && role.body.front().action.is<SetMaxNReg>();
        role.body.insert(role.body.begin() + (sets_registers ? 1 : 0),
                         has_loop ? Step{Stamp{stamps::role_begins, false}} : Step{Stamp{stamps::tile_begins, true}});
        body_of(role.body).push_back({Stamp{stamps::role_ends, false}});
      }
  }

 private:
  // That of the thread which runs the grid tiles of a producer, or the role's.
  static Body& body_of(Body& body) {
    ElectOne* const last = body.empty() ? nullptr : body.back().action.as<ElectOne>();
    const auto is_loop = [](const Step& step) { return step.action.is<TileLoop>(); };
    return last && std::ranges::any_of(last->body, is_loop) ? last->body : body;
  }

  // A number takes little time to compute, too.
  std::optional<Kind> kind_of(const Step& step) const {
    const Compute* const compute = step.action.as<Compute>();
    if (compute && plan_.storage(compute->out).storage_class == StorageClass::variable) return {};
    return kind_of_action(step);
  }

  // A run of steps of one kind has one stamp. Each wait, and each author's line with matmuls, is a run of its own. What
  // an elected thread does is not logged by others.
  void body(Body& steps, int thread) {
    Body stamped;
    std::optional<Kind> runs;
    Location where;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step& step = steps[i];
      const std::optional<Kind> kind = kind_of(step);
      const bool apart = kind == Kind::wait || (kind == Kind::matmul && step.location.line != where.line);
      if (kind && (runs != kind || apart)) {
        // Nothing may be between the fence and its matmul.
        const bool is_fence = step.action.is<WgmmaFence>() && i + 1 < steps.size();
        stamped.push_back({Stamp{number_of(*kind, is_fence ? steps[i + 1] : step)}});
        runs = kind, where = step.location;
      }
      const bool by_others = step.action.is<ElectOne>() && thread != 0;
      const Bodies inner = kind || by_others ? Bodies() : bodies_of(step, false);
      for (int of = 0; of < inner.count; ++of) body(*inner.at[of], thread);
      if (TileLoop* const loop = step.action.as<TileLoop>())
        loop->body.insert(loop->body.begin(), Step{Stamp{stamps::tile_begins, true}});
      if (inner.count > 0) runs = {};
      stamped.push_back(std::move(step));
    }
    steps = std::move(stamped);
  }

  std::uint32_t number_of(Kind kind, const Step& step) {
    const auto* const unless = step.action.as<IfNotPrefetched>();
    const Step& named = unless && !unless->body.empty() ? unless->body.back() : step;
    StampTable::Activity activity{.kind = kind, .what = step_text(plan_, named)};
    if (step.location.file) activity.file = step.location.file, activity.line = step.location.line;
    plan_.stamps.activities.push_back(std::move(activity));
    return stamps::first_activity + static_cast<std::uint32_t>(plan_.stamps.activities.size()) - 1;
  }

  Plan& plan_;
};

}  // namespace
}  // namespace tessera::internal::codegen

// Device functions of a persistent kernel are not stamped.
bool tessera::internal::plan_pass::stamps(lowering::Planning& planning) {
  if (planning.plan.variant.stamped && !planning.in_sequence) codegen::Stamping(planning.plan).run();
  return true;
}
