// The memory of one parameter as a launch leaves it, with what blocks do to it that no order is defined for.
#pragma once
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "reference/element.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::reference {

std::vector<std::int64_t> extents_of(const Parameter& parameter, const Argument& argument);

/// The elements of a tensor argument, row-major.
std::vector<Real> read(const Parameter& parameter, const Argument& argument);

/// A view of a tensor: what is done to an element's coordinates on its way there. Each step takes those of a view to
/// those of what it is a view of, or says that there is no such element.
struct View {
  using Coordinates = std::vector<std::int64_t>;
  using Step = std::function<bool(Coordinates&)>;
  std::size_t parameter = 0;
  std::vector<Step> steps;            ///< from the tensor's upwards
  std::vector<std::int64_t> extents;  ///< of its own axes
  bool known = true;                  ///< else it may look at any part
};

/// What an atomic does to an element.
struct Change {
  Op op{};  ///< the one at a tile position
  Element value, expected = {};
  bool alone = true;  ///< no other element of the tile goes there
};

/// Elements are numbered row-major. Blocks run one after another, though they have no order: what one writes or changes
/// and another touches is undefined, but that atomics of one op that may change places come to the same; what each of
/// them finds is open then. That may be found after a block has read it, so the launch runs again, knowing it, until it
/// finds no more.
class Memory {
 public:
  Memory(const Parameter& parameter, const Argument& argument);

  const std::vector<std::int64_t>& extents() const { return extents_; }
  /// As before the launch but for what is known to be undefined. False if the last run found nothing new.
  bool restart();

  Element load(std::int64_t element, std::int64_t block);
  /// Stores of one `effect` to one element leave one of the values.
  void store(std::int64_t element, const Element& value, std::int64_t block, std::int64_t effect);
  /// The element as it was.
  Element change(std::int64_t element, const Change& change, std::int64_t block, std::int64_t effect);
  /// Any element may have been written.
  void spoil();

  std::vector<Element> values() const;

 private:
  static constexpr std::int64_t nobody = -1, several = -2;
  struct Cell {
    Element value;
    std::int64_t reader = nobody, writer = nobody, changer = nobody;  // blocks
    std::int64_t effect = -1;                                         // the last to store here
    Op by{};                                                          // the last atomic
    bool mixed = false;                                               // there were several
  };
  static bool other(std::int64_t who, std::int64_t block) { return who != nobody && who != block; }
  /// The cell of an element that the block reads, writes or changes.
  Cell& touched(std::int64_t element, std::int64_t block, std::int64_t Cell::*as);

  Access access_;
  ElementType type_;
  std::vector<std::int64_t> extents_;
  std::vector<Element> initial_;
  std::vector<Cell> cells_;                     // of what is written
  std::unordered_map<std::int64_t, Sum> sums_;  // of elements added to since they were stored
  std::vector<bool> undefined_, contended_;     // contended: several blocks change it
  bool grew_ = true;
};

}  // namespace tessera::internal::reference
