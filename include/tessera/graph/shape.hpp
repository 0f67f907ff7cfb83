// The extents of a tile.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

inline constexpr int max_rank = 6;

/// Extents of a tile, outermost first; rank 0 is a single value. For a view of a tensor only the rank is meaningful.
class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  constexpr explicit Shape(std::span<const int> extents) : rank_(static_cast<int>(extents.size())) {
    std::copy(extents.begin(), extents.end(), extent_.begin());
  }
  static constexpr Shape of_rank(int rank) {
    Shape shape;
    shape.rank_ = rank;
    return shape;
  }

  constexpr int rank() const { return rank_; }
  constexpr int operator[](int axis) const { return extent_[static_cast<std::size_t>(axis)]; }
  constexpr int& operator[](int axis) { return extent_[static_cast<std::size_t>(axis)]; }
  constexpr const int* begin() const { return extent_.data(); }
  constexpr const int* end() const { return extent_.data() + rank_; }
  constexpr std::int64_t size() const {
    std::int64_t size = 1;
    for (int extent : *this) size *= extent;
    return size;
  }
  constexpr bool operator==(const Shape&) const = default;

 private:
  std::array<int, max_rank> extent_{};
  int rank_ = 0;
};

/// "[4,8]"; "[]" for rank 0.
std::string to_string(const Shape& shape);

}  // namespace internal
}  // namespace tessera
