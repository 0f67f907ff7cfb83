#include "graph/evaluate.hpp"

#include "graph/host_ops.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

Cell cell(bool value) { return cell_of(static_cast<std::int32_t>(value)); }
template <class T>
Cell cell(T value) {
  return cell_of(value);
}

template <class T>
T of(Cell c) {
  return value_in<T>(c);
}

template <Op op, class T>
Cell apply(std::span<const Cell, 3> in) {
  if constexpr (is_unary(op))
    return cell(math::Host<op>::apply(of<T>(in[0])));
  else if constexpr (is_binary(op))
    return cell(math::Host<op>::apply(of<T>(in[0]), of<T>(in[1])));
  else
    return cell(math::Host<op>::apply(of<T>(in[0]), of<T>(in[1]), of<T>(in[2])));
}

template <Op op>
Cell dispatch(ElementType operand, std::span<const Cell, 3> in) {
  if (accepts(op, operand))
    return with_host(host_type(operand), [&]<class T>(T) {
      if constexpr (math::takes<op, T>)
        return apply<op, T>(in);
      else
        return Cell{};
    });
  throw InternalError("an op evaluated on a type it does not accept");
}

template <class T>
Cell cast_from(ElementType to, T value) {
  switch (to) {
#define TYPE(name, ...)   \
  case ElementType::name: \
    return cell(math::cast_to<ElementType::name>(value));
#include "tessera/graph/types.def"
  }
  return {};
}

template <ElementType from>
Cell bitcast_from(ElementType to, Cell value) {
  switch (to) {
#define TYPE(name, ...)                                                                         \
  case ElementType::name:                                                                       \
    if constexpr (bitcasts(from, ElementType::name))                                            \
      return cell(math::bitcast_to<from, ElementType::name>(of<math::host_form<from>>(value))); \
    break;
#include "tessera/graph/types.def"
  }
  throw InternalError("a bitcast between types of different sizes");
}

}  // namespace

Cell evaluate(Op op, ElementType operand, Cell a, Cell b, Cell c) {
  const Cell in[] = {a, b, c};
  switch (op) {
#define UNARY(name, ...) \
  case Op::name:         \
    return dispatch<Op::name>(operand, in);
#define BINARY UNARY
#define TERNARY UNARY
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
    default:
      throw InternalError("evaluate takes arithmetic ops");
  }
}

Cell evaluate_cast(ElementType from, ElementType to, Cell value) {
  return with_host(host_type(from), [&]<class T>(T) { return cast_from(to, value_in<T>(value)); });
}

Cell evaluate_bitcast(ElementType from, ElementType to, Cell value) {
  switch (from) {
#define TYPE(name, ...)   \
  case ElementType::name: \
    return bitcast_from<ElementType::name>(to, value);
#include "tessera/graph/types.def"
  }
  return {};
}

Cell identity(Op reduction, ElementType type) {
  const auto of = [&]<class T>(T) -> T {
    switch (reduction) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define STRUCTURAL(...)
#define REDUCTION(name, ...) \
  case Op::name:             \
    return math::Host<Op::name>::identity<T>();
#include "tessera/graph/ops.def"
      default:
        throw InternalError("not a reduction");
    }
  };
  return with_host(host_type(type), [&](auto zero) { return cell_of(of(zero)); });
}

UniformProgram::UniformProgram(const Graph& graph, std::span<const Id> roots) {
  std::vector<int> position(graph.nodes.size(), -1);
  const auto add = [&](Id id) {
    const Node& node = graph[id];
    Step step{node.op, node.type, node.type, {-1, -1, -1}, {0, 0}, 0};
    if (node.op == Op::extent) {
      const Node& tensor = graph[node.in[0]];
      step.attr[0] = static_cast<std::int64_t>(tensor.parameter());
      step.attr[1] = node.axis();
      if (tensor.op == Op::member) {
        step.in[0] = position[tensor.in[0]];
        step.tensors = tensors_of_list(graph.parameters, tensor.parameter());
      }
    } else {
      for (std::size_t i = 0; i < node.in.size(); ++i) step.in[i] = position[node.in[i]];
      if (!node.in.empty()) step.operand = graph[node.in[0]].type;
      if (!node.attr.empty()) step.attr[0] = node.attr[0];
    }
    position[id] = static_cast<int>(steps_.size());
    steps_.push_back(step);
  };
  // Operands first. An explicit stack, because a grid may be computed by any number of ops.
  std::vector<Id> stack;
  for (Id root : roots) {
    stack.push_back(root);
    while (!stack.empty()) {
      const Id id = stack.back();
      const std::size_t before = stack.size();
      // The extent of a tensor is known; of a tensor of a list it depends on the number of the tensor.
      const Node& node = graph[graph[id].op == Op::extent ? graph[id].in[0] : id];
      if (position[id] < 0)
        for (Id in : node.in)
          if (position[in] < 0) stack.push_back(in);
      if (stack.size() > before) continue;
      stack.pop_back();
      if (position[id] < 0) add(id);
    }
    roots_.push_back(position[root]);
  }
}

void UniformProgram::run(std::span<const Argument> arguments, std::span<Cell> values) const {
  const auto value = [&](int position) { return position < 0 ? Cell{} : values[static_cast<std::size_t>(position)]; };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    switch (step.op) {
      case Op::constant:
        values[i] = decode(step.type, step.attr[0]);
        break;
      case Op::scalar:
        values[i] = arguments[static_cast<std::size_t>(step.attr[0])].scalar;
        break;
      case Op::extent: {
        const std::int32_t tensor = step.tensors > 0 ? value(step.in[0]).i32 : 0;
        const bool is_there = tensor >= 0 && tensor < std::max(step.tensors, 1);
        const std::int64_t argument = step.attr[0] + (is_there ? tensor : 0);
        values[i] = cell(
            is_there ? static_cast<std::int32_t>(
                           arguments[static_cast<std::size_t>(argument)].extent[static_cast<std::size_t>(step.attr[1])])
                     : 0);
        break;
      }
      case Op::cast:
        values[i] = evaluate_cast(step.operand, step.type, value(step.in[0]));
        break;
      case Op::bitcast:
        values[i] = evaluate_bitcast(step.operand, step.type, value(step.in[0]));
        break;
      case Op::select:
        values[i] = value(step.in[0]).i32 ? value(step.in[1]) : value(step.in[2]);
        break;
      default:
        values[i] = evaluate(step.op, step.operand, value(step.in[0]), value(step.in[1]), value(step.in[2]));
        break;
    }
  }
}

}  // namespace tessera::internal
