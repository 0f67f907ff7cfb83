// Numbers that name the things of a plan, the tables that hold those, and what they are called after in print.
#pragma once
#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tessera::internal::codegen {

/// The place of a Thing in its table; none if not said.
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

/// What a thing is called after: for printing only. "mma_17", "tile_4_transposed"; things of a second graph in the plan
/// get "g1_" in front.
struct Label {
  std::string stem;
  int number = -1;  ///< of the node, as the graph's text counts them
  std::string suffix = {};
  int graph = 0;
};

}  // namespace tessera::internal::codegen
