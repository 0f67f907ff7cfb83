// plan_matmuls: which instructions a matmul uses, how it is distributed over warps, and where its operands come from.
#include <algorithm>
#include <bit>
#include <set>

#include "codegen/schedule/matmul_plan.hpp"
#include "codegen/schedule/partial_sums.hpp"

namespace tessera::internal::lowering {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }
int power_at_least(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(n, 1)))); }
int power_at_most(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(n, 1)))); }

constexpr int most_thin_registers = 64, most_fused_warps = 8;

// Is the element in memory, without conversion, the one that the matmul takes?
bool stored_as(const GraphAnalysis& analysis, const Source& source, ElementType type) {
  if (source.load == no_id || analysis[source.load].type != type) return false;
  return source.casts.empty() ||
         std::all_of(source.casts.begin(), source.casts.end(), [&](ElementType to) { return to == type; });
}

class Planner {
 public:
  Planner(const GraphAnalysis& analysis, int least_warps) : analysis_(analysis), warps_(least_warps) {}

  MatmulPlans run() {
    std::vector<Id> matmuls;
    for (const auto& region : analysis_.order)
      for (Id id : region)
        if (analysis_[id].op == Op::mma) matmuls.push_back(id);
    std::sort(matmuls.begin(), matmuls.end(), [&](Id a, Id b) { return analysis_.number[a] < analysis_.number[b]; });
    if (matmuls.empty()) return {};
    for (Id id : matmuls) begin(id);
    choose_warps();
    for (Id id : matmuls) finish(id, plans_[id]);
    return {std::move(plans_), warps_};
  }

 private:
  void begin(Id id) {
    MatmulPlan plan;
    const Node& node = analysis_[id];
    plan.a = find_source(analysis_.graph, node.in[0]);
    plan.b = find_source(analysis_.graph, node.in[1]);
    Matmul& matmul = plan.matmul;
    matmul.type = analysis_[node.in[0]].type;
    matmul.m = node.shape[0];
    matmul.n = node.shape[1];
    matmul.k = analysis_[node.in[0]].shape[1];
    matmul.kind = matmul.m <= 8 ? MatmulKind::gemv : of_many_rows(matmul.type);
    plans_.emplace(id, std::move(plan));
  }

  static MatmulKind of_many_rows(ElementType type) {
    return has_matrix_units(type) ? MatmulKind::mma_sync : MatmulKind::simt;
  }

  // A computed left operand: rows stay with their warp, so that values do not leave its registers.
  bool chained(Id id, const MatmulPlan& plan) const { return plan.a.load == no_id && !is_row_block(id, plan); }

  // Few rows times weights, at once: rows that are loaded, or computed, but not by another matmul. All warps compute
  // them, each a slice of k.
  bool is_row_block(Id id, const MatmulPlan& plan) const {
    constexpr int least_loaded = 256;  // along k
    const Matmul& matmul = plan.matmul;
    return matmul.kind == MatmulKind::mma_sync && matmul.m <= 16 && plan.b.load != no_id && !analysis_.in_loop(id) &&
           (plan.a.load == no_id ? !follows_matmul(analysis_[id].in[0]) : matmul.k >= least_loaded);
  }
  // Is the value computed from a matmul, perhaps one in a loop before it?
  bool follows_matmul(Id of) const {
    std::set<Id> seen;
    std::vector<Id> work{of};
    while (!work.empty()) {
      const Id id = work.back();
      work.pop_back();
      const Node& node = analysis_[id];
      if (node.op == Op::mma) return true;
      if (!analysis_.live(id) || is_read(node.op) || !seen.insert(id).second) continue;
      work.insert(work.end(), node.in.begin(), node.in.end());
      if (has_region(node.op)) {
        const Region& body = analysis_.graph.body(id);
        work.insert(work.end(), body.yields.begin(), body.yields.end());
      }
    }
    return false;
  }

  // May warps have slices of k, whose sums are added up after the loop?
  bool takes_slices(Id id, const MatmulPlan& plan, int slices) const {
    const Matmul& matmul = plan.matmul;
    return matmul.kind == MatmulKind::mma_sync && matmul.k % (slices * std::max(matmul.depth(), 16)) == 0 &&
           (is_row_block(id, plan) || sums_may_stay_apart(analysis_, id, analysis_[id].in[2]));
  }

  // Warps beyond one for each block of 16 x 16 accumulators have slices of k. In attention, those that share rows do.
  int slices_of(Id id, const MatmulPlan& plan, int blocks) const {
    if (is_row_block(id, plan)) {
      int slices = warps_;
      while (slices > 1 && !takes_slices(id, plan, slices)) slices /= 2;
      return slices;
    }
    if (fused_ && !chained(id, plan)) return 1;
    const int slices = fused_ ? sharing_ : std::max(warps_ / power_at_most(blocks), 1);
    return takes_slices(id, plan, slices) ? slices : 1;
  }

  // The number of warps, up to `most`, that share rows in attention: the scores of each are of other keys, and are its
  // slice of k, at least 16 long, of the matmul that they feed.
  int warps_sharing_rows(int most) const {
    for (int warps = most; warps > 1; warps /= 2) {
      bool all = true, any = false;
      for (const auto& [id, plan] : plans_) {
        all &= plan.matmul.kind == MatmulKind::mma_sync;
        any |= chained(id, plan) && takes_slices(id, plan, warps);
      }
      if (all && any) return warps;
    }
    return 1;
  }

  void choose_warps() {
    bool fused = false;
    int wanted = 1, rows = 1 << 30;
    for (auto& [id, plan] : plans_) {
      const Matmul& matmul = plan.matmul;
      fused |= chained(id, plan) && matmul.kind == MatmulKind::mma_sync;
      if (matmul.kind != MatmulKind::gemv) rows = std::min(rows, matmul.m);
      std::int64_t want = 0;
      switch (matmul.kind) {
        case MatmulKind::mma_sync:
        case MatmulKind::simt:
          want = std::clamp<std::int64_t>(std::int64_t(matmul.m) * matmul.n / sums_of_warp(plan), 4, 8);
          break;
        case MatmulKind::gemv:
          // An axis that is distributed over lanes is padded to a power of two.
          want =
              std::clamp<std::int64_t>(std::int64_t(power_at_least(matmul.k)) * power_at_least(matmul.n) / 512, 1, 8);
          break;
      }
      if (is_row_block(id, plan)) want = 8;
      wanted = std::max(wanted, power_at_least(static_cast<int>(want)));
    }
    fused_ = fused;
    if (fused) {
      const int of_rows = std::clamp(power_at_most(ceil_div(rows, 16)), 1, most_fused_warps);
      sharing_ = warps_sharing_rows(std::clamp(power_at_most(warps_), 4, most_fused_warps) / of_rows);
      warps_ = of_rows * sharing_;
    } else {
      warps_ = std::max(warps_, wanted);
    }
    for (auto& [id, plan] : plans_) {
      Matmul& matmul = plan.matmul;
      if (matmul.kind != MatmulKind::gemv) continue;
      // Elements are converted where they are used: those of 16 bits take half a register.
      if (std::int64_t(matmul.k) * matmul.n * info(matmul.type).bytes / 4 >
          std::int64_t(most_thin_registers) * 32 * warps_)
        matmul.kind = of_many_rows(matmul.type);
    }
  }

  // For 64 x 64 accumulators a warp reads (64 + 64) x 32 bytes for 32 instructions on 16-bit elements: 32 cycles of
  // shared memory, beside which the instructions of four warps take 200 or more. For 64 x 32 it would read 24 cycles
  // for half as many. For 64 x 64 accumulators by SIMT, a thread has 8 x 16: for 4 k-steps it makes 24 accesses of 16
  // bytes for 512 instructions. Where the rows of both operands run along k, that takes registers for four k-steps of
  // both.
  int sums_of_warp(const MatmulPlan& plan) const {
    const Matmul& matmul = plan.matmul;
    // From sm_100 on ptxas has no registers for an epilogue beside 128 accumulators.
    const bool many = matmul.kind == MatmulKind::simt
                          ? analysis_.target.registers_more_for_matmuls == 0 &&
                                (!runs_along_k(matmul, plan.a, 1) || !runs_along_k(matmul, plan.b, 0))
                          : matmul.type != ElementType::tf32;
    return many ? 64 * 64 : 32 * 32;
  }

  // Registers of a thread for the accumulators of all matmuls in the same loop.
  int sums(RegionId loop) const {
    int all = 0;
    for (const auto& [id, other] : plans_)
      if (analysis_[id].region == loop) all += ceil_div(other.matmul.m * other.matmul.n, 32 * warps_);
    return all;
  }
  // Registers of operands that are converted on their way to shared memory: as they were read, as they were computed,
  // and as they are stored, two in a register.
  int converted(const MatmulPlan& plan) const {
    const Matmul& matmul = plan.matmul;
    int elements = 0;
    if (!stored_as(analysis_, plan.a, matmul.type)) elements += matmul.m * matmul.k;
    if (!stored_as(analysis_, plan.b, matmul.type)) elements += matmul.k * matmul.n;
    return 5 * elements / (2 * 32 * warps_);
  }
  // Are there registers for the fragments of two k-steps beside the accumulators? Loops of more than a few k-steps are
  // not fully unrolled.
  bool reads_ahead(Id id, const MatmulPlan& plan) const {
    const Matmul& matmul = plan.matmul;
    const int k_steps = matmul.k_steps();
    const int fragments = (plan.layout.cover(0) / matmul.warps_m + plan.layout.cover(1) / matmul.warps_n) / 4;
    const int room = analysis_.target.most_registers - analysis_.target.registers_besides_matmuls;
    return !fused_ && matmul.in_stored_order() && k_steps >= 2 && k_steps <= 4 &&
           sums(analysis_[id].region) + 2 * fragments + converted(plan) <= room;
  }

  void finish(Id id, MatmulPlan& plan) {
    switch (plan.matmul.kind) {
      case MatmulKind::mma_sync:
        return finish_tensor(id, plan);
      case MatmulKind::simt:
        return finish_block(plan);
      case MatmulKind::gemv:
        return finish_thin(id, plan);
    }
  }

  void finish_tensor(Id id, MatmulPlan& plan) {
    Matmul& matmul = plan.matmul;
    describe(plan.a, matmul, matmul.a, 1);
    describe(plan.b, matmul, matmul.b, 0);
    const int width = matmul.pairs().columns ? 16 : 8;
    const int m = ceil_div(matmul.m, 16), n = ceil_div(matmul.n, width);
    const int slices = slices_of(id, plan, ceil_div(matmul.m, 16) * ceil_div(matmul.n, 16));
    int best = -1;
    for (int warps_m = 1; warps_m <= warps_ / slices; warps_m *= 2) {
      const int warps_n = warps_ / (warps_m * slices);
      if (fused_ && warps_n * slices != sharing_) continue;
      // Elements that a warp reads for each k-step, and multiplications of padding.
      const int rows = ceil_div(m, warps_m) * 16, columns = ceil_div(n, warps_n) * width;
      const int cost = rows + columns + (rows * columns * warps_ - matmul.m * matmul.n) / 64;
      if (best >= 0 && cost >= best) continue;
      best = cost;
      matmul.warps_m = warps_m;
      matmul.warps_n = warps_n;
    }
    matmul.warps_k = slices - 1;
    matmul.partial = slices > 1 && !is_row_block(id, plan);
    plan.layout = accumulator_layout({matmul.m, matmul.n}, matmul.warps_m, matmul.warps_n, matmul.pairs(), slices);
    matmul.reads_ahead = reads_ahead(id, plan);
  }

  // Do an operand's rows run along k in shared memory? They do if they do in memory; computed operands are written in
  // row-major order.
  bool runs_along_k(const Matmul& matmul, const Source& source, int k_axis) const {
    if (source.load != no_id) {
      const GraphAccess access = analysis_.access(source.load);
      for (const int axis : {0, 1})
        if (is_along(access, source.axes[axis]))
          return axis == k_axis && !is_transposed(matmul, analysis_[source.load].type);
    }
    return k_axis == 1;
  }
  // Is an operand that is contiguous along k transposed on its way to shared memory, element by element? Then neighbors
  // across k are in registers of different banks, which pays for many accumulators, while all threads copy from the
  // same row of the tile.
  static bool is_transposed(const Matmul& matmul, ElementType stored) {
    return matmul.kind == MatmulKind::simt && matmul.m * matmul.n >= 64 * 128 && 128 % matmul.k == 0 &&
           info(stored).bytes == 4;
  }

  // Sets the casts that remain when a fragment is read, and the order of the buffer. `k_axis` is k's among the
  // operand's axes.
  void describe(Source& source, const Matmul& matmul, MatmulOperand& operand, int k_axis) {
    const ElementType type = matmul.type;
    operand.stored = type == ElementType::tf32 ? ElementType::f32 : type;
    if (matmul.in_stored_order() ? !stored_as(analysis_, source, type) : !converts(source, type)) source.load = no_id;
    operand.k_major = runs_along_k(matmul, source, k_axis);
    if (source.load == no_id || matmul.in_stored_order()) return;
    operand.stored = analysis_[source.load].type;
    operand.casts = source.casts;
  }

  // Can an element be converted to the matmul's type first, and cast then? Not if that would round or saturate where
  // the casts do not.
  bool converts(const Source& source, ElementType type) const {
    if (source.load == no_id) return false;
    const ElementType from = analysis_[source.load].type;
    const auto held_alike = [&](ElementType to) { return host_type(to) == host_type(type); };
    if (!std::all_of(source.casts.begin(), source.casts.end(), held_alike)) return false;
    if (type == ElementType::f64) return info(from).kind == ElementKind::real;
    if (info(type).kind != ElementKind::real) return from == type && source.casts.empty();
    return held_alike(from) ||
           (info(from).kind == ElementKind::integer && !source.casts.empty() && source.casts[0] == ElementType::f32);
  }

  void finish_block(MatmulPlan& plan) {
    Matmul& matmul = plan.matmul;
    // From sm_100 on, with a second k-step ptxas lets its reads take more registers than there are.
    matmul.unrolled = analysis_.target.unrolled_k;
    describe(plan.a, matmul, matmul.a, 1);
    describe(plan.b, matmul, matmul.b, 0);
    // A thread has four neighbors along an axis that the buffer's rows follow, so that one access loads them. For rows
    // along k, one access loads four k-steps.
    const int run_m = matmul.a.k_major ? 1 : 4, run_n = matmul.b.k_major ? 1 : 4;
    int best = -1, lanes_m = 1;
    for (int warps_m = 1; warps_m <= warps_; warps_m *= 2) {
      for (int lanes = 4; lanes <= 8; lanes *= 2) {
        const int warps_n = warps_ / warps_m, other = 32 / lanes;
        if (fused_ && warps_n > 1) continue;
        const int rows = ceil_div(matmul.m, warps_m * lanes * run_m) * run_m;
        const int columns = ceil_div(matmul.n, warps_n * other * run_n) * run_n;
        // Elements that a thread reads for each k-step, and multiplications of padding; of equals the one with fewer
        // registers, then the one with shorter columns of accumulators.
        const int read = rows + columns + (rows * columns * warps_ * 32 - matmul.m * matmul.n) / (32 * warps_);
        const int cost = read * 1024 + 2 * (rows * (4 / run_m) + columns * (4 / run_n)) + (rows > columns);
        if (best >= 0 && cost >= best) continue;
        best = cost;
        matmul.warps_m = warps_m;
        matmul.warps_n = warps_n;
        lanes_m = lanes;
      }
    }
    plan.layout = fma_layout({matmul.m, matmul.n}, matmul.warps_m, matmul.warps_n, lanes_m, run_m, run_n);
  }

  void finish_thin(Id id, MatmulPlan& plan) {
    Matmul& matmul = plan.matmul;
    bool along_k = false;
    int vector = 1;
    if (plan.b.load != no_id) {
      const GraphAccess access = analysis_.access(plan.b.load);
      along_k = is_along(access, plan.b.axes[0]);
      if (along_k || is_along(access, plan.b.axes[1])) vector = access.vector;
    }
    const int fast = along_k ? matmul.k : matmul.n, slow = along_k ? matmul.n : matmul.k;
    const int lanes_fast = std::min(32, power_at_least(ceil_div(fast, vector)));
    const int lanes_slow = std::min(32 / lanes_fast, power_at_least(slow));
    const int left_fast = ceil_div(fast, vector * lanes_fast), left_slow = ceil_div(slow, lanes_slow);
    const int warps_slow = std::min(warps_, power_at_least(left_slow));
    const int warps_fast = std::min(warps_ / warps_slow, power_at_least(left_fast));
    const int regs_slow = ceil_div(left_slow, warps_slow), regs_fast = ceil_div(left_fast, warps_fast);
    const int k_axis = along_k ? 1 : 0;  // position of k in (slow, fast)
    const auto add = [&](Layout& layout, int axis, bool is_fast, int unit_regs) {
      if (is_fast) {
        layout.add(axis, {Place::reg, regs_fast, vector});
        layout.add(axis, {Place::warp, warps_fast, 1});
        layout.add(axis, {Place::lane, lanes_fast, 1});
        layout.add(axis, {Place::reg, vector, 1});
      } else {
        layout.add(axis, {Place::reg, regs_slow, unit_regs});
        layout.add(axis, {Place::warp, warps_slow, warps_fast});
        layout.add(axis, {Place::lane, lanes_slow, lanes_fast});
      }
    };
    matmul.layout_b = Layout(2);
    add(matmul.layout_b, 0, along_k, regs_fast * vector);
    add(matmul.layout_b, 1, !along_k, regs_fast * vector);
    const int regs_k = k_axis ? regs_fast * vector : regs_slow, regs_n = k_axis ? regs_slow : regs_fast * vector;
    matmul.layout_a = Layout(2);
    matmul.layout_a.add(0, {Place::reg, matmul.m, regs_k});
    add(matmul.layout_a, 1, along_k, 1);
    plan.layout = Layout(2);
    plan.layout.add(0, {Place::reg, matmul.m, regs_n});
    add(plan.layout, 1, !along_k, 1);
    matmul.lanes_k = along_k ? lanes_fast - 1 : (lanes_slow - 1) * lanes_fast;
    matmul.warps_k = along_k ? warps_fast - 1 : (warps_slow - 1) * warps_fast;
    matmul.partial = (matmul.lanes_k || matmul.warps_k) && sums_may_stay_apart(analysis_, id, analysis_[id].in[2]);
  }

  const GraphAnalysis& analysis_;
  int warps_;
  bool fused_ = false;
  int sharing_ = 1;  // warps that share rows, if fused
  std::map<Id, MatmulPlan> plans_;
};

}  // namespace

Id first_matmul(const GraphAnalysis& analysis) {
  for (Id id = 0; id < analysis.graph.nodes.size(); ++id)
    if (analysis.live(id) && analysis[id].op == Op::mma) return id;
  return no_id;
}

MatmulPlans plan_matmuls(const GraphAnalysis& analysis, int least_warps) {
  return Planner(analysis, least_warps).run();
}

}  // namespace tessera::internal::lowering
