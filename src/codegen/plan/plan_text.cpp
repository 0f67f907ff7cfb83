#include "codegen/plan/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/plan/called.hpp"
#include "codegen/plan/matmul_text.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/spelling.hpp"
#include "codegen/plan/tables_text.hpp"
#include "graph/in_literal.hpp"

namespace tessera::internal::codegen {
namespace {

// --- steps

class StepText {
 public:
  explicit StepText(const Plan& plan) : plan_(plan) {}

  std::string operator()(const Compute& s) const {
    std::string text = fmt::format("{} = {}", of(s.out), expression(s.sweep));
    if (s.zero_lanes) text += fmt::format(", 0 where lane & {}", s.zero_lanes);
    if (s.zero_warps) text += fmt::format(", 0 where warp & {}", s.zero_warps);
    return text;
  }
  std::string operator()(const Load& s) const { return fmt::format("{} = {}", of(s.out), access(s.access)); }
  std::string operator()(const Store& s) const {
    return fmt::format("{} = {}{}", access(s.access), expression(s.sweep),
                       s.by_quads ? ", 8 per lane by quad exchange"
                       : s.whole  ? ", unsplit"
                                  : "");
  }
  std::string operator()(const Atomic& s) const {
    std::string text = fmt::format("{} by {} of {}", access(s.access), name(s.op), expression(s.sweep));
    if (s.expected) text += fmt::format(", expecting {}", operand(*s.expected, nullptr, {}));
    if (s.order != MemoryOrder::relaxed || s.scope != MemoryScope::device)
      text += fmt::format(", {}, {}", name(s.order), name(s.scope));
    return s.out ? fmt::format("{} = {}", of(s.out), text) : text;
  }
  std::string operator()(const Reduce& s) const {
    return fmt::format("{} = {} along {} of {}{}", of(s.out), name(s.op), s.axis, expression(s.sweep),
                       s.partial ? ", of each thread" : "");
  }
  std::string operator()(const Argmax& s) const {
    return fmt::format("{}, {} = argmax along {} of {}", of(s.out), of(s.best), s.axis, expression(s.sweep));
  }
  std::string operator()(const LaneReduce& s) const {
    return fmt::format("{} reduced over lanes & {}, warps & {}, {} registers per lane", of(s.out), s.lanes, s.warps,
                       s.kept);
  }
  std::string operator()(const CrossWarpReduce& s) const {
    return fmt::format("{} reduced over warps, {} registers, {} per pass", of(s.out), s.registers, s.chunk);
  }
  std::string operator()(const StoreWarpPartials& s) const { return fmt::format("{} = {}", of(s.scratch), of(s.out)); }
  std::string operator()(const ReduceWarpPartials& s) const {
    return fmt::format("{} = {} of {}, warps & {}", of(s.out), name(s.op), of(s.scratch), s.warps);
  }
  std::string operator()(const StoreScratch& s) const {
    return fmt::format("{}[{} + {}] = {}", of(s.scratch), s.base, strides(s.strides, s.sweep.shape),
                       expression(s.sweep));
  }
  static std::string scanned(const ScanBy& by) {
    return fmt::format("{}{}{} scan", by.options.reverse ? "reverse " : "", by.options.exclusive ? "exclusive " : "",
                       name(by.op));
  }
  std::string operator()(const Scan& s) const {
    return fmt::format("{} = {} along {} of {}", of(s.out), scanned(s.by), s.axis, expression(s.sweep));
  }
  std::string operator()(const WriteScanTotals& s) const {
    return fmt::format("{} = totals of {} along {}", of(s.scratch), of(s.out), s.axis);
  }
  std::string operator()(const AddScanPrefix& s) const {
    return fmt::format("{} = {} combined with the prefix in {}, along {}", of(s.out), scanned(s.by), of(s.scratch),
                       s.axis);
  }
  static std::string order(const SortOptions& by, int chunk, int kept) {
    return fmt::format("{} chunks of {}{}", by.descending ? "descending" : "ascending", chunk,
                       kept < chunk ? fmt::format(", first {}", kept) : "");
  }
  std::string operator()(const Sort& s) const {
    return fmt::format("{}{} = sort along {}, {}, of {}", of(s.out), s.at ? ", " + of(s.at) : "", s.axis,
                       order(s.by, s.chunk, s.kept), expression(s.sweep));
  }
  std::string operator()(const Merge& s) const {
    const std::string to = s.to && s.to_at ? of(s.to) + ", " + of(s.to_at) : of(s.to ? s.to : s.to_at);
    return fmt::format("{}[{}] = first {} of each line, merged along {}, {}, of {}{}, ranked in {}[{}]", to,
                       strides(s.to_strides, s.sweep.shape), s.extent, s.axis, order(s.by, s.chunk, s.kept),
                       expression(s.sweep), s.at ? " and " + of(s.at) : "", of(s.from),
                       strides(s.from_strides, s.sweep.shape));
  }
  std::string operator()(const HistogramUpdate& s) const {
    return fmt::format("{}[{}] {} along {} for each of {} below {}, {} copies", of(s.scratch),
                       strides(s.strides, s.sweep.shape), s.op == Op::histogram ? "+= 1" : "= last position", s.axis,
                       expression(s.sweep), s.bins, s.copies);
  }
  std::string operator()(const HistogramReduce& s) const {
    return fmt::format("{} = sum of {} copies of {}[{}]", of(s.out), s.copies, of(s.scratch),
                       strides(s.strides, s.sweep.shape));
  }
  std::string operator()(const LoadScratch& s) const {
    std::string picked;
    for (const Picked& axis : s.picked)
      picked += fmt::format("{}{} + {} of {}", picked.empty() ? ", " : "; ", operand(axis.first, nullptr, {}),
                            axis.step, axis.extent);
    return fmt::format("{} = {}[{}{}]", of(s.out), of(s.scratch), strides(s.strides, s.sweep.shape), picked);
  }
  std::string operator()(const GatherScratch& s) const {
    return fmt::format("{} = {}[{}] at {} along {}, of {}", of(s.out), of(s.scratch), strides(s.strides, s.sweep.shape),
                       expression(s.sweep), s.axis, s.extent);
  }
  std::string operator()(const StoreShared& s) const {
    return fmt::format("{}{} = {}", of(s.buffer), s.state ? fmt::format(" at {}", of(s.state)) : "",
                       expression(s.sweep));
  }
  std::string operator()(const LoadFragment& s) const {
    return fmt::format("{} = {} at {}, k from {}{}{}{}", of(s.out), of(s.buffer), of(s.state), s.sweep.origin[1],
                       s.transposed ? ", transposed" : "", s.by_matrix ? ", by ldmatrix" : "",
                       s.to_reals ? ", as reals" : "");
  }
  std::string operator()(const ZeroFill& s) const { return fmt::format("{} = 0", of(s.buffer)); }
  std::string operator()(const Fetch& s) const {
    constexpr std::string_view copy[] = {"cp.async", "element by element", "vector by vector"};
    std::vector<std::string> tiles;
    for (const Fetch::Tile& tile : s.tiles)
      tiles.push_back(
          fmt::format("{} <- {}, {}", of(tile.buffer), access(tile.access), copy[static_cast<int>(tile.copy)]));
    return fmt::format("fetch {}", fmt::join(tiles, "; "));
  }
  std::string operator()(const CpAsyncCommit&) const { return "cp.async.commit_group"; }
  std::string operator()(const CpAsyncWait& s) const { return fmt::format("cp.async.wait_group {}", s.pending); }
  std::string operator()(const Mma& s) const { return matmul_text(plan_, s); }
  std::string operator()(const Barrier& s) const { return s.again ? "barrier, not in the first pass" : "barrier"; }
  std::string operator()(const Loop& s) const {
    if (s.repeats) return fmt::format("while {}", operand(s.count, nullptr, {}));
    return fmt::format("for {} below {}{}", name_of(plan_, s.loop), operand(s.count, nullptr, {}),
                       s.stages > 1 ? fmt::format(", {} stages in flight", s.stages) : "") +
           (s.unrolled > 0 ? fmt::format(", unrolled by {}", s.unrolled) : "");
  }
  std::string operator()(const HostReport& s) const {
    std::string text = fmt::format("report text {}", s.text);
    for (const HostReport::Tile& tile : s.values) text += fmt::format(", {} of {}", tile.elements, of(tile.scratch));
    return text + (s.unless ? fmt::format(", unless {}", operand(*s.unless, nullptr, {})) : "");
  }
  std::string operator()(const Branch& s) const { return fmt::format("if {}", operand(s.condition, nullptr, {})); }
  std::string operator()(const ElectOne& s) const { return fmt::format("elect one of every {} threads", s.threads); }
  std::string operator()(const IfConsumerGroup& s) const { return fmt::format("consumer group {}", s.consumer_group); }
  std::string operator()(const IfFirstSplit& s) const {
    if (s.share) return fmt::format("if {} {} 0", of(s.share), s.first ? "==" : ">");
    return s.first ? "first CTA of the cluster" : "other CTAs of the cluster";
  }
  std::string operator()(const IfInGrid&) const { return "if the tile is in the grid"; }
  std::string operator()(const ForEachPeer& s) const {
    return fmt::format("for each peer CTA with later ones of {} k-iterations", operand(s.k_iterations, nullptr, {}));
  }
  std::string operator()(const TileLoop& s) const {
    if (s.k_iterations)
      return fmt::format("for grid tiles of {} k-iterations each, in this CTA's stream-K share",
                         operand(*s.k_iterations, nullptr, {}));
    return fmt::format("for grid tiles from {} by {}", s.first, s.step);
  }
  std::string operator()(const PrefetchBeforeWait& s) const {
    return fmt::format(
        "prefetch before the grid dependency wait, if no earlier launch writes it: at most {} k-iterations of the "
        "first grid tile",
        s.most);
  }
  std::string operator()(const IfNotPrefetched&) const { return "unless prefetched before the wait"; }
  std::string operator()(const SetMaxNReg& s) const {
    return fmt::format("setmaxnreg {}, {}", s.registers, s.more ? "increase" : "decrease");
  }
  std::string operator()(const InitPipeline& s) const {
    return fmt::format("init mbarriers of {}", name_of(plan_, s.pipeline));
  }
  std::string operator()(const MbarrierInitFence&) const { return "fence.mbarrier_init"; }
  std::string operator()(const ZeroFillRows& s) const {
    return fmt::format("rows of {} that no TMA box fills = 0", name_of(plan_, s.pipeline));
  }
  std::string operator()(const ZeroFillPastEnd& s) const {
    return fmt::format("rows of {} at {} from {} on = 0", of(s.buffer), of(s.state), operand(s.filled, nullptr, {}));
  }
  std::string operator()(const WaitEmpty& s) const { return fmt::format("wait until {} is empty", of(s.state)); }
  std::string operator()(const ArriveExpectTx& s) const {
    const Pipeline& pipeline = plan_.pipelines[plan_.states[s.state].pipeline];
    std::vector<std::string> clipped;
    for (const ClippedRows& rows : pipeline.clipped) clipped.push_back(of(rows.buffer));
    return fmt::format(
        "expect {} bytes at {}{}", pipeline.bytes, of(s.state),
        clipped.empty() ? "" : fmt::format(", fewer where rows of {} are clipped", fmt::join(clipped, ", ")));
  }
  std::string operator()(const TmaLoad& s) const {
    return fmt::format("{} at {} + {} <- {}{}", of(s.buffer), of(s.state), s.offset, box(s.map, s.at),
                       s.multicast_axis < 0 ? "" : ", the CTA's part, multicast");
  }
  std::string operator()(const Arrive& s) const { return fmt::format("arrive at {}", of(s.state)); }
  std::string operator()(const WaitFull& s) const { return fmt::format("wait until {} is full", of(s.state)); }
  std::string operator()(const ArriveEmpty& s) const {
    return fmt::format(
        "release the stage {} behind {}{}", s.behind, of(s.state),
        s.not_first ? fmt::format(", not in the first iteration of {}", name_of(plan_, s.not_first)) : "");
  }
  std::string operator()(const AdvanceStage& s) const {
    return fmt::format("{} {} {}", of(s.state), s.of_others ? "skips" : "advances by", operand(s.by, nullptr, {}));
  }
  std::string operator()(const DeclareAccumulator& s) const {
    return fmt::format("declare accumulator {}{}", of(s.value), s.zeroed ? " = 0" : "");
  }
  std::string operator()(const RegisterFence& s) const { return fmt::format("fence registers of {}", of(s.value)); }
  std::string operator()(const WgmmaFence&) const { return "wgmma.fence"; }
  std::string operator()(const Wgmma& s) const {
    return fmt::format(
        "{} {} {} {}: [{},{}] x [{},{}] {}, wgmma{}{}{}{}", of(s.out),
        s.overwrites ? "=" : "+=", s.left ? of(s.left) : of(s.a), of(s.b), s.m, s.k, s.k, s.n, name(s.type), places(s),
        s.first_k ? fmt::format(", k from {}", s.first_k) : "",
        plan_.values[s.out].origin[1] ? fmt::format(", columns from {}", plan_.values[s.out].origin[1]) : "",
        s.overwrites_first ? fmt::format(", = in the first iteration of {}", name_of(plan_, s.overwrites_first)) : "");
  }
  std::string operator()(const PromoteSums& s) const {
    return fmt::format("{} += {}, columns from {}", of(s.accumulators), of(s.sums), plan_.values[s.sums].origin[1]);
  }
  std::string operator()(const WgmmaCommit&) const { return "wgmma.commit_group"; }
  std::string operator()(const WgmmaWait& s) const { return fmt::format("wgmma.wait_group {}", s.pending); }
  std::string operator()(const ProxyFence&) const { return "fence.proxy.async"; }
  std::string operator()(const PrefetchMap& s) const {
    return fmt::format("prefetch tensor map {}", name_of(plan_, s.map));
  }
  std::string operator()(const PrefetchL2& s) const {
    const TileAccess::Axis& axis = s.access.axes[static_cast<std::size_t>(s.selected)];
    return fmt::format("{}prefetch into L2 {}, {} along axis {}",
                       s.unless_may_prefetch ? "unless it may prefetch: " : "", access(s.access), axis.extent,
                       axis.tensor_axis);
  }
  std::string operator()(const TmaStore& s) const {
    const std::string at = s.offset ? fmt::format(" at byte {}", s.offset) : "";
    return fmt::format("{} <- {}{}", box(s.map, s.at), of(s.buffer), at);
  }
  std::string operator()(const TmaStoreCommit&) const { return "cp.async.bulk.commit_group"; }
  std::string operator()(const TmaStoreWait& s) const {
    return fmt::format("cp.async.bulk.wait_group.read {}", s.pending);
  }
  std::string operator()(const NamedBarrier& s) const {
    return fmt::format("{}named barrier {}, {} threads{}", s.next_consumer_group ? "next consumer group's " : "", s.id,
                       s.threads, s.arrives ? ", arrive only" : "");
  }
  std::string operator()(const SplitKRange& s) const {
    return fmt::format("{}, {} = this CTA's range of {} k-iterations", of(s.first), of(s.count),
                       operand(s.k_iterations, nullptr, {}));
  }
  std::string operator()(const StorePartial& s) const { return fmt::format("{} = {}", of(s.scratch), of(s.sums)); }
  std::string operator()(const ReducePartials& s) const {
    const bool by_grid = plan_.scratch[s.scratch].in_workspace;
    return fmt::format("{} += {} of {}", of(s.sums), of(s.scratch),
                       by_grid ? "the peer CTA" : "the cluster's other CTAs");
  }
  std::string operator()(const ClusterBarrier&) const { return "cluster barrier"; }
  std::string operator()(const SignalPartial&) const { return "signal that the partial is stored"; }
  std::string operator()(const WaitPartial&) const { return "wait for the peer CTA's partial"; }
  std::string operator()(const WarpBarrier&) const { return "warp barrier"; }
  std::string operator()(const Stamp& s) const { return fmt::format("stamp {}", s.number); }
  std::string operator()(const OrderedBarrier& s) const {
    return s.kind == OrderedBarrier::Kind::begin  ? "ordered barrier: first turn to the first warp group"
           : s.kind == OrderedBarrier::Kind::wait ? "ordered barrier: wait for this warp group's turn"
                                                  : "ordered barrier: pass the turn to the next warp group";
  }
  std::string operator()(const GridDependencyWait& s) const {
    return s.unless_may_prefetch ? "unless it may prefetch: grid dependency wait" : "grid dependency wait";
  }
  std::string operator()(const GridDependencyTrigger&) const { return "grid dependency trigger"; }

 private:
  std::string of(ValueId id) const { return name_of(plan_, id); }
  std::string of(BufferId id) const { return name_of(plan_, id); }
  std::string of(PipelineStateId id) const { return name_of(plan_, id); }
  std::string places(const Wgmma& s) const {
    const PipelineStateId a = s.left ? PipelineStateId{} : s.a_state;
    if (!a && !s.b_state) return "";
    if (!a || a == s.b_state) return fmt::format(", at {}", of(s.b_state));
    return fmt::format(", at {} and {}", of(a), of(s.b_state));
  }
  std::string box(TensorMapId map, const std::vector<TileCoordinate>& at) const {
    std::vector<std::string> parts;
    for (const TileCoordinate& c : at)
      parts.push_back(
          fmt::format("{} * {} + {}{}", operand(c.index, nullptr, {}), c.scale, c.offset, c.far ? " (64-bit)" : ""));
    return fmt::format("{}[{}]", name_of(plan_, map), fmt::join(parts, ", "));
  }
  static std::string of(ScratchId id) { return name_of(id); }

  static std::string strides(const Strides& strides, const Shape& shape) {
    std::vector<std::string> parts;
    for (int axis = 0; axis < shape.rank(); ++axis)
      parts.push_back(fmt::format("x{} * {}", axis, strides[static_cast<std::size_t>(axis)]));
    return parts.empty() ? "0" : fmt::format("{}", fmt::join(parts, " + "));
  }

  std::string operand(const Operand& o, const Sweep* sweep, const std::vector<std::string>& made) const {
    switch (o.kind) {
      case Operand::Kind::term:
        return made[static_cast<std::size_t>(o.index)];
      case Operand::Kind::value:
        return of(o.value);
      case Operand::Kind::fetched:
        return access(sweep->reads[static_cast<std::size_t>(o.index)]);
      case Operand::Kind::literal:
        return fmt::format("{}", o.literal);
      case Operand::Kind::coordinate:
        return fmt::format("x{}", o.index);
    }
    return "";
  }
  std::string access(const TileAccess& a) const {
    std::string text = tensor_name(plan_, a.parameter);
    if (a.member) text += fmt::format("[{}]", operand(*a.member, nullptr, {}));
    text += "[";
    for (std::size_t i = 0; i < a.axes.size(); ++i) {
      const TileAccess::Axis& axis = a.axes[i];
      if (i) text += ", ";
      if (a.rows && i == 0)
        text += of(a.rows);
      else if (axis.element)
        text +=
            axis.element->kind == Operand::Kind::value ? of(axis.element->value) : operand(*axis.element, nullptr, {});
      else if (axis.tensor_axis < 0)
        text += "1";
      else
        text += fmt::format("{} * {}", operand(axis.index, nullptr, {}), axis.extent);
      for (const TileAccess::Slice& slice : axis.slices)
        text +=
            fmt::format(" from {}{} of {}", operand(slice.start, nullptr, {}),
                        slice.step == 1 ? "" : fmt::format(" by {}", slice.step), operand(slice.extent, nullptr, {}));
      if (!axis.viewed.is_tensors()) text += viewed(axis);
    }
    return text + (a.vector > 1 ? fmt::format("] by {}", a.vector) : "]") +
           (a.run > 1 ? fmt::format(", in runs of {}", a.run) : "") + (a.in_order ? ", in order" : "") +
           (a.kept ? ", evict_last" : "");
  }
  static std::string viewed(const TileAccess::Axis& axis) {
    const Viewed& viewed = axis.viewed;
    std::string text = viewed.within > 0 ? fmt::format(" in windows of {}", viewed.within) : "";
    if (viewed.factor != 1) text += fmt::format(", {} apart", viewed.factor);
    text += fmt::format(" along axis {}", fmt::join(viewed.outer, " and "));
    if (viewed.outer.empty()) return text + fmt::format("{}", axis.tensor_axis);
    return text + fmt::format(" and {}", axis.tensor_axis);
  }
  // Cuts a long expression: the kernel's text has all terms.
  std::string expression(const Sweep& sweep) const {
    constexpr std::size_t most = 160;
    std::vector<std::string> made;
    for (const Term& term : sweep.expression.terms) {
      std::string text;
      const auto in = [&](std::size_t i) {
        const Operand& o = term.in[i];
        if (o.kind == Operand::Kind::literal) return number(term.operand, decode(term.operand, o.literal));
        return operand(o, &sweep, made);
      };
      if (term.op == Op::broadcast) {
        text = in(0);
      } else {
        for (std::size_t i = 0; i < term.in.size(); ++i) text += (i ? ", " : "") + in(i);
        const std::string_view what = term.op == Op::cast ? name(term.type)
                                      : term.op == Op::custom
                                          ? plan_.functions[static_cast<std::size_t>(term.function)].name
                                          : name(term.op);
        text = term.op == Op::extent
                   ? fmt::format("{}[{}].extent({})", tensor_name(plan_, term.argument), text, term.axis)
               : term.op == Op::bitcast ? fmt::format("bitcast<{}>({})", name(term.type), text)
                                        : fmt::format("{}({})", what, text);
      }
      if (text.size() > most) text = fmt::format("{}(...)", name(term.op));
      made.push_back(std::move(text));
    }
    return made.empty() ? "nothing" : made.back();
  }

  const Plan& plan_;
};

void tree(const Plan& plan, const Body& steps, int depth, StepLines& lines) {
  const auto indented = [&](int by, std::string_view line, const Step* of = nullptr) {
    lines.text.append(static_cast<std::size_t>(by) * 2, ' ').append(line) += '\n';
    lines.steps.push_back(of);
  };
  for (const Step& step : steps) {
    std::string line = visit_kind(StepText(plan), step.action);
    if (step.location.file && *step.location.file && !step.action.is<Barrier>()) {
      const std::string file = in_literal(step.location.file);
      line += fmt::format("   // {}:{}", file.substr(file.find_last_of('/') + 1), step.location.line);
    }
    indented(depth, line, &step);
    if (const Loop* loop = step.action.as<Loop>(); loop && loop->stages > 1) {
      indented(depth, "  arrive:");
      tree(plan, loop->arrive, depth + 2, lines);
      indented(depth, "  ahead:");
      tree(plan, loop->ahead, depth + 2, lines);
      indented(depth, "  issued:");
      tree(plan, loop->issued, depth + 2, lines);
      indented(depth, "  body:");
      tree(plan, loop->body, depth + 2, lines);
    } else {
      each_body(step, [&](const Body& inner) { tree(plan, inner, depth + 1, lines); });
    }
  }
}

StepLines tree_lines(const Plan& plan) {
  StepLines lines;
  for (const Phase& phase : plan.phases) {
    tree(plan, phase.prologue, 0, lines);
    for (const Role& role : phase.roles) {
      if (plan.phases.size() > 1 || phase.roles.size() > 1) {
        lines.text += role_text(role) + '\n';
        lines.steps.push_back(nullptr);
      }
      tree(plan, role.body, 0, lines);
    }
  }
  return lines;
}

}  // namespace

std::string step_text(const Plan& plan, const Step& step) { return visit_kind(StepText(plan), step.action); }

std::string tree_text(const Plan& plan) { return tree_lines(plan).text; }

StepLines dump_lines(const Plan& plan) {
  StepLines lines = tree_lines(plan);
  const std::string head =
      fmt::format("{}{}{}\n", to_string(plan), fmt::join(plan.search, "\n"), plan.search.empty() ? "" : "\n");
  lines.steps.insert(lines.steps.begin(), static_cast<std::size_t>(std::ranges::count(head, '\n')), nullptr);
  lines.text.insert(0, head);
  return lines;
}

std::string dump_text(const Plan& plan) { return dump_lines(plan).text; }

}  // namespace tessera::internal::codegen
