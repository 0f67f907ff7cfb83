// The facts about a graph that schedules, lowering and passes share.
#pragma once
#include <algorithm>
#include <functional>
#include <map>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::lowering {

using namespace tessera::internal::codegen;

/// Where an operand of a product comes from, seen through casts, transposition and axes of extent 1.
struct Source {
  Id load = no_id;         ///< no_id: it is computed
  int axis[2] = {-1, -1};  ///< the load's axis behind axis 0 and 1 of the operand; -1: an extent of 1
  std::vector<ElementType> casts;
};

/// How a load, gather, store, scatter or atomic reaches its tensor: a TileAccess of the graph's nodes.
struct GraphAccess {
  struct Slice {
    Id start, extent;
    int step = 1;
  };
  struct Axis {
    int tensor_axis = 0;
    Id index = no_id;  ///< in tiles; no_id: the gathered axis, or by elements
    int extent = 1;
    std::vector<Slice> slices;  ///< innermost first
    bool positive = false;      ///< the tile cannot start below 0
    Viewed viewed = {};
    /// Is it an axis of the tensor, or a part of one whose elements follow one another?
    bool is_tensors() const {
      return viewed.is_tensors() && std::ranges::all_of(slices, [](const Slice& slice) { return slice.step == 1; });
    }
  };
  int parameter = 0;
  std::vector<Axis> axes;
  int fast = -1;   ///< the tile's axis along which elements are neighbours in memory, or -1
  int vector = 1;  ///< elements along it that one access may move
  std::int64_t padding = 0;
};

/// The facts about a graph that lowering asks for again and again.
class GraphAnalysis {
 public:
  GraphAnalysis(const Graph& graph, const Variant& variant, const Target& target);

  const Graph& graph;
  const Variant& variant;
  const Target target;
  const Hints hints;                    ///< that hold for the target
  std::vector<std::vector<Id>> order;   ///< live nodes by region
  std::vector<int> number;              ///< as the graph's text counts them
  std::vector<std::vector<Id>> users;   ///< nodes that name it; a loop names initial values and yields
  std::vector<Id> owner;                ///< region -> its loop, branch or repeat
  std::vector<RegionId> storage_class;  ///< node -> the region it is computed in

  const Node& operator[](Id id) const { return graph[id]; }
  bool live(Id id) const { return number[id] >= 0; }
  bool in_region(Id id, RegionId region) const;  ///< in it or in one inside it
  bool is_counter(Id id) const { return graph[id].op == Op::argument && graph[id].position() == 0; }
  bool in_loop(Id id) const { return graph.regions[graph[id].region].kind == RegionKind::loop; }
  /// By node: a number that follows from the launch, and from what is `given` to nodes of a region.
  std::vector<char> uniform_values(const std::function<bool(Id, RegionId)>& given) const;
  GraphAccess access(Id id) const;
  /// The index of axis `axis` of an access; no_id for the gathered axis, and by elements.
  Id index_of(Id id, int axis) const;
  /// Elements that one access may move along the tile's axis, 1 if they are not neighbours.
  int vector_of(Id id, const GraphAccess& access) const;
};

/// May a reshape be done by renaming axes? Only axes of extent 1 come or go.
bool only_unit_axes(const Shape& from, const Shape& to);

/// operand_source.cpp: the axis of the operand of a cast, permute or reshape (of axes of extent 1) that `axis` of the
/// result is; -1: none, it has an extent of 1.
int axis_below(const Graph& graph, const Node& node, int axis);
/// Follows an operand of a product to the load behind it; no load if there is more than casts and renamed axes in
/// between, or if it is ordered or padded with another value than 0.
Source find_source(const Graph& graph, Id operand);
/// Does it go on from here to the node's operand?
bool is_seen_through(const Graph& graph, const Node& node);
/// Where it stops.
Id end_of_source(const Graph& graph, Id operand);
/// What it stopped at where it finds no load, as "comes from 'mul'".
std::string why_no_source(const Graph& graph, Id operand);

/// transposed_access.cpp: where a value, or what becomes of its elements one by one, is read or written along another
/// axis than `fast`: that axis, and as many elements as an access moves there.
Run transposed_access(const GraphAnalysis& analysis, Id value, int fast);

}  // namespace tessera::internal::lowering
