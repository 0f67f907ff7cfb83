// fused_matmul: as in attention, the scores of one matmul become, after some ops in registers, the left operand of the
// next in the same loop. Each tile has a pipeline of its own, so that its stage is released as soon as it is read. Each
// consumer warp group has rows of its own.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/budget.hpp"
#include "codegen/analysis/ranges.hpp"
#include "codegen/schedule/warp_specialized.hpp"
#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

/// The rules, one after another: each says why a kernel has no fused matmul.
class Finder {
 public:
  explicit Finder(const GraphAnalysis& analysis) : analysis_(analysis) {}

  ScheduleMatch run() {
    if (analysis_.target.tier != Target::Tier::wgmma || !feed_each_other() || !why_no_roles(analysis_).empty())
      return {};
    how_.ahead = known_ahead(analysis_);
    how_.launch.assign(analysis_.graph.nodes.size(), 0);
    how_.overlap = MatmulOverlap::none;
    for (const auto& rule : {&Finder::loop, &Finder::shapes, &Finder::operands, &Finder::room})
      if (std::string why = (this->*rule)(); !why.empty()) return {.why_not = std::move(why), .where = where_};
    ScheduleMatch result;
    order();
    add_ways(result);
    for (how_.blocks = 2; how_.blocks <= analysis_.hints.occupancy; ++how_.blocks)
      if (may_share() && room().empty()) add_ways(result);
    std::ranges::reverse(result.candidates);
    return result;
  }

 private:
  void add_ways(ScheduleMatch& result) {
    const auto add = [&](MatmulOverlap overlap) {
      how_.overlap = overlap;
      result.candidates.push_back(std::make_shared<WarpSpecializedSchedule>(how_));
    };
    add(MatmulOverlap::none);
    if (!may_overlap()) return;
    add(MatmulOverlap::k_iterations);
    if (may_run_on()) add(MatmulOverlap::grid_tiles);
  }

  const Node& node(Id id) const { return analysis_[id]; }
  const Node& first() const { return node(how_.matmuls[0].id); }

  // Does a matmul take its left operand from the result of another?
  bool feed_each_other() {
    bool feeds = false;
    for (const auto& region : analysis_.order)
      for (const Id id : region) {
        if (node(id).op != Op::mma) continue;
        how_.matmuls.push_back({id, {}, {}});
        feeds |= comes_from_matmul(node(id).in[0], node(id).region);
      }
    return feeds && how_.matmuls.size() > 1;
  }

  // A matmul of the same loop.
  bool comes_from_matmul(Id operand, RegionId loop) const {
    std::vector<Id> open{operand};
    std::set<Id> seen;
    while (!open.empty()) {
      const Id id = open.back();
      open.pop_back();
      if (node(id).region != loop || !seen.insert(id).second) continue;
      if (node(id).op == Op::mma) return true;
      open.insert(open.end(), node(id).in.begin(), node(id).in.end());
    }
    return false;
  }

  std::string loop() {
    const Region& body = analysis_.graph.regions[first().region];
    where_ = how_.matmuls[0].id;
    if (body.kind != RegionKind::loop) return "matmuls that feed one another are not in a loop";
    how_.loop = analysis_.owner[first().region];
    if (node(how_.loop).region != 0) return "the matmuls' loop is inside another loop or a branch";
    for (const WgmmaOperands& matmul : how_.matmuls)
      if (node(matmul.id).region != first().region) return because(matmul.id, "the matmuls are not all in one loop");
    for (const auto& region : analysis_.order)
      for (const Id id : region) {
        if (node(id).op == Op::branch) return because(id, "the kernel has a branch");
        if (has_region(node(id).op) && id != how_.loop) return because(id, "the kernel has another loop");
      }
    if (const Id count = node(how_.loop).in[0]; !how_.ahead[count]) {
      const Node& computed = node(first_computed(count));
      return because(how_.loop,
                     fmt::format("the loop's trip count depends on '{}'{}, and the producer computes no tiles; "
                                 "pass a Scalar, or load the count from a tensor as one element",
                                 name(computed.op), of_tile(computed)));
    }
    how_.has_iteration = range_of(analysis_, node(how_.loop).in[0]).least >= 1;
    return {};
  }

  // The number that is not known ahead though all numbers that it follows from are, or that follows from a tile.
  Id first_computed(Id id) const {
    for (;;) {
      const auto is_number = [&](Id in) { return !how_.ahead[in] && node(in).shape.size() == 1; };
      const auto next = std::ranges::find_if(node(id).in, is_number);
      if (next == node(id).in.end()) return id;
      id = *next;
    }
  }
  std::string of_tile(const Node& computed) const {
    const auto tile = std::ranges::find_if(computed.in, [&](Id in) { return node(in).shape.size() > 1; });
    return tile == computed.in.end() ? "" : " of " + to_string(node(*tile).shape);
  }

  std::string shapes() {
    constexpr int widths[] = {64, 96, 128, 160, 176, 192, 256};
    for (const WgmmaOperands& matmul : how_.matmuls) {
      const Node& at = node(matmul.id);
      const Node& left = node(at.in[0]);
      where_ = matmul.id;
      if (left.type != ElementType::f16 && left.type != ElementType::bf16)
        return fmt::format("a fused matmul takes f16 or bf16, not {}", name(left.type));
      const int m = at.shape[0], n = at.shape[1], k = left.shape[1];
      if (m != first().shape[0]) return "the matmuls have different numbers of rows";
      if (m % 64 || m > 192 || k % 16 || !std::ranges::count(widths, n))
        return fmt::format("no fused wgmma schedule for tiles of [{},{}] x [{},{}]", m, k, k, n);
    }
    how_.groups = first().shape[0] / 64;
    return {};
  }

  std::string operands() {
    for (WgmmaOperands& matmul : how_.matmuls)
      for (const bool left : {true, false}) {
        const Id operand = node(matmul.id).in[left ? 0 : 1];
        const Source source = find_source(analysis_.graph, operand);
        where_ = end_of_source(analysis_.graph, operand);
        if (left && source.load == no_id) continue;
        if (source.load == no_id) return "a right operand " + why_no_source(analysis_.graph, operand);
        WgmmaOperand& of = left ? matmul.left : matmul.right;
        if (std::string why = tile(source, node(operand).type, left, of); !why.empty()) return why;
      }
    return {};
  }
  std::string tile(const Source& source, ElementType type, bool left, WgmmaOperand& operand) {
    const Node& load = node(source.load);
    const bool as_it_is =
        load.type == type && std::ranges::all_of(source.casts, [&](ElementType to) { return to == type; });
    if (!as_it_is) return fmt::format("an operand is {} in memory", name(load.type));
    const OperandAxes axes = operand_axes(analysis_, source, left);
    if (std::string why = why_no_panels(analysis_, source.load, axes); !why.empty()) return why;
    const GraphAccess access = analysis_.access(source.load);
    operand.k_major = axes.k_major;
    const ProducedTile tile{
        .load = source.load, .rows = axes.rows(), .columns = axes.columns()[0], .type = type, .left = left};
    const auto found = std::ranges::find(how_.tiles, tile.load, &ProducedTile::load);
    operand.tile = static_cast<int>(found - how_.tiles.begin());
    if (found == how_.tiles.end()) {
      how_.tiles.push_back(tile);
      how_.pipelines.push_back({.tiles = {operand.tile}, .held = load.region == 0});
      return boxes(access, how_.tiles.back());
    }
    return found->rows == tile.rows && found->columns == tile.columns ? "" : "a tile is also read along other axes";
  }
  // Can TMA load it, from a place that is known ahead?
  std::string boxes(const GraphAccess& access, ProducedTile& tile) const {
    const auto is_known = [&](const GraphAccess::Axis& axis) { return how_.ahead[axis.index] != 0; };
    if (!analysis_.variant.tensors[static_cast<std::size_t>(access.parameter)].tma_addressable ||
        access.fast != tile.columns || !sliced(access, tile))
      return fmt::format("TMA cannot address parameter {}",
                         argument_number(analysis_.graph.parameters, access.parameter));
    if (!std::ranges::all_of(access.axes, is_known))
      return fmt::format("the tile coordinates of parameter {} depend on computed values",
                         argument_number(analysis_.graph.parameters, access.parameter));
    return {};
  }

  // Rows of a k-iteration's tile may be those of a slice with a constant start. Threads zero-fill rows beyond its end.
  bool sliced(const GraphAccess& access, ProducedTile& tile) const {
    for (int i = 0; i < static_cast<int>(access.axes.size()); ++i) {
      const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
      if (!axis.is_tensors()) return false;
      if (axis.slices.empty()) continue;
      const GraphAccess::Slice& slice = axis.slices[0];
      const bool starts = node(slice.start).op == Op::constant && node(slice.start).number().i32 >= 0;
      if (axis.slices.size() > 1 || tile.rows != Axes{i} || node(tile.load).region == 0 || !axis.positive || !starts ||
          !how_.ahead[slice.extent])
        return false;
      tile.slice_extent = slice.extent;
    }
    return true;
  }

  // The held tiles of the next grid tile are prefetched, if that costs the others no stage.
  std::string room() {
    where_ = how_.matmuls[0].id;
    if (std::ranges::all_of(how_.pipelines, &TilePipeline::held)) return "the matmuls load no tiles in the loop";
    const int stages = stages_beside(1);
    if (stages < 2) return "two stages do not fit into shared memory";
    set_stages(stages_beside(2) == stages ? 2 : 1, stages);
    return {};
  }
  int most_stages() const {
    constexpr int most = 4;  // the two matmuls of a k-iteration take longer than its tiles are in flight
    const int hinted = analysis_.hints.stages;
    return hinted > 0 ? std::clamp(hinted, 2, most) : most;
  }
  int bytes(const TilePipeline& pipeline) const {
    const Node& load = node(how_.tiles[static_cast<std::size_t>(pipeline.tiles[0])].load);
    return static_cast<int>(load.shape.size()) * info(load.type).bytes;
  }
  int bytes(bool held) const {
    int all = 0;
    for (const TilePipeline& pipeline : how_.pipelines)
      if (pipeline.held == held) all += bytes(pipeline);
    return all;
  }
  int room_beside(int held_stages) const {
    constexpr int barriers = 128;  // of a pipeline
    return shared_bytes_of_block(analysis_.target, how_.blocks) - barriers * static_cast<int>(how_.pipelines.size()) -
           held_stages * bytes(true);
  }
  int stages_beside(int held_stages) const { return std::min(room_beside(held_stages) / bytes(false), most_stages()); }
  // The first tiles get the remaining memory, since they are needed first.
  void set_stages(int held, int others) {
    int left = room_beside(held) - others * bytes(false);
    for (TilePipeline& pipeline : how_.pipelines) {
      pipeline.stages = pipeline.held ? held : others;
      if (pipeline.held || others == most_stages() || bytes(pipeline) > left) continue;
      ++pipeline.stages;
      left -= bytes(pipeline);
    }
  }

  // Grid tiles that differ only along the first axis read the same tiles, as queries read the same keys. So they run
  // together, in sections small enough for the L2 cache (full attention of 16 x 1024 x 16 x 128 takes an H200 0.308 ms
  // in sections of 16, and 0.346 in one). Where the number of k-iterations differs along that axis, as with a causal
  // mask, the longest come first, in sections of which all multiprocessors have equal shares (causal, 8 x 2048 x 16 x
  // 128: 0.255 ms in sections of 33, 0.302 in one).
  void order() {
    constexpr int of_cache = 16;
    const std::vector<char> launch = analysis_.uniform_values([](Id, RegionId) { return false; });
    how_.snake_order = launch[node(how_.loop).in[0]] == 0;
    if (analysis_.graph.grid.size() > 1 && !how_.snake_order) how_.l2_group = of_cache;
  }

  // Can a multiprocessor run so many CTAs? Their threads begin with equal shares of the registers, and ptxas requires
  // that one share holds the operands of an instruction (C7602).
  bool may_share() const {
    constexpr int besides = 30;
    const int threads = 128 * (how_.groups + 1);
    const int share = Budget(analysis_.target, threads, true).limit(how_.blocks);
    return how_.blocks * threads <= analysis_.target.threads &&
           std::ranges::all_of(how_.matmuls, [&](const WgmmaOperands& matmul) {
             return node(matmul.id).shape[1] / 2 + besides <= share;
           });
  }

  bool has_slices() const {
    return std::ranges::any_of(how_.tiles, [](const ProducedTile& tile) { return tile.slice_extent != no_id; });
  }
  // Requires carried accumulators whose matmul takes its left operand from the first matmul and not from these
  // accumulators. All warp groups arrive at the barrier of a tile that they zero-fill, in the k-iteration of that tile.
  bool may_overlap() const {
    if (how_.matmuls.size() != 2 || (has_slices() && !how_.has_iteration)) return false;
    const auto& [scores, sums] = std::tie(how_.matmuls[0], how_.matmuls[1]);
    const auto& yields = analysis_.graph.regions[first().region].yields;
    const auto reads = [&](int tile) { return scores.left.tile == tile || scores.right.tile == tile; };
    if (scores.left.tile < 0 || sums.left.tile >= 0 || reads(sums.right.tile) ||
        std::ranges::count(yields, sums.id) != 1 || analysis_.users[sums.id].size() != 1)
      return false;
    const auto position = static_cast<std::size_t>(std::ranges::find(yields, sums.id) - yields.begin());
    return ends_in(analysis_.graph.regions[first().region].arguments[position + 1], sums.id);
  }
  // Requires a first matmul that starts from zeros, and a k-iteration for each grid tile. All held tiles have two
  // stages: those of the next grid tile arrive before its first matmul waits for them, while those of the tile before
  // are still read. It is not known by then where the slices of the next grid tile end.
  bool may_run_on() {
    const WgmmaOperands& scores = how_.matmuls[0];
    if (!is_zeros(analysis_, node(scores.id).in[2]) || !how_.has_iteration || has_slices()) return false;
    const int stages = stages_beside(2);
    if (stages < 2) return false;
    set_stages(2, stages);
    return true;
  }
  // Is a matmul the only use of a value, through a few ops, each of which is the only use of the one before?
  bool ends_in(Id id, Id matmul) const {
    constexpr int few = 6;
    for (int ops = 0; ops < few; ++ops) {
      if (analysis_.users[id].size() != 1) return false;
      id = analysis_.users[id][0];
      if (id == matmul) return true;
      if (!is_elementwise(node(id).op) || node(id).shape.rank() == 0) return false;
    }
    return false;
  }

  // Records the node that prevents it.
  std::string because(Id id, std::string why) {
    where_ = id;
    return why;
  }

  const GraphAnalysis& analysis_;
  WarpSpecialization how_;
  Id where_ = no_id;
};

}  // namespace

}  // namespace tessera::internal::lowering

tessera::internal::lowering::ScheduleMatch tessera::internal::schedule_pattern::fused_matmul(
    const lowering::GraphAnalysis& analysis, bool) {
  return lowering::Finder(analysis).run();
}
