// Plans of several roles, built by hand: a matrix product by the copy engine and wgmma, as the kernels of sm_90 will be
// lowered. They verify, print, and compile; each rule of roles is broken once.
#include <fmt/format.h>

#include <functional>

#include "catch.hpp"
#include "codegen/emit/emit.hpp"
#include "codegen/lower/make_plan.hpp"
#include "codegen/lower/memory.hpp"
#include "codegen/plan/plan.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify_plan.hpp"
#include "codegen/prelude/prelude.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support.hpp"

using namespace tessera;
using namespace tessera::codegen;

namespace {

struct Tile {
  int m, n;  ///< of a block of threads
  int stages;
  bool in_turn;    ///< two roles with tiles of their own, in turn at the tensor cores, or one role of two warp groups
  bool b_along_n;  ///< B is [K,N], else [N,K]
};

/// C[M,N] = A[M,K] B, bf16.
class ProductPlan {
 public:
  explicit ProductPlan(const Tile& tile) : tile_(tile) {
    plan.kernel = plan.author = "product";
    plan.target = Target::of(Arch::sm_90a);
    const TensorClass dense{.unit_axis = 1, .alignment = 16, .divisible = 0, .boxable = true};
    for (Access access : {Access::in, Access::in, Access::out}) {
      plan.tensors.push_back({.access = access, .type = ElementType::bf16, .rank = 2});
      plan.variant.tensors.push_back(dense);
    }
    Phase& phase = plan.phases.emplace_back();
    phase.axes = 2;
    phase.schedule = {.kind = Schedule::Kind::tiles, .group = 8};
    a_ = buffer("left", tile.m, k);
    b_ = tile.b_along_n ? buffer("right", k, tile.n) : buffer("right", tile.n, k);
    Ring ring{.label = {.stem = "ring"}, .buffers = {a_, b_}, .stages = tile.stages};
    ring.empty_arrivals = tile.in_turn ? 1 : 2;
    ring.bytes = plan.buffers[a_].stage_bytes() + plan.buffers[b_].stage_bytes();
    ring_ = plan.rings.add(std::move(ring));
    map_a_ = map("map_a", 0, tile.m, false);
    map_b_ = map("map_b", 1, tile.b_along_n ? k : tile.n, false);
    map_c_ = map("map_c", 2, tile.m, true);
    extent_k_ = known(ExtentParameter{0, 1});
    row_ = known(BlockIndex{0});
    column_ = known(BlockIndex{1});
    phase.prologue = {{InitRing{ring_}}, {Barrier{}}};
    phase.roles.push_back(producer());
    if (tile.in_turn)
      for (int i = 0; i < 2; ++i) phase.roles.push_back(consumer(i));
    else
      phase.roles.push_back(consumer(0));
    place_memory(plan);
    choose_copies(plan);
    lowering::set_parameters(plan);
  }

  Plan plan;

 private:
  static constexpr int k = 64;

  BufferId buffer(std::string name, int rows, int columns, int stages = 0) {
    return plan.buffers.add({.label = {.stem = std::move(name)},
                             .type = ElementType::bf16,
                             .rows = rows,
                             .columns = columns,
                             .stages = stages ? stages : tile_.stages,
                             .form = SharedForm::panels});
  }
  TensorMapId map(std::string name, int argument, int rows, bool store) {
    return plan.tensor_maps.add(
        {.label = {.stem = std::move(name)},
         .tensor = {.argument = argument, .axes = {1, 0, -1, -1, -1}, .box = {64, rows, 1, 1, 1}},
         .store = store});
  }
  ValueId known(Known known) {
    const StorageId storage =
        plan.storages.add({.label = {}, .type = ElementType::i32, .home = Home::variable, .known = known});
    return plan.values.add({storage, Shape{}, Layout(0)});
  }
  static Operand of(ValueId value) { return {.kind = Operand::Kind::value, .value = value, .map = {}}; }
  static Operand literal(std::int64_t number) { return {.kind = Operand::Kind::literal, .map = {}, .literal = number}; }
  static Operand term(int index) { return {.kind = Operand::Kind::term, .index = index, .map = {}}; }

  // The rounds of k.
  Step rounds(const std::string& role, ValueId& out) {
    const StorageId storage =
        plan.storages.add({.label = {.stem = "rounds_" + role}, .type = ElementType::i32, .home = Home::variable});
    out = plan.values.add({storage, Shape{}, Layout(0)});
    const ElementType i32 = ElementType::i32;
    Sweep sweep{.shape = Shape{}, .layout = Layout(0)};
    sweep.expression.terms = {{Op::add, i32, i32, {of(extent_k_), literal(k - 1)}},
                              {Op::floor_div, i32, i32, {term(0), literal(k)}}};
    return {Compute{.out = out, .sweep = std::move(sweep)}};
  }
  LoopId loop(const std::string& role) { return plan.loops.add({{.stem = "k_" + role}}); }
  ValueId counter(LoopId loop) { return known(Counter{loop}); }
  CursorId cursor(const std::string& role) { return plan.cursors.add({{.stem = "at_" + role}, ring_}); }

  Role producer() {
    Role role{.name = "producer", .first_warp = 0, .warps = 4, .body = {}, .registers = 40};
    ValueId count;
    const LoopId over = loop("producer");
    const Operand at_k = of(counter(over));
    const CursorId at = cursor("producer");
    Body round{{Acquire{at}}, {Expect{at}}};
    round.push_back({TmaLoad{map_a_, a_, at, 0, {{at_k, k, 0}, {of(row_), tile_.m, 0}}}});
    if (tile_.b_along_n)
      for (int n = 0; n < tile_.n; n += 64)
        round.push_back({TmaLoad{
            map_b_, b_, at, n / 64 * plan.buffers[b_].panel_bytes(), {{of(column_), tile_.n, n}, {at_k, k, 0}}}});
    else
      round.push_back({TmaLoad{map_b_, b_, at, 0, {{at_k, k, 0}, {of(column_), tile_.n, 0}}}});
    round.push_back({Advance{at, literal(1)}});
    role.body.push_back({SetRegisters{40, false}});
    role.body.push_back(rounds("producer", count));
    Loop step{.loop = over, .count = of(count), .arrive = {}, .ahead = {}, .issued = {}, .body = std::move(round)};
    role.body.push_back({Elected{128, {{TileLoop{0, 1, {{std::move(step)}}}}}}});
    return role;
  }

  Role consumer(int turn) {
    const std::string name = fmt::format("consumer{}", turn);
    const int groups = tile_.in_turn ? 1 : 2;
    Role role{.name = name, .first_warp = 4 + 4 * turn, .warps = 4 * groups, .body = {}, .registers = 232};
    ValueId count;
    const LoopId over = loop(name);
    const CursorId at = cursor(name);
    const Shape shape{tile_.m, tile_.n};
    const Layout layout = wgmma_accumulator_layout(shape, groups);
    const StorageId storage = plan.storages.add({.label = {.stem = "sums_" + name},
                                                 .type = ElementType::f32,
                                                 .registers = layout.registers(),
                                                 .changes = true});
    const ValueId sums = plan.values.add({storage, shape, layout});
    Sweep zero{.shape = shape, .layout = layout};
    zero.expression.terms = {{Op::broadcast, ElementType::f32, ElementType::f32, {literal(0)}}};

    Body round{{WaitFull{at}}, {RegisterFence{sums}}, {WgmmaFence{}}};
    round.push_back({Wgmma{sums, a_, b_, at, ElementType::bf16, tile_.m, tile_.n, k}});
    round.push_back({CommitWgmma{}});
    round.push_back({RegisterFence{sums}});
    round.push_back({WaitWgmma{1}});
    round.push_back({Elected{128, {{Release{at, 1, over}}}}});
    round.push_back({Advance{at, literal(1)}});

    Body tile;
    const auto mine = [](int turn) { return 4 + turn; };
    if (tile_.in_turn) tile.push_back({NamedBarrier{mine(turn), 256, false}});
    tile.push_back({Compute{.out = sums, .sweep = std::move(zero)}});
    tile.push_back(
        {Loop{.loop = over, .count = {}, .arrive = {}, .ahead = {}, .issued = {}, .body = std::move(round)}});
    if (tile_.in_turn) tile.push_back({NamedBarrier{mine(1 - turn), 256, true}});
    tile.push_back({WaitWgmma{0}});
    tile.push_back({Elected{128, {{Release{at, 1, {}}}}}});
    tile.push_back({RegisterFence{sums}});
    const Step count_rounds = rounds(name, count);
    std::get<Loop>(tile[tile_.in_turn ? 2 : 1].action).count = of(count);
    if (tile_.in_turn) tile.push_back({Advance{at, of(count)}});
    // Columns go by two buffers in turn.
    std::array<BufferId, 2> out;
    for (int i = 0; i < 2; ++i)
      out[static_cast<std::size_t>(i)] = buffer(fmt::format("out{}_{}", i, name), tile_.m, 64, 1);
    const int threads = role.threads(), id = 1 + turn;
    for (int n = 0; n < tile_.n; n += 64) {
      const BufferId to = out[static_cast<std::size_t>(n / 64 % 2)];
      // Of an odd number the first goes to the buffer that the last of the tile before went to.
      const int pending = n == 0 && tile_.n / 64 % 2 ? 0 : 1;
      tile.push_back({Elected{threads, {{WaitStores{pending}}}}});
      tile.push_back({NamedBarrier{id, threads, false}});
      tile.push_back({StoreMatrix{to, sums, n}});
      tile.push_back({ProxyFence{}});
      tile.push_back({NamedBarrier{id, threads, false}});
      tile.push_back({Elected{
          threads, {{TmaStore{map_c_, to, {{of(column_), tile_.n, n}, {of(row_), tile_.m, 0}}}}, {CommitStores{}}}}});
    }
    role.body = {{SetRegisters{232, true}}, count_rounds};
    if (turn == 1) {
      role.body.push_back({NamedBarrier{mine(0), 256, true}});
      role.body.push_back({Advance{at, of(count)}});
    }
    role.body.push_back({TileLoop{turn, tile_.in_turn ? 2 : 1, std::move(tile)}});
    return role;
  }

  Tile tile_;
  BufferId a_, b_;
  RingId ring_;
  TensorMapId map_a_, map_b_, map_c_;
  ValueId extent_k_, row_, column_;
};

constexpr Tile tiles[] = {
    {128, 256, 4, false, false}, {128, 192, 4, true, false}, {128, 192, 4, true, true}, {128, 128, 5, false, true}};

std::string text_of(const Plan& plan) {
  const std::string kernel = emit(plan);
  return prelude_for(kernel) + "\n" + kernel;
}

/// Calls each(step) for every step of the plan, in order, until it returns true.
bool find(Body& steps, const std::function<bool(Body&, std::size_t)>& each) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (each(steps, i)) return true;
    bool found = false;
    each_body(steps[i], [&](Body& inner) { found = found || find(inner, each); });
    if (found) return true;
  }
  return false;
}
template <class Kind>
Kind& nth(Plan& plan, int n = 0) {
  Kind* result = nullptr;
  for (Role& role : plan.phases[0].roles) {
    find(role.body, [&](Body& body, std::size_t i) {
      Kind* const kind = std::get_if<Kind>(&body[i].action);
      if (kind && n-- == 0) result = kind;
      return result != nullptr;
    });
    if (result) break;
  }
  REQUIRE(result);
  return *result;
}
template <class Kind>
void drop(Plan& plan, int n = 0) {
  bool done = false;
  for (Role& role : plan.phases[0].roles)
    done = done || find(role.body, [&](Body& body, std::size_t i) {
             if (!std::holds_alternative<Kind>(body[i].action) || n-- > 0) return false;
             body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
             return true;
           });
  REQUIRE(done);
}

}  // namespace

TEST_CASE("A product by the copy engine and wgmma verifies, prints and compiles", "[plan][compiles]") {
  for (const Tile& tile : tiles) {
    const ProductPlan product(tile);
    const std::vector<std::string> found = violations(product.plan);
    INFO(tree_text(product.plan));
    for (const std::string& one : found) UNSCOPED_INFO(one);
    CHECK(found.empty());
    CHECK(tree_text(product.plan).find("role producer: warps 0 to 3") != std::string::npos);
    const std::string text = text_of(product.plan);
    INFO(text);
    CHECK(text.find("wgmma_bf16_n") != std::string::npos);
    try {
      const CompiledCode code = Nvrtc::instance().compile({.source = text, .kernel = "product", .arch = Arch::sm_90a});
      CHECK(code.report.warnings.empty());
      CHECK(code.report.clean());
    } catch (const Error& e) {
      if (std::string_view(e.what()).find("libnvrtc") == std::string_view::npos) throw;
      WARN("skipped: " << e.what());
    }
  }
}

TEST_CASE("Panels lie as the swizzle of 128 bytes has them", "[plan]") {
  const Buffer panels{.label = {}, .type = ElementType::bf16, .rows = 64, .columns = 128, .form = SharedForm::panels};
  CHECK(panels.offset_of(0, 0) == 0);
  CHECK(panels.offset_of(1, 0) == 128 + 16);
  CHECK(panels.offset_of(7, 8) == 7 * 128 + 6 * 16);
  CHECK(panels.offset_of(3, 65) == 64 * 128 + 3 * 128 + 3 * 16 + 2);
  std::vector<char> seen(static_cast<std::size_t>(panels.stage_bytes() / 2));
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 128; ++column)
      CHECK_FALSE(std::exchange(seen[static_cast<std::size_t>(panels.offset_of(row, column) / 2)], 1));
  // PTX ISA, "Matrix Descriptor Format": groups of eight rows are 1024 bytes apart.
  CHECK(descriptor_of(panels, true).stride == 1024 / 16);
  CHECK(descriptor_of(panels, true).k_step == 2);
  CHECK(descriptor_of(panels, false).leading == 64 * 128 / 16);
  CHECK(descriptor_of(panels, false).k_step == 128);
}

TEST_CASE("Accumulators and operands of wgmma are layouts", "[plan]") {
  // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16".
  const Layout sums = wgmma_accumulator_layout({128, 64}, 2);
  CHECK(to_string(sums) == "warp 8, reg 2/2, lane 8/4 | reg 8/4, lane 4, reg 2");
  CHECK(sums.registers() == 32);
  const Layout blocks = wgmma_accumulator_layout({256, 64}, 2);
  CHECK(blocks.registers() == 64);
  CHECK(blocks.cover(0) == 256);
  const Layout operand = wgmma_operand_layout({64, 32}, 1);
  CHECK(operand.registers() == 16);
  CHECK(operand.cover(1) == 32);
}

TEST_CASE("The verifier names what is wrong between roles", "[plan]") {
  struct Fault {
    const char* name;
    std::function<void(Plan&)> plant;
    const char* says;
  };
  const Fault faults[] =
      {
          {"a stage is not released", [](Plan& p) { drop<Release>(p); }, "released"},
          {"the last stage is not released", [](Plan& p) { drop<Release>(p, 1); }, "released"},
          {"a stage is released while it is read", [](Plan& p) { nth<Release>(p).behind = 0; }, "open"},
          {"all threads release", [](Plan& p) { nth<Elected>(p, 1).threads = 32; }, "awaited"},
          {"nobody waits until a stage is full", [](Plan& p) { drop<WaitFull>(p); }, "full"},
          {"nobody acquires", [](Plan& p) { drop<Acquire>(p); }, "acquired"},
          {"nobody expects", [](Plan& p) { drop<Expect>(p); }, "expect"},
          {"an operand is not loaded", [](Plan& p) { drop<TmaLoad>(p); }, "bytes loaded"},
          {"the producer stays", [](Plan& p) { drop<Advance>(p); }, "goes on"},
          {"a consumer stays", [](Plan& p) { drop<Advance>(p, 1); }, "goes on"},
          {"a ring of other bytes", [](Plan& p) { p.rings[RingId{0}].bytes -= 1024; }, "bytes"},
          {"a ring of another number of stages", [](Plan& p) { ++p.rings[RingId{0}].stages; }, "stages"},
          {"arrivals that nobody makes", [](Plan& p) { ++p.rings[RingId{0}].empty_arrivals; }, "awaited"},
          {"no fence ahead of wgmma", [](Plan& p) { drop<WgmmaFence>(p); }, "fence"},
          {"products are not committed", [](Plan& p) { drop<CommitWgmma>(p); }, "committed"},
          {"products stay open", [](Plan& p) { nth<WaitWgmma>(p, 1).pending = 1; }, "open"},
          {"accumulators of another layout",
           [](Plan& p) {
    for (Value& v : p.values)
      if (v.shape.rank() == 2) v.layout = accumulator_layout(v.shape, 4, 2);
           },
           "sums_consumer0 is"},
          {"no fence ahead of the copy", [](Plan& p) { drop<ProxyFence>(p); }, "fence"},
          {"no barrier ahead of the copy", [](Plan& p) { drop<NamedBarrier>(p, 1); }, "barrier"},
          {"a copy may still read",
           [](Plan& p) {
    nth<WaitStores>(p, 0).pending = 2;
    nth<WaitStores>(p, 1).pending = 2;
    nth<WaitStores>(p, 2).pending = 2;
    nth<WaitStores>(p, 3).pending = 2;
           },
           "may still read"},
              {"a barrier of other threads", [](Plan& p) { nth<NamedBarrier>(p).threads = 128; }, "threads come"},
              {"a barrier that the hardware has not", [](Plan& p) { nth<NamedBarrier>(p).id = 16; }, "no barrier 16"},
              {"a barrier of all threads in a role", [](Plan& p) { p.phases[0].roles[1].body.push_back({Barrier{}}); },
               "all threads"},
              {"registers that are no multiple of 8", [](Plan& p) { nth<SetRegisters>(p).registers = 42; },
               "registers"},
              {"more registers than there are",
               [](Plan& p) {
    p.phases[0].roles[1].registers = 240;
    nth<SetRegisters>(p, 1).registers = 240;
    p.phases[0].roles[0].registers = 64;
    nth<SetRegisters>(p, 0).registers = 64;
               },
               "registers for the roles"},
      {"a ring that is not made", [](Plan& p) { p.phases[0].prologue.erase(p.phases[0].prologue.begin()); },
       "not made"},
      {"no barrier behind the making of rings", [](Plan& p) { p.phases[0].prologue.pop_back(); }, "no barrier"},
      {"a cursor of two roles", [](Plan& p) { nth<WaitFull>(p).cursor = CursorId{0}; }, "at_"},
      {"a panel in the wrong place", [](Plan& p) { nth<TmaLoad>(p).offset = 512; }, "of a stage"},
      {"a box of another size", [](Plan& p) { p.tensor_maps[TensorMapId{0}].tensor.box[1] = 64; }, "bytes"},
      {"rows longer than the swizzle", [](Plan& p) { p.tensor_maps[TensorMapId{0}].tensor.box[0] = 128; }, "swizzle"},
      {"an input is stored to", [](Plan& p) { p.tensor_maps[TensorMapId{2}].tensor.argument = 0; }, "written"},
      {"panels that are not aligned", [](Plan& p) { p.buffers[BufferId{1}].offset += 128; }, "multiple of 1024"},
      {"buffers on top of one another", [](Plan& p) { p.buffers[BufferId{0}].offset = p.buffers[BufferId{1}].offset; },
       "same time"},
      {"barriers of a ring in a buffer", [](Plan& p) { p.rings[RingId{0}].offset = 0; }, "same time"},
      {"accumulators used while open", [](Plan& p) { drop<WaitWgmma>(p, 1); }, "open"},
      };
  const ProductPlan product(tiles[0]);
  REQUIRE(violations(product.plan).empty());
  for (const Fault& fault : faults) {
    Plan plan = product.plan;
    fault.plant(plan);
    const std::vector<std::string> found = violations(plan);
    INFO(fault.name << ": " << (found.empty() ? "nothing found" : found[0]));
    CHECK(std::any_of(found.begin(), found.end(),
                      [&](const std::string& text) { return text.find(fault.says) != text.npos; }));
  }
}
