#include "tensors/kernel_writer.hpp"

#include <algorithm>

#include "graph/evaluate.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

bool is_narrow(ElementType type) { return computing_type(type) != type; }

// The axes that share their tiles with an axis of the domain: those that are merged into it, and it
unsigned merged_group(unsigned merged, int axis) {
  unsigned group = 1u << axis;
  for (int before = axis - 1; before >= 0 && (merged >> before & 1u); --before) group |= 1u << before;
  return group;
}

Location place_of(const TensorProgram& program, const FusedKernel& kernel) {
  return program.values[static_cast<std::size_t>(kernel.results.front().value)].location;
}

}  // namespace

std::vector<Parameter> KernelWriter::parameters_of(const TensorProgram& program, const Fusion& fusion,
                                                   const FusedKernel& kernel) {
  std::vector<Parameter> parameters;
  std::vector<std::pair<int, Use>> known;
  const auto type_of = [&](int v) { return program.values[static_cast<std::size_t>(v)].type; };
  for (const auto& [v, use] : kernel.reads) {
    std::pair<int, Use> read{v, normalized(kernel, use)};
    if (std::find(known.begin(), known.end(), read) != known.end()) continue;
    parameters.push_back({Access::in, type_of(v), static_cast<int>(read.second.size())});
    known.push_back(std::move(read));
  }
  for (int v : kernel.members)
    for (int operand : program.values[static_cast<std::size_t>(v)].in)
      if (program.values[static_cast<std::size_t>(operand)].op == TensorOp::scalar && !fusion.is_stored(operand))
        if (std::find(known.begin(), known.end(), std::pair<int, Use>{operand, {}}) == known.end()) {
          parameters.push_back({Access::scalar, type_of(operand), 0});
          known.push_back({operand, {}});
        }
  for (const Result& result : kernel.results)
    parameters.push_back(
        {Access::out, type_of(result.value), program.values[static_cast<std::size_t>(result.value)].extents.rank()});
  return parameters;
}

KernelWriter::KernelWriter(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel,
                           const Tiling& tiling, std::string name)
    : program_(program),
      fusion_(fusion),
      kernel_(kernel),
      tiling_(tiling),
      name_(std::move(name)),
      location_(place_of(program, kernel)),
      parameters_(parameters_of(program, fusion, kernel)),
      trace_(name_, parameters_, location_) {}

Placement KernelWriter::merged(Placement place, const Use& use) const {
  for (int axis = 0; axis < tiling_.domain.rank(); ++axis)
    if (tiling_.merged >> axis & 1u) merge_axis(place, use, axis);
  return place;
}

void KernelWriter::add_parameters() {
  for (const auto& [v, given] : kernel_.reads) {
    const Use use = normalized(kernel_, given);
    const bool known =
        std::any_of(reads_.begin(), reads_.end(), [&](const auto& read) { return read.value == v && read.use == use; });
    if (known) continue;
    const Placement place = merged(used_part(placement_of(program_, fusion_, v), use), use);
    reads_.push_back({v, use, place});
    arguments_.push_back({place});
  }
  for (int v : kernel_.members)
    for (int operand : value(v).in)
      if (value(operand).op == TensorOp::scalar &&
          std::find(scalars_.begin(), scalars_.end(), operand) == scalars_.end()) {
        scalars_.push_back(operand);
        arguments_.push_back({.place = {}, .scalar = operand});
      }
  for (const Result& result : kernel_.results) {
    const Placement place = result_placement(program_, fusion_, result);
    arguments_.push_back({merged(place, whole_domain(place.extents)), -1});
  }
  std::int64_t next = 0;
  for (std::size_t i = 0; i < arguments_.size(); ++i, ++next) {
    const Parameter& parameter = parameters_[i];
    views_.push_back(op(parameter.access == Access::scalar ? Op::scalar : Op::tensor, parameter.type, {}, {next}));
  }
}

bool KernelWriter::is_read(int v) const { return internal::is_read(program_, fusion_, kernel_, v); }

WrittenKernel KernelWriter::write() {
  add_parameters();
  // The grid: a tile of the domain along each axis that has several.
  std::vector<Handle> extents;
  std::vector<int> axes;
  for (int axis = 0; axis < tiling_.domain.rank(); ++axis) {
    coordinates_[static_cast<std::size_t>(axis)] = index(0);
    if ((kernel_.whole >> axis & 1u) || tiling_.domain[axis] <= 1) continue;
    axes.push_back(axis);
    extents.push_back(
        elementwise(Op::cdiv, extent_of_domain(axis), index(tiling_.tile[static_cast<std::size_t>(axis)])));
  }
  if (!extents.empty()) {
    const std::vector<Handle> blocks = trace_.blocks(extents, location_);
    for (std::size_t i = 0; i < axes.size(); ++i) coordinates_[static_cast<std::size_t>(axes[i])] = blocks[i];
  }
  require_extents();
  if (tiling_.occupancy > 0 || tiling_.warps > 0)
    trace_.hints({.warps = tiling_.warps, .occupancy = tiling_.occupancy});
  if (tiling_.row > 0)
    write_row_loops();
  else
    for (std::size_t i = 0; i < kernel_.results.size(); ++i) store(i);
  WrittenKernel written{trace_.finish(), std::move(arguments_)};
  return written;
}

void KernelWriter::store(std::size_t result) {
  const int v = kernel_.results[result].value;
  const Value& x = value(v);
  location_ = x.location;
  const Use use = normalized(kernel_, whole_domain(x.extents));
  const Handle tile = stretched(converted(emit(v, use), x.type), tile_shape(use));
  location_ = x.location;
  std::vector<Handle> in{tile, views_[arguments_.size() - kernel_.results.size() + result]};
  for (std::size_t axis = 0; axis < use.size(); ++axis) in.push_back(coordinate(use, axis));
  trace_.apply(Op::store, x.type, in, {}, location_);
}

Handle KernelWriter::extent_of_domain(int axis) {
  const std::size_t first_result = arguments_.size() - kernel_.results.size();
  for (std::size_t i = first_result; i < arguments_.size(); ++i)
    if (arguments_[i].place.extents[axis] == tiling_.domain[axis])
      return op(Op::extent, ElementType::i32, {views_[i]}, {axis});
  throw InternalError("a kernel of a tensor program has an axis that none of its results has");
}

// The conditions on a launch's extents. From these the generator knows where masks are unnecessary.
void KernelWriter::require_extents() {
  const std::size_t first_result = arguments_.size() - kernel_.results.size();
  std::array<Handle, max_rank> of_domain{};
  std::array<bool, max_rank> has{};
  Handle inner{};
  bool has_inner = false;
  const auto check = [&](Handle view, const Placement& place, const Use& use) {
    for (std::size_t axis = 0; axis < use.size(); ++axis) {
      const AxisUse& along = use[axis];
      const std::int64_t extent = place.extents[static_cast<int>(axis)];
      const Handle here = op(Op::extent, ElementType::i32, {view}, {static_cast<std::int64_t>(axis)});
      const auto equals = [&](Handle other) {
        trace_.require(elementwise(Op::equal, here, other), "this kernel was specialized for other extents", location_);
      };
      if (extent == 1 || along.axis == AxisUse::whole) {
        equals(index(extent));
      } else if (along.axis == AxisUse::inner) {
        if (has_inner) equals(inner);
        inner = here, has_inner = true;
      } else if (along.group == 1 && along.chunk == 0) {
        const auto domain = static_cast<std::size_t>(along.axis);
        if (has[domain]) equals(of_domain[domain]);
        of_domain[domain] = here, has[domain] = true;
      }
    }
  };
  for (std::size_t i = 0; i < kernel_.results.size(); ++i) {
    const Placement& place = arguments_[first_result + i].place;
    check(views_[first_result + i], place, normalized(kernel_, whole_domain(place.extents)));
  }
  for (std::size_t i = 0; i < reads_.size(); ++i) check(views_[i], reads_[i].place, reads_[i].use);
}

// ---- Tiles

int KernelWriter::tile_extent(const Use& use, std::size_t axis) const {
  const AxisUse& along = use[axis];
  if (along.chunk > 0) return static_cast<int>(along.chunk);
  if (along.axis == AxisUse::whole) return is_chunked(along) ? tiling_.inner : static_cast<int>(along.extent);
  if (along.axis == AxisUse::inner) return along.extent == 1 ? 1 : tiling_.inner;
  if ((tiling_.merged >> along.axis & 1u) || along.group > 1) return 1;
  const unsigned group = merged_group(tiling_.merged, along.axis);
  std::int64_t size = 1;
  for (const AxisUse& other : use)
    if (other.axis >= 0 && (group >> other.axis & 1u)) size *= other.extent;
  return size == 1 ? 1 : tiling_.tile[static_cast<std::size_t>(along.axis)];
}

Shape KernelWriter::tile_shape(const Use& use) const {
  Shape shape = Shape::of_rank(static_cast<int>(use.size()));
  for (std::size_t axis = 0; axis < use.size(); ++axis) shape[static_cast<int>(axis)] = tile_extent(use, axis);
  return shape;
}

Handle KernelWriter::coordinate(const Use& use, std::size_t axis) {
  const AxisUse& along = use[axis];
  if (along.axis == AxisUse::whole) return is_chunked(along) ? inner_ : index(0);
  if (along.axis == AxisUse::inner) return along.extent == 1 ? index(0) : inner_;
  const Handle here = coordinates_[static_cast<std::size_t>(along.axis)];
  if (along.group > 1) return elementwise(Op::floor_div, here, index(along.group));
  if (along.chunk > 0) return here;
  const unsigned group = merged_group(tiling_.merged, along.axis);
  std::int64_t size = 1;
  for (const AxisUse& other : use)
    if (other.axis >= 0 && (group >> other.axis & 1u)) size *= other.extent;
  return (tiling_.merged >> along.axis & 1u) || size == 1 ? index(0) : here;
}

Handle KernelWriter::positions(const Use& use, std::size_t axis) {
  Shape shape = Shape::of_rank(static_cast<int>(use.size()));
  for (int i = 0; i < shape.rank(); ++i) shape[i] = 1;
  shape[static_cast<int>(axis)] = tile_extent(use, axis);
  Handle at = op(Op::iota, ElementType::i32, {}, {static_cast<std::int64_t>(axis)}, shape);
  at = elementwise(Op::add, elementwise(Op::mul, coordinate(use, axis), index(shape[static_cast<int>(axis)])), at);
  if (use[axis].step != 1) at = elementwise(Op::mul, at, index(use[axis].step));
  return use[axis].start == 0 ? at : elementwise(Op::add, at, index(use[axis].start));
}

// ---- Values

Handle KernelWriter::reshaped(Handle tile, const Shape& to) {
  return shape(tile) == to ? tile : op(Op::reshape, type(tile), {tile}, {}, to);
}
Handle KernelWriter::converted(Handle tile, ElementType to) {
  return type(tile) == to ? tile : op(Op::cast, to, {tile});
}
Handle KernelWriter::stretched(Handle tile, const Shape& to) {
  return shape(tile) == to ? tile : op(Op::broadcast, type(tile), {tile}, {}, to);
}

Handle KernelWriter::emit(int v, const Use& use) {
  const Value& x = value(v);
  if (x.is_number()) {
    if (x.op == TensorOp::literal) return op(Op::constant, computing_type(x.type), {}, {x.attr[0]});
    if (x.op == TensorOp::scalar) {
      const auto at = static_cast<std::size_t>(std::find(scalars_.begin(), scalars_.end(), v) - scalars_.begin());
      return views_[reads_.size() + at];
    }
  }
  for (const auto& [known, tile] : known_)
    if (known.first == v && known.second == use) return tile;
  const Handle tile = is_read(v) ? read(v, use) : compute(v, use);
  known_.push_back({{v, use}, tile});
  return tile;
}

Handle KernelWriter::read(int v, const Use& use) {
  const auto found =
      std::find_if(reads_.begin(), reads_.end(), [&](const auto& read) { return read.value == v && read.use == use; });
  if (found == reads_.end()) throw InternalError("a kernel of a tensor program reads a tensor that it does not have");
  std::vector<Handle> in{views_[static_cast<std::size_t>(found - reads_.begin())]};
  for (std::size_t axis = 0; axis < use.size(); ++axis) in.push_back(coordinate(use, axis));
  return trace_.apply(Op::load, value(v).type, in, {0}, location_, tile_shape(use));
}

Handle KernelWriter::compute(int v, const Use& use) {
  const Value& x = value(v);
  location_ = x.location;
  switch (x.op) {
    case TensorOp::iota:
      return stretched(positions(use, static_cast<std::size_t>(x.axis())), tile_shape(use));
    case TensorOp::elementwise: {
      std::vector<Handle> in;
      for (std::size_t i = 0; i < x.in.size(); ++i) in.push_back(computing(operand(v, use, i)));
      location_ = x.location;
      return trace_.apply(x.element_op, result_type(x.element_op, type(in[0])), in, {}, location_);
    }
    case TensorOp::map: {
      std::vector<Handle> in;
      for (std::size_t i = 0; i < x.in.size(); ++i) in.push_back(computing(operand(v, use, i)));
      return x.function(trace_, in.data(), x.location);
    }
    case TensorOp::select: {
      const Handle condition = operand(v, use, 0), a = computing(operand(v, use, 1)), b = computing(operand(v, use, 2));
      return op(Op::select, type(a), {condition, a, b});
    }
    case TensorOp::cast: {
      const Handle tile = operand(v, use, 0);
      const bool rounds = x.attr[0] != 0 || !is_narrow(x.type);
      return converted(rounds ? tile : computing(tile), rounds ? x.type : computing_type(x.type));
    }
    case TensorOp::broadcast:
      return stretched(operand(v, use, 0), tile_shape(use));
    case TensorOp::reshape:
      return reshaped(stretched(operand(v, use, 0), tile_shape(use_of_operand(v, use, 0))), tile_shape(use));
    case TensorOp::slice:  // the use says which elements
      return operand(v, use, 0);
    case TensorOp::permute: {
      const Handle tile = operand(v, use, 0);
      std::vector<std::int64_t> moved;  // the axes with several elements
      for (std::int64_t axis : x.attr)
        if (shape(tile)[static_cast<int>(axis)] > 1) moved.push_back(axis);
      if (std::is_sorted(moved.begin(), moved.end())) return reshaped(tile, tile_shape(use));
      return trace_.apply(Op::permute, type(tile), std::vector<Handle>{tile}, x.attr, location_);
    }
    case TensorOp::reduce:
      return reduce(v, use);
    case TensorOp::scan:
      return op(x.element_op, computing_type(x.type), {computing(operand(v, use, 0))},
                {x.attr[0], x.attr[1] + 2 * x.attr[2]});
    case TensorOp::sort:
    case TensorOp::argsort: {
      const bool sorts = x.op == TensorOp::sort;
      return op(sorts ? Op::sort : Op::argsort, sorts ? computing_type(x.type) : ElementType::i32,
                {computing(operand(v, use, 0))}, {x.attr[0], x.attr[1]}, tile_shape(use));
    }
    case TensorOp::argmax:
      return op(Op::argmax, ElementType::i32, {computing(operand(v, use, 0))}, {x.attr[0]});
    case TensorOp::gather:
      return gather(v, use);
    case TensorOp::matmul:
      return matmul(v, use);
    case TensorOp::attention:
      return attention(v, use);
    case TensorOp::input:
    case TensorOp::scalar:
    case TensorOp::literal:
    case TensorOp::concat:
      break;
  }
  throw InternalError("a value of a tensor program that is only stored is computed in a kernel");
}

Handle KernelWriter::reduce(int v, const Use& use) {
  const Value& x = value(v);
  const Use inside = use_of_operand(v, use, 0);
  Handle tile = computing(stretched(emit(x.in[0], inside), tile_shape(inside)));
  location_ = x.location;
  // The last part has fewer elements.
  const std::int64_t extent = value(x.in[0]).extents[x.axis()], chunk = x.attr[1];
  if (chunk > 0 && extent % chunk != 0) tile = masked(tile, v, inside, extent);
  return op(x.element_op, type(tile), {tile}, {x.attr[0]});
}

// The operand of a reduction, where elements beyond the extent do not change the result.
Handle KernelWriter::masked(Handle tile, int v, const Use& inside, std::int64_t extent) {
  const Value& x = value(v);
  const Handle exists = elementwise(Op::less, positions(inside, static_cast<std::size_t>(x.axis())), index(extent));
  return op(Op::select, type(tile), {exists, tile, identity_of(x.element_op, type(tile))});
}

Handle KernelWriter::identity_of(Op reduction, ElementType of) {
  return op(Op::constant, of, {}, {encode(of, identity(reduction, of))});
}

Handle KernelWriter::gather(int v, const Use& use) {
  const Value& x = value(v);
  const Use of_table = use_of_operand(v, use, 0);
  const Handle rows = emit(x.in[1], use_of_operand(v, use, 1));
  location_ = x.location;
  const auto found = std::find_if(reads_.begin(), reads_.end(),
                                  [&](const auto& read) { return read.value == x.in[0] && read.use == of_table; });
  if (found == reads_.end())
    throw InternalError("a kernel of a tensor program gathers from a tensor that it does not have");
  const int count = static_cast<int>(shape(rows).size());
  Shape gathered = tile_shape(of_table);
  gathered[0] = count;
  std::vector<Handle> in{views_[static_cast<std::size_t>(found - reads_.begin())], reshaped(rows, {count})};
  for (std::size_t axis = 1; axis < of_table.size(); ++axis) in.push_back(coordinate(of_table, axis));
  return reshaped(trace_.apply(Op::gather, x.type, in, {0}, location_, gathered), tile_shape(use));
}

WrittenKernel write_kernel(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel,
                           const Tiling& tiling, std::string name) {
  return KernelWriter(program, fusion, kernel, tiling, std::move(name)).write();
}

}  // namespace tessera::internal
