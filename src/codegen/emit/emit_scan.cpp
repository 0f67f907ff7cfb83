// Scans along an axis: over a thread's neighboring elements, over lanes, over the outer registers, and last over warps,
// always in order.
#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/spelling.hpp"
#include "graph/evaluate.hpp"

namespace tessera::internal::codegen {
namespace {

class LineText {
 public:
  LineText(Writer& w, const ScanBy& by, ValueId out, int axis)
      : w_(w),
        by_(by),
        out_(out),
        layout_(w.plan.values[out].layout),
        line_(*line_of(layout_, axis)),
        of_lines_(layout_.without(axis)),
        first_(register_map(layout_, of_lines_)),
        type_(register_type(w.plan.storage(out).type)),
        none_(number(w.plan.storage(out).type, identity(by.op, w.plan.storage(out).type))) {}

  /// Scans within a warp, and over the outer registers if no other warp takes part.
  void within_warps() {
    const bool alone = line_.warps.size == 1, carries = outer_size() > 1 && alone;
    const bool exclusive = by_.options.exclusive && alone, only_runs = line_.lanes.size == 1 && !carries;
    if (line_.run.size == 1 && only_runs && !exclusive) return;
    w_.open("{{");
    if (line_.run.size > 1 || !only_runs) combination();
    each_line([&](const IndexExpression& line) {
      if (line_.run.size > 1)
        over("k", 0, outer_size(), [&](const IndexExpression& k) {
          over("v", 1, line_.run.size, [&](const IndexExpression& v) { combine(at(line, k, v - 1), at(line, k, v)); });
        });
      if (only_runs) {
        if (exclusive) shift(line, 0, none_, none_);
        return;
      }
      if (carries) w_.line("{} carry = {};", type_, none_);
      over("k", 0, outer_size(), [&](const IndexExpression& k) {
        w_.open("{{");
        const std::string through = at(line, k, line_.run.size - 1);
        if (line_.lanes.size == 1) {
          w_.line("const {} before = carry;", type_);
          w_.line("carry = combine(carry, {});", through);
        } else {
          w_.line("const {} through = scan_lanes<{}>({}, combine);", type_, lanes(), through);
          const std::string before = fmt::format("lane_before<{}>(through, {})", lanes(), typed_none());
          w_.line("const {} before = {};", type_, carries ? fmt::format("combine(carry, {})", before) : before);
          if (carries) w_.line("carry = combine(carry, last_lane<{}>(through));", lanes());
        }
        if (exclusive)
          shift(line, k, "before", "before");
        else
          combine_run(line, k);
        w_.close();
      });
    });
    w_.close();
  }

  void put_totals(ScratchId scratch) {
    w_.open("{{");
    w_.line("{}* const totals = {};", type_, w_.scratch(scratch, w_.plan.storage(out_).type));
    const IndexExpression last =
        line_.lanes.size == 1 ? IndexExpression::always() : equal(lane_digit(), line_.lanes.size - 1);
    each_line([&](const IndexExpression& line) {
      over("k", 0, outer_size(), [&](const IndexExpression& k) {
        w_.line("{}totals[{}] = {};", guard(last), slot(line, k, w_.warp()), at(line, k, line_.run.size - 1));
      });
    });
    w_.close();
  }

  void add_totals(ScratchId scratch) {
    w_.open("{{");
    w_.line("const {}* const totals = {};", type_, w_.scratch(scratch, w_.plan.storage(out_).type));
    combination();
    each_line([&](const IndexExpression& line) { line_.lanes.size == 32 ? add_by_lanes(line) : add_in_order(line); });
    w_.close();
  }

 private:
  int outer_size() const { return line_.outer.size; }
  std::string lanes() const {
    return fmt::format("{}, {}{}", line_.lanes.size, line_.lanes.unit, by_.options.reverse ? ", true" : "");
  }
  /// Position in scan order from the position in element order, and back, among `count`.
  IndexExpression ordered(const IndexExpression& number, int count) const {
    return by_.options.reverse ? IndexExpression(count - 1) - number : number;
  }
  IndexExpression lane_digit() { return ordered(w_.lane() / line_.lanes.unit % line_.lanes.size, line_.lanes.size); }
  IndexExpression warp_digit() { return ordered(w_.warp() / line_.warps.unit % line_.warps.size, line_.warps.size); }
  std::string typed_none() const { return fmt::format("{}({})", type_, none_); }

  void over(const char* name, int from, int to, const Each& each) {
    if (to - from == 1) return each(from);
    w_.unroll(is_indexed_by_constants(w_.plan.storage(out_)));
    w_.open("for (int {0} = {1}; {0} < {2}; ++{0}) {{", name, from, to);
    each(IndexExpression::variable(name, to));
    w_.close();
  }
  void each_line(const Each& each) {
    over("i", 0, of_lines_.registers(), [&](const IndexExpression& line) {
      const bool scoped = of_lines_.registers() == 1;
      if (scoped) w_.open("{{");
      each(line);
      if (scoped) w_.close();
    });
  }
  std::string at(const IndexExpression& line, const IndexExpression& outer, const IndexExpression& place) {
    return element(w_, out_,
                   digits(first_, line) + ordered(outer, line_.outer.size) * line_.outer.unit +
                       ordered(place, line_.run.size) * line_.run.unit);
  }
  void combination() {
    const ElementType type = w_.plan.storage(out_).type;
    const bool real = info(type).kind == ElementKind::real;
    w_.line("const auto combine = []({0} a, {0} b) {{ return {1}; }};", type_,
            substitute(real ? info(by_.op).cuda_real : info(by_.op).cuda_integer, {"a"}, {"b"}).text);
  }
  void combine(const std::string& before, const std::string& to) { w_.line("{1} = combine({0}, {1});", before, to); }
  void combine_run(const IndexExpression& line, const IndexExpression& outer) {
    over("v", 0, line_.run.size, [&](const IndexExpression& v) { combine("before", at(line, outer, v)); });
  }
  // Makes a run exclusive: each element gets `before` combined with its predecessor; the first gets `first`.
  void shift(const IndexExpression& line, const IndexExpression& outer, const std::string& before,
             const std::string& first) {
    const int run = line_.run.size;
    if (run > 1)
      over("v", 1, run, [&](const IndexExpression& v) {
        w_.line("{} = combine({}, {});", at(line, outer, IndexExpression(run) - v), before,
                at(line, outer, IndexExpression(run - 1) - v));
      });
    w_.line("{} = {};", at(line, outer, 0), first);
  }
  // Combines a warp's scan of an outer register with the total before it.
  void finish(const IndexExpression& line, const IndexExpression& outer) {
    if (!by_.options.exclusive) return combine_run(line, outer);
    if (line_.lanes.size == 1) return shift(line, outer, "before", "before");
    w_.line("const {} first = combine(before, lane_before<{}>({}, {}));", type_, lanes(),
            at(line, outer, line_.run.size - 1), typed_none());
    shift(line, outer, "before", "first");
  }

  // Index of a warp's total; lanes of other lines have slots of their own.
  IndexExpression slot(const IndexExpression& line, const IndexExpression& outer, const IndexExpression& warp) {
    const Factor& of_line = line_.lanes;
    const IndexExpression other = w_.lane() % of_line.unit + w_.lane() / (of_line.unit * of_line.size) * of_line.unit;
    return ((line * outer_size() + outer) * w_.role.warps + warp) * (32 / of_line.size) +
           (of_line.size == 32 ? IndexExpression(0) : other);
  }
  // The warp at position `number` along the line that otherwise corresponds to this one.
  IndexExpression member(const IndexExpression& number) {
    const int bits = (line_.warps.size - 1) * line_.warps.unit, others = ~bits & (w_.role.warps - 1);
    return (others ? w_.warp() & others : IndexExpression(0)) + ordered(number, line_.warps.size) * line_.warps.unit;
  }

  // If all lanes belong to one line, each takes one of its totals, either of all outer registers at once or of one
  // after another, and the totals are scanned as elements are.
  void add_by_lanes(const IndexExpression& line) {
    const int warps = line_.warps.size;
    const auto scan = [&](const IndexExpression& outer, const IndexExpression& warp, int count) {
      const std::string own = fmt::format("totals[{}]", slot(line, outer, member(warp)));
      w_.line("const {} through = scan_lanes<32, 1>({}, combine);", type_,
              count == 32 ? own : fmt::format("lane < {} ? {} : {}", count, own, typed_none()));
    };
    const bool at_once = outer_size() * warps <= 32;
    if (at_once)
      scan(w_.lane() / warps, w_.lane() % warps, outer_size() * warps);
    else
      w_.line("{} carry = {};", type_, none_);
    over("k", 0, outer_size(), [&](const IndexExpression& k) {
      w_.open("{{");
      if (at_once) {
        w_.line("const {} before = scanned_before(through, {}, {});", type_, k * warps + warp_digit(), typed_none());
      } else {
        scan(k, w_.lane(), warps);
        w_.line("const {} before = combine(carry, scanned_before(through, {}, {}));", type_, warp_digit(),
                typed_none());
        w_.line("carry = combine(carry, shuffle(through, {}));", warps - 1);
      }
      finish(line, k);
      w_.close();
    });
  }
  void add_in_order(const IndexExpression& line) {
    w_.line("{} sum = {};", type_, none_);
    over("k", 0, outer_size(), [&](const IndexExpression& k) {
      w_.open("{{");
      w_.line("{} before = {};", type_, none_);
      w_.unroll_by(1);  // otherwise ptxas loads all totals ahead
      w_.open("for (int other = 0; other < {}; ++other) {{", line_.warps.size);
      const IndexExpression other = IndexExpression::variable("other", line_.warps.size);
      w_.line("if ({}) before = sum;", equal(warp_digit(), other));
      w_.line("sum = combine(sum, totals[{}]);", slot(line, k, member(other)));
      w_.close();
      finish(line, k);
      w_.close();
    });
  }

  Writer& w_;
  const ScanBy by_;
  const ValueId out_;
  const Layout& layout_;
  const Line line_;
  const Layout of_lines_;
  const std::vector<Digit> first_;  // the first register of a line
  const std::string_view type_;
  const std::string none_;  // the identity, from which a scan starts
};

}  // namespace

void emit(Writer& w, const Scan& scan) {
  declare(w, scan.out, false);
  const ElementType type = w.plan.storage(scan.out).type;
  // In reverse order, the padding that the layout covers beyond the tile comes first.
  const bool padded = scan.by.options.reverse && scan.sweep.layout.covers_more(scan.axis, scan.sweep.shape);
  sweep(w, scan.sweep, scan.out, [&](const IndexExpression& index) {
    const Spelled value = expression(w, scan.sweep, index);
    if (!padded) return w.line("{} = {};", element(w, scan.out, index), value.text);
    w.line("{} = {} ? {} : {};", element(w, scan.out, index),
           coordinate(w, scan.sweep.layout, scan.axis, index) < scan.sweep.shape[scan.axis], value.operand(),
           number(type, identity(scan.by.op, type)));
  });
  LineText(w, scan.by, scan.out, scan.axis).within_warps();
}

void emit(Writer& w, const WriteScanTotals& put) { LineText(w, put.by, put.out, put.axis).put_totals(put.scratch); }

void emit(Writer& w, const AddScanPrefix& add) { LineText(w, add.by, add.out, add.axis).add_totals(add.scratch); }

}  // namespace tessera::internal::codegen
