#include "tensors/placement.hpp"

namespace tessera::internal {

Placement dense_placement(int value, const Extents& extents) {
  Placement placement{.base = value, .extents = extents};
  detail::row_major(extents, std::span(placement.strides).first(static_cast<std::size_t>(extents.rank())));
  return placement;
}

Placement placement_of(const TensorProgram& program, const Fusion& fusion, int v) {
  const auto at = static_cast<std::size_t>(v);
  const Value& value = program.values[at];
  switch (fusion.storage[at]) {
    case Storage::input:
      return {.base = v, .extents = value.extents, .strides = value.strides};
    case Storage::buffer:
      return dense_placement(v, value.extents);
    case Storage::part: {
      const int whole = fusion.whole_of[at];
      const Value& concat = program.values[static_cast<std::size_t>(whole)];
      Placement placement = placement_of(program, fusion, whole);
      if (concat.op == TensorOp::reshape) return dense_placement(placement.base, value.extents);
      placement.offset += fusion.part_at[at] * placement.strides[static_cast<std::size_t>(concat.axis())];
      placement.extents = value.extents;
      return placement;
    }
    case Storage::view:
    case Storage::none:
    case Storage::number:
      break;
  }
  Placement placement = placement_of(program, fusion, value.in[0]);
  if (value.op == TensorOp::reshape) return reshaped_placement(placement, value.extents).value();
  return viewed(value, placement);
}

Placement viewed(const Value& value, Placement placement) {
  const auto strides = placement.strides;
  if (value.op == TensorOp::permute) {
    for (std::size_t axis = 0; axis < value.attr.size(); ++axis)
      placement.strides[axis] = strides[static_cast<std::size_t>(value.attr[axis])];
  } else {  // a slice
    const auto axis = static_cast<std::size_t>(value.axis());
    placement.offset += value.attr[1] * strides[axis];
    placement.strides[axis] *= value.attr[2];
  }
  placement.extents = value.extents;
  return placement;
}

std::optional<Placement> reshaped_placement(const Placement& placement, const Extents& extents) {
  Placement result = placement;
  result.extents = extents;
  if (extents.size() == 0) return result;
  // From the last axes on, groups of axes that have the same number of elements in both. Within a group, the old axes
  // must lie in each other.
  int old = placement.extents.rank() - 1, made = extents.rank() - 1;
  const auto stride = [&](int axis) { return placement.strides[static_cast<std::size_t>(axis)]; };
  while (old >= 0 || made >= 0) {
    if (old >= 0 && placement.extents[old] == 1) {
      --old;
      continue;
    }
    if (made >= 0 && extents[made] == 1) {
      result.strides[static_cast<std::size_t>(made--)] = 1;
      continue;
    }
    if (old < 0 || made < 0) return std::nullopt;
    std::int64_t step = stride(old), of_old = placement.extents[old], of_made = 1;
    while (of_made != of_old || (made >= 0 && extents[made] == 1)) {
      if (of_made < of_old) {
        if (made < 0) return std::nullopt;
        result.strides[static_cast<std::size_t>(made)] = step * of_made;
        of_made *= extents[made--];
      } else if (of_made > of_old) {
        const std::int64_t covered = step * of_old;
        do --old;
        while (old >= 0 && placement.extents[old] == 1);
        if (old < 0 || stride(old) != covered) return std::nullopt;
        of_old *= placement.extents[old];
      } else {
        result.strides[static_cast<std::size_t>(made--)] = 1;
      }
    }
    --old;
  }
  return result;
}

Placement result_placement(const TensorProgram& program, const Fusion& fusion, const Result& result) {
  const Extents& extents = program.values[static_cast<std::size_t>(result.value)].extents;
  Placement placement = placement_of(program, fusion, result.stored);
  if (result.part < 0) return dense_placement(placement.base, extents);  // of the value, or of a reshape of it
  const int axis = program.values[static_cast<std::size_t>(result.stored)].axis();
  placement.offset += result.part * placement.strides[static_cast<std::size_t>(axis)];
  placement.extents = extents;
  return placement;
}

void merge_axis(Placement& placement, const Use& use, int axis) {
  for (std::size_t i = 0; i + 1 < use.size(); ++i) {
    if (use[i].axis != axis) continue;
    const int here = static_cast<int>(i);
    if (placement.extents[here] > 1 && placement.extents[here + 1] == 1)
      placement.strides[i + 1] = placement.strides[i];
    placement.extents[here + 1] *= placement.extents[here];
    placement.extents[here] = 1;
  }
}

Placement used_part(Placement placement, const Use& use) {
  for (std::size_t axis = 0; axis < use.size(); ++axis) {
    placement.offset += use[axis].start * placement.strides[axis];
    placement.strides[axis] *= use[axis].step;
    placement.extents[static_cast<int>(axis)] = use[axis].extent;
  }
  return placement;
}

}  // namespace tessera::internal
