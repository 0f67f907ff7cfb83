// The contents of memory and registers when a step reads them: buffers and scratch memory have been written, and
// partial sums of threads have been reduced.
#include <map>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class Contents {
 public:
  explicit Contents(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void run() {
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        role_ = &role;
        filled_.clear();
        order_.clear();
        sums_ = {};
        body(role.body);
      }
    diagnostics_.about(nullptr);
  }

 private:
  enum class Filled : std::uint8_t { buffer, cleared, scratch, counted };
  // Bits of the lanes and warps that hold partial sums of a storage's elements.
  struct Sums {
    int lanes = 0, warps = 0;
    bool zero = false;  // all partial sums are 0, so any lanes and warps may hold them
    bool whole() const { return lanes == 0 && warps == 0; }
    void join(const Sums& other) {
      lanes |= other.lanes;
      warps |= other.warps;
    }
  };

  void body(const Body& steps) {
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      memory(step);
      sums(step);
      // Memory written in a loop or a branch does not count as written after it: the body may not have run.
      const std::size_t before = order_.size();
      const bool may_be_skipped = step.action.is<Loop>() || step.action.is<Branch>();
      each_body(step, [&](const Body& inner) { body(inner); });
      for (; may_be_skipped && order_.size() > before; order_.pop_back()) filled_.erase(order_.back());
    }
  }

  // --- memory

  template <class Of>
  void fill(Filled what, IdOf<Of> id) {
    if (filled_.emplace(what, id.index).second) order_.emplace_back(what, id.index);
  }
  template <class Of>
  bool is_filled(Filled what, IdOf<Of> id) const {
    return filled_.contains({what, id.index});
  }
  void memory(const Step& step) {
    if (const StoreScratch* put = step.action.as<StoreScratch>()) fill(Filled::scratch, put->scratch);
    if (const WriteScanTotals* put = step.action.as<WriteScanTotals>()) fill(Filled::scratch, put->scratch);
    if (const AddScanPrefix* add = step.action.as<AddScanPrefix>()) read(add->scratch);
    if (const LoadScratch* get = step.action.as<LoadScratch>()) read(get->scratch);
    if (const GatherScratch* gather = step.action.as<GatherScratch>()) read(gather->scratch);
    if (const HistogramUpdate* count = step.action.as<HistogramUpdate>()) {
      read(count->scratch);
      fill(Filled::counted, count->scratch);
    }
    if (const HistogramReduce* add = step.action.as<HistogramReduce>())
      diagnostics_.require(is_filled(Filled::counted, add->scratch), "scratch{} holds no counts", add->scratch.index);
    if (const Merge* merge = step.action.as<Merge>()) {
      read(merge->from);
      for (const ScratchId to : {merge->to, merge->to_at})
        if (to) fill(Filled::scratch, to);
    }
    if (const HostReport* tell = step.action.as<HostReport>())
      for (const HostReport::Tile& tile : tell->values) read(tile.scratch);
    if (const ZeroFill* clear = step.action.as<ZeroFill>()) fill(Filled::cleared, clear->buffer);
    if (const StoreShared* stage = step.action.as<StoreShared>()) staged(*stage);
    if (const Fetch* fetch = step.action.as<Fetch>())
      for (const Fetch::Tile& tile : fetch->tiles) fill(Filled::buffer, tile.buffer);
    if (const Mma* mma = step.action.as<Mma>())
      for (const MatmulOperand* operand : {&mma->matmul.a, &mma->matmul.b})
        diagnostics_.require(!operand->buffer || is_filled(Filled::buffer, operand->buffer),
                             "{} is read before it is written", operand->buffer ? name_of(plan_, operand->buffer) : "");
  }
  void read(ScratchId scratch) {
    diagnostics_.require(is_filled(Filled::scratch, scratch), "scratch{} is read before it is written", scratch.index);
  }
  // A matmul may read past its operand, where the buffer must be 0.
  void staged(const StoreShared& stage) {
    const Buffer& buffer = plan_.buffers[stage.buffer];
    const bool all = stage.sweep.shape.size() == std::int64_t{buffer.rows} * buffer.columns;
    diagnostics_.require(all || is_filled(Filled::cleared, stage.buffer), "{} is [{},{}] and not zeroed",
                         name_of(plan_, stage.buffer), buffer.rows, buffer.columns);
    fill(Filled::buffer, stage.buffer);
  }

  // --- sums

  void sums(const Step& step) {
    if (const Compute* compute = step.action.as<Compute>()) return this->compute(*compute);
    if (const Mma* mma = step.action.as<Mma>()) this->mma(*mma);
    if (const LaneReduce* replicas = step.action.as<LaneReduce>()) this->replicas(*replicas);
    if (step.action.is<WriteScanTotals>()) return;
    if (const AddScanPrefix* add = step.action.as<AddScanPrefix>()) return void(of(add->out) = {});
    for (ValueId id : operands(step)) whole(id);
    if (const Scan* scan = step.action.as<Scan>()) this->scan(*scan);
    if (const Reduce* reduce = step.action.as<Reduce>()) this->reduce(*reduce);
  }
  Sums& of(ValueId id) { return sums_[plan_.values[id].storage]; }
  void whole(ValueId id) {
    diagnostics_.require(of(id).whole(), "{} is read while lanes & {}, warps & {} hold partial sums of it",
                         name_of(plan_, id), of(id).lanes, of(id).warps);
  }

  // Partial sums may be copied, added to others of the same threads, and scaled by a factor that these agree on.
  void compute(const Compute& s) {
    std::vector<Sums> terms;
    for (const Term& term : s.sweep.expression.terms) {
      Sums parts;
      int some = 0;
      bool alike = true;
      for (const Operand& operand : term.in) {
        Sums in;
        if (operand.kind == Operand::Kind::term) in = terms[static_cast<std::size_t>(operand.index)];
        if (operand.kind == Operand::Kind::value) in = of(operand.value);
        some += !in.whole();
        alike &= &operand == term.in.data() || (in.lanes == parts.lanes && in.warps == parts.warps);
        parts.join(in);
      }
      diagnostics_.require(
          some == 0 || term.op == Op::broadcast || (term.op == Op::mul && some == 1) || (term.op == Op::add && alike),
          "'{}' takes partial sums of lanes & {}, warps & {}", name(term.op), parts.lanes, parts.warps);
      parts.zero = term.op == Op::broadcast && term.in.size() == 1 && term.in[0].kind == Operand::Kind::literal &&
                   term.in[0].literal == 0;
      terms.push_back(parts);
    }
    Sums made = terms.empty() ? Sums{} : terms.back();
    if (s.zero_lanes || s.zero_warps) {
      diagnostics_.require(made.whole(), "partial sums are taken for complete ones");
      made = {s.zero_lanes, s.zero_warps};
    }
    of(s.out) = made;
  }
  void mma(const Mma& s) {
    const Matmul& p = s.matmul;
    const int lanes = p.lanes_k, warps = p.warps_k;
    Sums& out = of(s.out);
    diagnostics_.require(out.zero || (out.lanes == lanes && out.warps == warps),
                         "lanes & {}, warps & {} accumulate, but {} holds partial sums of lanes & {}, warps & {}",
                         lanes, warps, name_of(plan_, s.out), out.lanes, out.warps);
    const Layout& layout = plan_.values[s.out].layout;
    diagnostics_.require((lanes & ~layout.lane_copies()) == 0 && (warps & ~layout.warp_copies(role_->warps)) == 0,
                         "lanes & {}, warps & {} hold different elements, not partial sums of the same ones", lanes,
                         warps);
    out = {lanes, warps};
  }
  void reduce(const Reduce& s) {
    const Layout& layout = s.sweep.layout;
    of(s.out) = {};
    if (s.partial) of(s.out) = {layout.bits_along(s.axis, Place::lane), layout.bits_along(s.axis, Place::warp)};
  }
  // Each warp holds a scan of its own part until the totals of earlier parts are added.
  void scan(const Scan& s) {
    if (const std::optional<Line> line = line_of(s.sweep.layout, s.axis))
      of(s.out) = {.warps = (line->warps.size - 1) * line->warps.unit};
  }
  void replicas(const LaneReduce& s) {
    Sums& out = of(s.out);
    diagnostics_.require(out.zero || (out.lanes == s.lanes && out.warps == s.warps),
                         "partial sums of lanes & {}, warps & {} are reduced, but lanes & {}, warps & {} hold some",
                         s.lanes, s.warps, out.lanes, out.warps);
    out = {};
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role* role_ = nullptr;
  std::set<std::pair<Filled, int>> filled_;
  std::vector<std::pair<Filled, int>> order_;  // the order in which they were written
  std::map<StorageId, Sums> sums_;
};

}  // namespace

void check_contents(Diagnostics& diagnostics) { Contents(diagnostics).run(); }

}  // namespace tessera::internal::codegen
