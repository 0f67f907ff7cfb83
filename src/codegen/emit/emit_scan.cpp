// Inclusive sums along an axis: of a thread's neighbours, over lanes, over rounds, and last over warps, always in
// order.
#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::codegen {
namespace {

class LineText {
 public:
  LineText(Writer& w, ValueId out, int axis)
      : w_(w),
        out_(out),
        layout_(w.plan.values[out].layout),
        line_(*line_of(layout_, axis)),
        of_lines_(layout_.without(axis)),
        first_(register_map(layout_, of_lines_)),
        type_(register_type(w.plan.storage(out).type)) {}

  /// Sums within a warp, over rounds too if there is no other.
  void within_warps() {
    const bool carries = rounds() > 1 && line_.warps.size == 1;
    each_line([&](const IndexExpression& line) {
      if (line_.run.size > 1)
        over("k", 0, rounds(), [&](const IndexExpression& k) {
          over("v", 1, line_.run.size, [&](const IndexExpression& v) { add(at(line, k, v - 1), at(line, k, v)); });
        });
      if (line_.lanes.size == 1 && !carries) return;
      if (carries) w_.line("{} carry = 0;", type_);
      over("k", 0, rounds(), [&](const IndexExpression& k) {
        w_.open("{{");
        const std::string through = at(line, k, line_.run.size - 1);
        if (line_.lanes.size == 1) {
          w_.line("const {} before = carry;", type_);
          w_.line("carry = wrap_add(carry, {});", through);
        } else {
          w_.line("const {} through = scan_lanes<{}>({});", type_, lanes(), through);
          const std::string before = fmt::format("lane_below<{}>(through)", lanes());
          w_.line("const {} before = {};", type_, carries ? fmt::format("wrap_add(carry, {})", before) : before);
          if (carries) w_.line("carry = wrap_add(carry, highest_lane<{}>(through));", lanes());
        }
        add_to_run(line, k);
        w_.close();
      });
    });
  }

  void put_totals(ScratchId scratch) {
    w_.open("{{");
    w_.line("{}* const totals = {};", type_, w_.scratch(scratch, w_.plan.storage(out_).type));
    const IndexExpression last =
        line_.lanes.size == 1 ? IndexExpression::always() : equal(lane_digit(), line_.lanes.size - 1);
    each_line([&](const IndexExpression& line) {
      over("k", 0, rounds(), [&](const IndexExpression& k) {
        w_.line("{}totals[{}] = {};", guard(last), slot(line, k, w_.warp()), at(line, k, line_.run.size - 1));
      });
    });
    w_.close();
  }

  void add_totals(ScratchId scratch) {
    w_.open("{{");
    w_.line("const {}* const totals = {};", type_, w_.scratch(scratch, w_.plan.storage(out_).type));
    each_line([&](const IndexExpression& line) { line_.lanes.size == 32 ? add_by_lanes(line) : add_in_order(line); });
    w_.close();
  }

 private:
  int rounds() const { return line_.rounds.size; }
  std::string lanes() const { return fmt::format("{}, {}", line_.lanes.size, line_.lanes.unit); }
  IndexExpression lane_digit() { return w_.lane() / line_.lanes.unit % line_.lanes.size; }
  IndexExpression warp_digit() { return w_.warp() / line_.warps.unit % line_.warps.size; }

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
  std::string at(const IndexExpression& line, const IndexExpression& round, const IndexExpression& place) {
    return element(w_, out_, digits(first_, line) + round * line_.rounds.unit + place * line_.run.unit);
  }
  void add(const std::string& before, const std::string& to) { w_.line("{1} = wrap_add({0}, {1});", before, to); }
  void add_to_run(const IndexExpression& line, const IndexExpression& round) {
    over("v", 0, line_.run.size, [&](const IndexExpression& v) { add("before", at(line, round, v)); });
  }

  // Of a warp's total, among those of lanes that are of other lines.
  IndexExpression slot(const IndexExpression& line, const IndexExpression& round, const IndexExpression& warp) {
    const Factor& of_line = line_.lanes;
    const IndexExpression other = w_.lane() % of_line.unit + w_.lane() / (of_line.unit * of_line.size) * of_line.unit;
    return ((line * rounds() + round) * w_.role.warps + warp) * (32 / of_line.size) +
           (of_line.size == 32 ? IndexExpression(0) : other);
  }
  // The warp that has a number along the line, and is otherwise as this one.
  IndexExpression member(const IndexExpression& number) {
    const int bits = (line_.warps.size - 1) * line_.warps.unit, others = ~bits & (w_.role.warps - 1);
    return (others ? w_.warp() & others : IndexExpression(0)) + number * line_.warps.unit;
  }

  // Where all lanes are of one line, each takes one of its totals, of all rounds or of each in turn, and they are
  // scanned as elements are.
  void add_by_lanes(const IndexExpression& line) {
    const int warps = line_.warps.size;
    const auto scan = [&](const IndexExpression& round, const IndexExpression& warp, int count) {
      const std::string own = fmt::format("totals[{}]", slot(line, round, member(warp)));
      w_.line("const {} through = scan_lanes<32, 1>({});", type_,
              count == 32 ? own : fmt::format("lane < {} ? {} : 0", count, own));
    };
    const bool at_once = rounds() * warps <= 32;
    if (at_once)
      scan(w_.lane() / warps, w_.lane() % warps, rounds() * warps);
    else
      w_.line("{} carry = 0;", type_);
    over("k", 0, rounds(), [&](const IndexExpression& k) {
      w_.open("{{");
      if (at_once) {
        w_.line("const {} before = sum_before(through, {});", type_, k * warps + warp_digit());
      } else {
        scan(k, w_.lane(), warps);
        w_.line("const {} before = wrap_add(carry, sum_before(through, {}));", type_, warp_digit());
        w_.line("carry = wrap_add(carry, shuffle(through, {}));", warps - 1);
      }
      add_to_run(line, k);
      w_.close();
    });
  }
  void add_in_order(const IndexExpression& line) {
    w_.line("{} sum = 0;", type_);
    over("k", 0, rounds(), [&](const IndexExpression& k) {
      w_.open("{{");
      w_.line("{} before = 0;", type_);
      w_.unroll_by(1);  // or ptxas has all totals ahead
      w_.open("for (int other = 0; other < {}; ++other) {{", line_.warps.size);
      const IndexExpression other = IndexExpression::variable("other", line_.warps.size);
      w_.line("if ({}) before = sum;", equal(warp_digit(), other));
      w_.line("sum = wrap_add(sum, totals[{}]);", slot(line, k, member(other)));
      w_.close();
      add_to_run(line, k);
      w_.close();
    });
  }

  Writer& w_;
  const ValueId out_;
  const Layout& layout_;
  const Line line_;
  const Layout of_lines_;
  const std::vector<Digit> first_;  // a line's first register
  const std::string_view type_;
};

}  // namespace

void emit(Writer& w, const Scan& scan) {
  declare(w, scan.out, false);
  sweep(w, scan.sweep, scan.out, [&](const IndexExpression& index) {
    w.line("{} = {};", element(w, scan.out, index), expression(w, scan.sweep, index).text);
  });
  LineText(w, scan.out, scan.axis).within_warps();
}

void emit(Writer& w, const PutTotals& put) { LineText(w, put.out, put.axis).put_totals(put.scratch); }

void emit(Writer& w, const AddTotals& add) { LineText(w, add.out, add.axis).add_totals(add.scratch); }

}  // namespace tessera::codegen
