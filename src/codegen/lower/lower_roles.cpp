// The roles of a specialised kernel: each lowers the graph anew, as far as it is its own.
#include <fmt/format.h>

#include "codegen/lower/boxes.hpp"
#include "codegen/lower/lower_fragments.hpp"
#include "codegen/lower/lower_shared.hpp"
#include "codegen/lower/role_duty.hpp"
#include "codegen/lower/specialise.hpp"
#include "codegen/lower/wgmma_tiles.hpp"
#include "codegen/plan/budget.hpp"

namespace tessera::lowering {
namespace {

// A named barrier for each team's turn at the tensor cores.
constexpr int team_turn = 3;

// Registers of a thread of the producer. All of them come to the barriers of a cluster, which takes some more; and what
// they copy themselves is in registers on its way, as much as sums leave room for.
constexpr int of_clusters = 40, of_copies = 104, of_few_copies = 56;
constexpr int most_sums_beside_copies = 144;

/// What the roles share.
class Shared {
 public:
  Shared(const Facts& facts, const Specialisation& how, const std::map<Id, ProductPlan>& products, Plan& plan)
      : Shared(facts, how, products.at(how.products[0]).product, plan) {
    // What threads read, one of each warp releases.
    const int arrivals = how.groups * (how.computed.empty() ? 1 : 4);
    Ring ring{.label = {.stem = "ring"}, .buffers = {}, .stages = how.stages, .empty_arrivals = arrivals};
    for (const Id id : how.products) {
      const ProductPlan& of = products.at(id);
      if (of.a.load != no_id) left[id] = operand(of.a, true, of.product.type);
      right[id] = operand(of.b, false, of.product.type);
    }
    for (const auto& [id, computed] : how.computed)
      for (const Id tile : computed.tiles) {
        const Source source = find_source(facts.graph, tile);
        tiles[tile] = {.buffer = operands[operand(source, true, facts[source.load].type)].buffer,
                       .turned = !is_k_major(facts.access(source.load), source.axis[0])};
      }
    brings_ahead = may_bring_ahead();
    for (const Operand& one : operands) {
      ring.buffers.push_back(one.buffer);
      if (one.by_threads) continue;
      ring.bytes += plan.buffers[one.buffer].stage_bytes();
      const GraphAccess access = facts.access(one.load);
      ring.clipped.push_back({.buffer = one.buffer,
                              .argument = access.parameter,
                              .axis = access.axes[static_cast<std::size_t>(one.rows)].tensor_axis});
    }
    ring.full_arrivals = (ring.bytes > 0 ? 1 : 0) + (how.by_threads.empty() ? 0 : 128);
    this->ring = plan.rings.add(std::move(ring));
  }

  /// A tile that the producer copies, and products read; `left`: as their left operand.
  struct Operand {
    Id load;
    bool left;
    BufferId buffer;
    bool k_major;
    int rows, columns;  ///< axes of the load
    bool by_threads;
    TensorMapId map;  ///< else
  };

  /// May a tensor have fewer rows than a stage?
  bool is_clipped() const { return !plan.rings[ring].clipped.empty(); }
  /// Registers of a thread of the producer that hold what it copies. Where offsets have 64 bits an address takes two
  /// beside each element, and of 32 bits ptxas has those of two tiles at a time: with 16 words a tile 56 bytes spilled.
  int of_copies_under_way(int element_bytes) const {
    if (!copies_many()) return 24;
    if (!plan.variant.wide) return 64;
    return element_bytes == 4 ? 8 : 40;
  }
  /// Those of a thread. None are set for one team of a warp group: each has all that there are for it.
  int producer_registers() const {
    if (how.groups * how.teams == 1) return 0;
    if (how.by_threads.empty()) return how.sharing == Sharing::cluster ? of_clusters : of_producer;
    return copies_many() ? of_copies : of_few_copies;
  }
  int consumer_registers() const {
    const int consumers = how.groups * how.teams;
    if (consumers == 1) return 0;
    return Budget(plan.target, 128 * (consumers + 1), true).taken(consumers, producer_registers());
  }

  const Facts& facts;
  const Specialisation& how;
  const int m, n, k;
  Plan& plan;
  std::vector<Operand> operands;
  std::map<Id, std::size_t> left, right;  ///< of products, among those
  std::map<Id, StagedTile> tiles;         ///< of left operands that are computed
  RingId ring;
  bool brings_ahead = false;  ///< right operands, mostly weights, ahead of the wait for launches before

 private:
  // What threads read stays behind that wait, for which they have no registers: such a launch begins behind the others.
  bool may_bring_ahead() const {
    if (!plan.target.begins_early || how.sharing == Sharing::grid || !how.by_threads.empty()) return false;
    for (Id id = 0; id < static_cast<Id>(facts.graph.nodes.size()); ++id)
      if (is_read(facts[id].op) && std::ranges::find(operands, id, &Operand::load) == operands.end()) return false;
    return std::ranges::all_of(operands, [&](const Operand& one) {
      const auto parameter = static_cast<std::size_t>(facts.access(one.load).parameter);
      return one.left || facts.graph.parameters[parameter].access == Access::in;
    });
  }
  bool copies_many() const {
    return m * n / (128 * how.groups) * static_cast<int>(how.products.size()) <= most_sums_beside_copies;
  }
  Shared(const Facts& facts, const Specialisation& how, const Product& product, Plan& plan)
      : facts(facts), how(how), m(product.m), n(product.n), k(product.k), plan(plan) {}

  // Products that have one in common, turned alike and as the same type, read one buffer.
  std::size_t operand(const Source& source, bool is_left, ElementType type) {
    const int k_axis = source.axis[is_left ? 1 : 0];
    const auto of_load = [&](const Operand& one) {
      return one.load == source.load && one.left == is_left && plan.buffers[one.buffer].type == type;
    };
    const auto found = std::ranges::find_if(
        operands, [&](const Operand& one) { return of_load(one) && (one.k_major ? one.columns : one.rows) == k_axis; });
    if (found != operands.end()) return static_cast<std::size_t>(found - operands.begin());
    operands.push_back(new_operand(source, is_left, std::ranges::any_of(operands, of_load), type));
    return operands.size() - 1;
  }
  Operand new_operand(const Source& source, bool is_left, bool turned, ElementType type) {
    const int k_axis = source.axis[is_left ? 1 : 0], other_axis = source.axis[is_left ? 0 : 1];
    const bool k_major = is_k_major(facts.access(source.load), other_axis);
    const int other = is_left ? m : n;
    const std::string suffix =
        std::string(is_left ? "" : "_right") + (turned ? "_turned" : "") + (type == ElementType::tf32 ? "_tf32" : "");
    Buffer buffer{.label = {.stem = "tile", .number = facts.number[source.load], .suffix = suffix},
                  .type = type,
                  .rows = k_major ? other : k,
                  .columns = k_major ? k : other,
                  .stages = how.stages,
                  .form = SharedForm::panels};
    Operand operand{.load = source.load,
                    .left = is_left,
                    .buffer = {},
                    .k_major = k_major,
                    .rows = k_major ? other_axis : k_axis,
                    .columns = k_major ? k_axis : other_axis,
                    .by_threads = how.by_threads.contains(source.load),
                    .map = {}};
    if (!operand.by_threads) operand.map = boxes_of(facts, plan, source.load, operand.rows, buffer, BoxUse::clipped);
    operand.buffer = plan.buffers.add(std::move(buffer));
    return operand;
  }
};

/// What both kinds of roles do: they go from tile to tile, with a cursor in the ring.
class RingDuty : public RoleDuty {
 public:
  RingDuty(Shared& shared, std::string_view name)
      : RoleDuty(shared.how.products[0]),
        shared_(shared),
        cursor_(shared.plan.cursors.add({.label = {.stem = fmt::format("at_{}", name)}, .ring = shared.ring})) {}
  Rounds rounds(Steps& steps, Id loop) override {
    if (!share_.count) return Duty::rounds(steps, loop);
    return {element_of(steps.plan, share_.count, steps.plan.values[share_.count].layout), share_.first};
  }

 protected:
  // Numbers that the launch decides stand ahead of the tiles.
  void launch_numbers(Steps& steps, const LowerNodes& lower) {
    lower([&](Id id) { return shared_.how.launch[id] != 0; });
    if (shared_.how.sharing == Sharing::cluster) share_rounds(steps);
  }
  void share_rounds(Steps& steps) {
    const Id rounds = steps.node(shared_.how.loop).in[0];
    const auto number = [&](std::string_view stem) {
      return steps.values.add(steps.values.label(rounds, stem), rounds, steps.layouts.of[rounds]);
    };
    share_ = {number("first"), number("rounds"), steps.scalar(rounds)};
    push(steps, share_);
  }
  template <class Inside>
  void tiles(Steps& steps, int step, const Inside& inside) {
    TileLoop loop{.first = 0, .step = step, .body = {}};
    const bool by_grid = shared_.how.sharing == Sharing::grid;
    if (by_grid) loop.rounds = all_rounds(steps);
    steps.within(loop.body, [&] {
      if (by_grid) share_rounds(steps);
      inside();
    });
    push(steps, std::move(loop));
  }
  bool in_tile(Id id) const { return !shared_.how.launch[id]; }
  tessera::codegen::Operand all_rounds(Steps& steps) { return steps.scalar(steps.node(shared_.how.loop).in[0]); }

  Shared& shared_;
  const CursorId cursor_;
  ShareRounds share_;  // where rounds are shared
};

class Producer final : public RingDuty {
 public:
  explicit Producer(Shared& shared) : RingDuty(shared, "producer") {
    if (shared.brings_ahead) brought_ = shared.plan.cursors.add({.label = {.stem = "at_brought"}, .ring = shared.ring});
  }

  bool does(Id id) const override { return shared_.how.ahead[id] || id == shared_.how.loop; }
  void whole(Steps& steps, const LowerNodes& lower) override {
    set_registers(steps, shared_.producer_registers(), false);
    launch_numbers(steps, lower);
    const auto tile = [&] { lower([&](Id id) { return in_tile(id); }); };
    if (shared_.brings_ahead) bring_ahead(steps, tile);
    const bool by_threads = !shared_.how.by_threads.empty();
    const bool in_cluster = shared_.how.sharing == Sharing::cluster;
    if (!in_cluster && !by_threads) return elected(steps, 128, [&] { tiles(steps, 1, tile); });
    tiles(steps, 1, [&] {
      by_threads ? tile() : elected(steps, 128, tile);
      for (int i = 0; in_cluster && i < 2; ++i) push(steps, ClusterBarrier{});
    });
  }
  void end_round(Steps& steps, LoopId) override {
    if (is_bringing_) {
      load_right(steps, brought_);
      return push(steps, Advance{brought_, literal(1)});
    }
    push(steps, Acquire{cursor_});
    if (shared_.how.by_threads.empty()) {
      load_boxes(steps);
    } else {
      if (shared_.plan.rings[shared_.ring].bytes > 0) elected(steps, 128, [&] { load_boxes(steps); });
      for (const Shared::Operand& operand : shared_.operands)
        if (operand.by_threads) copy(steps, operand);
      push(steps, ProxyFence{});
      push(steps, Arrive{cursor_});
    }
    push(steps, Advance{cursor_, literal(1)});
  }

 private:
  // The ring has as many stages free for it.
  template <class Tile>
  void bring_ahead(Steps& steps, const Tile& tile) {
    BringAhead bring{.most = shared_.how.stages, .body = {}};
    is_bringing_ = true;
    steps.values.call("_brought");
    steps.within(bring.body, tile);
    steps.values.call("");
    is_bringing_ = false;
    push(steps, std::move(bring));
  }
  void load_boxes(Steps& steps) {
    if (!shared_.brings_ahead) {
      push(steps, Expect{cursor_});
      return load(steps, cursor_, [](const Shared::Operand&) { return true; });
    }
    UnlessBrought unless;
    steps.within(unless.body, [&] { load_right(steps, cursor_); });
    push(steps, std::move(unless));
    load(steps, cursor_, [](const Shared::Operand& operand) { return operand.left; });
  }
  void load_right(Steps& steps, CursorId at) {
    push(steps, Expect{at});
    load(steps, at, [](const Shared::Operand& operand) { return !operand.left; });
  }
  // Boxes of those operands for which `which` holds.
  template <class Which>
  void load(Steps& steps, CursorId at, const Which& which) {
    for (const Shared::Operand& operand : shared_.operands) {
      if (operand.by_threads || !which(operand)) continue;
      const Buffer& buffer = shared_.plan.buffers[operand.buffer];
      for (int panel = 0; panel < buffer.columns / buffer.panel_columns(); ++panel)
        push(steps, TmaLoad{operand.map, operand.buffer, at, panel * buffer.panel_bytes(),
                            place_of_panel(steps, shared_.how.loop, operand.load, panel, buffer)});
    }
  }

  // Rows and columns of the buffer become the last axes of the tile; all others have an extent of 1.
  void copy(Steps& steps, const Shared::Operand& operand) {
    const Buffer& buffer = shared_.plan.buffers[operand.buffer];
    TileAccess access = steps.access_of(operand.load);
    const int rank = static_cast<int>(access.axes.size());
    const TileAccess::Axis rows = access.axes[static_cast<std::size_t>(operand.rows)],
                           columns = access.axes[static_cast<std::size_t>(operand.columns)];
    for (int i : {std::max(operand.rows, operand.columns), std::min(operand.rows, operand.columns)})
      access.axes.erase(access.axes.begin() + i);
    access.axes.insert(access.axes.end(), {rows, columns});
    access.fast = access.fast == operand.columns ? rank - 1 : -1;
    std::array<int, max_rank> extents{};
    for (int i = 0; i < rank; ++i)
      extents[static_cast<std::size_t>(i)] = access.axes[static_cast<std::size_t>(i)].extent;
    Sweep sweep{.shape = Shape(std::span(extents).first(static_cast<std::size_t>(rank))), .layout = {}};
    // A pair at least, of 16 bits a word.
    const int vector = std::max(access.vector, 2);
    sweep.layout = panels_layout(sweep.shape, buffer.panel_columns(), vector, steps.threads / 32);
    const int words = access.vector == 1 ? vector : vector * info(buffer.type).bytes / 4;
    const int under_way = shared_.of_copies_under_way(info(buffer.type).bytes);
    sweep.at_once = std::min(sweep.layout.registers() / vector, under_way / words);
    tessera::codegen::Operand element{.kind = tessera::codegen::Operand::Kind::fetched};
    const ElementType type = steps.node(operand.load).type;
    const Op op = type == buffer.type ? Op::broadcast : Op::cast;
    sweep.expression.terms = {{op, buffer.type, type, {std::move(element)}}};
    sweep.reads = {std::move(access)};
    steps.push(operand.load, Stage{.buffer = operand.buffer, .cursor = cursor_, .sweep = std::move(sweep)});
  }

  CursorId brought_;
  bool is_bringing_ = false;  // what is lowered is brought ahead
};

class Consumer final : public RingDuty {
 public:
  explicit Consumer(Shared& shared)
      : RingDuty(shared, "consumer"), fragments_(shared.how.computed, shared.tiles, shared.how.groups) {
    if (shared.how.boxed.empty()) return;
    const Id store = shared.how.boxed[0];
    const int parameter = shared.facts.access(store).parameter;
    const ElementType type = shared.facts.graph.parameters[static_cast<std::size_t>(parameter)].type;
    for (int i = 0; i < 2; ++i) {
      Buffer buffer{.label = {.stem = fmt::format("out{}", i)},
                    .type = type,
                    .rows = shared.m,
                    .columns = 1,
                    .form = SharedForm::panels,
                    .teams = shared.how.teams};
      buffer.columns = buffer.panel_columns();
      out_[i] = shared.plan.buffers.add(std::move(buffer));
    }
    parts_ = shared.n / shared.plan.buffers[out_[0]].columns;
  }

  void whole(Steps& steps, const LowerNodes& lower) override {
    set_registers(steps, shared_.consumer_registers(), true);
    launch_numbers(steps, lower);
    if (shared_.is_clipped()) clear_rest(steps);
    if (shared_.how.teams > 1) {
      // The second team's first tile is the second: it passes over the first's stages, and gives it the first turn.
      OfTeam second{.team = 1, .body = {}};
      steps.within(second.body, [&] {
        push(steps, NamedBarrier{.id = team_turn, .threads = 2 * steps.threads, .arrives = true, .next_team = true});
        push(steps, Advance{cursor_, all_rounds(steps), true});
      });
      push(steps, std::move(second));
    }
    tiles(steps, shared_.how.teams, [&] { tile(steps, lower); });
    if (parts_ > 0) elected(steps, steps.threads, [&] { push(steps, WaitStores{0}); });
  }

  bool does(Id id) const override {
    return std::ranges::none_of(shared_.how.computed, [&](const auto& one) { return one.second.nodes.contains(id); });
  }
  // Of what is read beside the sums a thread may have no registers to keep more than a few. What each round needs they
  // keep.
  bool reads_where_used(Id id) const override {
    const auto needs = [&](const auto& one) { return one.second.values.contains(id); };
    if (std::ranges::any_of(shared_.how.computed, needs)) return false;
    if (shared_.how.reads_ahead && is_read_ahead(id)) return false;
    return shared_.facts[id].shape.size() > 2 * 128 * std::int64_t{shared_.how.groups} / 8;
  }
  void before_loop(Steps& steps) override {
    // Fenced here, not in each round: else ptxas reads what the sums start from between products, and waits for each.
    for (const Id id : shared_.how.products) {
      const Id sums = steps.node(id).in[2];
      if (!starts_fresh(sums)) push(steps, RegisterFence{steps.values.of(sums)});
    }
    fragments_.reserve(steps);
    if (shared_.how.teams > 1) push(steps, NamedBarrier{.id = team_turn, .threads = 2 * steps.threads});
  }
  bool starts_fresh(Id argument) const override { return starts_from_zeros(shared_.facts, shared_.how.loop, argument); }
  bool multiply(Steps& steps, Id id, LoopId loop) override {
    const std::vector<Id>& products = shared_.how.products;
    const Id carried = steps.node(id).in[2];
    const bool fresh = starts_fresh(carried);
    sums_.push_back(steps.values.set(id, steps.values.of(carried)));
    const Shared::Operand& right = shared_.operands[shared_.right.at(id)];
    RoundProduct product{.wgmma = {.out = sums_.back(),
                                   .a = {},
                                   .b = right.buffer,
                                   .left = {},
                                   .a_cursor = {},
                                   .b_cursor = cursor_,
                                   .type = steps.node(steps.node(id).in[0]).type,
                                   .m = shared_.m,
                                   .n = shared_.n,
                                   .k = shared_.k,
                                   .b_k_major = right.k_major,
                                   .fresh = fresh ? loop : LoopId{}}};
    if (const auto left = shared_.left.find(id); left != shared_.left.end()) {
      product.wgmma.a = shared_.operands[left->second].buffer;
      product.wgmma.a_cursor = cursor_;
      product.wgmma.a_k_major = shared_.operands[left->second].k_major;
    } else {
      product.left = steps.node(id).in[0];
    }
    round_.push_back(std::move(product));
    if (id != products.back()) return true;
    push(steps, WaitFull{cursor_});
    if (!shared_.how.computed.empty()) return fragments_.multiply(steps, id, std::exchange(round_, {})), true;
    push(steps, WgmmaFence{});
    for (RoundProduct& one : std::exchange(round_, {})) push(steps, std::move(one.wgmma));
    push(steps, CommitWgmma{});
    for (const ValueId sums : sums_) push(steps, RegisterFence{sums});
    push(steps, WaitWgmma{1});
    return true;
  }
  // The stage before is read when all but the last group are done.
  void end_round(Steps& steps, LoopId loop) override {
    release(steps, loop);
    push(steps, Advance{cursor_, literal(1)});
  }
  void after_loop(Steps& steps) override {
    if (shared_.how.teams > 1)
      push(steps, NamedBarrier{.id = team_turn, .threads = 2 * steps.threads, .arrives = true, .next_team = true});
    push(steps, WaitWgmma{0});
    release(steps, {});
    for (const ValueId sums : sums_) push(steps, RegisterFence{sums});
    if (shared_.how.teams > 1) push(steps, Advance{cursor_, all_rounds(steps), true});
  }

  // By the copy engine, a part after another through two buffers in turn.
  bool store(Steps& steps, Id id) override {
    const auto& boxed = shared_.how.boxed;
    const auto found = std::ranges::find(boxed, id);
    if (found == boxed.end()) return false;
    const int columns = shared_.plan.buffers[out_[0]].columns;
    const TensorMapId map = boxes_of(shared_.facts, shared_.plan, id, 0, shared_.plan.buffers[out_[0]], BoxUse::store);
    const int before = static_cast<int>(found - boxed.begin()) * parts_, all = static_cast<int>(boxed.size()) * parts_;
    for (int part = 0; part < parts_; ++part) {
      const int number = before + part;
      const BufferId to = out_[number % 2];
      // Of an odd number the first goes to the buffer that the last of the tile before went to.
      const int pending = number == 0 && all % 2 ? 0 : 1;
      // What it reads is on its way while the buffer is waited for.
      SweepBuilder builder(steps, sweep_of(steps.facts, steps.layouts, id), id);
      Sweep sweep = builder.part(1, part * columns, columns).express(steps.node(id).in[0]).take();
      leave_rounding_to_memory(sweep.expression);
      elected(steps, steps.threads, [&] { push(steps, WaitStores{pending}); });
      push(steps, Barrier{});
      steps.push(id, Stage{.buffer = to, .sweep = std::move(sweep)});
      push(steps, ProxyFence{});
      push(steps, Barrier{});
      elected(steps, steps.threads, [&] {
        push(steps, TmaStore{map, to, place_of_panel(steps, shared_.how.loop, id, part, shared_.plan.buffers[to])});
        push(steps, CommitStores{});
      });
    }
    return true;
  }

 private:
  // What wgmma has read any thread of the group may release; what threads have, one of each warp behind its others.
  void release(Steps& steps, LoopId not_first) {
    const bool by_threads = !shared_.how.computed.empty();
    if (by_threads) push(steps, WarpBarrier{});
    elected(steps, by_threads ? 32 : 128, [&] { push(steps, Release{cursor_, 1, not_first}); });
  }
  bool is_read_ahead(Id id) const { return lowering::is_read_ahead(shared_.facts, shared_.how, id); }
  // What is read ahead of the loop, and the numbers that say where, come first. Of blocks that share rounds the first
  // does what follows the sums.
  void tile(Steps& steps, const LowerNodes& lower) {
    const Specialisation& how = shared_.how;
    const auto early = [&](Id id) { return how.reads_ahead && (how.ahead[id] || is_read_ahead(id)); };
    const auto behind = [&](Id id) { return shared_.facts.number[id] > shared_.facts.number[how.loop]; };
    const auto late = [&] { lower([&](Id id) { return in_tile(id) && !early(id) && behind(id); }); };
    lower([&](Id id) { return in_tile(id) && early(id); });
    lower([&](Id id) { return in_tile(id) && !early(id) && !behind(id); });
    if (how.sharing == Sharing::none) return late();
    lower_shared_tile(steps, how.products[0], how.sharing, sums_[0], share_, late);
  }
  // The producer does not wait for it: boxes fill other rows. Teams know of each other's part when it is their turn.
  void clear_rest(Steps& steps) {
    // Of the grid a block has rounds of several tiles.
    const bool by_grid = shared_.how.sharing == Sharing::grid;
    push(steps, ClearRest{shared_.ring, by_grid ? literal(shared_.how.stages) : rounds(steps, shared_.how.loop).count});
    push(steps, ProxyFence{});
    if (shared_.how.teams == 1) push(steps, Barrier{});
  }

  BufferId out_[2];
  int parts_ = 0;
  std::vector<ValueId> sums_;
  Fragments fragments_;
  std::vector<RoundProduct> round_;  // of the loop, so far
};

}  // namespace

void lower_roles(const Facts& facts, Specialisation how, const Products& products, const Layouts& layouts, Plan& plan) {
  // The buffers of stores hold elements as they lie in sums.
  const Layout& sums = products.plans.at(how.products[0]).layout;
  std::erase_if(how.boxed, [&](Id store) { return layouts.of[facts[store].in[0]] != sums; });
  Phase& phase = plan.phases.back();
  Shared shared(facts, how, products.plans, plan);
  phase.schedule.kind = Schedule::Kind::tiles;
  phase.schedule.sharing = how.sharing;
  Role producer{.name = "producer", .first_warp = 0, .warps = 4, .registers = shared.producer_registers()};
  Role consumer{.name = "consumer",
                .first_warp = 4,
                .warps = 4 * how.groups,
                .registers = shared.consumer_registers(),
                .teams = how.teams,
                .barrier = team_threads};
  constexpr int all_in_registers = 256;
  lower(facts, products.plans, layouts, all_in_registers, {}, {.suffix = "_ahead"}, plan, producer, Producer(shared));
  lower(facts, products.plans, layouts, all_in_registers, {}, {}, plan, consumer, Consumer(shared));
  phase.roles.push_back(std::move(producer));
  phase.roles.push_back(std::move(consumer));
  begin_roles(plan);
}

}  // namespace tessera::lowering
