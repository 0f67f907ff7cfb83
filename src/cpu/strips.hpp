// Iterates over values of one shape, strip by strip, with any strides.
#pragma once
#include <utility>
#include <vector>

#include "cpu/lines.hpp"
#include "cpu/strides.hpp"
#include "cpu/strip.hpp"

namespace tessera::internal::cpu {

/// How a shape is divided into strips, and the part of each value in one strip. A strip holds whole inner axes and
/// perhaps a part of one more, so that strips are long where rows are short.
struct StripPlan {
  struct Source {
    Strides stride{};                        // along the remaining axes
    bool inside = false;                     // does it vary within a strip?
    bool outside = false;                    // does it vary from one strip to the next?
    bool dense = true;                       // are its elements of a strip contiguous?
    int rank = 0;                            // of a strip's elements, with as few axes as possible, ...
    Strides block_extent{}, block_stride{};  // ... and their extents and strides
  };

  /// Makes the plan for a shape and `count` values; value(i) returns the strides and the shape of a value, which is
  /// broadcast to `shape`. A plan is reused for the same shapes, and remade if strides differ.
  template <class Value>
  void update(const Shape& shape, std::size_t count, const Value& value) {
    bool same = made && strides_.size() == count;
    for (std::size_t i = 0; same && i < count; ++i) same = is_same(value(i).first, strides_[i]);
    if (same) return;
    std::vector<Strides> stretched_strides(count);
    strides_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [stride, from] = value(i);
      strides_[i] = stride;
      stretched_strides[i] = stretched(stride, from, shape);
    }
    make(shape, std::move(stretched_strides));
  }

  bool made = false;
  std::vector<Source> sources;
  Strides extent{};        // of the remaining axes
  std::int64_t inner = 1;  // elements of the axes that are whole in each strip
  std::int64_t piece = 1;  // how much a strip has of the axis before them
  int cut = -1;            // that axis, or -1 if one strip is all

 private:
  static bool is_same(const Strides& a, const Strides& b) {
    std::int64_t difference = 0;
    for (std::size_t axis = 0; axis < a.size(); ++axis) difference |= a[axis] ^ b[axis];
    return difference == 0;
  }
  void make(const Shape& shape, std::vector<Strides> strides);
  Source source(const Strides& stride, int rank) const;
  std::vector<Strides> strides_;  // the values' own strides
};

/// A strip of a plan.
class StripWalk {
 public:
  explicit StripWalk(const StripPlan& plan) : plan_(plan) { begin_strip(); }
  void next();
  bool done() const { return done_; }
  std::int64_t first() const { return first_; }  ///< row-major number of its first element
  int count() const { return count_; }
  /// The first element of a source in the strip, for a value at `data`.
  const char* begin(const StripPlan::Source& source, const char* data, int bytes) const {
    for (int axis = 0; axis <= plan_.cut; ++axis) data += position_[at(axis)] * source.stride[at(axis)] * bytes;
    return data;
  }
  /// The elements, contiguous; copied to `scratch` if they are not.
  const char* elements(const StripPlan::Source& source, const char* data, HostType type, char* scratch) const;

 private:
  void begin_strip();
  const StripPlan& plan_;
  Strides position_{};
  std::int64_t first_ = 0, here_ = 1;
  int count_ = 0;
  bool done_ = false;
};

}  // namespace tessera::internal::cpu
