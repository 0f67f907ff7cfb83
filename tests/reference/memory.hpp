// The memory of one parameter after a launch, with the effects of CTAs whose order is undefined.
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

/// A view of a tensor: the transformations of an element's coordinates. Each step maps coordinates of a view to those
/// of the view that it was made from, or reports that there is no such element.
struct View {
  using Coordinates = std::vector<std::int64_t>;
  using Step = std::function<bool(Coordinates&)>;
  std::size_t parameter = 0;
  std::vector<Step> steps;            ///< from the tensor's upward
  std::vector<std::int64_t> extents;  ///< of its own axes
  bool known = true;                  ///< else it may refer to any part
};

/// An atomic's operation on an element.
struct Change {
  Op op{};  ///< the one at a tile index
  Element value, expected = {};
  bool alone = true;  ///< no other element of the tile has this index
};

/// Elements are numbered row-major. CTAs run one after another, but have no defined order: an element that one of them
/// writes or changes and another accesses is undefined, except that atomics of one commutative op have a defined
/// result; the old values that they return are unknown then. A conflict may be detected only after a CTA has read the
/// element, so the launch runs again with that knowledge, until nothing new is found.
class Memory {
 public:
  Memory(const Parameter& parameter, const Argument& argument);

  const std::vector<std::int64_t>& extents() const { return extents_; }
  /// As before the launch, except for elements known to be undefined. False if the last run found nothing new.
  bool restart();

  Element load(std::int64_t element, std::int64_t block);
  /// If stores of one `effect` collide, one of the values remains.
  void store(std::int64_t element, const Element& value, std::int64_t block, std::int64_t effect);
  /// The element's old value.
  Element change(std::int64_t element, const Change& change, std::int64_t block, std::int64_t effect);
  /// Any element may have been written.
  void spoil();

  std::vector<Element> values() const;

 private:
  static constexpr std::int64_t nobody = -1, several = -2;
  struct Cell {
    Element value;
    std::int64_t reader = nobody, writer = nobody, changer = nobody;  // CTAs
    std::int64_t effect = -1;                                         // the last one to store here
    Op by{};                                                          // the last atomic
    bool mixed = false;                                               // there were several
  };
  static bool other(std::int64_t who, std::int64_t block) { return who != nobody && who != block; }
  /// The cell of an element that the CTA reads, writes or changes.
  Cell& touched(std::int64_t element, std::int64_t block, std::int64_t Cell::*as);

  Access access_;
  ElementType type_;
  std::vector<std::int64_t> extents_;
  std::vector<Element> initial_;
  std::vector<Cell> cells_;                     // of written elements
  std::unordered_map<std::int64_t, Sum> sums_;  // of elements that were accumulated into since they were stored
  std::vector<bool> undefined_, contended_;     // contended: several CTAs change it
  bool grew_ = true;
};

}  // namespace tessera::internal::reference
