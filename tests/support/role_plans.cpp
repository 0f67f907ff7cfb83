#include "support/role_plans.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "codegen/make_plan.hpp"
#include "codegen/passes/plan/copies.hpp"
#include "codegen/passes/plan/memory.hpp"
#include "codegen/passes/plan/parameters.hpp"

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

class MatmulPlan {
 public:
  explicit MatmulPlan(const RoleTile& tile) : tile_(tile) {
    plan.kernel = plan.author = "product";
    plan.target = Target::of(Arch::sm_90a);
    const TensorClass dense{
        .contiguous_axis = 1, .alignment = 16, .row_alignment = 16, .tma_addressable = true, .has_elements = true};
    for (Access access : {Access::in, Access::in, Access::out}) {
      plan.tensors.push_back({.access = access, .type = ElementType::bf16, .rank = 2});
      plan.variant.tensors.push_back(dense);
    }
    Phase& phase = plan.phases.emplace_back();
    phase.axes = 2;
    phase.schedule = {.kind = Schedule::Kind::tiles, .raster_group = 8};
    a_ = buffer("left", tile.m, k);
    b_ = tile.b_along_n ? buffer("right", k, tile.n) : buffer("right", tile.n, k);
    Pipeline pipeline{.label = {.stem = "pipeline"}, .buffers = {a_, b_}, .stages = tile.stages};
    pipeline.empty_arrivals = tile.in_turn ? 1 : 2;
    pipeline.bytes = plan.buffers[a_].stage_bytes() + plan.buffers[b_].stage_bytes();
    pipeline_ = plan.pipelines.add(std::move(pipeline));
    map_a_ = map("map_a", 0, tile.m, false);
    map_b_ = map("map_b", 1, tile.b_along_n ? k : tile.n, false);
    map_c_ = map("map_c", 2, tile.m, true);
    extent_k_ = known(ExtentParameter{0, 1});
    row_ = known(BlockIndex{0});
    column_ = known(BlockIndex{1});
    phase.roles.push_back(producer());
    if (tile.in_turn)
      for (int i = 0; i < 2; ++i) phase.roles.push_back(consumer(i));
    else
      phase.roles.push_back(consumer(0));
    phase.prologue = {{ElectOne{.threads = plan.threads(), .body = {{InitPipeline{pipeline_}}, {MbarrierInitFence{}}}}},
                      {Barrier{}}};
    place_memory(plan);
    choose_copies(plan);
    set_parameters(plan);
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
        plan.storages.add({.label = {}, .type = ElementType::i32, .storage_class = StorageClass::variable, .known = known});
    return plan.values.add({storage, Shape{}, Layout(0)});
  }
  static Operand of(ValueId value) { return {.kind = Operand::Kind::value, .value = value, .map = {}}; }
  static Operand literal(std::int64_t number) { return {.kind = Operand::Kind::literal, .map = {}, .literal = number}; }
  static Operand term(int index) { return {.kind = Operand::Kind::term, .index = index, .map = {}}; }

  // 64 columns of the accumulators.
  Sweep columns(ValueId sums, int first) const {
    const Value& value = plan.values[sums];
    Sweep sweep{.shape = {value.shape[0], 64}, .layout = value.layout.part(1, 64)};
    sweep.part = true;
    sweep.origin[1] = first;
    sweep.vector = 8;
    Operand one = of(sums);
    one.map = register_map(value.layout, sweep.layout);
    one.first = first / 2;  // a thread has four registers for each eight columns
    sweep.expression.terms = {{Op::broadcast, ElementType::f32, ElementType::f32, {std::move(one)}}};
    return sweep;
  }
  // The k-iterations.
  Step k_iterations(const std::string& role, ValueId& out) {
    const StorageId storage = plan.storages.add(
        {.label = {.stem = "rounds_" + role}, .type = ElementType::i32, .storage_class = StorageClass::variable});
    out = plan.values.add({storage, Shape{}, Layout(0)});
    const ElementType i32 = ElementType::i32;
    Sweep sweep{.shape = Shape{}, .layout = Layout(0)};
    sweep.expression.terms = {{Op::add, i32, i32, {of(extent_k_), literal(k - 1)}},
                              {Op::floor_div, i32, i32, {term(0), literal(k)}}};
    return {Compute{.out = out, .sweep = std::move(sweep)}};
  }
  LoopId loop(const std::string& role) { return plan.loops.add({{.stem = "k_" + role}}); }
  ValueId counter(LoopId loop) { return known(Counter{loop}); }
  PipelineStateId state(const std::string& role) { return plan.states.add({{.stem = "at_" + role}, pipeline_}); }

  Role producer() {
    Role role{.name = "producer", .first_warp = 0, .warps = 4, .body = {}, .registers = 40};
    ValueId count;
    const LoopId over = loop("producer");
    const Operand at_k = of(counter(over));
    const PipelineStateId at = state("producer");
    Body round{{WaitEmpty{at}}, {ArriveExpectTx{at}}};
    round.push_back({TmaLoad{map_a_, a_, at, 0, {{at_k, k, 0}, {of(row_), tile_.m, 0}}}});
    if (tile_.b_along_n)
      for (int n = 0; n < tile_.n; n += 64)
        round.push_back({TmaLoad{
            map_b_, b_, at, n / 64 * plan.buffers[b_].panel_bytes(), {{of(column_), tile_.n, n}, {at_k, k, 0}}}});
    else
      round.push_back({TmaLoad{map_b_, b_, at, 0, {{at_k, k, 0}, {of(column_), tile_.n, 0}}}});
    round.push_back({AdvanceStage{at, literal(1)}});
    role.body.push_back({SetMaxNReg{40, false}});
    role.body.push_back(k_iterations("producer", count));
    Loop step{.loop = over, .count = of(count), .arrive = {}, .ahead = {}, .issued = {}, .body = std::move(round)};
    role.body.push_back({ElectOne{128, {{TileLoop{0, 1, {{std::move(step)}}}}}}});
    return role;
  }

  Role consumer(int turn) {
    const std::string name = fmt::format("consumer{}", turn);
    const int groups = tile_.in_turn ? 1 : 2;
    Role role{.name = name, .first_warp = 4 + 4 * turn, .warps = 4 * groups, .body = {}, .registers = 232};
    ValueId count;
    const LoopId over = loop(name);
    const PipelineStateId at = state(name);
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
    round.push_back({Wgmma{.out = sums,
                           .a = a_,
                           .b = b_,
                           .a_state = at,
                           .b_state = at,
                           .type = ElementType::bf16,
                           .m = tile_.m,
                           .n = tile_.n,
                           .k = k,
                           .b_k_major = !tile_.b_along_n}});
    round.push_back({WgmmaCommit{}});
    round.push_back({RegisterFence{sums}});
    round.push_back({WgmmaWait{1}});
    round.push_back({ElectOne{128, {{ArriveEmpty{at, 1, over}}}}});
    round.push_back({AdvanceStage{at, literal(1)}});

    Body tile;
    const auto mine = [](int turn) { return 4 + turn; };
    if (tile_.in_turn) tile.push_back({NamedBarrier{mine(turn), 256, false}});
    tile.push_back({Compute{.out = sums, .sweep = std::move(zero)}});
    tile.push_back(
        {Loop{.loop = over, .count = {}, .arrive = {}, .ahead = {}, .issued = {}, .body = std::move(round)}});
    if (tile_.in_turn) tile.push_back({NamedBarrier{mine(1 - turn), 256, true}});
    tile.push_back({WgmmaWait{0}});
    tile.push_back({ElectOne{128, {{ArriveEmpty{at, 1, {}}}}}});
    tile.push_back({RegisterFence{sums}});
    const Step count_rounds = k_iterations(name, count);
    tile[tile_.in_turn ? 2 : 1].action.get<Loop>().count = of(count);
    if (tile_.in_turn) tile.push_back({AdvanceStage{at, of(count), true}});
    // Columns alternate between two buffers.
    std::array<BufferId, 2> out;
    for (int i = 0; i < 2; ++i)
      out[static_cast<std::size_t>(i)] = buffer(fmt::format("out{}_{}", i, name), tile_.m, 64, 1);
    const int threads = role.threads(), id = 1 + turn;
    for (int n = 0; n < tile_.n; n += 64) {
      const BufferId to = out[static_cast<std::size_t>(n / 64 % 2)];
      // With an odd number, the first one reuses the buffer of the previous tile's last one.
      const int pending = n == 0 && tile_.n / 64 % 2 ? 0 : 1;
      tile.push_back({ElectOne{threads, {{TmaStoreWait{pending}}}}});
      tile.push_back({NamedBarrier{id, threads, false}});
      tile.push_back({StoreShared{.buffer = to, .sweep = columns(sums, n), .by = StoreShared::By::matrix}});
      tile.push_back({ProxyFence{}});
      tile.push_back({NamedBarrier{id, threads, false}});
      tile.push_back({ElectOne{
          threads, {{TmaStore{map_c_, to, 0, {{of(column_), tile_.n, n}, {of(row_), tile_.m, 0}}}}, {TmaStoreCommit{}}}}});
    }
    role.body = {{SetMaxNReg{232, true}}, count_rounds};
    if (turn == 1) {
      role.body.push_back({NamedBarrier{mine(0), 256, true}});
      role.body.push_back({AdvanceStage{at, of(count), true}});
    }
    role.body.push_back({TileLoop{turn, tile_.in_turn ? 2 : 1, std::move(tile)}});
    role.body.push_back({ElectOne{threads, {{TmaStoreWait{0}}}}});
    return role;
  }

  RoleTile tile_;
  BufferId a_, b_;
  PipelineId pipeline_;
  TensorMapId map_a_, map_b_, map_c_;
  ValueId extent_k_, row_, column_;
};

}  // namespace

Plan warp_specialized_matmul(const RoleTile& tile) { return MatmulPlan(tile).plan; }
