#include "codegen/lower/sm90/producer.hpp"

#include "codegen/lower/sm90/tma_boxes.hpp"

namespace tessera::internal::lowering {
namespace {

class Producer : WarpRole {
 public:
  Producer(const MatmulPipelines& pipelines, GraphLowering& graph) : WarpRole(pipelines, graph, "producer") {
    if (pipelines.prefetches())
      prefetched_ = steps_.plan.states.add({.label = {.stem = "at_prefetched"}, .pipeline = pipelines.pipelines[0]});
  }

  void lower() {
    set_registers(pipelines_.producer_registers(), false);
    launch_numbers();
    if (pipelines_.prefetches()) prefetch_before_wait();
    const bool by_threads = how_.copies_by_threads(), in_cluster = how_.split_k == SplitK::cluster;
    const auto tile = [&] { grid_tile([&](int pipeline) { fill(pipeline); }); };
    if (!in_cluster && !by_threads) {
      elected(128, [&] {
        grid_tiles(1, tile);
        if (how_.overlap == MatmulOverlap::grid_tiles) load_behind_the_last();
      });
      return end_role();
    }
    grid_tiles(1, [&] {
      by_threads ? tile() : elected(128, tile);
      for (int i = 0; in_cluster && i < 2; ++i) push(ClusterBarrier{});
    });
  }

 private:
  // The nodes of a grid tile, with `fill(pipeline)` for each pipeline that a k-iteration reads.
  template <class Fill>
  void grid_tile(const Fill& fill) {
    for (const Id id : analysis_.order[0])
      if (graph_.does(id) && !how_.launch[id]) id == how_.loop ? loop(fill) : graph_.node(id);
  }
  template <class Fill>
  void loop(const Fill& fill) {
    std::vector<ValueId> carried = graph_.carry(how_.loop);
    each_pipeline(true, fill);
    const LoopId counter = graph_.count(how_.loop);
    graph_.iterate(how_.loop, counter, k_iterations(), [&] {
      graph_.region(steps_.node(how_.loop).body());
      graph_.move_on(how_.loop, carried);
      each_pipeline(false, fill);
    });
    graph_.end_loop(how_.loop, std::move(carried));
  }
  template <class Fill>
  void each_pipeline(bool held, const Fill& fill) const {
    for (std::size_t i = 0; i < how_.pipelines.size(); ++i)
      if (how_.pipelines[i].held == held) fill(static_cast<int>(i));
  }

  void fill(int pipeline) {
    const PipelineStateId at = states_[static_cast<std::size_t>(pipeline)];
    const std::vector<int>& tiles = how_.pipelines[static_cast<std::size_t>(pipeline)].tiles;
    const auto by_threads = [&](int tile) { return pipelines_.produced(tile).by_threads; };
    push(WaitEmpty{at});
    if (std::ranges::none_of(tiles, by_threads)) {
      load_tiles(pipeline);
    } else {
      if (!std::ranges::all_of(tiles, by_threads)) elected(128, [&] { load_tiles(pipeline); });
      for (const int tile : tiles)
        if (by_threads(tile)) copy(tile, at);
      push(ProxyFence{});
      push(Arrive{at});
    }
    push(AdvanceStage{at, literal(1)});
  }
  void load_tiles(int pipeline) {
    const PipelineStateId at = states_[static_cast<std::size_t>(pipeline)];
    if (!pipelines_.prefetches()) {
      push(ArriveExpectTx{at});
      return load(pipeline, at, [](const ProducedTile&) { return true; });
    }
    IfNotPrefetched unless;
    steps_.within(unless.body, [&] { load_right(pipeline, at); });
    push(std::move(unless));
    load(pipeline, at, &ProducedTile::left);
  }
  void load_right(int pipeline, PipelineStateId at) {
    push(ArriveExpectTx{at});
    load(pipeline, at, [](const ProducedTile& tile) { return !tile.left; });
  }
  // TMA loads of the tiles for which `which` holds.
  template <class Which>
  void load(int pipeline, PipelineStateId at, const Which& which) const {
    for (const int tile : how_.pipelines[static_cast<std::size_t>(pipeline)].tiles) {
      const ProducedTile& of = pipelines_.produced(tile);
      if (of.by_threads || !std::invoke(which, of)) continue;
      const Buffer& buffer = steps_.plan.buffers[pipelines_.tiles[static_cast<std::size_t>(tile)].buffer];
      load_panels(tile, at,
                  [&](int panel) { return place_of_panel(steps_, how_.loop, of.load, of.rows, panel, buffer); });
    }
  }
  // `place(panel)` is where a panel begins in the tensor.
  template <class Place>
  void load_panels(int tile, PipelineStateId at, const Place& place) const {
    const MatmulPipelines::Tile& of = pipelines_.tiles[static_cast<std::size_t>(tile)];
    const Buffer& buffer = steps_.plan.buffers[of.buffer];
    const ProducedTile& tile_of = pipelines_.produced(tile);
    const int axis = pipelines_.parts(tile_of) > 1 ? box_axis(analysis_, tile_of.load, tile_of.rows) : -1;
    for (int panel = 0; panel < buffer.columns / buffer.panel_columns(); ++panel)
      push(TmaLoad{of.map, of.buffer, at, panel * buffer.panel_bytes(), place(panel), axis});
  }

  // The pipeline has as many free stages.
  void prefetch_before_wait() {
    PrefetchBeforeWait prefetch{.most = how_.pipelines[0].stages, .body = {}};
    steps_.values.call("_prefetched");
    steps_.within(prefetch.body, [&] {
      grid_tile([&](int pipeline) {
        load_right(pipeline, prefetched_);
        push(AdvanceStage{prefetched_, literal(1)});
      });
    });
    steps_.values.call("");
    push(std::move(prefetch));
  }

  // After the last grid tile, too, the second matmul is issued together with a next first matmul, on dummy tiles: for a
  // matmul behind a condition ptxas has no registers.
  void load_behind_the_last() const {
    const WgmmaOperands& first = how_.matmuls[0];
    for (const bool held : {true, false})
      each_pipeline(held, [&](int pipeline) {
        const int tile = how_.pipelines[static_cast<std::size_t>(pipeline)].tiles[0];
        if (first.left.tile != tile && first.right.tile != tile) return;
        const PipelineStateId at = states_[static_cast<std::size_t>(pipeline)];
        const std::size_t axes = analysis_.access(pipelines_.produced(tile).load).axes.size();
        push(WaitEmpty{at});
        push(ArriveExpectTx{at});
        load_panels(tile, at, [&](int) { return std::vector<TileCoordinate>(axes, {literal(0)}); });
        push(AdvanceStage{at, literal(1)});
      });
  }

  // Rows and columns of the buffer, an axis each, become the last axes of the tile; all others have an extent of 1.
  void copy(int tile, PipelineStateId at) const {
    const ProducedTile& of = pipelines_.produced(tile);
    const BufferId to = pipelines_.tiles[static_cast<std::size_t>(tile)].buffer;
    const Buffer& buffer = steps_.plan.buffers[to];
    TileAccess access = steps_.access_of(of.load);
    const int rank = static_cast<int>(access.axes.size());
    const int row_axis = of.rows[0];
    const TileAccess::Axis rows = access.axes[static_cast<std::size_t>(row_axis)],
                           columns = access.axes[static_cast<std::size_t>(of.columns)];
    for (int i : {std::max(row_axis, of.columns), std::min(row_axis, of.columns)})
      access.axes.erase(access.axes.begin() + i);
    access.axes.insert(access.axes.end(), {rows, columns});
    access.fast = access.fast == of.columns ? rank - 1 : -1;
    std::array<int, max_rank> extents{};
    for (int i = 0; i < rank; ++i)
      extents[static_cast<std::size_t>(i)] = access.axes[static_cast<std::size_t>(i)].extent;
    Sweep sweep{.shape = Shape(std::span(extents).first(static_cast<std::size_t>(rank))), .layout = {}};
    // At least a pair: two 16-bit elements make a 32-bit word.
    const int vector = std::max(access.vector, 2);
    sweep.layout = panels_layout(sweep.shape, buffer.panel_columns(), vector, steps_.threads / 32);
    const int words = access.vector == 1 ? vector : vector * info(buffer.type).bytes / 4;
    const int under_way = pipelines_.of_copies_under_way(info(buffer.type).bytes);
    sweep.at_once = std::min(sweep.layout.registers() / vector, under_way / words);
    Operand element{.kind = Operand::Kind::fetched};
    const ElementType type = steps_.node(of.load).type;
    const Op op = type == buffer.type ? Op::broadcast : Op::cast;
    sweep.expression.terms = {{op, buffer.type, type, {std::move(element)}}};
    sweep.reads = {std::move(access)};
    steps_.push(of.load, StoreShared{.buffer = to, .state = at, .sweep = std::move(sweep)});
  }

  PipelineStateId prefetched_;  // of the prefetch before the PDL wait
};

}  // namespace

RoleRules producer_rules(const WarpSpecialization& how) {
  RoleRules rules{.skipped = std::vector<char>(how.ahead.size()), .stages_operands = false};
  for (std::size_t id = 0; id < how.ahead.size(); ++id) rules.skipped[id] = !how.ahead[id];
  rules.skipped[how.loop] = 0;
  return rules;
}

void lower_producer(const MatmulPipelines& pipelines, GraphLowering& graph) { Producer(pipelines, graph).lower(); }

}  // namespace tessera::internal::lowering
