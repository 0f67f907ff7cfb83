#include "codegen/schedule/warp_specialized.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

std::string count(std::ptrdiff_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string matmuls_text(const GraphAnalysis& analysis, const WarpSpecialization& how) {
  std::string text;
  for (const WgmmaOperands& matmul : how.matmuls) {
    const Node &at = analysis[matmul.id], &left = analysis[at.in[0]];
    text += fmt::format("{}{}x{}x{} {}", text.empty() ? "" : ", then ", at.shape[0], at.shape[1], left.shape[1],
                        name(left.type));
    if (!how.is_fused_matmul()) break;  // the others are alike
  }
  return text;
}

}  // namespace

std::string WarpSpecializedSchedule::text(const GraphAnalysis& analysis) const {
  const WarpSpecialization& how = how_;
  std::string text = matmuls_text(analysis, how) + " by wgmma";
  if (!how.is_fused_matmul() && how.matmuls.size() > 1) text += fmt::format(", {} matmuls", how.matmuls.size());
  int stages = 0;
  for (const TilePipeline& pipeline : how.pipelines)
    if (!pipeline.held) stages = stages ? std::min(stages, pipeline.stages) : pipeline.stages;
  text += fmt::format(", {} of {}, {}", count(how.consumer_groups, "consumer group"), count(how.groups, "warp group"),
                      count(stages, "stage"));
  if (how.blocks > 1) text += fmt::format(", {} CTAs per multiprocessor", how.blocks);
  if (how.overlap == MatmulOverlap::k_iterations) text += ", k-iterations overlap";
  if (how.overlap == MatmulOverlap::grid_tiles) text += ", k-iterations and grid tiles overlap";
  if (how.promotes()) text += fmt::format(", sums of {} products promoted to f32", codegen::most_fp8_products);
  if (how.split_k == SplitK::cluster) text += ", split-K in clusters";
  if (how.split_k == SplitK::stream_k) text += ", stream-K";
  if (how.multicast) text += fmt::format(", right operands multicast to {} CTAs", multicast_ctas);
  if (!how.computed.empty()) text += ", left operands from registers";
  if (how.copies_by_threads())
    text += fmt::format(", {} copied by threads",
                        count(std::ranges::count(how.tiles, true, &ProducedTile::by_threads), "tile"));
  if (!how.tma_stores.empty()) text += fmt::format(", {} by TMA", count(std::ssize(how.tma_stores), "store"));
  if (how.fetches_rows) text += ", rows of operands loaded a k-iteration ahead";
  if (how.reads_ahead) text += how.promotes() ? ", rows loaded before the stores" : ", rows loaded before the loop";
  return text;
}

bool starts_from_zeros(const GraphAnalysis& analysis, Id loop, Id argument) {
  return is_zeros(analysis, analysis[loop].in[static_cast<std::size_t>(analysis[argument].position())]);
}

std::vector<char> known_ahead(const GraphAnalysis& analysis) {
  const auto counted = [&](Id id, RegionId) { return analysis[id].op == Op::block || analysis.is_counter(id); };
  const std::vector<char> counts = analysis.uniform_values(counted);
  const auto is_item = [&](Id id) {
    while (analysis[id].op == Op::reshape) id = analysis[id].in[0];
    if (analysis[id].op != Op::load || analysis[id].ordered || analysis[id].shape.size() != 1) return false;
    // The view, whose slices are numbers, too, and the indices.
    return std::ranges::all_of(analysis[id].in, [&](Id index) { return counts[index] != 0; });
  };
  return analysis.uniform_values([&](Id id, RegionId region) { return counted(id, region) || is_item(id); });
}

bool is_read_ahead(const GraphAnalysis& analysis, const WarpSpecialization& how, Id id) {
  const Node& node = analysis[id];
  if (node.op != Op::load || node.ordered || node.region != 0) return false;
  if (node.shape.size() >= analysis[how.matmuls[0].id].shape.size()) return false;
  const auto known = [&](Id number) { return number == no_id || how.ahead[number]; };
  const GraphAccess access = analysis.access(id);
  return known(access.member) && std::ranges::all_of(access.axes, [&](const GraphAccess::Axis& axis) {
    return known(axis.index) && std::ranges::all_of(axis.slices, [&](const GraphAccess::Slice& slice) {
      return known(slice.start) && known(slice.extent);
    });
  });
}

Layout layout_of_result(const Layout& accumulators, bool transposed) {
  return transposed ? accumulators.permuted(std::array<std::int64_t, 2>{1, 0}) : accumulators;
}

std::vector<Id> loaded_rows(const GraphAnalysis& analysis, const WarpSpecialization& how) {
  std::vector<Id> rows;
  for (const Id id : analysis.order[analysis[how.loop].body()])
    if (analysis[id].op == Op::load && !analysis[id].ordered &&
        std::ranges::any_of(how.computed, [&](const auto& one) { return one.second.values.contains(id); }))
      rows.push_back(id);
  return rows;
}

std::vector<Role> WarpSpecializedSchedule::roles() const {
  return {{.name = "producer", .warps = 4, .body = {}},
          {.name = "consumer", .first_warp = 4, .warps = 4 * how_.groups, .consumer_groups = how_.consumer_groups}};
}

MatmulPlans WarpSpecializedSchedule::matmuls(const GraphAnalysis& analysis) const {
  MatmulPlans matmuls;
  for (const WgmmaOperands& matmul : how_.matmuls)
    matmuls.plans.emplace(matmul.id,
                          wgmma_plan(analysis, matmul.id, how_.groups, matmul.left.tile < 0, how_.row_order));
  matmuls.warps = 4 * how_.groups;
  return matmuls;
}

}  // namespace tessera::internal::lowering
