// How kernels use the values of a tensor program: axis by axis.
#include <algorithm>

#include "tensors/fusion.hpp"

namespace tessera::internal {

AxisUse AxisUse::all_of(std::int64_t extent, int from) { return {.axis = whole, .extent = extent, .from = from}; }

bool is_view(TensorOp op) { return op == TensorOp::permute || op == TensorOp::slice; }

bool moves_units(const TensorProgram& program, int v) {
  const auto longer = [&](int x) {
    std::vector<std::int64_t> extents;
    for (std::int64_t extent : std::span<const std::int64_t>(program.values[static_cast<std::size_t>(x)].extents))
      if (extent != 1) extents.push_back(extent);
    return extents;
  };
  return longer(v) == longer(program.values[static_cast<std::size_t>(v)].in[0]);
}

bool indexes(const TensorProgram& program, int v) {
  const TensorOp op = program.values[static_cast<std::size_t>(v)].op;
  return is_view(op) || (op == TensorOp::reshape && moves_units(program, v));
}

bool is_costly(const Value& x) {
  if (x.op == TensorOp::map) return true;
  if (x.op != TensorOp::elementwise) return false;
  switch (x.element_op) {
    case Op::exp:
    case Op::expm1:
    case Op::log:
    case Op::log2:
    case Op::log10:
    case Op::log1p:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::sinh:
    case Op::cosh:
    case Op::tanh:
    case Op::erf:
    case Op::erfc:
    case Op::cbrt:
    case Op::pow:
    case Op::atan2:
    case Op::random_bits:
    case Op::random_uniform:
      return true;
    default:
      return false;
  }
}

Use whole_domain(const Extents& extents) {
  Use use;
  for (int axis = 0; axis < extents.rank(); ++axis) use.push_back({.axis = axis, .extent = extents[axis]});
  return use;
}

Use normalized(const FusedKernel& kernel, Use use) {
  for (AxisUse& axis : use)
    if (axis.axis == AxisUse::whole || (axis.axis >= 0 && (kernel.whole >> axis.axis & 1u)))
      axis.axis = AxisUse::whole, axis.from = -1;
  return use;
}

bool is_read(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel, int v) {
  const int source = stored_source(program, fusion, v);
  return source >= 0 && std::find(kernel.members.begin(), kernel.members.end(), source) == kernel.members.end();
}

int stored_source(const TensorProgram& program, const Fusion& fusion, int v) {
  while (!fusion.is_stored(v)) {
    const Value& x = program.values[static_cast<std::size_t>(v)];
    if (!is_view(x.op) && x.op != TensorOp::reshape)
      return -1;  // a reshape that is not stored moves axes of one element
    v = x.in[0];
  }
  return v;
}

Use operand_use(const TensorProgram& program, int v, const Use& use, std::size_t position) {
  const Value& x = program.values[static_cast<std::size_t>(v)];
  const Extents& extents = program.values[static_cast<std::size_t>(x.in[position])].extents;
  const auto rank = static_cast<std::size_t>(extents.rank());
  const auto extent = [&](std::size_t axis) { return extents[static_cast<int>(axis)]; };
  // The operand's axes from the last on are those of the result, or broadcast along them.
  const auto broadcast = [&](std::size_t axis, std::size_t shift) {
    AxisUse along = use[axis + shift];
    if (extent(axis) == 1 && x.extents[static_cast<int>(axis + shift)] != 1)
      along = {.axis = along.axis, .extent = 1, .from = along.from};
    return along;
  };
  Use result(rank);
  switch (x.op) {
    case TensorOp::permute:
      for (std::size_t axis = 0; axis < rank; ++axis) result[static_cast<std::size_t>(x.attr[axis])] = use[axis];
      break;
    case TensorOp::reshape: {  // of axes of one element
      std::size_t from = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        result[axis] = AxisUse::all_of(1);
        if (extent(axis) == 1) continue;
        while (x.extents[static_cast<int>(from)] == 1) ++from;
        result[axis] = use[from++];
      }
      break;
    }
    case TensorOp::slice: {
      result = use;
      AxisUse& along = result[static_cast<std::size_t>(x.axis())];
      along.start = x.attr[1] + along.start * x.attr[2];
      along.step *= x.attr[2];
      break;
    }
    case TensorOp::reduce:
    case TensorOp::scan:
    case TensorOp::sort:
    case TensorOp::argsort:
    case TensorOp::argmax: {
      result = use;
      const auto along = static_cast<std::size_t>(x.axis());
      if (x.op == TensorOp::reduce && x.attr[1] > 0)
        result[along] = {.axis = use[along].axis, .extent = extent(along), .chunk = x.attr[1]};
      else
        result[along] = AxisUse::all_of(extent(along), use[along].line());
      break;
    }
    case TensorOp::gather: {
      const std::size_t rows = use.size() - (position == 0 ? rank - 1 : use.size() - rank);
      if (position == 0) {
        result[0] = AxisUse::all_of(extent(0));
        for (std::size_t axis = 1; axis < rank; ++axis) result[axis] = use[rows + axis - 1];
      } else {
        for (std::size_t axis = 0; axis < rank; ++axis) result[axis] = use[axis];
      }
      break;
    }
    case TensorOp::matmul: {
      const std::size_t shift = use.size() - rank;
      for (std::size_t axis = 0; axis + 2 < rank; ++axis) result[axis] = broadcast(axis, shift);
      const AxisUse inner{.axis = AxisUse::inner, .extent = extent(position == 0 ? rank - 1 : rank - 2)};
      result[rank - 2] = position == 0 ? use[use.size() - 2] : inner;
      result[rank - 1] = position == 0 ? inner : use.back();
      break;
    }
    case TensorOp::attention: {
      result = use;
      if (position == 0) {  // q
        result[rank - 1] = AxisUse::all_of(extent(rank - 1));
      } else if (position <= 2) {  // k, v
        const std::int64_t heads = x.extents[static_cast<int>(rank) - 3], shared = extent(rank - 3);
        result[rank - 3].group *= heads / shared;
        if (heads != shared) result[rank - 3].extent = shared;
        result[rank - 2] = {.axis = AxisUse::inner, .extent = extent(rank - 2)};
        result[rank - 1] = AxisUse::all_of(extent(rank - 1));
      } else {  // the mask, the bias
        result[rank - 1] = {.axis = AxisUse::inner, .extent = extent(rank - 1)};
      }
      break;
    }
    default:  // elementwise
      for (std::size_t axis = 0; axis < rank; ++axis) result[axis] = broadcast(axis, use.size() - rank);
  }
  return result;
}

}  // namespace tessera::internal
