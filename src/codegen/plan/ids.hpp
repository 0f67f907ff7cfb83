// Ids of the entries of a plan, the tables that hold these, and labels for printing.
#pragma once
#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tessera::internal::codegen {

/// The index of a Thing in its table; none by default.
template <class Thing>
struct IdOf {
  int index = -1;
  constexpr explicit operator bool() const { return index >= 0; }
  friend constexpr auto operator<=>(IdOf, IdOf) = default;
};

template <class Thing>
class Table {
 public:
  using Id = IdOf<Thing>;
  Id add(Thing thing) {
    things_.push_back(std::move(thing));
    return Id{size() - 1};
  }
  Thing& operator[](Id id) { return things_.at(static_cast<std::size_t>(id.index)); }
  const Thing& operator[](Id id) const { return things_.at(static_cast<std::size_t>(id.index)); }
  int size() const { return static_cast<int>(things_.size()); }
  bool has(Id id) const { return id.index >= 0 && id.index < size(); }
  auto begin() { return things_.begin(); }
  auto end() { return things_.end(); }
  auto begin() const { return things_.begin(); }
  auto end() const { return things_.end(); }

 private:
  std::vector<Thing> things_;
};

/// The parts of a name, for printing only: "mma_17", "tile_4_transposed". Entries from a second graph in the plan get
/// the prefix "g1_".
struct Label {
  std::string stem;
  int number = -1;  ///< of the node in the graph's text
  std::string suffix = {};
  int graph = 0;
};

}  // namespace tessera::internal::codegen
