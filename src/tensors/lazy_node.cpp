#include "tessera/tensors/lazy_node.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>

namespace tessera::internal {
namespace {

thread_local std::string_view outer_name;

template <class... Args>
[[noreturn]] void fail(Location location, std::string_view op, fmt::format_string<Args...> format, Args&&... args) {
  const std::string called =
      outer_name.empty() || outer_name == op ? std::string(op) : fmt::format("{}: {}", outer_name, op);
  throw Error(fmt::format("{}:{}: {}: {}", location.file, location.line, called,
                          fmt::format(format, std::forward<Args>(args)...)));
}

// "f32 [4,8] (made at a.cpp:12)".
std::string text_of(const LazyRef& x) {
  return fmt::format("{} {} ({}:{})", name(x->type), to_string(x->extents), x->location.file, x->location.line);
}

std::shared_ptr<LazyNode> make(TensorOp op, std::string_view name, ElementType type, std::vector<LazyRef> in,
                               Location location) {
  auto node = std::make_shared<LazyNode>();
  // Functions of a list of operands have no place, if none of these has one; generated code needs a line.
  if (location.line == 0) location = {"<tensors>", 1, 0};
  node->op = op, node->type = type, node->location = location;
  node->name = outer_name.empty() ? name : outer_name;
  for (const LazyRef& x : in) {
    if (!x)
      throw Error(fmt::format("{}:{}: {}: an empty Lazy is used; assign an expression to it", location.file,
                              location.line, name));
    if (!x->device) continue;
    if (node->device && !(*node->device == *x->device))
      fail(location, node->name, "operands on two devices, {} and {}; copy one with Tensor::to", node->device->name(),
           x->device->name());
    node->device = x->device;
  }
  node->in = std::move(in);
  return node;
}

int checked_axis(int axis, const LazyRef& x, std::string_view op, Location location) {
  const int rank = x->extents.rank();
  if (axis < -rank || axis >= rank)
    fail(location, op, "no axis {} in {}; an axis is in [{}, {})", axis, text_of(x), -rank, rank);
  return axis < 0 ? axis + rank : axis;
}

Extents broadcast(const std::vector<LazyRef>& in, std::string_view op, Location location) {
  Extents result = in.front()->extents;
  for (std::size_t i = 1; i < in.size(); ++i) {
    const Extents& next = in[i]->extents;
    Extents wide = Extents::of_rank(std::max(result.rank(), next.rank()));
    for (int back = 1; back <= wide.rank(); ++back) {
      const std::int64_t a = back <= result.rank() ? result[result.rank() - back] : 1;
      const std::int64_t b = back <= next.rank() ? next[next.rank() - back] : 1;
      if (a != b && a != 1 && b != 1) {
        std::vector<std::string> all;
        for (const LazyRef& x : in) all.push_back(text_of(x));
        fail(location, op, "{} do not broadcast; make extents {} and {} equal, or one of them 1",
             fmt::join(all, " and "), a, b);
      }
      wide[wide.rank() - back] = a == 1 ? b : a;
    }
    result = wide;
  }
  return result;
}

void check_extents(std::span<const std::int64_t> extents, std::string_view op, Location location) {
  if (extents.size() > max_rank) fail(location, op, "{} axes; a tensor has at most {}", extents.size(), max_rank);
  for (std::int64_t extent : extents)
    if (extent < 0 || extent > 0x7fffffff) fail(location, op, "an extent of {}; it must be in [0, 2^31)", extent);
}

// The text of a name, for the life of the process: plans keep it.
std::string_view kept_name(std::string_view name) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string, std::less<>>();
  const std::lock_guard lock(mutex);
  const auto found = names.find(name);
  return found != names.end() ? *found : *names.emplace(name).first;
}

}  // namespace

Extents::Extents(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  std::copy(extents.begin(), extents.end(), extent_.begin());
}
Extents Extents::of_rank(int rank) {
  Extents extents;
  extents.rank_ = rank;
  return extents;
}
std::int64_t Extents::size() const {
  std::int64_t size = 1;
  for (int axis = 0; axis < rank_; ++axis) size *= (*this)[axis];
  return size;
}
std::string to_string(const Extents& extents) {
  return fmt::format("[{}]", fmt::join(std::span<const std::int64_t>(extents), ","));
}

LazyNode::~LazyNode() {
  // Operands that nobody else holds are taken apart here, one after another.
  std::vector<LazyRef> dying = std::move(in);
  while (!dying.empty()) {
    LazyRef last = std::move(dying.back());
    dying.pop_back();
    if (!last || last.use_count() > 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // behind the reads of its other owners, which are gone
    auto& inner = const_cast<LazyNode&>(*last).in;        // its last owner is `last`
    for (LazyRef& x : inner) dying.push_back(std::move(x));
    inner.clear();
  }
}

NamedOps::NamedOps(std::string_view name) : outermost_(outer_name.empty()) {
  if (outermost_) outer_name = name;
}
NamedOps::~NamedOps() {
  if (outermost_) outer_name = {};
}

LazyRef lazy_input(const detail::AnyTensor& tensor, Location location) {
  auto node = make(TensorOp::input, "tile", tensor.type, {}, location);
  if (!tensor.device) fail(location, "tile", "a tensor without memory; make one with Device::tensor");
  node->extents = Extents(tensor.extents());
  node->tensor = tensor, node->device = tensor.device;
  return node;
}

LazyRef lazy_scalar(ElementType type, Cell number, Location location) {
  auto node = make(TensorOp::scalar, "scalar", type, {}, location);
  node->number = number;
  return node;
}

LazyRef lazy_literal(ElementType type, Number number, Location location) {
  auto node = make(TensorOp::literal, "literal", type, {}, location);
  const ElementInfo held = info(type);
  const auto misfit = [&] {
    fail(location, "literal", "{} does not fit {}", static_cast<double>(number.real()), name(type));
  };
  Cell cell;
  if (type == ElementType::f64) {
    cell = cell_of(static_cast<double>(number.real()));
  } else if (held.kind == ElementKind::real) {
    const auto real = static_cast<float>(number.real());
    if (std::isinf(real) && !std::isinf(number.real())) misfit();
    // A whole number that would be rounded is written as a floating literal, if that is intended.
    if (number.integral() && static_cast<long double>(real) != number.real()) misfit();
    cell = cell_of(real);
  } else {
    if (!number.integral()) misfit();
    const bool is_large = !number.representable();
    const auto value =
        is_large ? static_cast<std::uint64_t>(number.real()) : static_cast<std::uint64_t>(number.integer());
    const bool fits = is_large               ? type == ElementType::u64
                      : number.integer() < 0 ? number.integer() >= lowest(type)
                                             : value <= highest(type);
    if (!fits) misfit();
    with_host(host_type(type), [&](auto host) { cell = cell_of(static_cast<decltype(host)>(value)); });
  }
  node->attr = {encode(type, cell)};
  return node;
}

LazyRef lazy_iota(const Device& device, std::span<const std::int64_t> extents, int axis, Location location) {
  check_extents(extents, "iota", location);
  auto node = make(TensorOp::iota, "iota", ElementType::i32, {}, location);
  node->extents = Extents(extents), node->device = device;
  const int rank = node->extents.rank();
  if (axis < -rank || axis >= rank)
    fail(location, "iota", "no axis {} in {}; an axis is in [{}, {})", axis, to_string(node->extents), -rank, rank);
  node->attr = {axis < 0 ? axis + rank : axis};
  return node;
}

LazyRef lazy_elementwise(Op op, std::vector<LazyRef> in, Location location) {
  const Extents extents = broadcast(in, name(op), location);
  const ElementType operand = in.front()->type, computed = result_type(op, computing_type(operand));
  auto node = make(TensorOp::elementwise, name(op), computed == computing_type(operand) ? operand : computed,
                   std::move(in), location);
  node->element_op = op, node->extents = extents;
  return node;
}

LazyRef lazy_map(MapFunction function, std::vector<LazyRef> in, std::string_view name, Location location) {
  const Extents extents = broadcast(in, name, location);
  const ElementType type = in.front()->type;
  auto node = make(TensorOp::map, kept_name(name), type, std::move(in), location);
  node->function = function, node->extents = extents;
  return node;
}

LazyRef lazy_select(LazyRef condition, LazyRef a, LazyRef b, Location location) {
  std::vector<LazyRef> in{std::move(condition), std::move(a), std::move(b)};
  const Extents extents = broadcast(in, "where", location);
  auto node = make(TensorOp::select, "where", in[1]->type, in, location);
  node->extents = extents;
  return node;
}

LazyRef lazy_cast(ElementType type, LazyRef x, bool rounds, Location location) {
  if (x->type == type) return x;
  auto node = make(TensorOp::cast, "cast", type, {x}, location);
  node->extents = x->extents, node->attr = {rounds};
  return node;
}

LazyRef lazy_broadcast(LazyRef x, std::span<const std::int64_t> extents, Location location) {
  check_extents(extents, "broadcast", location);
  auto node = make(TensorOp::broadcast, "broadcast", x->type, {x}, location);
  node->extents = Extents(extents);
  const int more = node->extents.rank() - x->extents.rank();
  for (int axis = 0; axis < x->extents.rank(); ++axis)
    if (more < 0 || (x->extents[axis] != 1 && x->extents[axis] != node->extents[axis + more]))
      fail(location, "broadcast", "{} does not broadcast to {}", text_of(x), to_string(node->extents));
  return node;
}

LazyRef lazy_full(const Device& device, ElementType type, Number number, std::span<const std::int64_t> extents,
                  Location location) {
  check_extents(extents, "full", location);
  auto node = make(TensorOp::broadcast, "full", type, {lazy_literal(type, number, location)}, location);
  node->extents = Extents(extents), node->device = device;
  return node;
}

LazyRef lazy_reshape(LazyRef x, std::span<const std::int64_t> extents, Location location) {
  if (extents.size() > max_rank) check_extents(extents, "reshape", location);
  Extents result(extents.first(std::min<std::size_t>(extents.size(), max_rank)));
  std::int64_t known = 1;
  int open = -1;
  for (int axis = 0; axis < result.rank(); ++axis) {
    if (result[axis] == -1 && open < 0)
      open = axis;
    else
      known *= result[axis];
  }
  if (open >= 0) result[open] = known > 0 ? x->extents.size() / known : 0;
  if (std::count(extents.begin(), extents.end(), -1) > 1)
    fail(location, "reshape", "several extents of -1; one may be left to be computed");
  check_extents(result, "reshape", location);
  if (result.size() != x->extents.size() || (open >= 0 && known == 0))
    fail(location, "reshape", "{} has {} elements, and {} has not; the numbers of elements must be equal", text_of(x),
         x->extents.size(), fmt::format("[{}]", fmt::join(extents, ",")));
  if (result == x->extents) return x;
  if (x->extents.rank() == 0) return lazy_broadcast(x, result, location);
  if (x->op == TensorOp::reshape) x = x->in[0];
  auto node = make(TensorOp::reshape, "reshape", x->type, {x}, location);
  node->extents = result;
  return node;
}

LazyRef lazy_permute(LazyRef x, std::span<const int> order, Location location) {
  auto node = make(TensorOp::permute, "permute", x->type, {x}, location);
  node->extents = x->extents;
  unsigned seen = 0;
  for (int axis : order) {
    const int from = checked_axis(axis, x, "permute", location);
    if (seen >> from & 1u)
      fail(location, "permute", "axis {} is named twice; name each axis of {} once", axis, text_of(x));
    seen |= 1u << from;
    node->extents[static_cast<int>(node->attr.size())] = x->extents[from];
    node->attr.push_back(from);
  }
  if (x->op != TensorOp::permute) return node;
  // A permutation of a permutation is another one of the same tensor.
  bool is_identity = true;
  for (std::size_t i = 0; i < node->attr.size(); ++i) {
    node->attr[i] = x->attr[static_cast<std::size_t>(node->attr[i])];
    is_identity &= node->attr[i] == static_cast<std::int64_t>(i);
  }
  if (is_identity) return x->in[0];
  node->in = {x->in[0]};
  return node;
}

LazyRef lazy_slice(LazyRef x, int axis, std::int64_t start, std::int64_t extent, std::int64_t step, Location location) {
  axis = checked_axis(axis, x, "slice", location);
  const std::int64_t whole = x->extents[axis];
  if (extent == 1) step = 1;
  const auto inside = [&](std::int64_t at) { return at >= 0 && at < whole; };
  const bool is_small = extent >= 0 && extent <= whole && step != 0 && std::abs(step) <= whole;
  if (start < 0 || start > whole || (extent > 0 && !(is_small && inside(start) && inside(start + (extent - 1) * step))))
    fail(location, "slice", "{} elements from {} by {} are not all in axis {} of {}", extent, start, step, axis,
         text_of(x));
  if (start == 0 && extent == whole && step == 1) return x;
  if (extent == 0) start = 0, step = 1;
  auto node = make(TensorOp::slice, "slice", x->type, {x}, location);
  node->extents = x->extents, node->extents[axis] = extent;
  node->attr = {axis, start, step};
  return node;
}

LazyRef lazy_concat(std::vector<LazyRef> in, int axis, Location location) {
  if (in.empty()) fail(location, "concat", "no tensors; name at least one");
  axis = checked_axis(axis, in.front(), "concat", location);
  Extents extents = in.front()->extents;
  for (std::size_t i = 1; i < in.size(); ++i)
    for (int j = 0; j < extents.rank(); ++j) {
      if (j == axis)
        extents[j] += in[i]->extents[j];
      else if (extents[j] != in[i]->extents[j])
        fail(location, "concat", "{} does not continue {} along axis {}; all other extents must agree", text_of(in[i]),
             text_of(in.front()), axis);
    }
  check_extents(extents, "concat", location);
  const ElementType type = in.front()->type;
  auto node = make(TensorOp::concat, "concat", type, std::move(in), location);
  node->extents = extents, node->attr = {axis};
  return node;
}

LazyRef lazy_gather(LazyRef table, LazyRef indices, Location location) {
  auto node = make(TensorOp::gather, "gather", table->type, {table, indices}, location);
  if (table->extents.rank() == 0) fail(location, "gather", "the table is a number; it must have rows");
  const int rows = indices->extents.rank(), rank = rows + table->extents.rank() - 1;
  if (rank > max_rank)
    fail(location, "gather", "{} at indices {} has {} axes; a tensor has at most {}", text_of(table), text_of(indices),
         rank, max_rank);
  node->extents = Extents::of_rank(rank);
  for (int axis = 0; axis < rank; ++axis)
    node->extents[axis] = axis < rows ? indices->extents[axis] : table->extents[axis - rows + 1];
  return node;
}

LazyRef lazy_reduce(Op op, LazyRef x, int axis, Location location) {
  axis = checked_axis(axis, x, name(op), location);
  Extents extents = x->extents;
  extents[axis] = 1;
  if (x->extents[axis] == 0) {
    const bool is_one = op == Op::prod || op == Op::all;
    if (!is_one && op != Op::sum && op != Op::any)
      fail(location, name(op), "axis {} of {} has no elements, and so no largest or smallest one", axis, text_of(x));
    const LazyRef identity = lazy_literal(x->type, is_one ? 1 : 0, location);
    auto node = make(TensorOp::broadcast, name(op), x->type, {identity}, location);
    node->extents = extents, node->device = x->device;
    return node;
  }
  auto node = make(TensorOp::reduce, name(op), x->type, {x}, location);
  node->element_op = op, node->extents = extents, node->attr = {axis, 0};
  return node;
}

LazyRef lazy_scan(Op op, LazyRef x, int axis, ScanOptions options, Location location) {
  axis = checked_axis(axis, x, name(op), location);
  auto node = make(TensorOp::scan, name(op), x->type, {x}, location);
  node->element_op = op, node->extents = x->extents, node->attr = {axis, options.reverse, options.exclusive};
  return node;
}

LazyRef lazy_sort(TensorOp op, LazyRef x, int axis, SortOptions options, std::int64_t count, Location location) {
  const std::string_view called = op == TensorOp::sort ? "sort" : "argsort";
  axis = checked_axis(axis, x, called, location);
  if (count < 0 || count > x->extents[axis])
    fail(location, called, "the first {} of axis {} of {}; it has {}", count, axis, text_of(x), x->extents[axis]);
  auto node = make(op, called, op == TensorOp::sort ? x->type : ElementType::i32, {x}, location);
  node->extents = x->extents, node->extents[axis] = count;
  node->attr = {axis, options.descending};
  return node;
}

LazyRef lazy_argmax(LazyRef x, int axis, Location location) {
  axis = checked_axis(axis, x, "argmax", location);
  if (x->extents[axis] == 0)
    fail(location, "argmax", "axis {} of {} has no elements, and so no largest one", axis, text_of(x));
  auto node = make(TensorOp::argmax, "argmax", ElementType::i32, {x}, location);
  node->extents = x->extents, node->extents[axis] = 1;
  node->attr = {axis};
  return node;
}

namespace {

// Extents of the axes before the last two, broadcast, followed by two more.
Extents batched(const LazyRef& a, const LazyRef& b, std::int64_t rows, std::int64_t columns, std::string_view op,
                Location location) {
  const int rank = std::max(a->extents.rank(), b->extents.rank());
  Extents result = Extents::of_rank(rank);
  for (int back = 3; back <= rank; ++back) {
    const std::int64_t x = back <= a->extents.rank() ? a->extents[a->extents.rank() - back] : 1;
    const std::int64_t y = back <= b->extents.rank() ? b->extents[b->extents.rank() - back] : 1;
    if (x != y && x != 1 && y != 1)
      fail(location, op,
           "{} and {}: axes before the last two do not broadcast; make extents {} and {} equal, or one of them 1",
           text_of(a), text_of(b), x, y);
    result[rank - back] = x == 1 ? y : x;
  }
  result[rank - 2] = rows, result[rank - 1] = columns;
  return result;
}

}  // namespace

LazyRef lazy_matmul(LazyRef a, LazyRef b, const MatmulOptions& options, Location location) {
  const int ranks[] = {a->extents.rank(), b->extents.rank()};
  const std::int64_t k = a->extents[ranks[0] - 1];
  if (k != b->extents[ranks[1] - 2])
    fail(location, "matmul",
         "{} times {}: the inner extents {} and {} differ; they must be equal, transpose one if it is stored the other "
         "way",
         text_of(a), text_of(b), k, b->extents[ranks[1] - 2]);
  const Extents extents = batched(a, b, a->extents[ranks[0] - 2], b->extents[ranks[1] - 1], "matmul", location);
  // The accumulators' type, unless tensors of the operands' type are what products of them are stored as.
  const ElementType type = info(a->type).bytes == 1 ? sum_type(a->type) : a->type;
  if (k == 0) {
    auto node = make(TensorOp::broadcast, "matmul", type, {lazy_literal(type, 0, location)}, location);
    node->extents = extents, node->device = a->device;
    return node;
  }
  auto node = make(TensorOp::matmul, "matmul", type, {a, b}, location);
  const MatmulTiles tiles = options.tiles.value_or(MatmulTiles{0, 0, 0});
  if (options.tiles &&
      (tiles.m < 1 || tiles.n < 1 || tiles.k < 1 || tiles.m > 1024 || tiles.n > 1024 || tiles.k > 1024))
    fail(location, "matmul", "tiles of {}x{}x{}; each extent is from 1 to 1024", tiles.m, tiles.n, tiles.k);
  const bool is_tf32 = options.precision == MatmulPrecision::tf32 && a->type == ElementType::f32;
  node->extents = extents, node->attr = {is_tf32, tiles.m, tiles.n, tiles.k};
  return node;
}

LazyRef lazy_attention(LazyRef q, LazyRef k, LazyRef v, LazyRef mask, LazyRef bias, const AttentionOptions& options,
                       Location location) {
  const int rank = q->extents.rank();
  const auto refuse = [&](std::string_view why) {
    fail(location, "attention", "q {}, k {}, v {}: {}", text_of(q), text_of(k), text_of(v), why);
  };
  for (int axis = 0; axis < rank - 3; ++axis)
    if (q->extents[axis] != k->extents[axis] || q->extents[axis] != v->extents[axis])
      refuse("the axes before the heads must be equal");
  const std::int64_t heads = q->extents[rank - 3], key_heads = k->extents[rank - 3];
  if (key_heads != v->extents[rank - 3] || (key_heads == 0) != (heads == 0) ||
      (key_heads > 0 && heads % key_heads != 0))
    refuse("heads of k and v must be equal, and divide those of q");
  if (q->extents[rank - 1] != k->extents[rank - 1]) refuse("heads of q and k must be equally wide");
  if (k->extents[rank - 2] != v->extents[rank - 2]) refuse("there must be as many keys as values");
  if (k->extents[rank - 2] == 0 || q->extents[rank - 1] == 0) refuse("there must be a key, of a head that has a width");
  if (options.window < 0 || options.soft_cap < 0) refuse("neither the window nor the soft cap may be negative");
  const AttentionTiles tiles = options.tiles.value_or(AttentionTiles{0, 0});
  if (options.tiles && (tiles.queries < 1 || tiles.queries > 1024 || tiles.keys < 1 || tiles.keys > 1024 ||
                        tiles.blocks < 0 || tiles.blocks > 32))
    fail(location, "attention",
         "tiles of {} queries and {} keys, {} CTAs a multiprocessor; give 1 to 1024 of each, and 0 to 32",
         tiles.queries, tiles.keys, tiles.blocks);
  Extents scores = q->extents, extents = q->extents;
  scores[rank - 1] = k->extents[rank - 2], extents[rank - 1] = v->extents[rank - 1];
  std::vector<LazyRef> in{q, k, v};
  for (const LazyRef& more : {mask, bias})
    if (more) in.push_back(more->extents == scores ? more : lazy_broadcast(more, scores, location));
  auto node = make(TensorOp::attention, "attention", q->type, in, location);
  node->extents = extents;
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q->extents[rank - 1])));
  node->attr = {options.causal,
                options.window,
                std::bit_cast<std::int64_t>(scale),
                std::bit_cast<std::int64_t>(options.soft_cap),
                mask != nullptr,
                bias != nullptr,
                tiles.queries,
                tiles.keys,
                tiles.blocks};
  return node;
}

}  // namespace tessera::internal
