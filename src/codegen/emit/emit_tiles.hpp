// Tiles of tensors, their addresses and masks (bounds checks, which predicate accesses); and sweeps over the elements
// that a thread holds, with the reads that they need.
#pragma once
#include <functional>

#include "codegen/emit/emit_values.hpp"

namespace tessera::internal::codegen {

/// Stride between successive elements along an axis of the tile, in elements of the tensor.
IndexExpression stride_of(const Writer& w, const TileAccess& access, std::size_t axis);

/// Declares start, window and pointer of a tile.
void place(Writer& w, const TileAccess& access, bool writes, bool once = false);

struct Spot {
  IndexExpression inside, offset;
};
/// Condition and offset of the element at the given coordinates of a tile. In a debug build of a kernel every access is
/// checked against the tensor's bounds.
Spot spot(Writer& w, const TileAccess& access, const std::vector<IndexExpression>& at);
/// The same for the element in a register of a sweep.
Spot spot(Writer& w, const Sweep& sweep, const TileAccess& access, const IndexExpression& index);
/// The same for given coordinates, whose row is that of a register.
Spot spot(Writer& w, const Sweep& sweep, const TileAccess& access, const std::vector<IndexExpression>& at,
          const IndexExpression& index);

std::string address(const Writer& w, const TileAccess& access, const Spot& at);
/// The value of elements outside the tensor.
std::string padding(const Writer& w, const TileAccess& access);
std::string read_vector(Writer& w, const TileAccess& access, const Spot& at, std::string_view to);
std::string read_element(Writer& w, const TileAccess& access, const Spot& at);

/// In a debug build of a kernel: checks for NaN in the stored value, or in an array of neighbors, where the condition
/// holds.
void check_number(Writer& w, ElementType type, std::string_view value, const IndexExpression& stored);
void check_numbers(Writer& w, ElementType type, std::string_view values, int count, const IndexExpression& stored);

/// Emits the text for one element.
using Each = std::function<void(const IndexExpression& index)>;
/// Runs over the elements that a thread holds, with the sweep's reads available. `begin` and `end` are emitted around
/// each group of neighbors. `out` is the value that the sweep computes, if any.
void sweep(Writer& w, const Sweep& sweep, ValueId out, const Each& each, const Each& begin = {}, const Each& end = {});

/// Offset in scratch memory of the element in a register of a sweep.
IndexExpression linear(Writer& w, const Sweep& sweep, const Strides& strides, std::int64_t base,
                       const IndexExpression& index);

/// "condition ? value : other", or just the value if the condition always holds.
std::string where(const IndexExpression& condition, std::string_view value, std::string_view other);
/// The bounds check of an access: "if (condition) ", or nothing if the condition always holds.
std::string guard(const IndexExpression& condition);

}  // namespace tessera::internal::codegen
