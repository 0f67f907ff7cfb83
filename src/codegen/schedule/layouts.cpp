// choose_layouts: which thread holds which element. Matmuls fix the layouts of their operands and results. Values that
// are computed from these, or that these are computed from, follow. The others get the layout of their largest access
// to memory.
#include <algorithm>
#include <bit>
#include <deque>
#include <set>

#include "codegen/layout/sort_layout.hpp"
#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {
namespace {

class Chooser {
 public:
  Chooser(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, int warps)
      : analysis_(analysis), matmuls_(matmuls), known_(analysis.graph.nodes.size()) {
    layouts_.warps = warps;
    layouts_.of.resize(analysis.graph.nodes.size());
    for (const auto& region : analysis.order)
      for (Id id : region) {
        const Node& node = analysis[id];
        if (node.op == Op::result) results_[{node.in[0], node.position()}] = id;
        if (!has_region(node.op)) continue;
        for (std::size_t k = 1; k < node.in.size(); ++k) carried_[{id, node.in[k]}].push_back(k - 1);
        const Region& body = analysis.graph.body(id);
        for (std::size_t k = 0; k < analysis.graph.carried(id); ++k) carried_[{id, body.yields[k]}].push_back(k);
      }
  }

  Layouts run() {
    anchor_matmuls();
    anchor_sorts();
    anchor_accesses();
    // The remaining values: the largest first, and the first of equals.
    std::vector<Id> rest;
    for (const auto& region : analysis_.order)
      for (Id id : region)
        if (has_value(id)) rest.push_back(id);
    std::stable_sort(rest.begin(), rest.end(), [&](Id a, Id b) {
      const auto x = analysis_[a].shape.size(), y = analysis_[b].shape.size();
      return x != y ? x > y : analysis_.number[a] < analysis_.number[b];
    });
    for (Id id : rest) {
      const Shape& shape = analysis_[id].shape;
      set(id, blocked_layout(shape, shape.rank() - 1, 1, layouts_.warps));
      settle();
    }
    return std::move(layouts_);
  }

 private:
  bool has_value(Id id) const {
    const Op op = analysis_[id].op;
    return analysis_.live(id) && tessera::internal::has_value(op);
  }

  void set(Id id, const Layout& layout) {
    if (!has_value(id) || known_[id]) return;
    const Node& node = analysis_[id];
    if (is_scan(node.op) && !line_of(layout, node.axis())) return;  // it has another, and its operand is converted
    if (is_sort(node.op) && in_registers(node) && layout != sorted(node)) return;
    known_[id] = true;
    layouts_.of[id] = layout;
    work_.push_back(id);
  }

  void anchor_matmuls() {
    std::vector<std::pair<int, Id>> matmuls;
    for (const auto& [id, plan] : matmuls_) matmuls.emplace_back(analysis_.number[id], id);
    std::sort(matmuls.begin(), matmuls.end());
    for (auto [number, id] : matmuls) {
      const Layout& layout = matmuls_.at(id).layout;
      set(id, layout);
      if (!matmuls_.at(id).matmul.partial) continue;
      // A thread's partial sum is its own: it stays there from iteration to iteration.
      Id carried = analysis_[id].in[2];
      set(carried, layout);
      if (analysis_[carried].op == Op::mul) set(analysis_[carried].in[0], layout);
    }
    for (auto [number, id] : matmuls) {
      const MatmulPlan& plan = matmuls_.at(id);
      const Matmul& matmul = plan.matmul;
      if (matmul.kind == MatmulKind::mma_sync && matmul.layout_a.rank() > 0) {
        set(analysis_[id].in[0], matmul.layout_a);
      } else if (matmul.kind == MatmulKind::gemv) {
        anchor_left(analysis_[id].in[0], matmul.layout_a);
        set(analysis_[id].in[1], matmul.layout_b);
      } else if (matmul.kind == MatmulKind::mma_sync && info(matmul.type).bytes > 1 && plan.a.load == no_id &&
                 matmul.warps_n == 1) {
        set(analysis_[id].in[0], matmul.left_layout());
      }
    }
    settle();
  }

  // The left operand of a gemv is computed once by all threads, and distributed to all warps through shared memory, if
  // it is computed from several tiles and warps would otherwise read the same data many times.
  void anchor_left(Id left, const Layout& layout) {
    constexpr std::int64_t most_bytes = 16 * 1024;  // that are read again
    const Shape& shape = analysis_[left].shape;
    const Layout once = shared_layout(shape);
    std::vector<std::pair<Id, Layout>> split;  // operands of reshapes
    std::int64_t bytes = 0;
    int reads = 0;
    std::set<Id> seen;
    std::vector<Id> work{left};
    while (!work.empty()) {
      const Id id = work.back();
      work.pop_back();
      const Node& node = analysis_[id];
      if (!has_value(id) || matmuls_.contains(id) || !seen.insert(id).second) continue;
      if (is_read(node.op)) bytes += node.shape.size() * info(node.type).bytes, ++reads;
      const bool reshapes = node.op == Op::reshape;
      if (is_elementwise(node.op) || is_reduction(node.op) || node.op == Op::broadcast || reshapes)
        work.insert(work.end(), node.in.begin(), node.in.end());
      if (reshapes && node.shape == shape)
        if (const auto same = once.reshaped(shape, analysis_[node.in[0]].shape)) split.emplace_back(node.in[0], *same);
    }
    const int copies = 1 << std::popcount(static_cast<unsigned>(layout.warp_copies(layouts_.warps)));
    if (reads < 2 || bytes * (copies - 1) <= most_bytes) return set(left, layout);
    set(left, once);
    for (const auto& [operand, same] : split) set(operand, same);
  }
  // Rows over all threads, even if they do not divide evenly: then no warp has a copy.
  Layout shared_layout(const Shape& shape) const {
    constexpr int vector = 4;
    const int warps = layouts_.warps, of_threads = vector * 32 * warps;
    Layout layout(2);
    const int runs = (shape[1] + of_threads - 1) / of_threads;
    layout.add(0, {Place::reg, shape[0], runs * vector});
    layout.add(1, {Place::reg, runs, vector});
    layout.add(1, {Place::warp, warps, 1});
    layout.add(1, {Place::lane, 32, 1});
    layout.add(1, {Place::reg, vector, 1});
    return layout;
  }

  // A sort leaves its elements where a warp sorts them, unless lines go through memory, and takes its operand in the
  // layout that is best to read.
  void anchor_sorts() {
    for (const auto& region : analysis_.order)
      for (Id id : region) {
        const Node& node = analysis_[id];
        if (!is_sort(node.op)) continue;
        const Layout layout = sorted(node);
        if (in_registers(node)) set(id, layout);
        set(node.in[0], unsorted_layout(layout, node.axis()));
      }
    settle();
  }
  const Node& operand(const Node& node) const { return analysis_[node.in[0]]; }
  bool in_registers(const Node& sort) const {
    return sort_chunks(operand(sort).shape[sort.axis()], operand(sort).type) == 1;
  }
  Layout sorted(const Node& sort) const {
    return sorted_layout(operand(sort).shape, sort.axis(), operand(sort).type, layouts_.warps);
  }

  void anchor_accesses() {
    struct Anchor {
      std::int64_t bytes;
      int number;
      Id access, value;
    };
    std::vector<Anchor> anchors;
    for (const auto& region : analysis_.order)
      for (Id id : region) {
        const Node& node = analysis_[id];
        if (is_read(node.op) || is_write(node.op))
          anchors.push_back({node.shape.size() * info(node.type).bytes, analysis_.number[id], id,
                             is_read(node.op) ? id : node.in[0]});
      }
    std::sort(anchors.begin(), anchors.end(), [](const Anchor& a, const Anchor& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.number < b.number;
    });
    for (const Anchor& anchor : anchors) {
      if (known_[anchor.value]) continue;
      const GraphAccess access = analysis_.access(anchor.access);
      const Shape& shape = analysis_[anchor.value].shape;
      const int fast = access.fast >= 0 ? access.fast : shape.rank() - 1;
      const Run across = access.vector > 1 ? transposed_access(analysis_, anchor.value, fast) : Run{};
      layouts_.transposed |= across.axis >= 0;
      set(anchor.value, blocked_layout(shape, fast, access.vector, layouts_.warps, across));
      settle();
    }
  }

  // From every value whose layout has become known to its operands and users.
  void settle() {
    while (!work_.empty()) {
      const Id id = work_.front();
      work_.pop_front();
      to_operands(id);
      for (Id user : analysis_.users[id]) to_user(id, user);
      if (analysis_[id].op == Op::argument && analysis_[id].position() > 0)
        to_carried(analysis_.owner[analysis_[id].region], analysis_[id].position() - 1, id);
      if (analysis_[id].op == Op::result) to_carried(analysis_[id].in[0], analysis_[id].position(), id);
    }
  }

  void to_carried(Id loop, std::size_t k, Id from) {
    const Layout layout = layouts_.of[from];
    const Region& body = analysis_.graph.body(loop);
    set(analysis_[loop].in[k + 1], layout);
    set(body.arguments[k + 1], layout);
    set(body.yields[k], layout);
    if (const auto result = results_.find({loop, k}); result != results_.end()) set(result->second, layout);
  }

  void to_operands(Id id) {
    const Node& node = analysis_[id];
    const Layout layout = layouts_.of[id];
    if (is_elementwise(node.op) || node.op == Op::broadcast) {
      for (Id in : node.in) set(in, layout.of_operand(analysis_[in].shape, node.shape));
    } else if (node.op == Op::reshape) {
      if (const auto same = through_reshape(layout, node.shape, analysis_[node.in[0]].shape)) set(node.in[0], *same);
    } else if (node.op == Op::permute) {
      set(node.in[0], layout.permuted(inverse(node.permutation())));
    } else if (node.op == Op::gather) {
      set(node.in[1], rows_of(layout));
    } else if (node.op == Op::take_along_axis) {
      set(node.in[1], layout);
    } else if (node.op == Op::gather_elements) {
      for (Id in : std::span(node.in).subspan(1)) set(in, layout);
    } else if (is_scan(node.op)) {
      set(node.in[0], layout);
    } else if (is_atomic(node.op)) {
      set_all_of(id, layout);
    }
  }

  void to_user(Id id, Id user) {
    const Node& node = analysis_[user];
    const Layout layout = layouts_.of[id];
    if (is_elementwise(node.op)) {
      if (analysis_[id].shape == node.shape) set(user, layout);
    } else if (is_reduction(node.op) || node.op == Op::argmax) {
      set(user, layout.without(node.axis()));
    } else if (is_scan(node.op)) {
      set(user, layout);
    } else if (node.op == Op::reshape) {
      if (const auto same = through_reshape(layout, analysis_[id].shape, node.shape)) set(user, *same);
    } else if (node.op == Op::permute) {
      set(user, layout.permuted(node.permutation()));
    } else if (node.op == Op::scatter && node.in[0] == id) {
      set(node.in[2], rows_of(layout));
    } else if (node.op == Op::gather_elements || (node.op == Op::take_along_axis && node.in[1] == id)) {
      set(user, layout);
    } else if (by_elements(node.op) || is_atomic(node.op)) {  // and writes
      if (analysis_[id].shape == node.shape) set_all_of(user, layout);
    } else if (has_region(node.op)) {
      // Only once, however often the loop names it.
      if (const auto carried = carried_.extract({user, id}))
        for (std::size_t k : carried.mapped()) to_carried(user, k, id);
    }
  }

  // The same registers, if the last axis stays, along which most tiles are accessed: a layout that suits an access
  // along a part of it, or along more, need not suit the other's.
  static std::optional<Layout> through_reshape(const Layout& layout, const Shape& from, const Shape& to) {
    const auto innermost = [](const Shape& shape) {
      int last = 1;
      for (const int extent : shape)
        if (extent != 1) last = extent;
      return last;
    };
    const bool stays = innermost(from) == innermost(to) ||
                       (from.rank() > 0 && to.rank() > 0 && from[from.rank() - 1] == to[to.rank() - 1]);
    return stays ? layout.reshaped(from, to) : std::nullopt;
  }

  // For an atomic or a scatter of elements: its tiles, and the old values.
  void set_all_of(Id id, const Layout& layout) {
    set(id, layout);
    for (Id in : analysis_[id].in)
      if (analysis_[in].shape == analysis_[id].shape) set(in, layout);
  }

  static Layout rows_of(const Layout& layout) {
    Layout rows = layout;
    for (int axis = 1; axis < layout.rank(); ++axis) rows = rows.without(axis);
    Layout result(1);
    for (const Factor& factor : rows.axis(0)) result.add(0, factor);
    return result;
  }

  static std::vector<std::int64_t> inverse(std::span<const std::int64_t> axes) {
    std::vector<std::int64_t> result(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i)
      result[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
    return result;
  }

  const GraphAnalysis& analysis_;
  const std::map<Id, MatmulPlan>& matmuls_;
  Layouts layouts_;
  std::vector<char> known_;
  std::deque<Id> work_;
  std::map<std::pair<Id, std::int64_t>, Id> results_;              // (loop, position)
  std::map<std::pair<Id, Id>, std::vector<std::size_t>> carried_;  // (loop, initial value or yield) -> positions
};

}  // namespace

Layouts choose_layouts(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, int warps) {
  Layouts layouts = Chooser(analysis, matmuls, warps).run();
  layouts.partial = partial_sums(analysis, matmuls, layouts.of);
  return layouts;
}

namespace {

// Does each element go through memory once, independently of the others?
bool is_pointwise(const GraphAnalysis& analysis) {
  if (analysis.order.size() > 1) return false;
  return std::ranges::none_of(analysis.order.front(), [&](Id id) {
    const Op op = analysis[id].op;
    return is_reduction(op) || is_scan(op) || is_sort(op) || op == Op::argmax || op == Op::extract ||
           op == Op::take_along_axis;
  });
}

// Is a tile of the value's shape reduced along its contiguous axis?
bool is_reduced(const GraphAnalysis& analysis, const Shape& shape, int fast) {
  bool reduced = false;
  for (const auto& region : analysis.order)
    for (Id id : region) {
      const Node& node = analysis[id];
      const bool along = is_reduction(node.op) || node.op == Op::argmax;
      reduced |= along && node.axis() == fast && analysis[node.in[0]].shape == shape;
    }
  return reduced;
}

// A warp sorts whole chunks of lines; more warps would sort copies. With more than 512 threads, each has too few
// registers.
int warps_of_sorts(const GraphAnalysis& analysis) {
  int most = 0;
  for (const auto& region : analysis.order)
    for (Id id : region) {
      if (!is_sort(analysis[id].op)) continue;
      const Node& operand = analysis[analysis[id].in[0]];
      const Layout layout = sorted_layout(operand.shape, analysis[id].axis(), operand.type, 1);
      most = std::max(most, layout.registers() / line_of(layout, analysis[id].axis())->run.size);
    }
  return most == 0 ? 32 : std::min(most, 16);
}

}  // namespace

int choose_warps(const GraphAnalysis& analysis) {
  std::int64_t largest = 1, most_bytes = 0;
  int vector = 1;
  Id accessed = no_id;
  for (const auto& region : analysis.order)
    for (Id id : region) {
      const Node& node = analysis[id];
      const bool accesses = is_read(node.op) || is_write(node.op);
      if (is_view(node.op) || (is_effect(node.op) && !accesses)) continue;
      largest = std::max(largest, node.shape.size());
      if (!accesses) continue;
      const std::int64_t bytes = node.shape.size() * info(node.type).bytes;
      if (bytes > most_bytes) accessed = id;
      most_bytes = std::max(most_bytes, bytes);
    }
  constexpr int most_warps = 32;
  int most = std::min(most_warps, warps_of_sorts(analysis));
  int of_few = 2, of_many = 2;  // least accesses of each of up to 256 threads, and of more
  if (accessed != no_id) {
    const GraphAccess access = analysis.access(accessed);
    const Id value = is_read(analysis[accessed].op) ? accessed : analysis[accessed].in[0];
    vector = access.vector;
    const Shape& shape = analysis[value].shape;
    if (const int across = vector > 1 ? transposed_access(analysis, value, access.fast).length : 1; across > 1) {
      const int elements = 32 * vector * across;  // of a warp whose lanes have one block of them each
      const auto warps = static_cast<std::uint64_t>((shape.size() + elements - 1) / elements);
      return static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(warps), most_warps));
    }
    if (access.fast >= 0 && is_reduced(analysis, shape, access.fast)) {
      // Rows that fit in the registers of a warp are best reduced by one warp each, without a barrier. Other rows take
      // the fewer registers besides their elements, the fewer threads share them.
      constexpr int most_registers = 64;  // for elements
      const std::int64_t rows = shape.size() / shape[access.fast];
      if (rows > 1 && shape[access.fast] <= 32 * most_registers)
        most = static_cast<int>(std::min<std::int64_t>(rows, most));
      of_many = 4;
    } else if (vector * info(analysis[value].type).bytes >= 16 && is_pointwise(analysis)) {
      // Many threads with one access each keep memory busy, and their CTAs end sooner.
      of_few = 1;
    }
  }
  // Few threads should be idle in the last iteration.
  for (int warps = 32; warps > 1; warps /= 2) {
    const std::int64_t step = std::int64_t(32) * warps * vector;
    const std::int64_t trips = (largest + step - 1) / step;
    const int least = warps > 8 ? of_many : of_few;
    if (warps <= most && largest >= least * step && trips * step * 20 <= largest * 23) return warps;
  }
  return 1;
}

}  // namespace tessera::internal::lowering
