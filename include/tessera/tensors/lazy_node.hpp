// Nodes of a tensor program: an op on whole tensors, not computed yet. Lazy<T, R> is the typed handle of one.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/dsl/trace.hpp"
#include "tessera/jit/any_tensor.hpp"
#include "tessera/jit/choose.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The ops on tensors. Operands and attributes of each are listed at the functions below that make it.
enum class TensorOp : std::uint8_t {
  input,        ///< a tensor in memory
  scalar,       ///< a number that may differ from run to run
  literal,      ///< a number of the program's text
  iota,         ///< each element's position along an axis
  elementwise,  ///< a unary, binary or ternary op of ops.def
  map,          ///< an elementwise device function, written in the language of kernels
  select,
  cast,
  broadcast,
  reshape,
  permute,
  slice,
  concat,
  gather,
  reduce,
  scan,
  sort,
  argsort,
  argmax,
  matmul,
  attention,
};

/// The extents of a tensor, of at most max_rank axes.
class Extents {
 public:
  Extents() = default;
  explicit Extents(std::span<const std::int64_t> extents);
  static Extents of_rank(int rank);
  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extent_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return extent_[static_cast<std::size_t>(axis)]; }
  std::int64_t size() const;
  operator std::span<const std::int64_t>() const { return {extent_.data(), static_cast<std::size_t>(rank_)}; }
  bool operator==(const Extents&) const = default;

 private:
  std::array<std::int64_t, max_rank> extent_{};
  int rank_ = 0;
};
/// "[4,8]".
std::string to_string(const Extents& extents);

/// The type that ops on elements of a type compute in: f32 for floating-point types of 16 bits and fewer.
constexpr ElementType computing_type(ElementType type) {
  return info(type).kind == ElementKind::real && !info(type).computes ? ElementType::f32 : type;
}

/// A device function as a node of a tensor program calls it: it appends its ops to the kernel that is being traced.
using MapFunction = Handle (*)(Trace& trace, const Handle* operands, Location location);

struct LazyNode;
using LazyRef = std::shared_ptr<const LazyNode>;

struct LazyNode {
  TensorOp op{};
  Op element_op{};  ///< of elementwise, reduce and scan
  ElementType type{};
  Extents extents;
  std::vector<LazyRef> in;
  std::vector<std::int64_t> attr;
  MapFunction function = nullptr;  ///< of map
  detail::AnyTensor tensor;        ///< of input
  Cell number{};                   ///< of scalar
  std::optional<Device> device;    ///< of the inputs; none, if there is none among the operands
  std::string_view name;           ///< what the author called: a string literal
  Location location;

  LazyNode() = default;
  LazyNode(const LazyNode&) = delete;
  LazyNode& operator=(const LazyNode&) = delete;
  ~LazyNode();  // not recursive: chains may be long
};

// Each of these makes one node, and infers its type and extents. Errors name the op, both extents, the place and the
// places of the operands.

LazyRef lazy_input(const detail::AnyTensor& tensor, Location location);
/// `type` is one that computes, or pred.
LazyRef lazy_scalar(ElementType type, Cell number, Location location);
/// A number of the program: a literal of the type, rounded as in kernels.
LazyRef lazy_literal(ElementType type, Number number, Location location);
/// The position along `axis`, as i32. attr: axis.
LazyRef lazy_iota(const Device& device, std::span<const std::int64_t> extents, int axis, Location location);
LazyRef lazy_elementwise(Op op, std::vector<LazyRef> in, Location location);
/// attr: none. Operands and result have one type; extents broadcast.
LazyRef lazy_map(MapFunction function, std::vector<LazyRef> in, std::string_view name, Location location);
LazyRef lazy_select(LazyRef condition, LazyRef a, LazyRef b, Location location);
/// `rounds`: to a narrower type it rounds here; else where the value is stored. attr: rounds.
LazyRef lazy_cast(ElementType type, LazyRef x, bool rounds, Location location);
LazyRef lazy_broadcast(LazyRef x, std::span<const std::int64_t> extents, Location location);
/// A number in each element.
LazyRef lazy_full(const Device& device, ElementType type, Number number, std::span<const std::int64_t> extents,
                  Location location);
/// One extent may be -1.
LazyRef lazy_reshape(LazyRef x, std::span<const std::int64_t> extents, Location location);
/// Axis i of the result is axis order[i]. attr: order.
LazyRef lazy_permute(LazyRef x, std::span<const int> order, Location location);
/// Elements start, start + step, ... along the axis, `extent` of them. attr: axis, start, step.
LazyRef lazy_slice(LazyRef x, int axis, std::int64_t start, std::int64_t extent, std::int64_t step, Location location);
/// attr: axis.
LazyRef lazy_concat(std::vector<LazyRef> in, int axis, Location location);
/// Rows of a table: [n, ...] at indices [...] gives [indices..., ...]; 0 where an index is out of range.
LazyRef lazy_gather(LazyRef table, LazyRef indices, Location location);
/// The axis keeps its place, with extent 1. attr: axis, 0. (Programs also have partial reductions, of `chunk` elements
/// each, instead of 0.)
LazyRef lazy_reduce(Op op, LazyRef x, int axis, Location location);
/// attr: axis, reverse, exclusive.
LazyRef lazy_scan(Op op, LazyRef x, int axis, ScanOptions options, Location location);
/// The first `count` elements along the axis in order, or their indices (i32). attr: axis, descending.
LazyRef lazy_sort(TensorOp op, LazyRef x, int axis, SortOptions options, std::int64_t count, Location location);
/// attr: axis.
LazyRef lazy_argmax(LazyRef x, int axis, Location location);
/// How f32 operands of a product are used.
enum class MatmulPrecision : std::uint8_t { exact, tf32 };
/// The choices of matmul().
struct MatmulOptions {
  MatmulPrecision precision = MatmulPrecision::exact;
  std::optional<MatmulTiles> tiles = {};  ///< instead of those of choose()
};
/// [..., m, k] times [..., k, n]; the axes before them broadcast. attr: 1 if f32 operands are rounded to tf32; the
/// tiles, or 0.
LazyRef lazy_matmul(LazyRef a, LazyRef b, const MatmulOptions& options, Location location);

/// The choices of attention().
struct AttentionOptions {
  bool causal = false;                       ///< query i sees keys up to i + keys - queries
  std::int64_t window = 0;                   ///< a query sees the last `window` keys up to its own; 0: all
  std::optional<double> scale = {};          ///< of the scores; by default 1 / sqrt(width of a head)
  double soft_cap = 0;                       ///< c: scores become c tanh(score / c); 0: they do not
  std::optional<AttentionTiles> tiles = {};  ///< instead of those that the shape of q, k and v suggests
};
/// q [..., heads, queries, d], k [..., key heads, keys, d], v [..., key heads, keys, e] -> [..., heads, queries, e].
/// `mask` (pred; may be null) and `bias` (added to the scores; may be null) broadcast to [..., heads, queries, keys].
/// attr: causal, window, scale and soft cap (their bits), whether there is a mask, and a bias;
/// the tiles, or 0.
LazyRef lazy_attention(LazyRef q, LazyRef k, LazyRef v, LazyRef mask, LazyRef bias, const AttentionOptions& options,
                       Location location);

/// Gives a node the name that an author knows it by; names given outside count.
class NamedOps {
 public:
  explicit NamedOps(std::string_view name);
  ~NamedOps();
  NamedOps(const NamedOps&) = delete;
  NamedOps& operator=(const NamedOps&) = delete;

 private:
  bool outermost_;
};

}  // namespace gnu::visibility("default")]]internal
}  // namespace tessera
