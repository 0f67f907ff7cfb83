#include "codegen/lower/lower_scratch.hpp"

namespace tessera::internal::lowering {

Strides row_major(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank(); axis-- > 0; stride *= shape[axis]) strides[static_cast<std::size_t>(axis)] = stride;
  return strides;
}

ScratchId new_scratch(Plan& plan, std::int64_t elements, ElementType type) {
  return plan.scratch.add({.type = type, .bytes = elements * host_bytes(host_type(type))});
}

void put(Steps& steps, ValueId from, Id id, const Strides& strides, std::int64_t base, ScratchId scratch) {
  const Value value = steps.plan.values[from];
  const ElementType type = steps.plan.storage(from).type;
  SweepBuilder sweep(steps, value.shape, value.layout);
  sweep.add({Op::broadcast, type, type, {element_of(steps.plan, from, value.layout)}});
  steps.push(id, StoreScratch{.scratch = scratch, .strides = strides, .base = base, .sweep = sweep.take()});
}

void get(Steps& steps, ValueId out, Id id, const Strides& strides, ScratchId scratch) {
  const Value value = steps.plan.values[out];
  SweepBuilder sweep(steps, value.shape, value.layout);
  steps.push(id, LoadScratch{.scratch = scratch, .strides = strides, .out = out, .sweep = sweep.take()});
}

}  // namespace tessera::internal::lowering
