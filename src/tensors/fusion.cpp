// Values are visited after all of their users. Each user that is computed in some kernel demands its operands there, in
// the tiles of that kernel. A value is computed in the kernels that demand it, if they can have it; else it is stored,
// and begins a kernel of its own.
#include "tensors/fusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tensors/kernel_order.hpp"
#include "tensors/placement.hpp"

namespace tessera::internal {
namespace {

bool is_anchor(TensorOp op) { return op == TensorOp::matmul || op == TensorOp::attention; }
// Does it need all elements along its axis at once?
bool takes_rows(TensorOp op) {
  return op == TensorOp::reduce || op == TensorOp::scan || op == TensorOp::sort || op == TensorOp::argsort ||
         op == TensorOp::argmax;
}

constexpr const char* result_reason = "it is a result";

struct Demand {
  std::size_t kernel;
  Use use;
  bool once = false;  // computed once, although it is used in the kernel's loop
  bool operator==(const Demand&) const = default;
};

class Fuser {
 public:
  Fuser(const TensorProgram& program, const FusionLimits& limits)
      : program_(program),
        limits_(limits),
        demands_(program.values.size()),
        forced_(program.values.size()),
        heavy_(program.values.size(), false),
        has_rows_(program.values.size(), false),
        completes_(program.values.size(), false),
        users_(program.values.size()) {
    for (const Value& value : program.values)
      for (const int operand : value.in) ++users_[at(operand)];
    const std::size_t count = program.values.size();
    fusion_.storage.assign(count, Storage::none);
    fusion_.whole_of.assign(count, -1), fusion_.part_at.assign(count, -1);
    fusion_.reason.resize(count);
  }

  Fusion fuse() {
    for (std::size_t v = 0; v < program_.values.size(); ++v) {
      const Value& value = program_.values[v];
      heavy_[v] = is_anchor(value.op) || takes_rows(value.op);
      for (int operand : value.in) {
        if (value.op != TensorOp::reshape && value.op != TensorOp::concat && heavy_[at(operand)] &&
            !is_certainly_stored(operand))
          heavy_[v] = true;
      }
      has_rows_[v] = takes_rows(value.op);
      completes_[v] = is_anchor(value.op);
      if (is_anchor(value.op) || value.op == TensorOp::reshape || value.op == TensorOp::concat) continue;
      for (int operand : value.in) {
        if (has_rows_[at(operand)]) has_rows_[v] = true;
        if (completes_[at(operand)] && program_.values[at(operand)].extents.size() == value.extents.size())
          completes_[v] = true;
      }
      if (has_rows_[v]) completes_[v] = false;
    }
    for (int output : program_.outputs) force(output, result_reason);
    for (std::size_t v = program_.values.size(); v-- > 0;) visit(static_cast<int>(v));
    join();
    order_kernels(program_, fusion_);
    collect_reads(program_, fusion_);
    return std::move(fusion_);
  }

 private:
  static std::size_t at(int value) { return static_cast<std::size_t>(value); }
  const Value& value(int v) const { return program_.values[at(v)]; }
  Storage& storage(int v) { return fusion_.storage[at(v)]; }

  void force(int v, std::string why) {
    if (forced_[at(v)].empty() || forced_[at(v)] == result_reason) forced_[at(v)] = std::move(why);
  }

  void visit(int v) {
    const Value& value = program_.values[at(v)];
    const bool is_output = std::find(program_.outputs.begin(), program_.outputs.end(), v) != program_.outputs.end();
    if (value.is_number()) {
      storage(v) = Storage::number;
      return;
    }
    if (value.op == TensorOp::input) {
      storage(v) = Storage::input;
      return;
    }
    if (parts_.contains(v)) return;                                 // begun with its concatenation
    if (demands_[at(v)].empty() && forced_[at(v)].empty()) return;  // of no use
    const bool is_inline = value.op == TensorOp::reshape && !is_output && forced_[at(v)].empty() && limits_.fuse &&
                           moves_units(program_, v);
    if (value.op == TensorOp::reshape && !is_inline && !is_output && visit_reshape(v)) return;
    if (value.op == TensorOp::concat || (value.op == TensorOp::reshape && !is_inline)) {
      store_copies(v);
      return;
    }
    if (limits_.fuse && forced_[at(v)].empty()) join_users(v);
    std::string why = forced_[at(v)];
    const bool is_only_result = why == result_reason;
    if (why.empty() || (is_only_result && is_result_of_user(v))) why = cannot_inline(v);
    if (!why.empty()) {
      store(v, why);
      return;
    }
    inline_into_users(v);
    if (is_only_result) {
      storage(v) = Storage::buffer;
      FusedKernel& kernel = fusion_.kernels[demands_[at(v)].front().kernel];
      kernel.results.push_back({v, v});
      for (int axis = 0; axis < kernel.domain.rank(); ++axis)
        kernel.domain[axis] = std::max(kernel.domain[axis], program_.values[at(v)].extents[axis]);
    }
  }
  // Is a result needed in one kernel alone, also in the tiles in which that would write it?
  bool is_result_of_user(int v) const {
    const auto& demands = demands_[at(v)];
    const auto is_elsewhere = [&](const Demand& demand) { return demand.kernel != demands.front().kernel; };
    if (demands.empty() || std::any_of(demands.begin(), demands.end(), is_elsewhere)) return false;
    const FusedKernel& kernel = fusion_.kernels[demands.front().kernel];
    const Extents& extents = program_.values[at(v)].extents;
    if (extents.rank() != kernel.domain.rank() || extents.size() == 0 || kernel.results.size() >= limits_.results)
      return false;
    return std::any_of(demands.begin(), demands.end(), [&](const Demand& demand) {
      for (int axis = 0; axis < extents.rank(); ++axis) {
        const AxisUse& along = demand.use[at(axis)];
        const bool is_whole = kernel.whole >> axis & 1u;
        const bool is_there = along.axis == axis || (is_whole && along.axis == AxisUse::whole);
        if (!along.is_plain() || !is_there || along.extent != extents[axis]) return false;
        if (!is_whole && along.extent != kernel.domain[axis]) return false;
      }
      return true;
    });
  }

  // Does it need rows that no other kernel can have?
  bool is_certainly_stored(int v) const {
    const Value& x = value(v);
    if (x.op == TensorOp::reduce) return x.attr[1] > 0;
    return takes_rows(x.op) && value(x.in[0]).extents[x.axis()] > limits_.row;
  }

  // ---- Storage

  // A reshape is a view of memory where each of its axes has one step; else it is a copy.
  bool visit_reshape(int v) {
    int source = value(v).in[0];
    std::vector<int> views;
    while (is_view(value(source).op)) views.push_back(source), source = value(source).in[0];
    if (parts_.contains(source)) return false;
    if (!views.empty() && value(source).op == TensorOp::concat) return false;
    Placement place = expected_placement(source);
    for (auto view = views.rbegin(); view != views.rend(); ++view) place = viewed(value(*view), place);
    if (!reshaped_placement(place, value(v).extents)) return false;
    force(source, "it is reshaped");
    storage(v) = Storage::view;
    return true;
  }

  // Where a value will be if it is in memory. A computed tensor is dense.
  Placement expected_placement(int v) const {
    const Value& x = value(v);
    Placement place = dense_placement(v, x.extents);
    if (x.op == TensorOp::input) place.strides = x.strides;
    const auto& outputs = program_.outputs;
    if (x.op != TensorOp::reshape || std::find(outputs.begin(), outputs.end(), v) != outputs.end()) return place;
    std::vector<int> views;
    int source = x.in[0];
    while (is_view(value(source).op)) views.push_back(source), source = value(source).in[0];
    Placement inside = expected_placement(source);
    for (auto view = views.rbegin(); view != views.rend(); ++view) inside = viewed(value(*view), inside);
    return reshaped_placement(inside, x.extents).value_or(place);
  }

  void store(int v, std::string why) {
    storage(v) = Storage::buffer;
    fusion_.reason[at(v)] = std::move(why);
    add_kernel(v, {v, v});
  }
  // Into memory of its own, as a copy of an operand that is in memory, or where the operand is computed.
  void store_copies(int v) {
    const Value& x = value(v);
    storage(v) = Storage::buffer;
    fusion_.reason[at(v)] =
        x.op == TensorOp::concat ? "its parts are computed in its memory" : "its elements are copied in order";
    std::int64_t start = 0;
    for (int operand : x.in) {
      const Value& part = value(operand);
      // Others may read it there, too, but no kernel that writes beside it. A part of two concatenations is computed in
      // one and copied to the other.
      const auto needs_it = [&](int other) { return other != operand && depends(other, operand); };
      const bool in_place =
          forced_[at(operand)].empty() &&
          (x.op == TensorOp::concat ? std::none_of(x.in.begin(), x.in.end(), needs_it) : users_[at(operand)] > 1) &&
          part.op != TensorOp::input && part.op != TensorOp::reshape && part.op != TensorOp::concat &&
          !part.is_number() && !is_view(part.op) && part.op != TensorOp::broadcast && part.extents.rank() > 0;
      const std::int64_t here = x.op == TensorOp::concat ? start : -1;
      if (in_place) {
        storage(operand) = Storage::part;
        fusion_.whole_of[at(operand)] = v, fusion_.part_at[at(operand)] = start;
        forced_[at(operand)] = "it is computed in the memory of another value";
        parts_.insert(operand);
        add_kernel(operand, {operand, v, here});
      } else {
        add_kernel(operand, {operand, v, here}, true);
      }
      if (x.op == TensorOp::concat) start += part.extents[x.axis()];
    }
  }
  // Is a value computed from an earlier one?
  bool depends(int v, int on) const {
    std::vector<int> open{v};
    std::set<int> seen;
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      if (next == on) return true;
      if (next < on || !seen.insert(next).second) continue;
      const std::vector<int>& in = program_.values[at(next)].in;
      open.insert(open.end(), in.begin(), in.end());
    }
    return false;
  }
  // A kernel whose only result so far is `result`; if it copies, the value is demanded like an operand.
  void add_kernel(int v, Result result, bool copies = false) {
    const Value& x = value(v);
    FusedKernel kernel;
    kernel.results = {result};
    kernel.domain = x.extents;
    const std::size_t number = fusion_.kernels.size();
    fusion_.kernels.push_back(std::move(kernel));
    const Use use = whole_domain(x.extents);
    if (copies) {
      demand(v, {number, use});
    } else {
      begin(number, v, use);
    }
  }

  // The value that a kernel is about: it settles axes that are whole.
  void begin(std::size_t number, int v, const Use& use) {
    FusedKernel& kernel = fusion_.kernels[number];
    const Value& x = value(v);
    if (takes_rows(x.op)) {
      if (x.op == TensorOp::reduce && x.attr[1] > 0)
        kernel.single |= 1u << x.axis(), kernel.row[at(x.axis())] = x.attr[1];
      else
        set_whole(kernel, x.axis(), value(x.in[0]).extents[x.axis()], x.op == TensorOp::reduce);
    }
    if (is_anchor(x.op)) set_anchor(kernel, v, use);
    add_member(number, v, use);
  }
  void set_anchor(FusedKernel& kernel, int v, const Use& use) {
    kernel.anchors.push_back(v);
    kernel.anchor_use = use;
    if (value(v).op == TensorOp::attention) set_whole(kernel, use.back().axis, use.back().extent);
  }
  void set_whole(FusedKernel& kernel, int axis, std::int64_t row, bool reduces = false) const {
    if (reduces && row > most_row(kernel, axis) && can_loop(kernel, axis)) kernel.loops = true;
    kernel.whole |= 1u << axis;
    std::int64_t& known = kernel.row[at(axis)];
    known = std::max({known, row, kernel.domain[axis]});
  }

  void add_member(std::size_t number, int v, const Use& use, bool once = false) {
    FusedKernel& kernel = fusion_.kernels[number];
    if (std::find(kernel.members.begin(), kernel.members.end(), v) == kernel.members.end()) kernel.members.push_back(v);
    const Value& x = value(v);
    for (std::size_t i = 0; i < x.in.size(); ++i) {
      if (x.op == TensorOp::gather && i == 0) {
        force(x.in[0], "rows of it are gathered");
        continue;
      }
      demand(x.in[i], {number, operand_use(program_, v, use, i), once || (x.op == TensorOp::attention && i >= 3)});
    }
  }
  void demand(int v, Demand demand) {
    auto& demands = demands_[at(v)];
    if (std::find(demands.begin(), demands.end(), demand) != demands.end()) return;
    ++fusion_.kernels[demand.kernel].uses;
    demands.push_back(std::move(demand));
  }

  void inline_into_users(int v) {
    const auto demands = demands_[at(v)];
    for (const Demand& demand : demands) {
      FusedKernel& kernel = fusion_.kernels[demand.kernel];
      const Value& x = value(v);
      if (is_costly(x) && is_repeated(demand, kernel)) ++kernel.costly;
      if (takes_rows(x.op)) {
        const AxisUse& along = demand.use[at(x.axis())];
        const std::int64_t row = value(x.in[0]).extents[x.axis()];
        if (along.line() >= 0)
          set_whole(kernel, along.line(), row, x.op == TensorOp::reduce);
        else if (kernel.anchors.empty())
          kernel.hidden_row = std::max(kernel.hidden_row, hidden_row(v, demand.use));
      }
      if (is_anchor(x.op) && std::find(kernel.anchors.begin(), kernel.anchors.end(), v) == kernel.anchors.end())
        set_anchor(kernel, v, demand.use);
      add_member(demand.kernel, v, demand.use, demand.once);
    }
  }

  // ---- Decisions

  // Why the value must be stored; empty if all kernels that demand it can compute it.
  std::string cannot_inline(int v) {
    const Value& x = value(v);
    const auto& demands = demands_[at(v)];
    if (x.extents.rank() == 0) return "";  // computed from numbers alone
    if (x.op == TensorOp::iota || x.op == TensorOp::broadcast) return "";
    if (is_view(x.op)) {
      int source = v;
      while (is_view(value(source).op)) source = value(source).in[0];
      if (const TensorOp op = value(source).op;
          op == TensorOp::input || op == TensorOp::reshape || op == TensorOp::concat)
        return "";
      if (!limits_.fuse) {
        force(x.in[0], "fusion is off");
        return "";
      }
    }
    if (!limits_.fuse) return "fusion is off";
    if (demands.size() > limits_.ways && !is_view(x.op)) return "it is used in many ways";
    std::set<std::size_t> kernels;
    for (const Demand& demand : demands) kernels.insert(demand.kernel);
    if (kernels.size() > 1) {
      // A conversion of a narrower value is left to the kernels: that value is stored instead.
      if (heavy_[at(v)] && !widens(v)) return fmt::format("{} kernels use it", kernels.size());
      // Stored, it is written once, and read by each; else each reads its operands.
      std::size_t operands = 0;
      for (int operand : x.in) operands += value(operand).extents.size() * 2 > x.extents.size();
      if (kernels.size() * operands > operands + 1 + kernels.size())
        return fmt::format("{} kernels use it", kernels.size());
    }
    for (const Demand& demand : demands) {
      const FusedKernel& kernel = fusion_.kernels[demand.kernel];
      if (kernel.members.size() >= limits_.members || kernel.uses >= limits_.uses)
        return "the kernel has enough ops without it";
      std::string why = x.op == TensorOp::matmul      ? no_matmul(v, demand, kernel)
                        : x.op == TensorOp::attention ? no_attention(v, demand, kernel)
                        : takes_rows(x.op)            ? no_rows(v, demand, kernel)
                                                      : no_elements(v, demand, kernel);
      if (!why.empty()) return why;
    }
    return "";
  }

  std::string no_elements(int v, const Demand& demand, const FusedKernel& kernel) const {
    const Value& x = value(v);
    if (is_costly(x) && is_repeated(demand, kernel) && kernel.costly >= limits_.costly)
      return fmt::format("each tile of {} would compute it again", anchor_name(kernel));
    for (const AxisUse& use : demand.use) {
      if (use.axis != AxisUse::inner || demand.once) continue;
      if (completes_[at(v)] && !widens(v)) return "it completes a product";
      if (has_rows_[at(v)] && use.extent > limits_.folded)
        return fmt::format("each tile of {} would compute it again", anchor_name(kernel));
      if (x.extents.size() <= limits_.repeated) continue;
      const bool converts = x.op == TensorOp::cast && reads_memory(x.in[0]);
      if (!is_view(x.op) && !converts)
        return fmt::format("each tile of {} would compute it again", anchor_name(kernel));
    }
    return "";
  }
  bool widens(int v) const {
    const Value& x = value(v);
    return x.op == TensorOp::cast && info(value(x.in[0]).type).bytes <= info(x.type).bytes;
  }
  // Do several tiles compute the same elements?
  static bool is_repeated(const Demand& demand, const FusedKernel& kernel) {
    for (const AxisUse& use : demand.use)
      if (use.axis == AxisUse::inner) return true;
    for (int axis = 0; axis < kernel.domain.rank(); ++axis) {
      if (kernel.domain[axis] <= 1 || (kernel.whole >> axis & 1u)) continue;
      const auto covers = [&](const AxisUse& use) { return use.axis == axis && (use.extent > 1 || use.chunk > 0); };
      if (std::none_of(demand.use.begin(), demand.use.end(), covers)) return true;
    }
    return false;
  }
  // How many rows of the domain need each row of a value?
  static std::int64_t repeats(const Demand& demand, const FusedKernel& kernel, int row_axis) {
    std::int64_t count = 1;
    for (int axis = 0; axis < kernel.domain.rank(); ++axis) {
      const auto covers = [&](const AxisUse& use) { return use.line() == axis && (use.extent > 1 || use.chunk > 0); };
      if (axis != row_axis && !(kernel.whole >> axis & 1u) &&
          std::none_of(demand.use.begin(), demand.use.end(), covers))
        count *= kernel.domain[axis];
    }
    return count;
  }
  // The elements along whole axes that are not the domain's, in a tile of what a reduction takes.
  std::int64_t hidden_row(int v, const Use& use) const {
    std::int64_t row = 1;
    for (const AxisUse& along : operand_use(program_, v, use, 0))
      if (along.axis == AxisUse::whole && along.from < 0) row *= along.extent;
    return row;
  }
  bool reads_memory(int v) const {
    while (is_view(value(v).op)) v = value(v).in[0];
    return value(v).op == TensorOp::input || !forced_[at(v)].empty() || value(v).op == TensorOp::reshape;
  }
  std::string anchor_name(const FusedKernel& kernel) const {
    return kernel.anchors.empty() ? "it" : std::string(value(kernel.anchors.front()).name);
  }

  std::string no_rows(int v, const Demand& demand, const FusedKernel& kernel) const {
    const Value& x = value(v);
    const AxisUse& along = demand.use[at(x.axis())];
    const std::int64_t row = value(x.in[0]).extents[x.axis()];
    if (x.op == TensorOp::reduce && x.attr[1] > 0) return "it is the first part of a large reduction";
    if (row > limits_.row && x.op != TensorOp::reduce) return "its rows are long";
    if (kernel.loops && along.line() < 0) return "the kernel that uses it reads its rows in chunks";
    if (x.op != TensorOp::reduce && x.op != TensorOp::argmax &&
        (!along.is_plain() || along.axis == AxisUse::inner || along.extent != x.extents[x.axis()]))
      return "a part of each row is used at a time";
    const bool is_in_loop = std::any_of(demand.use.begin(), demand.use.end(),
                                        [](const AxisUse& use) { return use.axis == AxisUse::inner; });
    const bool only_reduces = x.op == TensorOp::reduce || x.op == TensorOp::argmax;
    const std::int64_t elements = value(x.in[0]).extents.size();
    if ((is_in_loop || demand.once) && elements > limits_.repeated)
      return fmt::format("each tile of {} would compute it again", anchor_name(kernel));
    const int axis = along.line();
    if (axis >= 0 && !kernel.anchors.empty())
      return fmt::format("tiles of {} do not have whole rows", anchor_name(kernel));
    if (is_in_loop || axis < 0) {  // rows that the domain does not have
      if (is_in_loop
              ? !only_reduces
              : is_repeated(demand, kernel) && elements > (kernel.anchors.empty() ? limits_.row / 8 : limits_.repeated))
        return "each tile would compute it again";
      if (is_in_loop) return row <= limits_.folded ? "" : "each tile would compute it again";
      if (row > limits_.row) return "its rows are long";
      std::int64_t size = std::max(kernel.hidden_row, hidden_row(v, demand.use));
      for (std::int64_t whole : kernel.row) size *= std::max<std::int64_t>(whole, 1);
      constexpr int columns = 32;  // that a tile has beside them
      return size * columns <= limits_.row ? "" : "its rows are long";
    }
    if (kernel.single >> axis & 1u) return "a tile has one element of its axis";
    // More than a quarter of what the kernel computes is not worth a launch.
    if (const std::int64_t times = repeats(demand, kernel, axis);
        times > 1 && times * elements > kernel.domain.size() / 4)
      return "each tile would compute it again";
    if ((kernel.whole >> axis & 1u) && kernel.row[at(axis)] == row) return "";
    if (kernel.loops) return "the kernel that uses it reads other rows in chunks";
    if (row != kernel.domain[axis] && kernel.domain[axis] != 1 && row != kernel.row[at(axis)])
      return "its rows are not those of the kernel that uses it";
    // All axes that are whole then, with those of other uses of the value. Tiles of more axes come in larger numbers.
    std::int64_t size = kernel.hidden_row > 1 ? 4 * kernel.hidden_row : 1;
    for (int other = 0; other < kernel.domain.rank(); ++other) {
      const auto lies = [&](const Demand& also) {
        return also.kernel == demand.kernel && also.use[at(x.axis())].line() == other;
      };
      const bool becomes_whole = std::any_of(demands_[at(v)].begin(), demands_[at(v)].end(), lies);
      size *=
          std::max({kernel.row[at(other)], becomes_whole ? std::max(row, kernel.domain[other]) : 1, std::int64_t{1}});
    }
    // Two whole axes that are no powers of two, 14 x 14, take four times their registers, beside up to 32 columns.
    if ((kernel.whole & ~(1u << axis)) != 0) size *= 32;
    const bool loops = can_loop(kernel, axis) && row > most_row(kernel, axis);
    return loops || size <= limits_.row ? "" : "tiles would be too large";
  }
  // The elements along an axis that one tile has, at most. Across memory, tiles have 32 columns beside them.
  std::int64_t most_row(const FusedKernel& kernel, int axis) const {
    constexpr int columns = 32;
    std::int64_t beside = 1;
    for (int inner = axis + 1; inner < kernel.domain.rank(); ++inner) beside *= kernel.domain[inner];
    return beside >= columns ? limits_.row / columns : limits_.row;
  }
  // Can the kernel read its rows, along this axis, in chunks? Then reductions are all that needs them.
  bool can_loop(const FusedKernel& kernel, int axis) const {
    const auto is_reduction = [&](int member) {
      return !takes_rows(value(member).op) || value(member).op == TensorOp::reduce;
    };
    return (kernel.whole & ~(1u << axis)) == 0 && kernel.single == 0 && kernel.hidden_row == 1 &&
           kernel.anchors.empty() && std::all_of(kernel.members.begin(), kernel.members.end(), is_reduction);
  }

  // Does each tile of the kernel have exactly one tile of the value, indexed as the domain is?
  bool is_tiled_alike(int v, const Demand& demand, const FusedKernel& kernel) const {
    unsigned seen = 0;
    for (std::size_t i = 0; i < demand.use.size(); ++i) {
      const AxisUse& use = demand.use[i];
      if (use.axis < 0 || !use.is_plain() || (seen >> use.axis & 1u)) return false;
      if (use.extent != kernel.domain[use.axis] || use.extent != value(v).extents[static_cast<int>(i)]) return false;
      seen |= 1u << use.axis;
    }
    return value(v).extents.size() == kernel.domain.size();
  }
  std::string no_anchor(int v, const Demand& demand, const FusedKernel& kernel) const {
    if (demands_[at(v)].size() > 1) return "it is used in several ways";
    if (!is_tiled_alike(v, demand, kernel)) return "its tiles are not those of the kernel that uses it";
    if (kernel.whole != 0 || kernel.single != 0) return "the kernel that uses it has whole rows";
    return "";
  }
  std::string no_matmul(int v, const Demand& demand, const FusedKernel& kernel) const {
    if (std::string why = no_anchor(v, demand, kernel); !why.empty()) return why;
    if (kernel.anchors.empty()) return "";
    // Products that share their loop, such as gate and up of an MLP.
    const Value &x = value(v), &other = value(kernel.anchors.front());
    if (other.op != TensorOp::matmul || kernel.anchors.size() >= 2) return "the kernel has a product already";
    const Value &a = value(x.in[0]), &b = value(other.in[0]);
    const bool alike = demand.use == kernel.anchor_use && x.in[0] == other.in[0] && x.extents == other.extents &&
                       x.attr == other.attr && a.type == b.type;
    return alike ? "" : "the kernel has another product already";
  }
  std::string no_attention(int v, const Demand& demand, const FusedKernel& kernel) const {
    if (!kernel.anchors.empty()) return "the kernel has a product already";
    return no_anchor(v, demand, kernel);
  }

  // ---- After the decisions

  // Joins kernels over the same rows.
  void join() {
    if (!limits_.fuse) return;
    auto& kernels = fusion_.kernels;
    for (std::size_t a = 0; a < kernels.size(); ++a)
      for (std::size_t b = a + 1; b < kernels.size(); ++b) try_join(a, b);
    std::erase_if(kernels, [](const FusedKernel& kernel) { return kernel.results.empty(); });
  }
  // Joins the kernels that use a value, before it is decided how each has it.
  void join_users(int v) {
    std::set<std::size_t> users;
    for (const Demand& demand : demands_[at(v)]) users.insert(demand.kernel);
    for (const std::size_t a : users)
      for (const std::size_t b : users)
        if (a < b) try_join(a, b);
  }
  void try_join(std::size_t a, std::size_t b) {
    FusedKernel &to = fusion_.kernels[a], &from = fusion_.kernels[b];
    if (!joins(to, from) || depend(a, b)) return;
    for (int axis = 0; axis < to.domain.rank(); ++axis) to.domain[axis] = std::max(to.domain[axis], from.domain[axis]);
    for (std::size_t axis = 0; axis < to.row.size(); ++axis) to.row[axis] = std::max(to.row[axis], from.row[axis]);
    to.hidden_row = std::max(to.hidden_row, from.hidden_row), to.loops |= from.loops;
    to.costly += from.costly, to.uses += from.uses;
    to.results.insert(to.results.end(), from.results.begin(), from.results.end());
    for (int member : from.members)
      if (!computes(to, member)) to.members.push_back(member);
    from = {};
    for (auto& demands : demands_) {
      std::vector<Demand> moved = std::exchange(demands, {});
      for (Demand& demand : moved) {
        if (demand.kernel == b) demand.kernel = a;
        if (std::find(demands.begin(), demands.end(), demand) == demands.end()) demands.push_back(std::move(demand));
      }
    }
  }
  // Must one of two kernels run before the other?
  bool depend(std::size_t a, std::size_t b) {
    const auto before = predecessors(program_, fusion_);
    const auto reaches = [&](std::size_t from, std::size_t to) {
      std::vector<bool> seen(before.size());
      const auto walk = [&](const auto& self, std::size_t k) -> bool {
        if (k == from) return true;
        if (seen[k]) return false;
        seen[k] = true;
        return std::any_of(before[k].begin(), before[k].end(), [&](std::size_t p) { return self(self, p); });
      };
      return walk(walk, to);
    };
    return reaches(a, b) || reaches(b, a);
  }
  bool joins(const FusedKernel& a, const FusedKernel& b) {
    if (a.results.empty() || b.results.empty() || !a.anchors.empty() || !b.anchors.empty()) return false;
    if (a.whole != b.whole || a.single != b.single || a.loops != b.loops || a.domain.rank() != b.domain.rank())
      return false;
    if (a.domain.size() == 0 || b.domain.size() == 0) return false;
    if (a.members.size() + b.members.size() > limits_.members || a.results.size() + b.results.size() > limits_.results)
      return false;
    for (int axis = 0; axis < a.domain.rank(); ++axis) {
      if (a.domain[axis] != b.domain[axis] && !(a.whole >> axis & 1u)) return false;
      if ((a.single >> axis & 1u) && a.row[at(axis)] != b.row[at(axis)]) return false;
    }
    // They read something of at least the size of what they write, or a launch costs more than either.
    const auto is_small = [&](const FusedKernel& kernel) {
      std::int64_t elements = kernel.domain.size() * kernel.hidden_row;
      for (const std::int64_t row : kernel.row) elements *= std::max<std::int64_t>(row, 1);
      return elements <= limits_.launch;
    };
    if (is_small(a) && is_small(b)) return true;
    const auto reads = [&](const FusedKernel& kernel) {
      std::set<int> reads;
      const auto add = [&](int v) {
        while (indexes(program_, v)) v = value(v).in[0];
        if (!computes(kernel, v) && value(v).extents.size() >= kernel.domain.size() && !value(v).is_number())
          reads.insert(v);
      };
      for (int member : kernel.members)
        for (int operand : value(member).in) add(operand);
      return reads;
    };
    const std::set<int> of_a = reads(a), of_b = reads(b);
    return std::any_of(of_a.begin(), of_a.end(), [&](int v) { return of_b.contains(v); });
  }

  const TensorProgram& program_;
  const FusionLimits& limits_;
  Fusion fusion_;
  std::vector<std::vector<Demand>> demands_;
  std::vector<std::string> forced_;
  std::vector<bool> heavy_;      // has it a product or whole rows, which should not be computed twice?
  std::vector<bool> has_rows_;   // does it depend on whole rows?
  std::vector<bool> completes_;  // can a kernel compute it from a product, element by element?
  std::vector<int> users_;       // how many values have it as an operand
  std::set<int> parts_;          // values that are computed in the memory of others
};

}  // namespace

Fusion fuse(const TensorProgram& program, const FusionLimits& limits) { return Fuser(program, limits).fuse(); }

}  // namespace tessera::internal
