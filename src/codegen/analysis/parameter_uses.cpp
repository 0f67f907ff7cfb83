#include "codegen/analysis/parameter_uses.hpp"

#include <algorithm>

#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {
namespace {

using Kind = KernelParameter::Kind;

class Uses : public FieldVisitor {
 public:
  explicit Uses(const Plan& plan) : plan_(plan) {}

  ParameterKeys run() {
    for (const Phase& phase : plan_.phases) {
      steps(phase.prologue);
      for (const Role& role : phase.roles) steps(role.body);
      grid(phase);
    }
    for (const Pipeline& pipeline : plan_.pipelines)
      for (const ClippedRows& rows : pipeline.clipped) add(Kind::extent, rows.argument, rows.axis);
    return std::move(keys_);
  }

  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) copy(read);
    for (const Term& term : sweep.expression.terms)
      if (term.argument >= 0) add(Kind::list, term.argument);
  }
  void access(const TileAccess& access, Use) { copy(access); }
  void copy(const TileAccess& access) {
    const int tensor = access.parameter;
    if (access.member) return add(Kind::list, tensor);
    add(Kind::pointer, tensor);
    const int rank = plan_.tensors[static_cast<std::size_t>(tensor)].rank;
    for (int axis = 0; axis < rank && (plan_.debug || access.kept); ++axis) add(Kind::extent, tensor, axis);
    for (int axis = 0; axis < rank && plan_.debug; ++axis) stride(tensor, axis);
    for (std::size_t i = 0; i < access.axes.size(); ++i) {
      const TileAccess::Axis& axis = access.axes[i];
      if (axis.tensor_axis < 0) continue;
      if (axis.viewed.within == 0) {
        add(Kind::extent, tensor, axis.tensor_axis);
        for (const int outer : axis.viewed.outer) add(Kind::extent, tensor, outer);
      }
      if (access.leaves_first(i)) stride(tensor, axis.tensor_axis);
    }
  }

 private:
  void add(Kind kind, int argument, int axis = 0) { keys_.insert({kind, argument, axis}); }
  void stride(int tensor, int axis) {
    if (axis != plan_.variant.tensors[static_cast<std::size_t>(tensor)].contiguous_axis)
      add(Kind::stride, tensor, axis);
  }

  void steps(const Body& body) {
    for (const Step& step : body) {
      visit_kind([&](const auto& kind) { each_field(kind, *this); }, step.action);
      for (const ValueId id : operands(step)) known(plan_.storage(id).known);
      reports_ |= step.action.is<HostReport>();
      each_body(step, [&](const Body& inner) { steps(inner); });
    }
  }
  void known(const Known& known) {
    if (const auto* scalar = std::get_if<ScalarParameter>(&known)) add(Kind::scalar, scalar->argument);
    if (const auto* extent = std::get_if<ExtentParameter>(&known)) add(Kind::extent, extent->argument, extent->axis);
  }

  // An index is a remainder of the tile's number, whose divisors are the extents of the axes that vary faster. Only the
  // slowest axis has no extent there, nor in the number that a report states, which counts the last axis fastest.
  void grid(const Phase& phase) {
    const Schedule& schedule = phase.schedule;
    const bool all =
        (reports_ && schedule.raster_group) || schedule.multicast > 1 || schedule.snake_order || schedule.l2_group > 0;
    const int slowest = all ? -1 : schedule.raster_group ? 2 : 0;
    for (int axis = 0; axis < phase.axes; ++axis)
      if (axis != slowest) add(Kind::grid, 0, phase.first_axis + axis);
  }

  const Plan& plan_;
  ParameterKeys keys_;
  bool reports_ = false;
};

}  // namespace

ParameterKeys parameter_uses(const Plan& plan) { return Uses(plan).run(); }

}  // namespace tessera::internal::codegen
