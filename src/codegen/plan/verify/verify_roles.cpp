// Stages of pipelines, groups of wgmma and of stores, proxies, and barriers of roles at work at the same time.
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

/// The steps of one role, in order; those of a loop over tiles twice.
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
        shared(diagnostics, phase.schedule.split_k, role) {}

  void run() {
    region(role_.body, &once);
    diagnostics_.about(nullptr);
    diagnostics_.require(matmuls_.none(), "products are open at the end of role {}", role_.name);
    shared.end();
    writes_.end();
  }

  std::set<PipelineId> fills;
  std::map<PipelineId, double> released;   ///< arrivals at a stage's empty barrier, of each time that it is filled
  std::map<int, std::set<int>> meets;      ///< by id: sizes of the barriers that the role comes to
  std::set<std::pair<int, int>> comes_to;  ///< a barrier's id and a team
  std::set<PipelineStateId> states;
  std::map<PipelineId, int> once;  ///< stages filled, less those read, outside of all loops and branches

 private:
  // A body that may run any number of times: it leaves pipelines as it found them.
  void region(const Body& steps, std::map<PipelineId, int>* filled = nullptr) {
    std::map<PipelineStateId, PipelineUse> outer = std::exchange(uses_, {});
    for (const auto& [state, use] : outer) uses_[state].held = use.is_full();
    walk(steps);
    std::swap(outer, uses_);
    for (const auto& [state, use] : outer)
      if (filled) (*filled)[pipeline(state)] += use.acquired - use.filled;
    for (const auto& [state, use] : outer) {
      balanced(state, use);
      if (use.filled > 0) uses_[state].owed += use.owed;
    }
  }
  void walk(const Body& steps) {
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      visit_kind(Overloaded{
                     [&](const ElectOne& s) {
        diagnostics_.require(s.threads >= 32 && role_.threads() % s.threads == 0, "one of each {} threads of {}",
                             s.threads, role_.threads());
        const int all = std::exchange(elected_, role_.threads() / std::max(s.threads, 1));
        walk(s.body);
        elected_ = all;
      },
                     [&](const IfConsumerGroup& s) {
        diagnostics_.require(s.consumer_group >= 0 && s.consumer_group < role_.consumer_groups,
                             "there is no team {} of {}", s.consumer_group, role_.name);
        walk(s.body);
      },
                     [&](const IfFirstSplit& s) {
        const std::optional<bool> around = shared.enter(s, elected_);
        walk(s.body);
        shared.leave(around);
      },
                     [&](const ForEachPeer& s) {
        shared.enter(s, elected_);
        walk(s.body);
        diagnostics_.about(&step);
        shared.leave(s);
      },
                     [&](const TileLoop& s) {
        shared.tiles(s);
        diagnostics_.require(s.step >= 1 && s.first >= 0 && s.first < s.step, "blocks {} of each {}", s.first, s.step);
        diagnostics_.require(role_.consumer_groups == 1 || (s.first == 0 && s.step == role_.consumer_groups),
                             "{} teams share each {} blocks", role_.consumer_groups, s.step);
        share_ = s.step;
        for (int tile = 0; tile < 2; ++tile) {
          shared.begin_tile();
          region(s.body);
          shared.end_tile();
        }
        share_ = 1;
      },
                     [&](const Loop& s) {
        shared.loop(s);
        const bool around = std::exchange(in_loop_, true);
        const std::map<PipelineStateId, PipelineUse> before = uses_;
        region(s.body);
        if (!matmuls_.none()) {  // once more, for what a round leaves to the next
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
                     [&]<OneOf<Compute, Load, Store, Atomic, StoreWarpPartials, ReduceWarpPartials, Scan,
                               WriteScanTotals, AddScanPrefix, Sort, Merge, HistogramUpdate, HistogramReduce,
                               StoreScratch, LoadScratch, ZeroFill, Fetch, CpAsyncCommit, CpAsyncWait, Mma, HostReport>
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
                             "{} registers are no multiple of 8 from 24 to 240", s.registers);
        diagnostics_.require(s.registers == role_.registers, "role {} has {} registers", role_.name, role_.registers);
      },
                     [&](const InitPipeline&) {
        diagnostics_.require(false, "a pipeline is made in a role, not before them");
      },
                     [&](const ZeroFillRows& s) {
        diagnostics_.require(elected_ == role_.threads(), "{} of {} threads clear it", elected_, role_.threads());
        writes_.clear(s.pipeline);
      },
                     [&](const ZeroFillPastEnd& s) { clear(s); },
                     [&](const WaitEmpty& s) { ++use(s.state).acquired; },
                     [&](const ArriveExpectTx& s) {
        PipelineUse& use = this->use(s.state);
        diagnostics_.require(use.acquired > use.expected, "the stage is not acquired");
        diagnostics_.require(elected_ == 1, "{} threads expect its bytes", elected_);
        ++use.expected;
        ++use.arrived;
        fills.insert(pipeline(s.state));
      },
                     [&](const TmaLoad& s) { load(s); },
                     [&](const Arrive& s) { arrive(s); },
                     [&](const WaitFull& s) {
        diagnostics_.require(!use(s.state).is_full(), "the stage is full already: it does not wait");
        ++use(s.state).filled;
        matmuls_.begin_stage(s.state);
        writes_.read(pipeline(s.state));
        if (plan_.pipelines[pipeline(s.state)].of_slice) writes_.come(s.state);
      },
                     [&](const ArriveEmpty& s) { release(s); },
                     [&](const AdvanceStage& s) { advance(s); },
                     []<OneOf<DeclareAccumulator, RegisterFence, OrderedBarrier> T>(const T&) {},
                     [&](const WgmmaFence&) { matmuls_.fence(); },
                     [&](const Wgmma& s) { matmul(s); },
                     [&](const WgmmaCommit&) { matmuls_.commit(); },
                     [&](const WgmmaWait& s) { matmuls_.wait(s.pending); },
                     [&](const ProxyFence&) {
        diagnostics_.require(elected_ == role_.threads(), "{} of {} threads fence what they wrote", elected_,
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
                     [](const PrefetchMap&) {},
                     [](const GridDependencyWait&) {},  // check_prefetch
                     [&](const GridDependencyTrigger&) {
        diagnostics_.require(false, "the next launch begins in a role, not before them");
      },
                     [&](const PrefetchBeforeWait& s) { note(s.body); },
                     [&](const IfNotPrefetched& s) {
        diagnostics_.require(elected_ == 1, "{} threads count what was brought", elected_);
        walk(s.body);
      },
                     [&](const SplitKRange& s) { shared.share(s); },
                     [&]<OneOf<StorePartial, ReducePartials> T>(const T& s) {
        values(step);
        shared.part(s);
      },
                     [&](const ClusterBarrier&) {
        diagnostics_.require(!in_loop_, "not all threads of the cluster come to it");
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

  // Rounds that are loaded later, too, and counted there.
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
    diagnostics_.require(use.expected > use.advanced, "nobody expects its bytes");
    diagnostics_.require(
        std::find(pipeline.buffers.begin(), pipeline.buffers.end(), s.buffer) != pipeline.buffers.end(),
        "{} is no buffer of the pipeline", name_of(plan_, s.buffer));
    const ElementType prefetched = map.tensor.type(tensor.type);
    diagnostics_.require(prefetched == buffer.type, "{} holds {}, and {} brings {}", name_of(plan_, s.buffer),
                         name(buffer.type), name_of(plan_, s.map), name(prefetched));
    diagnostics_.require(static_cast<int>(s.at.size()) == tensor.rank, "{} coordinates in {} axes", s.at.size(),
                         tensor.rank);
    diagnostics_.require(!map.store, "{} is a map to store by", name_of(plan_, s.map));
    const std::int64_t bytes = map.box_bytes(tensor.type);
    diagnostics_.require(buffer.form == SharedForm::panels && map.tensor.box[0] == buffer.panel_columns(),
                         "rows of {} elements are no panel's", map.tensor.box[0]);
    diagnostics_.require(s.offset % 1024 == 0 && s.offset >= 0 && s.offset + bytes <= buffer.stage_bytes(),
                         "{} bytes at {} of a stage of {}", bytes, s.offset, buffer.stage_bytes());
    use.loaded += bytes;
    clipped(s, map, pipeline);
  }
  // Are as many bytes expected as boxes of fewer rows have?
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
    diagnostics_.require(is_rows, "rows of {} are not clipped as its boxes", name_of(plan_, s.buffer));
  }
  // All of the role's threads write a part of the stage each.
  void fill(const StoreShared& s) {
    PipelineUse& use = this->use(s.state);
    const Pipeline& pipeline = plan_.pipelines[this->pipeline(s.state)];
    diagnostics_.require(elected_ == role_.threads(), "{} of {} threads write", elected_, role_.threads());
    diagnostics_.require(use.acquired > use.advanced, "the stage is not acquired");
    diagnostics_.require(std::ranges::count(pipeline.buffers, s.buffer) == 1, "{} is no buffer of the pipeline",
                         name_of(plan_, s.buffer));
    diagnostics_.require(use.written.insert(s.buffer).second, "{} is written twice", name_of(plan_, s.buffer));
    use.unfenced.insert(s.buffer);
    use.stored += s.sweep.shape.size() * info(plan_.buffers[s.buffer].type).bytes;
    fills.insert(this->pipeline(s.state));
  }
  // Threads of all that read the stage, before any does.
  void clear(const ZeroFillPastEnd& s) {
    const Pipeline& pipeline = plan_.pipelines[this->pipeline(s.state)];
    diagnostics_.require(elected_ == role_.threads(), "{} of {} threads clear it", elected_, role_.threads());
    diagnostics_.require(use(s.state).is_full(), "the stage is not known to be full");
    diagnostics_.require(std::ranges::count(pipeline.buffers, s.buffer) == 1, "{} is no buffer of the pipeline",
                         name_of(plan_, s.buffer));
    diagnostics_.require(!matmuls_.read_until(s.state, 0), "products that read the stage are open");
    writes_.clear_beyond(s.state);
  }
  void arrive(const Arrive& s) {
    PipelineUse& use = this->use(s.state);
    for (BufferId buffer : use.unfenced)
      diagnostics_.require(false, "threads wrote {}: a fence stands before they say so", name_of(plan_, buffer));
    diagnostics_.require(use.acquired > use.advanced, "the stage is not acquired");
    use.arrived += elected_;
    use.written.clear();
  }

  void release(const ArriveEmpty& s) {
    PipelineUse& use = this->use(s.state);
    // Behind the cursor's step on, the stage that was read last is one behind.
    const int age = s.behind - (use.is_full() ? 0 : 1);
    diagnostics_.require(age >= 0, "the stage is not known to be full, and is released");
    diagnostics_.require(!matmuls_.read_until(s.state, age), "products that read the stage are open");
    writes_.read(s.state);
    const PipelineId pipeline = this->pipeline(s.state);
    diagnostics_.require(!read_by_threads_.contains(pipeline) || elected_ * 32 >= role_.threads(),
                         "{} of {} threads release what each has read", elected_, role_.threads());
    diagnostics_.require(!unmet_.contains(pipeline),
                         "other threads of the warp may read: a barrier of the warp stands before");
    ++use.released;
    if (s.not_first) ++use.owed;
    const double arrivals = static_cast<double>(elected_) / share_;
    const auto [before, first] = released.emplace(pipeline, arrivals);
    diagnostics_.require(first || before->second == arrivals, "{} threads arrive, and elsewhere others", elected_);
  }

  void advance(const AdvanceStage& s) {
    PipelineUse& use = this->use(s.state);
    if (s.of_others) {
      diagnostics_.require(use.acquired == 0 && use.filled == use.advanced, "stages in use are passed over");
      return;
    }
    diagnostics_.require(s.by.kind == Operand::Kind::literal && s.by.literal == 1, "one stage is used at a time");
    ++use.advanced;
    matmuls_.end_stage();
  }

  void balanced(PipelineStateId id, const PipelineUse& use) {
    const Pipeline& pipeline = plan_.pipelines[this->pipeline(id)];
    const std::string name = name_of(plan_, id);
    std::int64_t bytes = 0;
    for (BufferId buffer : pipeline.buffers) bytes += plan_.buffers[buffer].stage_bytes();
    diagnostics_.about(nullptr);
    const int expected = pipeline.bytes > 0 ? use.acquired : 0;
    diagnostics_.require(use.expected == expected, "{}: {} stages acquired, {} expected", name, use.acquired,
                         use.expected);
    diagnostics_.require(use.loaded == expected * pipeline.bytes, "{}: {} bytes loaded, {} expected", name, use.loaded,
                         expected * pipeline.bytes);
    diagnostics_.require(use.loaded + use.stored == use.acquired * bytes, "{}: {} bytes loaded and written, of {}",
                         name, use.loaded + use.stored, use.acquired * bytes);
    diagnostics_.require(use.arrived == use.acquired * pipeline.full_arrivals,
                         "{}: {} threads arrive, and {} are awaited", name, use.arrived,
                         use.acquired * pipeline.full_arrivals);
    diagnostics_.require(use.written.empty(), "{}: threads write, and do not say so", name);
    const int used = use.acquired + use.filled;
    diagnostics_.require(use.acquired == 0 || use.filled == 0, "{}: one role fills and reads a pipeline", name);
    diagnostics_.require(used == use.advanced, "{}: {} stages used, and it goes on by {}", name, used, use.advanced);
    // What a loop's last round owes is released behind it.
    const int owed_inside = use.filled > 0 ? 0 : use.owed;
    diagnostics_.require(use.released == use.filled + owed_inside, "{}: {} stages read, {} released", name,
                         use.filled + owed_inside, use.released);
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
    shared.mma(s.out);
  }

  void barrier(const NamedBarrier& s) {
    diagnostics_.require(s.id >= 1 && s.id + role_.consumer_groups <= 16, "there is no barrier {}",
                         s.id + role_.consumer_groups - 1);
    diagnostics_.require(s.threads % 32 == 0 && s.threads >= role_.threads(),
                         "{} threads come to it, {} of them this role's", s.threads, role_.threads());
    diagnostics_.require(elected_ == role_.threads(), "{} of {} threads come to it", elected_, role_.threads());
    for (int consumer_group = 0; consumer_group < role_.consumer_groups; ++consumer_group) {
      const int id = s.id + (consumer_group + s.next_consumer_group) % role_.consumer_groups;
      meets[id].insert(s.threads);
      comes_to.emplace(id, consumer_group);
    }
    if (s.arrives && s.next_consumer_group) writes_.tell(s.id);
    if (!s.arrives) meet(role_.consumer_groups == 1 || writes_.told_by(s.id));
  }
  // Threads of all teams, or of one.
  void meet(bool all_consumer_groups) {
    writes_.meet(all_consumer_groups);
    unmet_.clear();
    shared.met();
  }

  // Registers of open products are nobody's. Memory that threads exchange elements in, or keep some in, is there once.
  void values(const Step& step) {
    const auto check = [&](ValueId id) {
      const StorageClass storage_class = plan_.storage(id).storage_class;
      diagnostics_.require(role_.consumer_groups == 1 || storage_class == StorageClass::registers ||
                               storage_class == StorageClass::variable,
                           "{} is in memory that teams share", name_of(plan_, id));
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
                           "teams exchange elements in the same memory");
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role& role_;
  const bool alone_;
  int elected_;                                  // threads that run the steps at hand
  int share_ = 1;                                // roles that take blocks in turn
  std::map<PipelineStateId, PipelineUse> uses_;  // of the body at hand
  OpenMatmuls matmuls_;
  std::set<PipelineId> read_by_threads_,
      unmet_;  // whose stages threads read; of those, not all of a warp may have done so
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
                          "{} teams of role {} share the k_iterations of one tile", role.consumer_groups, role.name);
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
      diagnostics.require(stages == 0, "{}: outside of loops {} stages more are filled than read",
                          name_of(plan, pipeline), stages);
    diagnostics.require(cluster_barriers.size() == 1, "roles come to different numbers of the cluster's barriers");
    diagnostics.require((phase.schedule.split_k == SplitK::cluster) == (*cluster_barriers.begin() > 0),
                        "no sums of a cluster's blocks are added");
    diagnostics.require((phase.schedule.split_k == SplitK::stream_k) == adds_up, "no sums of other blocks are added");
    diagnostics.require(tile_k_iterations.size() <= 1, "roles count other k_iterations");
    diagnostics.require(registers <= plan.target.registers, "{} registers for the roles of a block", registers);
    for (const auto& [pipeline, roles] : filled)
      diagnostics.require(roles == 1, "{} is filled by {} roles", name_of(plan, pipeline), roles);
    for (const auto& [pipeline, arrivals] : released)
      diagnostics.require(arrivals == plan.pipelines[pipeline].empty_arrivals,
                          "{} arrive for each stage of {}, and {} are awaited", arrivals, name_of(plan, pipeline),
                          plan.pipelines[pipeline].empty_arrivals);
    for (const auto& [id, of_barrier] : sizes)
      diagnostics.require(of_barrier.size() == 1 && *of_barrier.begin() == threads[id],
                          "{} threads come to barrier {}, and {} are awaited", threads[id], id, *of_barrier.begin());
  }
}

}  // namespace tessera::internal::codegen
