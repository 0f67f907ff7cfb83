// Chunks of lines that warps sort and memory merges, and copies of histogram counts.
#include <bit>

#include "codegen/layout/sort_layout.hpp"
#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class Sorts {
 public:
  explicit Sorts(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void body(const Body& steps) {
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      if (const Sort* const sort = step.action.as<Sort>()) sorted(*sort);
      if (const Merge* const merge = step.action.as<Merge>()) merged(*merge);
      if (const HistogramUpdate* const count = step.action.as<HistogramUpdate>()) copies(count->copies);
      if (const HistogramReduce* const add = step.action.as<HistogramReduce>()) copies(add->copies);
      each_body(step, [&](const Body& inner) { body(inner); });
    }
  }

 private:
  // Whole chunks are in the lanes of one warp, before and after the sort.
  void sorted(const Sort& s) {
    const Value& out = plan_.values[s.out];
    if (s.axis >= out.layout.rank()) return;
    diagnostics_.require(sorts_from(s.sweep.layout, out.layout, s.axis),
                         "chunks along axis {} of {} are not the chunks of {}", s.axis, to_string(s.sweep.layout),
                         to_string(out.layout));
    chunks(s, out.layout);
    if (!s.at) return;
    integers(plan_.storage(s.at).type);
    const Value& at = plan_.values[s.at];
    diagnostics_.require(at.layout == out.layout && at.shape == out.shape, "{} does not have the layout of {}",
                         name_of(plan_, s.at), name_of(plan_, s.out));
  }
  void merged(const Merge& s) {
    chunks(s, s.sweep.layout);
    diagnostics_.require(s.to || s.to_at, "it stores nothing");
    diagnostics_.require(s.extent >= 1 && s.extent <= s.sweep.shape[s.axis], "it stores {} elements of lines of {}",
                         s.extent, s.sweep.shape[s.axis]);
    diagnostics_.require(s.from_strides[static_cast<std::size_t>(s.axis)] == 1,
                         "neighbors of a line are not contiguous");
    if (s.to)
      diagnostics_.require(plan_.scratch[s.from].type == plan_.scratch[s.to].type,
                           "the stored elements have another type");
    diagnostics_.require(bool(s.at) == bool(s.to_at), "positions without memory for them, or memory without positions");
    if (s.to_at) integers(plan_.scratch[s.to_at].type);
    if (!s.at) return;
    integers(plan_.storage(s.at).type);
    diagnostics_.require(plan_.values[s.at].layout == s.sweep.layout,
                         "{} does not have the layout of the merged values", name_of(plan_, s.at));
  }
  template <class Kind>
  void chunks(const Kind& s, const Layout& layout) {
    const std::optional<Line> line = line_of(layout, s.axis);
    const int chunk = line ? line->lanes.size * line->run.size : 0;
    diagnostics_.require(s.chunk == chunk && s.kept >= 1 && s.kept <= chunk && std::has_single_bit(unsigned(s.kept)),
                         "the first {} of each {} are sorted, but chunks have {} elements", s.kept, s.chunk, chunk);
  }
  void integers(ElementType type) {
    diagnostics_.require(type == ElementType::i32, "positions are {}, not i32", name(type));
  }
  void copies(int copies) {
    diagnostics_.require(copies >= 1 && copies <= 32 && std::has_single_bit(unsigned(copies)),
                         "{} copies of a count for 32 lanes", copies);
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
};

}  // namespace

void check_sorts(Diagnostics& diagnostics) {
  for (const Phase& phase : diagnostics.plan.phases)
    for (const Role& role : phase.roles) Sorts(diagnostics).body(role.body);
}

}  // namespace tessera::internal::codegen
