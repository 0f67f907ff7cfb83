// Stages of rings, groups of wgmma and of stores, proxies, and barriers of roles at work at the same time.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/plan/open_products.hpp"
#include "codegen/plan/ring_use.hpp"
#include "codegen/plan/shared_tiles.hpp"
#include "codegen/plan/shared_writes.hpp"
#include "codegen/plan/verify.hpp"

namespace tessera::internal::codegen {
namespace {

/// The steps of one role, in order; those of a loop over tiles twice.
class RoleCheck {
 public:
  RoleCheck(Findings& findings, const Phase& phase, const Role& role)
      : findings_(findings),
        plan_(findings.plan),
        role_(role),
        alone_(phase.roles.size() == 1),
        elected_(role.threads()),
        products_(findings),
        writes_(findings, role),
        shared(findings, phase.schedule.sharing, role) {}

  void run() {
    region(role_.body, &once);
    findings_.about(nullptr);
    findings_.require(products_.none(), "products are open at the end of role {}", role_.name);
    shared.end();
    writes_.end();
  }

  std::set<RingId> fills;
  std::map<RingId, double> released;       ///< arrivals at a stage's empty barrier, of each time that it is filled
  std::map<int, std::set<int>> meets;      ///< by id: sizes of the barriers that the role comes to
  std::set<std::pair<int, int>> comes_to;  ///< a barrier's id and a team
  std::set<CursorId> cursors;
  std::map<RingId, int> once;  ///< stages filled, less those read, outside of all loops and branches

 private:
  // A body that may run any number of times: it leaves rings as it found them.
  void region(const Body& steps, std::map<RingId, int>* filled = nullptr) {
    std::map<CursorId, RingUse> outer = std::exchange(uses_, {});
    for (const auto& [cursor, use] : outer) uses_[cursor].held = use.is_full();
    walk(steps);
    std::swap(outer, uses_);
    for (const auto& [cursor, use] : outer)
      if (filled) (*filled)[ring(cursor)] += use.acquired - use.filled;
    for (const auto& [cursor, use] : outer) {
      balanced(cursor, use);
      if (use.filled > 0) uses_[cursor].owed += use.owed;
    }
  }
  void walk(const Body& steps) {
    for (const Step& step : steps) {
      findings_.about(&step);
      visit_kind(Overloaded{
                     [&](const Elected& s) {
        findings_.require(s.threads >= 32 && role_.threads() % s.threads == 0, "one of each {} threads of {}",
                          s.threads, role_.threads());
        const int all = std::exchange(elected_, role_.threads() / std::max(s.threads, 1));
        walk(s.body);
        elected_ = all;
      },
                     [&](const OfTeam& s) {
        findings_.require(s.team >= 0 && s.team < role_.teams, "there is no team {} of {}", s.team, role_.name);
        walk(s.body);
      },
                     [&](const OfPart& s) {
        const std::optional<bool> around = shared.enter(s, elected_);
        walk(s.body);
        shared.leave(around);
      },
                     [&](const EachPart& s) {
        shared.enter(s, elected_);
        walk(s.body);
        findings_.about(&step);
        shared.leave(s);
      },
                     [&](const TileLoop& s) {
        shared.tiles(s);
        findings_.require(s.step >= 1 && s.first >= 0 && s.first < s.step, "blocks {} of each {}", s.first, s.step);
        findings_.require(role_.teams == 1 || (s.first == 0 && s.step == role_.teams), "{} teams share each {} blocks",
                          role_.teams, s.step);
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
        const std::map<CursorId, RingUse> before = uses_;
        region(s.body);
        if (!products_.none()) {  // once more, for what a round leaves to the next
          uses_ = before;
          region(s.body);
        }
        in_loop_ = around;
      },
                     [&](const Branch& s) {
        region(s.body);
        findings_.about(&step);
        writes_.end_branch();
      },
                     [&]<OneOf<Reduce, Argmax, Replicas> T>(const T& s) {
        values(step);
        walk(s.across);
      },
                     [&](const Partials& s) { walk(s.round); },
                     [&](const Barrier&) {
        findings_.require(alone_ || role_.barrier, "a barrier of all threads in one of several roles");
        if (role_.barrier) barrier({.id = role_.barrier, .threads = role_.threads()});
      },
                     [&]<OneOf<Compute, Load, Store, Atomic, PutPartials, TakePartials, Scan, PutTotals, AddTotals, Sort,
                               Merge, CountNumbers, AddCounts, Put,
                               Get, Clear, Fetch, Commit, Wait, Multiply, Tell>
                             T>(const T&) { values(step); },
                     [&](const ReadStage& s) {
        values(step);
        findings_.require(use(s.cursor).is_full(), "the stage is not known to be full");
        read_by_threads_.insert(ring(s.cursor));
        unmet_.insert(ring(s.cursor));
      },
                     [&](const Stage& s) {
        values(step);
        if (s.cursor)
          fill(s);
        else if (plan_.buffers[s.buffer].form == SharedForm::panels)
          writes_.put(s.buffer);
      },
                     [&](const SetRegisters& s) {
        findings_.require(s.registers >= 24 && s.registers <= 240 && s.registers % 8 == 0,
                          "{} registers are no multiple of 8 from 24 to 240", s.registers);
        findings_.require(s.registers == role_.registers, "role {} has {} registers", role_.name, role_.registers);
      },
                     [&](const InitRing&) { findings_.require(false, "a ring is made in a role, not before them"); },
                     [&](const ClearRest& s) {
        findings_.require(elected_ == role_.threads(), "{} of {} threads clear it", elected_, role_.threads());
        writes_.clear(s.ring);
      },
                     [&](const ClearBeyond& s) { clear(s); },
                     [&](const Acquire& s) { ++use(s.cursor).acquired; },
                     [&](const Expect& s) {
        RingUse& use = this->use(s.cursor);
        findings_.require(use.acquired > use.expected, "the stage is not acquired");
        findings_.require(elected_ == 1, "{} threads expect its bytes", elected_);
        ++use.expected;
        ++use.arrived;
        fills.insert(ring(s.cursor));
      },
                     [&](const TmaLoad& s) { load(s); },
                     [&](const Arrive& s) { arrive(s); },
                     [&](const WaitFull& s) {
        findings_.require(!use(s.cursor).is_full(), "the stage is full already: it does not wait");
        ++use(s.cursor).filled;
        products_.begin_stage(s.cursor);
        writes_.read(ring(s.cursor));
        if (plan_.rings[ring(s.cursor)].of_slice) writes_.come(s.cursor);
      },
                     [&](const Release& s) { release(s); },
                     [&](const Advance& s) { advance(s); },
                     []<OneOf<Reserve, RegisterFence, Turn> T>(const T&) {},
                     [&](const WgmmaFence&) { products_.fence(); },
                     [&](const Wgmma& s) { product(s); },
                     [&](const CommitWgmma&) { products_.commit(); },
                     [&](const WaitWgmma& s) { products_.wait(s.pending); },
                     [&](const ProxyFence&) {
        findings_.require(elected_ == role_.threads(), "{} of {} threads fence what they wrote", elected_,
                          role_.threads());
        writes_.fence();
        for (auto& [cursor, use] : uses_) use.unfenced.clear();
      },
                     [&](const TmaStore& s) {
        findings_.require(elected_ == 1, "{} threads store", elected_);
        writes_.copy(s);
      },
                     [&](const CommitStores&) {
        findings_.require(elected_ == 1, "{} threads commit stores", elected_);
        writes_.commit();
      },
                     [&](const WaitStores& s) { writes_.wait(s.pending); },
                     [&](const NamedBarrier& s) { barrier(s); },
                     [](const PrefetchMap&) {},
                     [](const WaitForPrevious&) {},  // check_ahead
                     [&](const LetNextBegin&) {
        findings_.require(false, "the next launch begins in a role, not before them");
      },
                     [&](const BringAhead& s) { note(s.body); },
                     [&](const UnlessBrought& s) {
        findings_.require(elected_ == 1, "{} threads count what was brought", elected_);
        walk(s.body);
      },
                     [&](const ShareRounds& s) { shared.share(s); },
                     [&]<OneOf<PutPart, AddParts> T>(const T& s) {
        values(step);
        shared.part(s);
      },
                     [&](const ClusterBarrier&) {
        findings_.require(!in_loop_, "not all threads of the cluster come to it");
        shared.cluster_barrier(elected_);
        meet(true);
      },
                     [&](const TellPart&) { shared.tell(elected_); },
                     [&](const AwaitPart&) { shared.await(elected_); },
                     [&](const WarpBarrier&) { unmet_.clear(); },
                 },
                 step.action);
    }
  }

  // Rounds that are loaded later, too, and counted there.
  void note(const Body& body) {
    for (const Step& step : body) {
      if (const auto* const expect = step.action.as<Expect>()) cursors.insert(expect->cursor);
      each_body(step, [&](const Body& inner) { note(inner); });
    }
  }

  RingId ring(CursorId id) const { return plan_.cursors[id].ring; }
  RingUse& use(CursorId id) {
    cursors.insert(id);
    return uses_[id];
  }

  void load(const TmaLoad& s) {
    RingUse& use = this->use(s.cursor);
    const Ring& ring = plan_.rings[this->ring(s.cursor)];
    const Buffer& buffer = plan_.buffers[s.buffer];
    const TensorMap& map = plan_.tensor_maps[s.map];
    const Parameter& tensor = plan_.tensors.at(static_cast<std::size_t>(map.tensor.argument));
    findings_.require(elected_ == 1, "{} threads load", elected_);
    findings_.require(use.expected > use.advanced, "nobody expects its bytes");
    findings_.require(std::find(ring.buffers.begin(), ring.buffers.end(), s.buffer) != ring.buffers.end(),
                      "{} is no buffer of the ring", name_of(plan_, s.buffer));
    const ElementType brought = map.tensor.type(tensor.type);
    findings_.require(brought == buffer.type, "{} holds {}, and {} brings {}", name_of(plan_, s.buffer),
                      name(buffer.type), name_of(plan_, s.map), name(brought));
    findings_.require(static_cast<int>(s.at.size()) == tensor.rank, "{} coordinates in {} axes", s.at.size(),
                      tensor.rank);
    findings_.require(!map.store, "{} is a map to store by", name_of(plan_, s.map));
    const std::int64_t bytes = map.box_bytes(tensor.type);
    findings_.require(buffer.form == SharedForm::panels && map.tensor.box[0] == buffer.panel_columns(),
                      "rows of {} elements are no panel's", map.tensor.box[0]);
    findings_.require(s.offset % 1024 == 0 && s.offset >= 0 && s.offset + bytes <= buffer.stage_bytes(),
                      "{} bytes at {} of a stage of {}", bytes, s.offset, buffer.stage_bytes());
    use.loaded += bytes;
    clipped(s, map, ring);
  }
  // Are as many bytes expected as boxes of fewer rows have?
  void clipped(const TmaLoad& s, const TensorMap& map, const Ring& ring) {
    const auto found = std::ranges::find(ring.clipped, s.buffer, &ClippedRows::buffer);
    const bool known = found != ring.clipped.end();
    findings_.require(known == map.tensor.clipped, "{} has {} rows than {}", name_of(plan_, s.map),
                      known ? "no fewer" : "fewer", name_of(plan_, s.buffer));
    if (!known || !map.tensor.clipped) return;
    const auto axis =
        std::ranges::find(map.tensor.axes, static_cast<std::int8_t>(found->axis)) - map.tensor.axes.begin();
    const bool is_rows = axis > 0 && axis < 5 && map.tensor.argument == found->argument &&
                         map.tensor.box[static_cast<std::size_t>(axis)] == plan_.buffers[s.buffer].rows;
    findings_.require(is_rows, "rows of {} are not clipped as its boxes", name_of(plan_, s.buffer));
  }
  // All of the role's threads write a part of the stage each.
  void fill(const Stage& s) {
    RingUse& use = this->use(s.cursor);
    const Ring& ring = plan_.rings[this->ring(s.cursor)];
    findings_.require(elected_ == role_.threads(), "{} of {} threads write", elected_, role_.threads());
    findings_.require(use.acquired > use.advanced, "the stage is not acquired");
    findings_.require(std::ranges::count(ring.buffers, s.buffer) == 1, "{} is no buffer of the ring",
                      name_of(plan_, s.buffer));
    findings_.require(use.written.insert(s.buffer).second, "{} is written twice", name_of(plan_, s.buffer));
    use.unfenced.insert(s.buffer);
    use.stored += s.sweep.shape.size() * info(plan_.buffers[s.buffer].type).bytes;
    fills.insert(this->ring(s.cursor));
  }
  // Threads of all that read the stage, before any does.
  void clear(const ClearBeyond& s) {
    const Ring& ring = plan_.rings[this->ring(s.cursor)];
    findings_.require(elected_ == role_.threads(), "{} of {} threads clear it", elected_, role_.threads());
    findings_.require(use(s.cursor).is_full(), "the stage is not known to be full");
    findings_.require(std::ranges::count(ring.buffers, s.buffer) == 1, "{} is no buffer of the ring",
                      name_of(plan_, s.buffer));
    findings_.require(!products_.read_until(s.cursor, 0), "products that read the stage are open");
    writes_.clear_beyond(s.cursor);
  }
  void arrive(const Arrive& s) {
    RingUse& use = this->use(s.cursor);
    for (BufferId buffer : use.unfenced)
      findings_.require(false, "threads wrote {}: a fence stands before they say so", name_of(plan_, buffer));
    findings_.require(use.acquired > use.advanced, "the stage is not acquired");
    use.arrived += elected_;
    use.written.clear();
  }

  void release(const Release& s) {
    RingUse& use = this->use(s.cursor);
    // Behind the cursor's step on, the stage that was read last is one behind.
    const int age = s.behind - (use.is_full() ? 0 : 1);
    findings_.require(age >= 0, "the stage is not known to be full, and is released");
    findings_.require(!products_.read_until(s.cursor, age), "products that read the stage are open");
    writes_.read(s.cursor);
    const RingId ring = this->ring(s.cursor);
    findings_.require(!read_by_threads_.contains(ring) || elected_ * 32 >= role_.threads(),
                      "{} of {} threads release what each has read", elected_, role_.threads());
    findings_.require(!unmet_.contains(ring),
                      "other threads of the warp may read: a barrier of the warp stands before");
    ++use.released;
    if (s.not_first) ++use.owed;
    const double arrivals = static_cast<double>(elected_) / share_;
    const auto [before, first] = released.emplace(ring, arrivals);
    findings_.require(first || before->second == arrivals, "{} threads arrive, and elsewhere others", elected_);
  }

  void advance(const Advance& s) {
    RingUse& use = this->use(s.cursor);
    if (s.of_others) {
      findings_.require(use.acquired == 0 && use.filled == use.advanced, "stages in use are passed over");
      return;
    }
    findings_.require(s.by.kind == Operand::Kind::literal && s.by.literal == 1, "one stage is used at a time");
    ++use.advanced;
    products_.end_stage();
  }

  void balanced(CursorId id, const RingUse& use) {
    const Ring& ring = plan_.rings[this->ring(id)];
    const std::string name = name_of(plan_, id);
    std::int64_t bytes = 0;
    for (BufferId buffer : ring.buffers) bytes += plan_.buffers[buffer].stage_bytes();
    findings_.about(nullptr);
    const int expected = ring.bytes > 0 ? use.acquired : 0;
    findings_.require(use.expected == expected, "{}: {} stages acquired, {} expected", name, use.acquired,
                      use.expected);
    findings_.require(use.loaded == expected * ring.bytes, "{}: {} bytes loaded, {} expected", name, use.loaded,
                      expected * ring.bytes);
    findings_.require(use.loaded + use.stored == use.acquired * bytes, "{}: {} bytes loaded and written, of {}", name,
                      use.loaded + use.stored, use.acquired * bytes);
    findings_.require(use.arrived == use.acquired * ring.full_arrivals, "{}: {} threads arrive, and {} are awaited",
                      name, use.arrived, use.acquired * ring.full_arrivals);
    findings_.require(use.written.empty(), "{}: threads write, and do not say so", name);
    const int used = use.acquired + use.filled;
    findings_.require(use.acquired == 0 || use.filled == 0, "{}: one role fills and reads a ring", name);
    findings_.require(used == use.advanced, "{}: {} stages used, and it goes on by {}", name, used, use.advanced);
    // What a loop's last round owes is released behind it.
    const int owed_inside = use.filled > 0 ? 0 : use.owed;
    findings_.require(use.released == use.filled + owed_inside, "{}: {} stages read, {} released", name,
                      use.filled + owed_inside, use.released);
  }

  void product(const Wgmma& s) {
    const auto is_full = [&](CursorId cursor) {
      if (!cursor) return;
      findings_.require(use(cursor).is_full(), "the stage is not known to be full");
      writes_.read(cursor);
    };
    is_full(s.a_cursor);
    is_full(s.b_cursor);
    products_.start(s, role_);
    shared.multiply(s.out);
  }

  void barrier(const NamedBarrier& s) {
    findings_.require(s.id >= 1 && s.id + role_.teams <= 16, "there is no barrier {}", s.id + role_.teams - 1);
    findings_.require(s.threads % 32 == 0 && s.threads >= role_.threads(),
                      "{} threads come to it, {} of them this role's", s.threads, role_.threads());
    findings_.require(elected_ == role_.threads(), "{} of {} threads come to it", elected_, role_.threads());
    for (int team = 0; team < role_.teams; ++team) {
      const int id = s.id + (team + s.next_team) % role_.teams;
      meets[id].insert(s.threads);
      comes_to.emplace(id, team);
    }
    if (s.arrives && s.next_team) writes_.tell(s.id);
    if (!s.arrives) meet(role_.teams == 1 || writes_.told_by(s.id));
  }
  // Threads of all teams, or of one.
  void meet(bool all_teams) {
    writes_.meet(all_teams);
    unmet_.clear();
    shared.met();
  }

  // Registers of open products are nobody's. Memory that threads exchange elements in, or keep some in, is there once.
  void values(const Step& step) {
    const auto check = [&](ValueId id) {
      const Home home = plan_.storage(id).home;
      findings_.require(role_.teams == 1 || home == Home::registers || home == Home::variable,
                        "{} is in memory that teams share", name_of(plan_, id));
    };
    for (ValueId id : operands(step)) {
      check(id);
      products_.use(id);
      shared.use(step, id);
    }
    for (ValueId id : results(step)) {
      check(id);
      products_.make(id);
    }
    for (const Effect& effect : effects(plan_, role_, step))
      findings_.require(role_.teams == 1 || effect.space != Effect::Space::scratch,
                        "teams exchange elements in the same memory");
  }

  Findings& findings_;
  const Plan& plan_;
  const Role& role_;
  const bool alone_;
  int elected_;                       // threads that run the steps at hand
  int share_ = 1;                     // roles that take blocks in turn
  std::map<CursorId, RingUse> uses_;  // of the body at hand
  OpenProducts products_;
  std::set<RingId> read_by_threads_, unmet_;  // whose stages threads read; of those, not all of a warp may have done so
  SharedWrites writes_;
  bool in_loop_ = false;

 public:
  SharedTiles shared;
};

}  // namespace

void check_roles(Findings& findings) {
  const Plan& plan = findings.plan;
  check_rings(findings);
  if (!findings.found.empty()) return;
  for (const Phase& phase : plan.phases) {
    findings.about(nullptr);
    check_prologue(findings, phase);
    check_ahead(findings, phase);
    std::map<RingId, int> filled, once;
    std::map<RingId, double> released;
    std::map<int, std::set<int>> sizes;
    std::map<int, int> threads;
    std::set<CursorId> cursors;
    std::set<int> cluster_barriers;
    std::set<std::int64_t> tile_rounds;
    bool adds_up = false;
    int registers = 0;
    for (const Role& role : phase.roles) {
      findings.require(
          phase.schedule.sharing == Sharing::none || (phase.schedule.kind == Schedule::Kind::tiles && role.teams == 1),
          "{} teams of role {} share the rounds of one tile", role.teams, role.name);
      RoleCheck check(findings, phase, role);
      check.run();
      for (RingId ring : check.fills) ++filled[ring];
      for (const auto& [ring, stages] : check.once) once[ring] += stages;
      for (const auto& [ring, arrivals] : check.released) released[ring] += arrivals * role.teams;
      for (const auto& [id, of_role] : check.meets) sizes[id].insert(of_role.begin(), of_role.end());
      for (const auto& [id, team] : check.comes_to) threads[id] += role.threads();
      for (CursorId cursor : check.cursors)
        findings.require(cursors.insert(cursor).second, "{} is used by two roles", name_of(plan, cursor));
      cluster_barriers.insert(check.shared.cluster_barriers);
      adds_up |= check.shared.adds_up;
      const auto& rounds = check.shared.tile_rounds;
      if (rounds && rounds->kind == Operand::Kind::literal) tile_rounds.insert(rounds->literal);
      registers += role.registers * role.threads() * role.teams;
    }
    for (const auto& [ring, stages] : once)
      findings.require(stages == 0, "{}: outside of loops {} stages more are filled than read", name_of(plan, ring),
                       stages);
    findings.require(cluster_barriers.size() == 1, "roles come to different numbers of the cluster's barriers");
    findings.require((phase.schedule.sharing == Sharing::cluster) == (*cluster_barriers.begin() > 0),
                     "no sums of a cluster's blocks are added");
    findings.require((phase.schedule.sharing == Sharing::grid) == adds_up, "no sums of other blocks are added");
    findings.require(tile_rounds.size() <= 1, "roles count other rounds");
    findings.require(registers <= plan.target.registers, "{} registers for the roles of a block", registers);
    for (const auto& [ring, roles] : filled)
      findings.require(roles == 1, "{} is filled by {} roles", name_of(plan, ring), roles);
    for (const auto& [ring, arrivals] : released)
      findings.require(arrivals == plan.rings[ring].empty_arrivals,
                       "{} arrive for each stage of {}, and {} are awaited", arrivals, name_of(plan, ring),
                       plan.rings[ring].empty_arrivals);
    for (const auto& [id, of_barrier] : sizes)
      findings.require(of_barrier.size() == 1 && *of_barrier.begin() == threads[id],
                       "{} threads come to barrier {}, and {} are awaited", threads[id], id, *of_barrier.begin());
  }
}

}  // namespace tessera::internal::codegen
