// Pipeline stages, groups of wgmma and of stores, proxy fences, and barriers of concurrent roles.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/plan/verify/open_matmuls.hpp"
#include "codegen/plan/verify/pipeline_use.hpp"
#include "codegen/plan/verify/shared_writes.hpp"
#include "codegen/plan/verify/split_k_tiles.hpp"
#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

/// Follows the steps of one role in order; those of a loop over grid tiles twice.
class RoleCheck {
 public:
  RoleCheck(Diagnostics& diagnostics, const Phase& phase, const Role& role)
      : diagnostics_(diagnostics),
        plan_(diagnostics.plan),
        role_(role),
        alone_(phase.roles.size() == 1),
        elected_(role.threads()),
        matmuls_(diagnostics),
        writes_(diagnostics, role),
        shared(diagnostics, phase.schedule, role) {}

  void run() {
    region(role_.body, &once);
    diagnostics_.about(nullptr);
    diagnostics_.require(matmuls_.none(), "wgmma are in flight at the end of role {}", role_.name);
    shared.end();
    writes_.end();
  }

  std::set<PipelineId> fills;
  std::map<PipelineId, double> released;   ///< arrivals at a stage's empty barrier, each time it is filled
  std::map<int, std::set<int>> meets;      ///< by id: thread counts of the named barriers that the role reaches
  std::set<std::pair<int, int>> comes_to;  ///< id of a named barrier, and a consumer group
  std::set<PipelineStateId> states;
  std::map<PipelineId, int> once;  ///< stages filled minus stages read, outside of all loops and branches

 private:
  // A body that may run any number of times: it must leave pipelines as it found them.
  void region(const Body& steps, std::map<PipelineId, int>* filled = nullptr) {
    std::map<PipelineStateId, PipelineUse> outer = std::exchange(uses_, {});
    for (const auto& [state, use] : outer) uses_[state].held = use.is_full();
    walk(steps);
    std::swap(outer, uses_);
    for (const auto& [state, use] : outer)
      if (filled) (*filled)[pipeline(state)] += use.acquired - use.filled;
    for (const auto& [state, use] : outer) {
      diagnostics_.about(nullptr);
      check_balance(diagnostics_, state, use);
      if (use.filled > 0) uses_[state].owed += use.owed;
    }
  }
  void walk(const Body& steps) {
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      visit_kind(
          Overloaded{
              [&](const ElectOne& s) {
        diagnostics_.require(s.threads >= 32 && role_.threads() % s.threads == 0, "one of every {} threads of {}",
                             s.threads, role_.threads());
        const int all = std::exchange(elected_, role_.threads() / std::max(s.threads, 1));
        walk(s.body);
        elected_ = all;
      },
              [&](const IfConsumerGroup& s) {
        diagnostics_.require(s.consumer_group >= 0 && s.consumer_group < role_.consumer_groups,
                             "there is no consumer group {} of {}", s.consumer_group, role_.name);
        walk(s.body);
      },
              [&](const IfFirstSplit& s) {
        const std::optional<bool> around = shared.enter(s, elected_);
        walk(s.body);
        shared.leave(around);
      },
              [&](const IfInGrid& s) { walk(s.body); },
              [&](const ForEachPeer& s) {
        shared.enter(s, elected_);
        walk(s.body);
        diagnostics_.about(&step);
        shared.leave(s);
      },
              [&](const TileLoop& s) {
        shared.tiles(s);
        diagnostics_.require(s.step >= 1 && s.first >= 0 && s.first < s.step, "grid tiles from {} by {}", s.first,
                             s.step);
        diagnostics_.require(role_.consumer_groups == 1 || (s.first == 0 && s.step == role_.consumer_groups),
                             "{} consumer groups share every {} grid tiles", role_.consumer_groups, s.step);
        share_ = s.step;
        for (int tile = 0; tile < 2; ++tile) {
          shared.begin_tile();
          region(s.body);
          matmuls_.end_tile();
          shared.end_tile();
        }
        share_ = 1;
      },
              [&](const Loop& s) {
        shared.loop(s);
        const bool around = std::exchange(in_loop_, true);
        const std::map<PipelineStateId, PipelineUse> before = uses_;
        region(s.body);
        if (!matmuls_.none()) {  // once more, for wgmma that an iteration leaves to the next
          uses_ = before;
          region(s.body);
        }
        in_loop_ = around;
      },
              [&](const Branch& s) {
        region(s.body);
        diagnostics_.about(&step);
        writes_.end_branch();
      },
              [&]<OneOf<Reduce, Argmax, LaneReduce> T>(const T& s) {
        values(step);
        walk(s.across);
      },
              [&](const CrossWarpReduce& s) { walk(s.per_chunk); },
              [&](const Barrier&) {
        diagnostics_.require(alone_ || role_.barrier, "a barrier of all threads in one of several roles");
        if (role_.barrier) barrier({.id = role_.barrier, .threads = role_.threads()});
      },
              [&]<OneOf<Compute, Load, Store, Atomic, StoreWarpPartials, ReduceWarpPartials, Scan, WriteScanTotals,
                        AddScanPrefix, Sort, Merge, HistogramUpdate, HistogramReduce, StoreScratch, LoadScratch,
                        GatherScratch, ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Mma, HostReport>
                      T>(const T&) { values(step); },
              [&](const LoadFragment& s) {
        values(step);
        diagnostics_.require(use(s.state).is_full(), "the stage is not known to be full");
        read_by_threads_.insert(pipeline(s.state));
        unmet_.insert(pipeline(s.state));
      },
              [&](const StoreShared& s) {
        values(step);
        if (s.state)
          fill(s);
        else if (plan_.buffers[s.buffer].form == SharedForm::panels)
          writes_.put(s.buffer);
      },
              [&](const SetMaxNReg& s) {
        diagnostics_.require(s.registers >= 24 && s.registers <= 240 && s.registers % 8 == 0,
                             "{} registers are not a multiple of 8 from 24 to 240", s.registers);
        diagnostics_.require(s.registers == role_.registers, "role {} has {} registers", role_.name, role_.registers);
      },
              [&]<OneOf<InitPipeline, MbarrierInitFence> T>(const T&) {
        diagnostics_.require(false, "a pipeline is initialized in a role, not in the prologue");
      },
              [&](const ZeroFillRows& s) {
        diagnostics_.require(elected_ == role_.threads(), "{} of {} threads zero it", elected_, role_.threads());
        writes_.clear(s.pipeline);
      },
              [&](const ZeroFillPastEnd& s) { clear(s); },
              [&](const WaitEmpty& s) { ++use(s.state).acquired; },
              [&](const ArriveExpectTx& s) {
        PipelineUse& use = this->use(s.state);
        diagnostics_.require(use.acquired > use.expected, "the stage is not known to be empty");
        diagnostics_.require(elected_ == 1, "{} threads expect its bytes", elected_);
        ++use.expected;
        ++use.arrived;
        fills.insert(pipeline(s.state));
      },
              [&](const TmaLoad& s) { load(s); },
              [&](const Arrive& s) { arrive(s); },
              [&](const WaitFull& s) {
        diagnostics_.require(!use(s.state).is_full(), "the stage is already full: it does not wait");
        ++use(s.state).filled;
        matmuls_.begin_stage(s.state);
        writes_.read(pipeline(s.state));
        if (plan_.pipelines[pipeline(s.state)].of_slice) writes_.come(s.state);
      },
              [&](const ArriveEmpty& s) { release(s); },
              [&](const AdvanceStage& s) { advance(s); },
              [&](const DeclareAccumulator& s) { matmuls_.declare(s); },
              [&](const PrefetchL2& s) {
        values(step);
        diagnostics_.require(s.access.axes.size() == 2 && (s.selected == 0 || s.selected == 1),
                             "a prefetch of {} axes selects axis {}", s.access.axes.size(), s.selected);
      },
              []<OneOf<RegisterFence, OrderedBarrier, PrefetchMap, GridDependencyWait, GridDependencyTrigger, Stamp> T>(
                  const T&) {},
              [&](const WgmmaFence&) { matmuls_.fence(); },
              [&](const Wgmma& s) { matmul(s); },
              [&](const PromoteSums& s) {
        values(step);
        matmuls_.promote(s);
        shared.mma(s.accumulators);
      },
              [&](const WgmmaCommit&) { matmuls_.commit(); },
              [&](const WgmmaWait& s) { matmuls_.wait(s.pending); },
              [&](const ProxyFence&) {
        diagnostics_.require(elected_ == role_.threads(), "{} of {} threads fence their writes", elected_,
                             role_.threads());
        writes_.fence();
        for (auto& [state, use] : uses_) use.unfenced.clear();
      },
              [&](const TmaStore& s) {
        diagnostics_.require(elected_ == 1, "{} threads store", elected_);
        writes_.copy(s);
      },
              [&](const TmaStoreCommit&) {
        diagnostics_.require(elected_ == 1, "{} threads commit stores", elected_);
        writes_.commit();
      },
              [&](const TmaStoreWait& s) { writes_.wait(s.pending); },
              [&](const NamedBarrier& s) { barrier(s); },
              [&](const PrefetchBeforeWait& s) { note(s.body); },
              [&](const IfNotPrefetched& s) {
        diagnostics_.require(elected_ == 1, "{} threads count prefetched k-iterations", elected_);
        walk(s.body);
      },
              [&](const SplitKRange& s) { shared.share(s); },
              [&]<OneOf<StorePartial, ReducePartials> T>(const T& s) {
        values(step);
        shared.part(s);
      },
              [&](const ClusterBarrier&) {
        diagnostics_.require(!in_loop_, "not all threads of the cluster reach it");
        shared.cluster_barrier(elected_);
        meet(true);
      },
              [&](const SignalPartial&) { shared.tell(elected_); },
              [&](const WaitPartial&) { shared.await(elected_); },
              [&](const WarpBarrier&) { unmet_.clear(); },
          },
          step.action);
    }
  }

  // Records the states; the loads are counted where the main loop skips them.
  void note(const Body& body) {
    for (const Step& step : body) {
      if (const auto* const expect = step.action.as<ArriveExpectTx>()) states.insert(expect->state);
      each_body(step, [&](const Body& inner) { note(inner); });
    }
  }

  PipelineId pipeline(PipelineStateId id) const { return plan_.states[id].pipeline; }
  PipelineUse& use(PipelineStateId id) {
    states.insert(id);
    return uses_[id];
  }

  void load(const TmaLoad& s) {
    PipelineUse& use = this->use(s.state);
    const Pipeline& pipeline = plan_.pipelines[this->pipeline(s.state)];
    const Buffer& buffer = plan_.buffers[s.buffer];
    const TensorMap& map = plan_.tensor_maps[s.map];
    const Parameter& tensor = plan_.tensors.at(static_cast<std::size_t>(map.tensor.argument));
    diagnostics_.require(elected_ == 1, "{} threads load", elected_);
    diagnostics_.require(use.expected > use.advanced, "its bytes are not expected");
    diagnostics_.require(
        std::find(pipeline.buffers.begin(), pipeline.buffers.end(), s.buffer) != pipeline.buffers.end(),
        "{} is not a buffer of the pipeline", name_of(plan_, s.buffer));
    const ElementType prefetched = map.tensor.type(tensor.type);
    diagnostics_.require(prefetched == buffer.type, "{} holds {}, but {} loads {}", name_of(plan_, s.buffer),
                         name(buffer.type), name_of(plan_, s.map), name(prefetched));
    diagnostics_.require(static_cast<int>(s.at.size()) == tensor.rank, "{} coordinates for {} axes", s.at.size(),
                         tensor.rank);
    diagnostics_.require(!map.store, "{} is a tensor map for stores", name_of(plan_, s.map));
    const std::int64_t bytes = map.box_bytes(tensor.type);
    diagnostics_.require(buffer.form == SharedForm::panels && map.tensor.box[0] == buffer.panel_columns(),
                         "rows of {} elements are not rows of a panel", map.tensor.box[0]);
    diagnostics_.require(s.offset % 1024 == 0 && s.offset >= 0 && s.offset + bytes <= buffer.stage_bytes(),
                         "{} bytes at {} of a stage of {}", bytes, s.offset, buffer.stage_bytes());
    const int parts = s.multicast_axis < 0 ? 1 : pipeline.cluster;
    diagnostics_.require(bytes * parts == buffer.panel_bytes(), "a box of {} rows in a panel of {}", map.rows() * parts,
                         buffer.rows);
    for (std::size_t i = 1; i < s.at.size(); ++i) {
      const int box = map.tensor.box[i] * (static_cast<int>(i) == s.multicast_axis ? parts : 1);
      diagnostics_.require(s.at[i].index.kind == Operand::Kind::literal || s.at[i].scale == box,
                           "boxes of {} along coordinate {} of tiles of {}", box, i, s.at[i].scale);
    }
    use.loaded += bytes * parts;
    clipped(s, map, pipeline);
  }
  // The pipeline and the tensor map must agree on clipped rows, so that the expected bytes match.
  void clipped(const TmaLoad& s, const TensorMap& map, const Pipeline& pipeline) {
    const auto found = std::ranges::find(pipeline.clipped, s.buffer, &ClippedRows::buffer);
    const bool known = found != pipeline.clipped.end();
    diagnostics_.require(known == map.tensor.clipped, "{} has {} rows than {}", name_of(plan_, s.map),
                         known ? "no fewer" : "fewer", name_of(plan_, s.buffer));
    if (!known || !map.tensor.clipped) return;
    const auto axis =
        std::ranges::find(map.tensor.axes, static_cast<std::int8_t>(found->axis)) - map.tensor.axes.begin();
    const bool is_rows = axis > 0 && axis < 5 && map.tensor.argument == found->argument &&
                         map.tensor.box[static_cast<std::size_t>(axis)] == plan_.buffers[s.buffer].rows;
    diagnostics_.require(is_rows, "rows of {} are not clipped like its boxes", name_of(plan_, s.buffer));
  }
  // Each thread of the role writes a part of the stage.
  void fill(const StoreShared& s) {
    PipelineUse& use = this->use(s.state);
    const Pipeline& pipeline = plan_.pipelines[this->pipeline(s.state)];
    diagnostics_.require(elected_ == role_.threads(), "{} of {} threads write", elected_, role_.threads());
    diagnostics_.require(use.acquired > use.advanced, "the stage is not known to be empty");
    diagnostics_.require(std::ranges::count(pipeline.buffers, s.buffer) == 1, "{} is not a buffer of the pipeline",
                         name_of(plan_, s.buffer));
    diagnostics_.require(use.written.insert(s.buffer).second, "{} is written twice", name_of(plan_, s.buffer));
    use.unfenced.insert(s.buffer);
    use.stored += s.sweep.shape.size() * info(plan_.buffers[s.buffer].type).bytes;
    fills.insert(this->pipeline(s.state));
  }
  // All threads of the role that reads the stage run it, before the stage is read.
  void clear(const ZeroFillPastEnd& s) {
    const Pipeline& pipeline = plan_.pipelines[this->pipeline(s.state)];
    diagnostics_.require(elected_ == role_.threads(), "{} of {} threads zero it", elected_, role_.threads());
    diagnostics_.require(use(s.state).is_full(), "the stage is not known to be full");
    diagnostics_.require(std::ranges::count(pipeline.buffers, s.buffer) == 1, "{} is not a buffer of the pipeline",
                         name_of(plan_, s.buffer));
    diagnostics_.require(!matmuls_.read_until(s.state, 0), "wgmma that read the stage are in flight");
    writes_.clear_beyond(s.state);
  }
  void arrive(const Arrive& s) {
    PipelineUse& use = this->use(s.state);
    for (BufferId buffer : use.unfenced)
      diagnostics_.require(false, "threads wrote {}: a fence must precede the arrival", name_of(plan_, buffer));
    diagnostics_.require(use.acquired > use.advanced, "the stage is not known to be empty");
    use.arrived += elected_;
    use.written.clear();
  }

  void release(const ArriveEmpty& s) {
    PipelineUse& use = this->use(s.state);
    // After the state has advanced, the stage that was read last is one behind.
    const int age = s.behind - (use.is_full() ? 0 : 1);
    diagnostics_.require(age >= 0, "the stage is released, but not known to be full");
    diagnostics_.require(!matmuls_.read_until(s.state, age), "wgmma that read the stage are in flight");
    writes_.read(s.state);
    const PipelineId pipeline = this->pipeline(s.state);
    diagnostics_.require(!read_by_threads_.contains(pipeline) || elected_ * 32 >= role_.threads(),
                         "{} of {} threads release a stage that each has read", elected_, role_.threads());
    diagnostics_.require(!unmet_.contains(pipeline),
                         "other threads of the warp may still read: a warp barrier must precede the release");
    ++use.released;
    if (s.not_first) ++use.owed;
    const double arrivals = static_cast<double>(elected_) / share_;
    const auto [before, first] = released.emplace(pipeline, arrivals);
    diagnostics_.require(first || before->second == arrivals, "{} threads arrive, but another number elsewhere",
                         elected_);
  }

  void advance(const AdvanceStage& s) {
    PipelineUse& use = this->use(s.state);
    if (s.of_others) {
      diagnostics_.require(use.acquired == 0 && use.filled == use.advanced, "it skips stages in use");
      return;
    }
    diagnostics_.require(s.by.kind == Operand::Kind::literal && s.by.literal == 1, "it must advance by one stage");
    ++use.advanced;
    matmuls_.end_stage();
  }

  void matmul(const Wgmma& s) {
    const auto is_full = [&](PipelineStateId state) {
      if (!state) return;
      diagnostics_.require(use(state).is_full(), "the stage is not known to be full");
      writes_.read(state);
    };
    is_full(s.a_state);
    is_full(s.b_state);
    matmuls_.start(s, role_);
    if (!is_fp8(s.type)) shared.mma(s.out);
  }

  void barrier(const NamedBarrier& s) {
    diagnostics_.require(s.id >= 1 && s.id + role_.consumer_groups <= 16, "there is no named barrier {}",
                         s.id + role_.consumer_groups - 1);
    diagnostics_.require(s.threads % 32 == 0 && s.threads >= role_.threads(),
                         "{} threads reach it, {} of them of this role", s.threads, role_.threads());
    diagnostics_.require(elected_ == role_.threads(), "{} of {} threads reach it", elected_, role_.threads());
    for (int consumer_group = 0; consumer_group < role_.consumer_groups; ++consumer_group) {
      const int id = s.id + (consumer_group + s.next_consumer_group) % role_.consumer_groups;
      meets[id].insert(s.threads);
      comes_to.emplace(id, consumer_group);
    }
    if (s.arrives && s.next_consumer_group) writes_.tell(s.id);
    if (!s.arrives) meet(role_.consumer_groups == 1 || writes_.told_by(s.id));
  }
  // Threads of all consumer groups meet, or of one.
  void meet(bool all_consumer_groups) {
    writes_.meet(all_consumer_groups);
    unmet_.clear();
    shared.met();
  }

  // No step may use registers of wgmma in flight. Scratch memory, and memory for values, is not duplicated per consumer
  // group.
  void values(const Step& step) {
    const auto check = [&](ValueId id) {
      const StorageClass storage_class = plan_.storage(id).storage_class;
      diagnostics_.require(role_.consumer_groups == 1 || storage_class == StorageClass::registers ||
                               storage_class == StorageClass::variable,
                           "{} is in memory that consumer groups share", name_of(plan_, id));
    };
    for (ValueId id : operands(step)) {
      check(id);
      matmuls_.use(id);
      shared.use(step, id);
    }
    for (ValueId id : results(step)) {
      check(id);
      matmuls_.make(id);
    }
    for (const Effect& effect : effects(plan_, role_, step))
      diagnostics_.require(role_.consumer_groups == 1 || effect.space != Effect::Space::scratch,
                           "consumer groups exchange elements in the same memory");
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role& role_;
  const bool alone_;
  int elected_;                                  // threads that run the current steps
  int share_ = 1;                                // consumer groups that take grid tiles in turn
  std::map<PipelineStateId, PipelineUse> uses_;  // of the current body
  OpenMatmuls matmuls_;
  std::set<PipelineId> read_by_threads_,
      unmet_;  // stages are read by threads; of these, some threads of a warp may not have read yet
  SharedWrites writes_;
  bool in_loop_ = false;

 public:
  SplitKTiles shared;
};

}  // namespace

void check_roles(Diagnostics& diagnostics) {
  const Plan& plan = diagnostics.plan;
  check_pipelines(diagnostics);
  if (!diagnostics.found.empty()) return;
  for (const Phase& phase : plan.phases) {
    diagnostics.about(nullptr);
    check_prologue(diagnostics, phase);
    check_prefetch(diagnostics, phase);
    std::map<PipelineId, int> filled, once;
    std::map<PipelineId, double> released;
    std::map<int, std::set<int>> sizes;
    std::map<int, int> threads;
    std::set<PipelineStateId> states;
    std::set<int> cluster_barriers;
    std::set<std::int64_t> tile_k_iterations;
    bool adds_up = false;
    int registers = 0;
    for (const Role& role : phase.roles) {
      diagnostics.require(phase.schedule.split_k == SplitK::none ||
                              (phase.schedule.kind == Schedule::Kind::tiles && role.consumer_groups == 1),
                          "{} consumer groups of role {} share the k-iterations of one tile", role.consumer_groups,
                          role.name);
      RoleCheck check(diagnostics, phase, role);
      check.run();
      for (PipelineId pipeline : check.fills) ++filled[pipeline];
      for (const auto& [pipeline, stages] : check.once) once[pipeline] += stages;
      for (const auto& [pipeline, arrivals] : check.released) released[pipeline] += arrivals * role.consumer_groups;
      for (const auto& [id, of_role] : check.meets) sizes[id].insert(of_role.begin(), of_role.end());
      for (const auto& [id, consumer_group] : check.comes_to) threads[id] += role.threads();
      for (PipelineStateId state : check.states)
        diagnostics.require(states.insert(state).second, "{} is used by two roles", name_of(plan, state));
      cluster_barriers.insert(check.shared.cluster_barriers);
      adds_up |= check.shared.adds_up;
      const auto& k_iterations = check.shared.tile_k_iterations;
      if (k_iterations && k_iterations->kind == Operand::Kind::literal) tile_k_iterations.insert(k_iterations->literal);
      registers += role.registers * role.threads() * role.consumer_groups;
    }
    for (const auto& [pipeline, stages] : once)
      diagnostics.require(stages == 0, "{}: outside of loops {} more stages are filled than read",
                          name_of(plan, pipeline), stages);
    diagnostics.require(cluster_barriers.size() == 1, "roles reach different numbers of cluster barriers");
    diagnostics.require((phase.schedule.split_k == SplitK::cluster) == (*cluster_barriers.begin() > 0),
                        "no partials of a cluster's CTAs are reduced");
    diagnostics.require((phase.schedule.split_k == SplitK::stream_k) == adds_up,
                        "no partials of peer CTAs are reduced");
    diagnostics.require(tile_k_iterations.size() <= 1, "roles count different k-iterations");
    diagnostics.require(plan.blocks * registers <= plan.target.registers,
                        "{} registers for the roles of each of {} CTAs", registers, plan.blocks);
    for (const auto& [pipeline, roles] : filled)
      diagnostics.require(roles == 1, "{} is filled by {} roles", name_of(plan, pipeline), roles);
    for (const auto& [pipeline, arrivals] : released)
      diagnostics.require(arrivals * plan.pipelines[pipeline].cluster == plan.pipelines[pipeline].empty_arrivals,
                          "{} arrive for each stage of {}, but {} are expected", arrivals, name_of(plan, pipeline),
                          plan.pipelines[pipeline].empty_arrivals);
    for (const auto& [id, of_barrier] : sizes)
      diagnostics.require(of_barrier.size() == 1 && *of_barrier.begin() == threads[id],
                          "{} threads reach named barrier {}, but {} are expected", threads[id], id,
                          *of_barrier.begin());
  }
}

}  // namespace tessera::internal::codegen
