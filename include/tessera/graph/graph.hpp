// The tile-op graph: the meaning of a kernel, without any decision on how it will run.
//
// A node is one value (or effect), in single-assignment form. Pure nodes are hash-consed: equal nodes are one node.
// Every node belongs to a region; a loop or a branch owns one. A pure node belongs to the outermost region where all of
// its operands are available, so loop-invariant code leaves the loop without an LICM pass. Effects, including loads from
// an InOut, are listed in program order in the region where they were written. verify.cpp lists the rules that a graph
// obeys.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/graph/element.hpp"
#include "tessera/graph/hints.hpp"
#include "tessera/graph/location.hpp"
#include "tessera/graph/op.hpp"
#include "tessera/graph/shape.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

using Id = std::uint32_t;
using RegionId = std::uint32_t;
inline constexpr Id no_id = ~Id(0);

/// The elements that a scan combines for an element along its axis.
struct ScanOptions {
  bool reverse = false;    ///< the elements from it on, instead of those up to it
  bool exclusive = false;  ///< without the element itself
  bool operator==(const ScanOptions&) const = default;
};

/// An axis divided into windows: window w begins at element w * step, and has `size` elements.
struct Windows {
  int size, step;
  bool operator==(const Windows&) const = default;
};

/// The order of an atomic relative to other accesses of its CTA: acquire keeps later ones after it, release keeps
/// earlier ones before it, acq_rel does both. The scope says relative to which threads it is atomic and ordered.
enum class MemoryOrder : std::uint8_t { relaxed, acquire, release, acq_rel };
/// The threads relative to which an atomic is atomic and ordered: those of its CTA, of its device, or of all devices
/// and the host.
enum class MemoryScope : std::uint8_t { block, device, system };
constexpr bool acquires(MemoryOrder order) { return order == MemoryOrder::acquire || order == MemoryOrder::acq_rel; }
constexpr bool releases(MemoryOrder order) { return order == MemoryOrder::release || order == MemoryOrder::acq_rel; }
std::string_view name(MemoryOrder order);
std::string_view name(MemoryScope scope);

/// The order of a sort.
struct SortOptions {
  bool descending = false;  ///< largest first
  bool operator==(const SortOptions&) const = default;
};

struct Node {
  Op op{};
  ElementType type{};    ///< of the result; for a view, of the tensor's elements
  bool uniform = false;  ///< follows from extents and scalars alone: the host computes it at launch
  bool ordered = false;  ///< is in its region's list of effects
  RegionId region = 0;
  Shape shape;         ///< of the result; for an effect, of the tile it moves, which an atomic also returns; for a
                       ///< view, only the rank is meaningful
  std::vector<Id> in;  ///< operands, in the order of ops.def
  std::vector<std::int64_t> attr;
  Location location;
  Location var = {};  ///< of a carried value: the declaration of the Var

  // Accessors of attr; each is for the ops that have such an attribute in ops.def.
  int axis() const {
    const Attribute kind = info(op).attribute;
    const bool leads = kind == Attribute::scan || kind == Attribute::stepped || kind == Attribute::windows ||
                       kind == Attribute::sorted;
    return static_cast<int>(attribute(leads ? kind : Attribute::axis));
  }
  /// The step of a slice: the distance of successive elements.
  int step() const {
    check(Attribute::stepped);
    return static_cast<int>(attr.at(1));
  }
  Windows windows() const {
    check(Attribute::windows);
    return {static_cast<int>(attr.at(1)), static_cast<int>(attr.at(2))};
  }
  ScanOptions scan_options() const;
  SortOptions sort_options() const;
  std::size_t grid_axis() const { return static_cast<std::size_t>(attribute(Attribute::grid_axis)); }
  /// Axis i of the result is axis permutation()[i] of the operand.
  std::span<const std::int64_t> permutation() const {
    check(Attribute::axes);
    return attr;
  }
  /// For an extract: element i along an axis is element first + i * steps()[axis] of the tile.
  std::span<const std::int64_t> steps() const {
    check(Attribute::steps);
    return attr;
  }
  /// The value of a constant, or the padding of a read, as encoded by encode().
  std::int64_t bits() const { return attribute(Attribute::number); }
  Cell number() const;
  std::size_t parameter() const { return static_cast<std::size_t>(attribute(Attribute::parameter)); }
  /// For an argument: 0 is the loop's counter, then come its carried values. For a result: 0 is the first carried
  /// value.
  std::size_t position() const { return static_cast<std::size_t>(attribute(Attribute::position)); }
  RegionId body() const { return static_cast<RegionId>(attribute(Attribute::region)); }
  std::size_t function() const { return static_cast<std::size_t>(attribute(Attribute::function)); }
  MemoryOrder order() const { return static_cast<MemoryOrder>(attribute(Attribute::order)); }
  MemoryScope scope() const {
    check(Attribute::order);
    return static_cast<MemoryScope>(attr[1]);
  }
  std::size_t text() const { return static_cast<std::size_t>(attribute(Attribute::text)); }

 private:
  std::int64_t attribute(Attribute kind) const {
    check(kind);
    return attr[0];
  }
  void check(Attribute kind) const {
    if (info(op).attribute != kind || (attr.empty() && kind != Attribute::axes && kind != Attribute::steps))
      lacks_attribute();
  }
  [[noreturn]] void lacks_attribute() const;
};

enum class RegionKind : std::uint8_t { kernel, loop, branch, repeat };

struct Region {
  RegionKind kind{};
  RegionId parent = 0;
  std::vector<Id> arguments;  ///< a counter, which only loops use, then the carried values as an iteration sees them
  std::vector<Id> effects;    ///< in program order
  std::vector<Id> yields;     ///< the carried values for the next iteration; for a repeat, followed by whether there is
                              ///< one
  int unroll = 0;             ///< a loop's unroll factor; 0: the compiler decides
};

enum class Access : std::uint8_t { in, out, in_out, scalar };

struct Parameter {
  Access access{};
  ElementType type{};
  int rank = 0;
  bool optional = false;  ///< a launch may leave it out; its extents are then 0
  /// The number of parameters from this one to the last of its list; 0: it is in none. A list consists of tensors of one
  /// access, type and rank, then of their number, an i32; a launch that gives fewer leaves the last ones without elements.
  int list = 0;
  bool operator==(const Parameter&) const = default;
};

/// A custom elementwise function, for the host and as CUDA C++.
struct CustomFunction {
  static constexpr int most_operands = 4;
  std::string name, expression;  ///< an expression of a, b, c and d
  ElementType type{};            ///< of operands and result: one that tensors hold
  int operands = 1;
  /// out[i] = f(in[0][i], in[1][i], ...) for i < n, in host form; `out` may be one of the operands.
  void (*run)(void* out, const void* const* in, int n) = nullptr;
  bool operator==(const CustomFunction&) const = default;
};

struct CudaText;

struct Graph {
  std::string name;
  Location location;
  std::vector<Parameter> parameters;
  std::vector<Node> nodes;
  std::vector<Region> regions;  ///< region 0 is the kernel's body
  std::vector<Id> grid;         ///< extents of the grid: i32, computed from extents and scalars alone; empty: one tile
  std::vector<std::string> texts;  ///< the texts that nodes refer to
  std::vector<CustomFunction> functions;
  std::vector<Hints> hints;                   ///< in the author's order
  std::shared_ptr<const CudaText> cuda = {};  ///< a raw CUDA kernel; the graph then says how it is launched

  const Node& operator[](Id id) const { return nodes[id]; }
  /// The region of a loop, a branch or a repeat.
  const Region& body(Id id) const { return regions[nodes[id].body()]; }
  /// The number of values it carries.
  std::size_t carried(Id id) const { return nodes[id].in.size() - 1; }
};

/// The view of a whole tensor on which a view is based.
Id base_view(const Graph& graph, Id view);
/// The parameter behind a view; for a tensor of a list, the list's first one.
int view_parameter(const Graph& graph, Id view);

/// The tensors of the list that begins at a parameter; 0 for any other parameter.
int tensors_of_list(std::span<const Parameter> parameters, std::size_t first);
/// The parameters that the argument which begins at a parameter stands for: 1, or those of a list.
std::size_t argument_size(std::span<const Parameter> parameters, std::size_t first);
/// The number of the argument that a parameter belongs to, as a launch in C++ counts them, from 1.
int argument_number(std::span<const Parameter> parameters, std::size_t parameter);
/// "2", or "2[5]" for a tensor of a list, counted as the kernel does.
std::string argument_name(std::span<const Parameter> parameters, std::size_t parameter);

/// "In<f32, 2>" or "Optional<In<f32, 2>>", as the author writes it.
std::string to_string(const Parameter& parameter);
/// All of them, with a list as the author writes it: "List<In<f32, 2>, 8>".
std::string to_string(std::span<const Parameter> parameters);
/// "f32[4,8]".
std::string type_text(const Node& node);

/// A value encoded by encode(), as text.
std::string number_text(ElementType type, std::int64_t attribute);

/// The live nodes of every region in canonical order: operands first, depth first from the effects and yields in
/// program order. A node that only a branch needs is in the branch's region. The order depends only on the meaning of
/// the kernel, not on the order in which a compiler evaluated the C++ expressions.
std::vector<std::vector<Id>> schedule(const Graph& graph);

/// The graph as text, with nodes numbered in canonical order. With locations, each line ends with the author's
/// file:line.
std::string to_string(const Graph& graph, bool locations = false);

/// Checks the graph. Throws InternalError that names `after` (the pass that ran) and the first node that breaks a rule.
void verify(const Graph& graph, std::string_view after);

/// Can the host compute the node at launch, from extents and scalars alone? Its operands must be marked already.
bool is_uniform(const Graph& graph, const Node& node);

/// A value of an element type, encoded as the attribute of a constant or as padding, and back. Floating-point values of
/// 32 bits or fewer are stored as the bits of an f32, those of f64 as their own.
std::int64_t encode(ElementType type, Cell cell);
Cell decode(ElementType type, std::int64_t attribute);

}  // namespace internal
}  // namespace tessera
