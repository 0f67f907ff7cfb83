// Analyses of a graph that schedules, lowering and passes share.
#pragma once
#include <algorithm>
#include <functional>
#include <map>

#include "codegen/plan/plan.hpp"
#include "graph/merged_axes.hpp"

namespace tessera::internal::lowering {

using namespace tessera::internal::codegen;
using tessera::internal::codegen::Operand;  // not the DSL's concept of that name

/// Where an operand of a matmul comes from, through casts, permutations and merged axes.
struct Source {
  Id load = no_id;  ///< no_id: the operand is computed
  Axes axes[2];     ///< those of the load that are axis 0 and 1 of the operand
  std::vector<ElementType> casts;
};

/// How a load, gather, store, scatter or atomic reaches its tensor: a TileAccess in terms of the graph's nodes.
struct GraphAccess {
  struct Slice {
    Id start, extent;
    int step = 1;
  };
  struct Axis {
    int tensor_axis = 0;
    Id index = no_id;  ///< in tiles; no_id: the gathered axis, or an access by elements
    int extent = 1;
    std::vector<Slice> slices;  ///< innermost first
    bool positive = false;      ///< the tile cannot start below 0
    Viewed viewed = {};
    /// Is it an axis of the tensor, or a part of one whose elements are consecutive?
    bool is_tensors() const {
      return viewed.is_tensors() && std::ranges::all_of(slices, [](const Slice& slice) { return slice.step == 1; });
    }
  };
  int parameter = 0;  ///< of a list: the first
  Id member = no_id;  ///< the number of the tensor in its list; no_id: it is in none
  std::vector<Axis> axes;
  int fast = -1;   ///< the tile's axis along which elements are neighbors in memory, or -1
  int vector = 1;  ///< elements along `fast` that one access may move
  std::int64_t padding = 0;
};

/// Analyses of a graph that lowering needs again and again.
class GraphAnalysis {
 public:
  GraphAnalysis(const Graph& graph, const Variant& variant, const Target& target);

  const Graph& graph;
  const Variant& variant;
  const Target target;
  const Hints hints;                    ///< those that apply to the target
  std::vector<std::vector<Id>> order;   ///< live nodes by region
  std::vector<int> number;              ///< their order in the graph's text
  std::vector<std::vector<Id>> users;   ///< nodes that name it; a loop names initial values and yields
  std::vector<Id> owner;                ///< region -> its loop, branch or repeat
  std::vector<RegionId> storage_class;  ///< node -> the region that computes it

  const Node& operator[](Id id) const { return graph[id]; }
  bool live(Id id) const { return number[id] >= 0; }
  bool in_region(Id id, RegionId region) const;  ///< in the region or in one inside it
  bool is_counter(Id id) const { return graph[id].op == Op::argument && graph[id].position() == 0; }
  bool in_loop(Id id) const { return graph.regions[graph[id].region].kind == RegionKind::loop; }
  /// By node: is it a number that follows from the launch and from the values that are `given` to nodes of a region?
  std::vector<char> uniform_values(const std::function<bool(Id, RegionId)>& given) const;
  GraphAccess access(Id id) const;
  /// The index along axis `axis` of an access; no_id for the gathered axis and for accesses by elements.
  Id index_of(Id id, int axis) const;
  /// Elements that one access may move along the tile's axis; 1 if they are not neighbors.
  int vector_of(Id id, const GraphAccess& access) const;
};

/// Does the graph have a matmul; does one multiply fp8?
bool multiplies(const Graph& graph);
bool multiplies_fp8(const Graph& graph);

/// operand_source.cpp: the operand's axes that axis `axis` of the result of a cast, permute or reshape that only merges
/// axes comes from.
Axes axes_below(const Graph& graph, const Node& node, int axis);
/// Are neighbors along merged axes of a tile neighbors in memory, but for those at the end of the innermost axis?
bool is_along(const GraphAccess& access, const Axes& axes);
/// Follows an operand of a matmul to its load. No load if anything but casts and renamed or merged axes is in between,
/// or if the load is ordered or padded with another value than 0.
Source find_source(const Graph& graph, Id operand);
/// Does find_source() continue from this node to its operand?
bool is_seen_through(const Graph& graph, const Node& node);
/// The node at which find_source() stops.
Id end_of_source(const Graph& graph, Id operand);
/// Describes the node at which find_source() stops where it finds no load, as "comes from 'mul'".
std::string why_no_source(const Graph& graph, Id operand);

/// transposed_access.cpp: finds an access along another axis than `fast`, to a value or to values computed from it
/// element by element. Returns that axis, and the number of elements that an access moves along it.
Run transposed_access(const GraphAnalysis& analysis, Id value, int fast);

}  // namespace tessera::internal::lowering
