// Tiles of tensors: where they lie; and sweeps over the elements a thread holds, with what they read on the way.
#pragma once
#include <functional>

#include "codegen/emit/emit_values.hpp"

namespace tessera::internal::codegen {

/// Between elements of a tensor that follow one another along an axis of the tile.
IndexExpression stride_of(const Writer& w, const TileAccess& access, std::size_t axis);

/// Declares start, window and pointer of a tile.
void place(Writer& w, const TileAccess& access, bool writes);

struct Spot {
  IndexExpression inside, offset;
};
/// Condition and offset of the element at the given coordinates of a tile. In a debug build of a kernel every access is
/// checked against the tensor's reach.
Spot spot(Writer& w, const TileAccess& access, const std::vector<IndexExpression>& at);
/// Of the element that belongs to a register of a sweep.
Spot spot(Writer& w, const Sweep& sweep, const TileAccess& access, const IndexExpression& index);

std::string address(const TileAccess& access, const Spot& at);
/// What stands for the elements outside.
std::string padding(const Writer& w, const TileAccess& access);
std::string read_vector(Writer& w, const TileAccess& access, const Spot& at, std::string_view to);
std::string read_element(Writer& w, const TileAccess& access, const Spot& at);

/// In a debug build of a kernel: looks for NaN in what is stored where the condition holds, one element or an array of
/// neighbours.
void check_number(Writer& w, ElementType type, std::string_view value, const IndexExpression& stored);
void check_numbers(Writer& w, ElementType type, std::string_view values, int count, const IndexExpression& stored);

/// Spells what happens to one element.
using Each = std::function<void(const IndexExpression& index)>;
/// Runs over the elements a thread holds, with the sweep's reads at hand; `begin` and `end` stand around a group of
/// neighbours. What the sweep makes is `out`, if anything.
void sweep(Writer& w, const Sweep& sweep, ValueId out, const Each& each, const Each& begin = {}, const Each& end = {});

/// Where the element that belongs to a register of a sweep lies in scratch memory.
IndexExpression linear(Writer& w, const Sweep& sweep, const Strides& strides, std::int64_t base,
                       const IndexExpression& index);

/// "condition ? value : other", or the value.
std::string where(const IndexExpression& condition, std::string_view value, std::string_view other);
/// "if (condition) ", or nothing.
std::string guard(const IndexExpression& condition);

}  // namespace tessera::internal::codegen
