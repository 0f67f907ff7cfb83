#include "codegen/plan/verify/part_places.hpp"

namespace tessera::internal::codegen {
namespace {

int number(const std::vector<Digit>& digits, int index) {
  int sum = 0;
  for (const Digit& digit : digits) sum += index / digit.unit % digit.size * digit.scale;
  return sum;
}

// The same along an axis of the value, whose elements are `times` as long as those of the sweep.
bool reads_own_places(const Value& value, const Sweep& sweep, const Operand& operand, int axis, int times) {
  const int of_sweep = axis + sweep.shape.rank() - value.shape.rank();
  const auto in_value = value.layout.register_digits(axis), in_sweep = sweep.layout.register_digits(of_sweep);
  auto threads = value.layout.thread_digits(axis);
  for (auto& [factor, scale] : threads) scale *= times;
  if (threads != sweep.layout.thread_digits(of_sweep)) return false;
  for (int r = 0; r < sweep.layout.registers(); ++r) {
    const int made = sweep.origin[static_cast<std::size_t>(of_sweep)] + number(in_sweep, r),
              read = value.origin[static_cast<std::size_t>(axis)] +
                     number(in_value, operand.first + number(operand.map, r));
    if (read != made / times) return false;
  }
  return true;
}

}  // namespace

bool reads_own_places(const Plan& plan, const Sweep& sweep, const Operand& operand) {
  const Value& value = plan.values[operand.value];
  for (int axis = 0; axis < value.shape.rank(); ++axis) {
    const int times = operand.twice && axis + 1 == value.shape.rank() ? 2 : 1;
    if (value.shape[axis] != 1 && !reads_own_places(value, sweep, operand, axis, times)) return false;
  }
  return true;
}

}  // namespace tessera::internal::codegen
