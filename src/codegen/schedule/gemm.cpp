// gemm: matmuls of a loop that only add to the accumulators that it carries.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/ranges.hpp"
#include "codegen/schedule/cost_model.hpp"
#include "codegen/schedule/raster_order.hpp"
#include "codegen/schedule/warp_specialized.hpp"
#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

constexpr int most_accumulators = 192;  // registers of a thread

// Columns of parts of 64 rows of accumulators, an even number of parts in each stage: two are in registers beside the
// accumulators.
std::vector<int> promoted_parts_of(int matmuls, int n, int k) {
  const int most = matmuls * n > 192 ? 64 : 96;
  int parts = (n + most - 1) / most;
  if (parts * matmuls * k / codegen::most_fp8_products % 2) parts *= 2;
  return std::vector(static_cast<std::size_t>(parts), n / parts);
}

/// The rules, one after another: each says why a kernel is not warp-specialized.
class Classifier {
 public:
  Classifier(const GraphAnalysis& analysis, bool debug) : analysis_(analysis), debug_(debug) {}

  ScheduleMatch run() {
    if (analysis_.target.tier != Target::Tier::wgmma || first_matmul(analysis_) == no_id) return {};
    if (std::string why = why_no_roles(analysis_); !why.empty()) return {.why_not = std::move(why)};
    how_.ahead = known_ahead(analysis_);
    how_.launch = analysis_.uniform_values([](Id, RegionId) { return false; });
    for (const auto& rule : {&Classifier::matmuls, &Classifier::loop, &Classifier::tile, &Classifier::operands,
                             &Classifier::rounds, &Classifier::epilogue})
      if (std::string why = (this->*rule)(); !why.empty())
        return {.why_not = std::move(why), .where = where_, .swappable = swappable_};
    how_.has_iteration = true;
    stores();
    if (analysis_.graph.grid.size() >= 2) how_.raster_group = raster_group_of(result_shape()[0], result_shape()[1]);
    ScheduleMatch result;
    const int rows = matmul().shape[0];
    const int fewest = how_.promotes()                                                                  ? rows / 64
                       : is_cooperative(rows, matmul().shape[1], static_cast<int>(how_.matmuls.size())) ? 2
                                                                                                        : 1;
    // With split-K all CTAs start from zeros, and partials are f32.
    const bool zeros = starts_from_zeros(analysis_, how_.loop, matmul().in[2]);
    const bool is_sum = how_.matmuls.size() == 1 && zeros && matmul().type == ElementType::f32;
    if (!is_sum)
      result.why_not_split = how_.matmuls.size() > 1 ? "the loop has several matmuls"
                             : !zeros                ? "the accumulators start from a tile and not from zeros"
                                                     : "the accumulators are not f32";
    if (analysis_.variant.split_k == SplitK::cluster && is_sum) {
      how_.split_k = SplitK::cluster;
      for (int groups = fewest; groups <= 2 && rows % (64 * groups) == 0; ++groups) add_way(result, groups);
    }
    // Two warp groups store, add up and write partials twice as fast. CTAs are counted in 32 bits.
    if (analysis_.variant.split_k == SplitK::stream_k && is_sum && !analysis_.variant.index64) {
      how_.split_k = SplitK::stream_k;
      for (int groups = rows % 128 ? 1 : 2; groups >= fewest; --groups) add_way(result, groups);
    }
    how_.split_k = SplitK::none;
    for (const bool multicast : {true, false}) {
      if (multicast && !(analysis_.variant.multicast && may_multicast())) continue;
      how_.multicast = multicast;
      add_way(result, fewest);
      if (fewest == 1 && rows % 128 == 0) add_way(result, 2);
    }
    return result;
  }

 private:
  const Node& node(Id id) const { return analysis_[id]; }

  // Two consumer groups of one warp group each, or one of two: with split-K, a cluster has no second tile for another
  // consumer group, and with stream-K one consumer group walks through a CTA's share.
  void add_way(ScheduleMatch& result, int groups) {
    how_.groups = groups;
    how_.consumer_groups = groups == 1 && how_.split_k == SplitK::none ? 2 : 1;
    how_.pipelines[0].stages = stages();
    // A piece of 128 rows of a warp group has 16 of k: 8 rows of a half tile, of which ldmatrix reads 16 here. With
    // pieces twice as large ptxas spills.
    if (matmul().shape[0] > 64 * groups && reads_halves()) {
      if (groups == 2 && result.candidates.empty())
        result.why_not = fmt::format("halves of bytes for {} rows do not fit in registers", matmul().shape[0]),
        result.where = how_.matmuls[0].id;
      return;
    }
    if (how_.pipelines[0].stages < 2) {
      if (result.candidates.empty())
        result.why_not = "two stages do not fit into shared memory", result.where = how_.matmuls[0].id;
      return;
    }
    const bool reads =
        std::ranges::any_of(analysis_.order[0], [&](Id id) { return is_read_ahead(analysis_, how_, id); });
    const bool has_rows = !loaded_rows(analysis_, how_).empty();
    for (const bool fetches : {true, false})
      for (const bool ahead : {true, false}) {
        how_.fetches_rows = fetches;
        how_.reads_ahead = ahead;
        if ((reads || !ahead) && (has_rows || !fetches))
          result.candidates.push_back(std::make_shared<WarpSpecializedSchedule>(decided()));
      }
  }
  WarpSpecialization decided() const {
    WarpSpecialization how = how_;
    for (ProducedTile& tile : how.tiles)
      if (how.multicast && !tile.left) tile.clipped = false;  // the CTAs load equal parts
    if (debug_) how.tma_stores.clear();  // TMA does not check the elements that it stores
    return how;
  }
  bool reads_halves() const {
    return std::ranges::any_of(how_.computed, [](const auto& one) {
      return std::ranges::any_of(one.second.tiles, &ReadTile::repeated);
    });
  }
  // Registers of a thread for the accumulators of a tile that `groups` warp groups share.
  int sums_of(int groups) const {
    return static_cast<int>(matmul().shape.size() * std::ssize(how_.matmuls)) / (128 * groups);
  }
  // Any of the matmuls, where all are alike.
  const Node& matmul() const { return node(how_.matmuls[0].id); }
  // The shape in which the epilogue takes the accumulators.
  Shape result_shape() const {
    const Shape& shape = matmul().shape;
    return how_.transposed ? Shape{shape[1], shape[0]} : shape;
  }
  // The type of the operands.
  ElementType type() const { return node(matmul().in[0]).type; }

  std::string matmuls() {
    for (const auto& region : analysis_.order)
      for (Id id : region)
        if (node(id).op == Op::mma) how_.matmuls.push_back({.id = id, .left = {}, .right = {}});
    const auto differs = [&](Id id) {
      return node(id).region != matmul().region || node(id).shape != matmul().shape ||
             node(node(id).in[0]).shape != node(matmul().in[0]).shape ||
             node(node(id).in[0]).type != node(matmul().in[0]).type;
    };
    where_ = how_.matmuls[0].id;
    if (const auto other = std::ranges::find_if(how_.matmuls, differs, &WgmmaOperands::id); other != how_.matmuls.end())
      return because(other->id, "the kernel has several matmuls, which differ");
    if (!has_wgmma(type())) return fmt::format("wgmma multiplies f16, bf16, tf32, fp8, i8 or u8, not {}", name(type()));
    return {};
  }

  // The loop carries the accumulators, and nothing else.
  std::string loop() {
    const Region& body = analysis_.graph.regions[matmul().region];
    if (body.kind != RegionKind::loop) return "the matmul is not in a loop";
    how_.loop = analysis_.owner[matmul().region];
    const Node& loop = node(how_.loop);
    if (loop.region != 0) return "the matmul's loop is inside another loop or a branch";
    const auto carries = [&](Id id) { return only_accumulates(analysis_, id); };
    if (body.yields.size() != how_.matmuls.size() || !std::ranges::all_of(how_.matmuls, carries, &WgmmaOperands::id))
      return "the loop carries more than the accumulators";
    how_.transposed = std::ranges::all_of(analysis_.users[how_.loop], [&](Id result) {
      return std::ranges::all_of(analysis_.users[result], [&](Id user) { return node(user).op == Op::permute; });
    });
    if (!how_.launch[loop.in[0]]) return because(how_.loop, "the loop's trip count is not the same for all grid tiles");
    return {};
  }
  std::string rounds() {
    const bool none = range_of(analysis_, node(how_.loop).in[0]).least < 1;
    return none ? because(how_.loop, "the loop may have no iteration") : "";
  }

  std::string tile() {
    const int m = matmul().shape[0], n = matmul().shape[1], k = node(matmul().in[0]).shape[1];
    constexpr int widths[] = {64, 96, 128, 192, 256}, narrow[] = {16, 32};
    const int size = info(type()).bytes, bytes = k * size;
    const bool has_width = std::ranges::count(widths, n) || (size == 2 && std::ranges::count(narrow, n));
    if (m % 64 || m > 256 || m == 192 || bytes % panel_bytes || bytes > 4 * panel_bytes || !has_width)
      return fmt::format("no wgmma schedule for tiles of [{},{}] x [{},{}]", m, k, k, n);
    if (is_fp8(type())) how_.promoted_parts = promoted_parts_of(static_cast<int>(how_.matmuls.size()), n, k);
    if (sums_of(m % 128 ? 1 : 2) > most_accumulators || (how_.promotes() && m > 128))
      return fmt::format("[{},{}] accumulators do not fit in registers", m, n);
    return {};
  }

  std::string operands() {
    how_.pipelines.emplace_back();
    for (WgmmaOperands& matmul : how_.matmuls)
      for (const bool left : {true, false}) {
        WgmmaOperand& of = left ? matmul.left : matmul.right;
        if (std::string why = operand(node(matmul.id).in[left ? 0 : 1], left, of); !why.empty()) return why;
      }
    for (const auto& [id, computed] : how_.computed)
      for (const ReadTile& read : computed.tiles) {
        const Source source = find_source(analysis_.graph, read.tile);
        how_.computed_tiles[read.tile] = produced(source, true, node(source.load).type);
      }
    how_.row_order = row_order();
    for (const Id id : analysis_.order[matmul().region]) {
      const Op op = node(id).op;
      const auto computes = [&](const auto& computed) { return computed.second.nodes.contains(id); };
      if (std::ranges::any_of(how_.computed, computes) || op == Op::constant || op == Op::iota || op == Op::broadcast)
        continue;
      if (op != Op::mma && op != Op::argument && op != Op::load && !is_seen_through(analysis_.graph, node(id)) &&
          !is_view(op) && !how_.ahead[id])
        return because(id, fmt::format("the loop does more than the matmul: '{}'", name(op)));
    }
    return {};
  }
  // Where all left operands come from registers, the order of rows may suit the reads of tiles. Transposes are stored
  // in the natural order alone by stmatrix.
  RowOrder row_order() const {
    const auto has = [&](int bytes, bool k_major) {
      return std::ranges::any_of(how_.computed_tiles, [&](const auto& tile) {
        return tile.second.k_major == k_major &&
               info(how_.tiles[static_cast<std::size_t>(tile.second.tile)].type).bytes == bytes;
      });
    };
    const auto from_registers = [](const WgmmaOperands& matmul) { return matmul.left.tile < 0; };
    if (!std::ranges::all_of(how_.matmuls, from_registers)) return RowOrder::natural;
    if (has(1, false)) return RowOrder::paired;
    if (has(4, false)) return RowOrder::spread;
    return has(4, true) && !how_.transposed ? RowOrder::even_odd : RowOrder::natural;
  }

  std::string operand(Id operand, bool left, WgmmaOperand& of) {
    const Source source = find_source(analysis_.graph, operand);
    const std::string why = why_not_as_it_is(analysis_, operand, left);
    where_ = end_of_source(analysis_.graph, operand);
    // wgmma multiplies an fp8 left operand by several parts of the right one, and would read it for each from memory.
    if (left && (!why.empty() || is_fp8(type()))) return computed(operand);
    if (!why.empty()) {
      swappable_ = !left;
      return fmt::format("the {} operand {}", left ? "left" : "right", why);
    }
    if (std::string refused = why_not_staged(source, left); !refused.empty()) return refused;
    of = produced(source, left, type());
    return {};
  }
  // wgmma takes it from registers; its tiles are staged like operands.
  std::string computed(Id operand) {
    if (how_.computed.contains(operand)) return {};
    ComputedOperand computed = computed_operand(analysis_, operand, matmul().region);
    if (!computed.why_not.empty()) return because(computed.where, "the left operand " + computed.why_not);
    if (info(type()).bytes == 1 && (computed.tiles.size() != 1 || computed.tiles[0].tile != operand))
      return fmt::format("the left operand is computed as {}", name(type()));
    for (const ReadTile& read : computed.tiles) {
      const Source source = find_source(analysis_.graph, read.tile);
      const ElementType type = node(source.load).type;
      where_ = source.load;
      if (info(type).bytes > 4) return fmt::format("the left operand is computed from {}", name(type));
      if (read.repeated && (info(this->type()).bytes != 2 || info(type).bytes != 1))
        return fmt::format("the left operand is computed as {}, from halves of {}", name(this->type()), name(type));
      if (std::string why = why_not_staged(source, true); !why.empty()) return why;
    }
    how_.computed.emplace(operand, std::move(computed));
    return {};
  }
  // Threads copy words of two elements or more, and rows along one axis.
  std::string why_not_staged(const Source& source, bool left) const {
    const OperandAxes axes = operand_axes(analysis_, source, left);
    const GraphAccess access = analysis_.access(source.load);
    const bool of_bytes = info(node(source.load).type).bytes == 1;
    if ((of_bytes || axes.rows().size() > 1) && !is_addressed(analysis_, access, axes.columns().back()))
      return fmt::format("the {} operand cannot be loaded by TMA, as rows of {} must be for wgmma",
                         left ? "left" : "right", of_bytes ? "8-bit elements" : "several axes");
    if (!is_known(access))
      return fmt::format("the tile coordinates of parameter {} depend on computed values",
                         argument_number(analysis_.graph.parameters, access.parameter));
    return why_no_panels(analysis_, source.load, axes);
  }
  // The tile of an operand, as elements of `type`. Operands that have the same one share its buffer.
  WgmmaOperand produced(const Source& source, bool left, ElementType type) {
    const OperandAxes axes = operand_axes(analysis_, source, left);
    const Axes& rows = axes.rows();
    const int columns = axes.columns()[0];
    const bool by_threads = !is_addressed(analysis_, analysis_.access(source.load), columns);
    const auto is_it = [&](const ProducedTile& tile) {
      return tile.load == source.load && tile.left == left && tile.type == type && tile.rows == rows &&
             tile.columns == columns;
    };
    auto found = std::ranges::find_if(how_.tiles, is_it);
    const int number = static_cast<int>(found - how_.tiles.begin());
    if (found == how_.tiles.end()) {
      how_.tiles.push_back({.load = source.load,
                            .rows = rows,
                            .columns = columns,
                            .type = type,
                            .left = left,
                            .by_threads = by_threads,
                            .clipped = !by_threads && rows.size() == 1});
      how_.pipelines[0].tiles.push_back(number);
    }
    return {.tile = number, .k_major = axes.k_major};
  }
  // Is the tile's place known ahead?
  bool is_known(const GraphAccess& access) const {
    const auto is_known = [&](const GraphAccess::Slice& slice) {
      return how_.ahead[slice.start] && how_.ahead[slice.extent];
    };
    return (access.member == no_id || how_.ahead[access.member]) &&
           std::ranges::all_of(access.axes, [&](const GraphAccess::Axis& axis) {
             return how_.ahead[axis.index] && std::ranges::all_of(axis.slices, is_known);
           });
  }

  // The epilogue stays with the threads that hold the accumulators; those of a row are in one warp.
  std::string epilogue() {
    for (const auto& region : analysis_.order)
      for (const Id id : region) {
        const Node& at = node(id);
        where_ = id;
        if (at.op == Op::loop && id != how_.loop) return "the kernel has another loop";
        const bool carries = has_region(at.op) && analysis_.graph.carried(id) > 0;
        if (at.op == Op::repeat || (carries && at.op != Op::loop))
          return "the kernel has a while_, or a branch with values";
        const bool along_rows = (is_reduction(at.op) || at.op == Op::argmax) && at.axis() == 1 &&
                                node(at.in[0]).shape == matmul().shape && !how_.transposed;
        if (along_rows) continue;
        if (is_along_lines(at.op) || is_scan(at.op) || at.op == Op::concat || at.op == Op::extract ||
            at.op == Op::take_along_axis)
          return fmt::format("'{}' crosses warps", name(at.op));
      }
    return {};
  }

  // Stores of accumulators, or of values computed from them: whole tiles of a tensor that is not read.
  void stores() {
    std::optional<ElementType> type;
    for (const Id id : analysis_.order[0]) {
      const Node& at = node(id);
      if (at.op != Op::store || at.shape.rank() < 2 || matrix_shape(at.shape) != result_shape()) continue;
      const std::vector<Axes> axes = *merged_axes(at.shape, result_shape());
      if (how_.transposed && axes[0].size() > 1) continue;  // parts of the rows are stored
      const GraphAccess access = analysis_.access(id);
      const int parameter = access.parameter;
      const Parameter& tensor = analysis_.graph.parameters[static_cast<std::size_t>(parameter)];
      const int bytes = info(tensor.type).bytes;
      if (tensor.access != Access::out || (bytes != 2 && bytes != 4) || type.value_or(tensor.type) != tensor.type ||
          !is_addressed(analysis_, access, axes[1].back()) || !is_known(access) ||
          !why_no_panels(analysis_, id, {axes[1], axes[0]}).empty() || writes(parameter) != 1 || !whole_rows(parameter))
        continue;
      type = tensor.type;
      how_.tma_stores.push_back(id);
    }
  }
  // TMA stores 16 bytes at a time: where a row ends within them, it would overwrite its neighbor (seen on an H200).
  bool whole_rows(int parameter) const {
    return analysis_.variant.tensors[static_cast<std::size_t>(parameter)].row_alignment == 16;
  }
  int writes(int parameter) const {
    int count = 0;
    for (const auto& region : analysis_.order)
      for (Id id : region) count += is_write(node(id).op) && analysis_.access(id).parameter == parameter;
    return count;
  }

  // As many as fit beside the buffers of stores: a matmul with few k-iterations has all of them in flight at once.
  int stages() const {
    constexpr int most = 12, barriers = 1024;
    const int m = matmul().shape[0], n = matmul().shape[1];
    int stored = how_.tma_stores.empty() ? 0 : 2 * how_.consumer_groups * m * panel_bytes;
    if (how_.split_k == SplitK::cluster) stored += m * n * static_cast<int>(sizeof(float));
    int loaded = 0;
    for (const ProducedTile& tile : how_.tiles)
      loaded += static_cast<int>(node(tile.load).shape.size()) * info(tile.type).bytes;
    const int wanted = analysis_.hints.stages;  // at least two, one of which is being filled
    return std::min((analysis_.target.shared_bytes - barriers - stored) / loaded,
                    wanted > 0 ? std::clamp(wanted, 2, most) : most);
  }

  // Two CTAs whose tiles are neighbors along the grid's first axis may load each right operand for both, if it does not
  // depend on that axis. Where one of them has no tile, it only loads: nothing but the epilogue may have effects.
  bool may_multicast() const {
    const std::vector<char> same = analysis_.uniform_values([&](Id id, RegionId) {
      return (node(id).op == Op::block && node(id).grid_axis() != 0) || analysis_.is_counter(id);
    });
    const auto is_same = [&](Id id) { return id == no_id || same[id]; };
    const auto is_same_tile = [&](const ProducedTile& tile) {
      constexpr int swizzled_rows = 8;
      if (tile.left) return true;
      const GraphAccess access = analysis_.access(tile.load);
      return tile.rows.size() == 1 &&
             merged_extent(node(tile.load).shape, tile.rows) % (multicast_ctas * swizzled_rows) == 0 &&
             is_same(access.member) && std::ranges::all_of(access.axes, is_same, &GraphAccess::Axis::index);
    };
    const auto is_early_effect = [&](Id id) {
      const Op op = node(id).op;  // the host checks requirements
      return is_effect(op) && op != Op::require && analysis_.number[id] < analysis_.number[how_.loop];
    };
    return !how_.copies_by_threads() && std::ranges::all_of(how_.tiles, is_same_tile) &&
           std::ranges::none_of(analysis_.order, [&](const std::vector<Id>& region) {
      return std::ranges::any_of(region, is_early_effect);
    });
  }

  // Records the node that prevents it.
  std::string because(Id id, std::string why) {
    where_ = id;
    return why;
  }

  const GraphAnalysis& analysis_;
  const bool debug_;
  WarpSpecialization how_;
  Id where_ = no_id;
  bool swappable_ = false;
};

}  // namespace

}  // namespace tessera::internal::lowering

tessera::internal::lowering::ScheduleMatch tessera::internal::schedule_pattern::gemm(
    const lowering::GraphAnalysis& analysis, bool debug) {
  return lowering::Classifier(analysis, debug).run();
}
