// Accesses to single elements of a view, by an index along each axis.
#pragma once
#include "cpu/strips.hpp"
#include "cpu/view_ref.hpp"

namespace tessera::internal::cpu {

/// Successive elements of an access, in row-major order.
struct ElementStrip {
  std::int64_t first;  ///< row-major number of the first element
  int count;           ///< at most strip_length
  char* base;          ///< element i of the strip is in memory at base + place[i], in bytes
  const std::int64_t* place;
  bool all;                ///< every element exists
  const char* operand[2];  ///< the values to write, in host form, contiguous

  /// place[i] contains this once for each axis whose index is out of range; no valid position comes near it.
  static constexpr std::int64_t nowhere = -(std::int64_t{1} << 59);
  static bool is_place(std::int64_t place) { return place > nowhere / 2; }
  /// Does element i exist?
  bool has(int i) const { return is_place(place[i]); }
};

/// Iterates over an access strip by strip. Data that is the same in all strips is checked and computed once.
class ElementWalk {
 public:
  /// `indices` are i32 tiles, one for each axis of the view, and `operands` at most two tiles of `type`; all have
  /// `shape`. `stored` is the size of an element in memory, in bytes. `plan` is updated, and must outlive the walk.
  ElementWalk(StripPlan& plan, const ViewRef& view, int stored, const Shape& shape, std::span<const Ref* const> indices,
              std::span<const Ref* const> operands, HostType type);
  /// The next strip, valid until the following call; returns false after the last one.
  bool next(ElementStrip& strip);

 private:
  struct Index {
    const char* data;
    std::uint32_t low, count;  // it exists if low <= index < low + count
    std::int64_t step;         // bytes from one element of the axis to the next
  };

  StripWalk start(StripPlan& plan, const Shape& shape, std::span<const Ref* const> indices,
                  std::span<const Ref* const> operands);
  /// Computes place = before + the offset of the index; returns whether all are in range.
  bool add(int index, const std::int64_t* before, std::int64_t* place);

  const StripPlan& plan_;
  StripWalk walk_;
  char* data_;
  HostType type_;
  int indices_, operands_;
  bool fixed_all_ = true;
  Index index_[max_rank];
  const char* written_[2];
  std::int64_t fixed_[strip_length], place_[strip_length];  // of the indices that are the same in each strip; of all
                                                            // indices
  char scratch_[strip_length * sizeof(std::int32_t)];
  char operand_[2][strip_length * 8];
};

}  // namespace tessera::internal::cpu
