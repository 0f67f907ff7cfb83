#include "codegen/analysis/prefetched_weights.hpp"

#include <algorithm>
#include <optional>

#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {
namespace {

// A tile with more rows is not bound by loading weights.
constexpr int most_rows = 16;
// The limit of a CTA: the launches in flight share L2.
constexpr int most_bytes = 128 * 1024;

class Search {
 public:
  explicit Search(const Plan& plan) : plan_(plan) {}

  Body run() {
    each_step([&](const Step& step) {
      const Mma* const mma = step.action.as<Mma>();
      if (!mma || mma->matmul.m > most_rows) return;
      each_step([&](const Step& source) { look(source, mma->matmul.b); });
    });
    return std::move(found_);
  }

 private:
  void each_step(const auto& act) const {
    const auto walk = [&](const auto& self, const Body& body) -> void {
      for (const Step& step : body) {
        act(step);
        each_body(step, [&](const Body& inner) { self(self, inner); });
      }
    };
    for (const Role& role : plan_.phases.front().roles) walk(walk, role.body);
  }

  // The step that makes the operand: a load, or a copy to shared memory.
  void look(const Step& step, const MatmulOperand& operand) {
    if (const Load* const load = step.action.as<Load>(); load && operand.value && load->out == operand.value)
      add(step, load->access);
    if (const Fetch* const fetch = step.action.as<Fetch>())
      for (const Fetch::Tile& tile : fetch->tiles)
        if (operand.buffer.index != -1 && tile.buffer == operand.buffer) add(step, tile.access);
  }

  void add(const Step& step, const TileAccess& access) {
    const auto parameter = static_cast<std::size_t>(access.parameter);
    if (access.member || access.rows || access.axes.size() != 2 || access.axes[0].element || access.axes[1].element)
      return;
    const auto& tensor = plan_.tensors[parameter];
    const int fast = plan_.variant.tensors[parameter].contiguous_axis;
    if (tensor.access != Access::in || tensor.rank != 2 || fast < 0) return;
    std::optional<std::size_t> selected;
    for (std::size_t i = 0; i < 2; ++i) {
      const TileAccess::Axis& axis = access.axes[i];
      if (axis.tensor_axis < 0 || !axis.viewed.is_tensors() || !axis.slices.empty()) return;
      if (is_block(axis.index) && !selected)
        selected = i;
      else if (!is_literal_zero(axis.index) && !is_counter(axis.index))
        return;
    }
    if (!selected || access.axes[0].tensor_axis == access.axes[1].tensor_axis) return;
    if (access.axes[1 - *selected].extent == 1) return;
    const int position = access.axes[*selected].extent * info(tensor.type).bytes;
    PrefetchL2 prefetch{
        .access = access, .selected = static_cast<int>(*selected), .most = std::max(most_bytes / position, 1)};
    prefetch.access.axes[1 - *selected].index = {.kind = Operand::Kind::literal};
    const auto same = [&](const Step& other) {
      return other.action.as<PrefetchL2>()->access.parameter == access.parameter;
    };
    if (std::ranges::none_of(found_, same)) found_.push_back({std::move(prefetch), no_id, step.location});
  }

  template <class Kind>
  bool is(const Operand& index) const {
    return index.kind == Operand::Kind::value && std::holds_alternative<Kind>(plan_.storage(index.value).known);
  }
  bool is_block(const Operand& index) const { return is<BlockIndex>(index); }
  bool is_counter(const Operand& index) const { return is<Counter>(index); }
  static bool is_literal_zero(const Operand& index) {
    return index.kind == Operand::Kind::literal && index.literal == 0;
  }

  const Plan& plan_;
  Body found_;
};

}  // namespace

Body prefetched_weights(const Plan& plan) { return Search(plan).run(); }

}  // namespace tessera::internal::codegen
