#include "support/tensor_reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tessera/graph/error.hpp"
#include "tessera/jit/copy_tensor.hpp"

namespace tessera::internal {
namespace {

using Place = std::vector<std::int64_t>;

// Calls f(index) for each element, in row-major order.
template <class F>
void for_each(const Extents& extents, const F& f) {
  Place index(static_cast<std::size_t>(extents.rank()), 0);
  for (std::int64_t n = extents.size(); n > 0; --n) {
    f(index);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < extents[static_cast<int>(axis)]) break;
      index[axis] = 0;
    }
  }
}
// The element at an index of a result that the value is broadcast to.
double at(const Reference& x, const Place& index) {
  std::int64_t place = 0;
  const std::size_t rank = static_cast<std::size_t>(x.extents.rank()), shift = index.size() - rank;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t extent = x.extents[static_cast<int>(axis)];
    place = place * extent + (extent == 1 ? 0 : index[axis + shift]);
  }
  return x.values[static_cast<std::size_t>(place)];
}

double element(ElementType type, const std::byte* at) {
  const auto get = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case ElementType::f32:
      return get(0.0f);
    case ElementType::f64:
      return get(0.0);
    case ElementType::bf16:
      return static_cast<float>(get(bf16()));
    case ElementType::f16:
      return static_cast<float>(get(f16()));
    case ElementType::i32:
      return get(std::int32_t{});
    case ElementType::i8:
      return get(std::int8_t{});
    case ElementType::i64:
      return static_cast<double>(get(std::int64_t{}));
    case ElementType::pred:
      return get(std::uint8_t{}) != 0;
    default:
      throw Error("the reference of tensor programs does not read this type");
  }
}

double unary(Op op, double x) {
  switch (op) {
    case Op::neg:
      return -x;
    case Op::abs:
      return std::abs(x);
    case Op::exp:
      return std::exp(x);
    case Op::log:
      return std::log(x);
    case Op::sin:
      return std::sin(x);
    case Op::tanh:
      return std::tanh(x);
    case Op::sqrt:
      return std::sqrt(x);
    case Op::rsqrt:
      return 1 / std::sqrt(x);
    case Op::floor:
      return std::floor(x);
    case Op::logical_not:
      return x == 0;
    default:
      throw Error("the reference of tensor programs lacks a unary op");
  }
}
double binary(Op op, double x, double y) {
  switch (op) {
    case Op::add:
      return x + y;
    case Op::sub:
      return x - y;
    case Op::mul:
      return x * y;
    case Op::div:
      return x / y;
    case Op::floor_div:
      return y == 0 ? 0 : std::floor(x / y);
    case Op::modulo:
      return y == 0 ? 0 : x - y * std::floor(x / y);
    case Op::minimum:
      return std::fmin(x, y);
    case Op::maximum:
      return std::fmax(x, y);
    case Op::less:
      return x < y;
    case Op::less_equal:
      return x <= y;
    case Op::greater:
      return x > y;
    case Op::greater_equal:
      return x >= y;
    case Op::equal:
      return x == y;
    case Op::not_equal:
      return x != y;
    case Op::logical_and:
      return x != 0 && y != 0;
    case Op::logical_or:
      return x != 0 || y != 0;
    case Op::pow:
      return std::pow(x, y);
    default:
      throw Error("the reference of tensor programs lacks a binary op");
  }
}
// The result of a reduction of two numbers.
double combined(Op op, double x, double y) {
  switch (op) {
    case Op::sum:
    case Op::cumsum:
      return x + y;
    case Op::prod:
    case Op::cumprod:
      return x * y;
    case Op::max:
    case Op::cummax:
      return std::fmax(x, y);
    case Op::min:
    case Op::cummin:
      return std::fmin(x, y);
    case Op::any:
      return x != 0 || y != 0;
    case Op::all:
      return x != 0 && y != 0;
    default:
      throw Error("the reference of tensor programs lacks a reduction");
  }
}
double map_value(std::string_view name, double x) {
  if (name == "gelu") return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  if (name == "gelu_tanh") return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "relu") return std::fmax(x, 0);
  if (name == "softplus") return std::fmax(x, 0) + std::log1p(std::exp(-std::abs(x)));
  throw Error("the reference of tensor programs lacks a map");
}

}  // namespace

const Reference& ReferenceEvaluator::of(const LazyRef& node) {
  kept_.push_back(node);  // so that no other node gets its address
  if (const auto found = known_.find(node.get()); found != known_.end()) return found->second;
  for (const LazyRef& operand : node->in) of(operand);
  Reference result = compute(*node);
  return known_[node.get()] = std::move(result);
}

Reference ReferenceEvaluator::compute(const LazyNode& node) {
  Reference result{node.extents, std::vector<double>(static_cast<std::size_t>(node.extents.size()))};
  std::size_t next = 0;
  const auto operand = [&](std::size_t i) -> const Reference& { return known_.at(node.in[i].get()); };
  const auto fill = [&](const auto& value) {
    for_each(node.extents, [&](const Place& index) { result.values[next++] = value(index); });
  };
  const auto axis = [&] { return static_cast<std::size_t>(node.attr[0]); };
  // The elements of an operand along the axis of an index.
  const auto line = [&](Place index) {
    std::vector<double> values;
    for (index[axis()] = 0; index[axis()] < operand(0).extents[static_cast<int>(axis())]; ++index[axis()])
      values.push_back(at(operand(0), index));
    return values;
  };
  switch (node.op) {
    case TensorOp::input: {
      const detail::AnyTensor dense = detail::dense(node.tensor, Device::cpu());
      const auto* data = static_cast<const std::byte*>(dense.place.data);
      for (double& value : result.values) value = element(node.type, data), data += info(node.type).bytes;
      break;
    }
    case TensorOp::literal: {
      const Cell cell = decode(node.type, node.attr[0]);
      with_host(host_type(node.type),
                [&](auto held) { result.values = {static_cast<double>(value_in<decltype(held)>(cell))}; });
      break;
    }
    case TensorOp::scalar:
      with_host(host_type(node.type),
                [&](auto held) { result.values = {static_cast<double>(value_in<decltype(held)>(node.number))}; });
      break;
    case TensorOp::iota:
      fill([&](const Place& index) { return static_cast<double>(index[axis()]); });
      break;
    case TensorOp::elementwise:
      fill([&](const Place& index) {
        const double a = at(operand(0), index);
        if (node.in.size() == 1) return unary(node.element_op, a);
        const double b = at(operand(1), index);
        if (node.in.size() == 2) return binary(node.element_op, a, b);
        const double c = at(operand(2), index);
        return node.element_op == Op::clamp ? std::fmin(std::fmax(a, b), c) : a * b + c;
      });
      break;
    case TensorOp::map:
      fill([&](const Place& index) { return map_value(node.name, at(operand(0), index)); });
      break;
    case TensorOp::select:
      fill([&](const Place& index) { return at(operand(at(operand(0), index) != 0 ? 1 : 2), index); });
      break;
    case TensorOp::cast:
      fill([&](const Place& index) {
        const double x = at(operand(0), index);
        if (node.type == ElementType::pred) return static_cast<double>(x != 0);
        if (info(node.type).kind == ElementKind::integer) return std::trunc(x);
        if (node.type == ElementType::bf16 && node.attr[0] != 0)
          return static_cast<double>(static_cast<float>(bf16(x)));
        return x;
      });
      break;
    case TensorOp::broadcast:
      fill([&](const Place& index) { return at(operand(0), index); });
      break;
    case TensorOp::reshape:
      result.values = operand(0).values;
      break;
    case TensorOp::permute:
      fill([&](const Place& index) {
        Place from(index.size());
        for (std::size_t i = 0; i < index.size(); ++i) from[static_cast<std::size_t>(node.attr[i])] = index[i];
        return at(operand(0), from);
      });
      break;
    case TensorOp::slice:
      fill([&](Place index) {
        index[axis()] = node.attr[1] + index[axis()] * node.attr[2];
        return at(operand(0), index);
      });
      break;
    case TensorOp::concat:
      fill([&](Place index) {
        std::size_t part = 0;
        while (index[axis()] >= operand(part).extents[static_cast<int>(axis())])
          index[axis()] -= operand(part++).extents[static_cast<int>(axis())];
        return at(operand(part), index);
      });
      break;
    case TensorOp::gather:
      fill([&](const Place& index) {
        const auto rows = static_cast<std::size_t>(operand(1).extents.rank());
        const double row = at(operand(1), Place(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(rows)));
        if (row < 0 || row >= static_cast<double>(operand(0).extents[0])) return 0.0;
        Place from{static_cast<std::int64_t>(row)};
        from.insert(from.end(), index.begin() + static_cast<std::ptrdiff_t>(rows), index.end());
        return at(operand(0), from);
      });
      break;
    case TensorOp::reduce:
      fill([&](const Place& index) {
        const auto values = line(index);
        return std::accumulate(values.begin() + 1, values.end(), values[0],
                               [&](double a, double b) { return combined(node.element_op, a, b); });
      });
      break;
    case TensorOp::scan:
      fill([&](const Place& index) {
        auto values = line(index);
        auto place = static_cast<std::size_t>(index[axis()]);
        if (node.attr[1]) std::reverse(values.begin(), values.end()), place = values.size() - 1 - place;
        const bool exclusive = node.attr[2] != 0;
        constexpr double inf = std::numeric_limits<double>::infinity();
        double total = node.element_op == Op::cumprod  ? 1
                       : node.element_op == Op::cummax ? -inf
                       : node.element_op == Op::cummin ? inf
                                                       : 0;
        for (std::size_t i = 0; i < place + !exclusive; ++i) total = combined(node.element_op, total, values[i]);
        return total;
      });
      break;
    case TensorOp::sort:
    case TensorOp::argsort:
    case TensorOp::argmax:
      fill([&](const Place& index) {
        const auto values = line(index);
        std::vector<std::size_t> order(values.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const bool descending = node.op == TensorOp::argmax || node.attr[1] != 0;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
          return descending ? values[a] > values[b] : values[a] < values[b];
        });
        const std::size_t place = order[node.op == TensorOp::argmax ? 0 : static_cast<std::size_t>(index[axis()])];
        return node.op == TensorOp::sort ? values[place] : static_cast<double>(place);
      });
      break;
    case TensorOp::matmul:
      fill([&](Place index) {
        const std::size_t m = index.size() - 2, n = m + 1;
        const std::int64_t row = index[m], column = index[n];
        double total = 0;
        for (std::int64_t k = 0; k < operand(0).extents[operand(0).extents.rank() - 1]; ++k) {
          index[m] = row, index[n] = k;
          const double a = at(operand(0), index);
          index[m] = k, index[n] = column;
          total += a * at(operand(1), index);
        }
        return total;
      });
      break;
    case TensorOp::attention: {
      const std::size_t rank = static_cast<std::size_t>(node.extents.rank());
      const std::int64_t queries = node.extents[static_cast<int>(rank) - 2],
                         width = operand(0).extents[static_cast<int>(rank) - 1];
      const std::int64_t keys = operand(1).extents[static_cast<int>(rank) - 2],
                         heads = node.extents[static_cast<int>(rank) - 3];
      const std::int64_t group = heads / operand(1).extents[static_cast<int>(rank) - 3], window = node.attr[1];
      const bool causal = node.attr[0] != 0 || window > 0;
      const double scale = std::bit_cast<double>(node.attr[2]), cap = std::bit_cast<double>(node.attr[3]);
      fill([&](const Place& index) {
        Place of_q = index, of_k = index, of_scores = index;
        of_k[rank - 3] /= group;
        if (group == heads) of_k[rank - 3] = 0;
        const std::int64_t query = index[rank - 2], e = index[rank - 1];
        std::vector<double> scores;
        for (std::int64_t key = 0; key < keys; ++key) {
          double s = 0;
          for (std::int64_t i = 0; i < width; ++i) {
            of_q[rank - 1] = i, of_k[rank - 2] = key, of_k[rank - 1] = i;
            s += at(operand(0), of_q) * at(operand(1), of_k);
          }
          s *= scale;
          if (cap > 0) s = cap * std::tanh(s / cap);
          of_scores[rank - 1] = key;
          std::size_t more = 3;
          bool sees = !causal || key <= query + keys - queries;
          if (window > 0 && key <= query + keys - queries - window) sees = false;
          if (node.attr[4] && at(operand(more++), of_scores) == 0) sees = false;
          if (node.attr[5]) s += at(operand(more), of_scores);
          scores.push_back(sees ? s : -std::numeric_limits<double>::infinity());
        }
        const double top = *std::max_element(scores.begin(), scores.end());
        if (std::isinf(top)) return 0.0;
        double norm = 0, total = 0;
        for (std::int64_t key = 0; key < keys; ++key) {
          const double p = std::exp(scores[static_cast<std::size_t>(key)] - top);
          of_k[rank - 2] = key, of_k[rank - 1] = e;
          norm += p, total += p * at(operand(2), of_k);
        }
        return total / norm;
      });
      break;
    }
  }
  return result;
}

}  // namespace tessera::internal
