// Chunks of lines that are sorted by a warp and merged through memory, and copies of counts.
#include <bit>

#include "codegen/plan/sort_layout.hpp"
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
  // Whole chunks are in the lanes of a warp, before and behind.
  void sorted(const Sort& s) {
    const Value& out = plan_.values[s.out];
    if (s.axis >= out.layout.rank()) return;
    diagnostics_.require(sorts_from(s.sweep.layout, out.layout, s.axis),
                         "chunks along axis {} of {} are no chunks of {}", s.axis, to_string(s.sweep.layout),
                         to_string(out.layout));
    chunks(s, out.layout);
    if (!s.at) return;
    integers(plan_.storage(s.at).type);
    const Value& at = plan_.values[s.at];
    diagnostics_.require(at.layout == out.layout && at.shape == out.shape, "{} does not lie as {}",
                         name_of(plan_, s.at), name_of(plan_, s.out));
  }
  void merged(const Merge& s) {
    chunks(s, s.sweep.layout);
    diagnostics_.require(s.to || s.to_at, "it puts nothing");
    diagnostics_.require(s.extent >= 1 && s.extent <= s.sweep.shape[s.axis], "it puts {} of lines of {}", s.extent,
                         s.sweep.shape[s.axis]);
    diagnostics_.require(s.from_strides[static_cast<std::size_t>(s.axis)] == 1, "neighbours of a line lie apart");
    if (s.to)
      diagnostics_.require(plan_.scratch[s.from].type == plan_.scratch[s.to].type, "what is put has another type");
    diagnostics_.require(bool(s.at) == bool(s.to_at), "places have no memory, or memory no places");
    if (s.to_at) integers(plan_.scratch[s.to_at].type);
    if (!s.at) return;
    integers(plan_.storage(s.at).type);
    diagnostics_.require(plan_.values[s.at].layout == s.sweep.layout, "{} does not lie as what is merged",
                         name_of(plan_, s.at));
  }
  template <class Kind>
  void chunks(const Kind& s, const Layout& layout) {
    const std::optional<Line> line = line_of(layout, s.axis);
    const int chunk = line ? line->lanes.size * line->run.size : 0;
    diagnostics_.require(s.chunk == chunk && s.kept >= 1 && s.kept <= chunk && std::has_single_bit(unsigned(s.kept)),
                         "the first {} of each {} are in order, and chunks are of {}", s.kept, s.chunk, chunk);
  }
  void integers(ElementType type) {
    diagnostics_.require(type == ElementType::i32, "places are {}, not i32", name(type));
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
