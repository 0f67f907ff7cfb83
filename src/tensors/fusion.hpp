// Which values of a tensor program are stored, and which kernel computes each of the others.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tensors/tensor_program.hpp"

namespace tessera::internal {

/// How an axis of a value is indexed by the tiles of a kernel: element i of a tile of `extent` elements in all is
/// element start + i * step of the value.
struct AxisUse {
  static constexpr int whole = -1;  ///< each tile has all of it
  static constexpr int inner = -2;  ///< by the kernel's loop: the inner axis of a product, the keys of attention
  int axis = whole;                 ///< of the kernel's domain, or one of these
  std::int64_t extent = 1, start = 0, step = 1;
  std::int64_t group = 1;  ///< tiles of one element: `group` indices along the domain's axis are one here
  int from = -1;           ///< of a whole axis: the axis of the domain that it is a line along; -1: none
  std::int64_t chunk = 0;  ///< if not 0: the elements of a tile, for a tile of one along the domain's axis

  static AxisUse all_of(std::int64_t extent, int from = -1);
  /// The axis of the domain along which it lies; negative: none.
  int line() const { return axis == whole ? from : axis; }
  bool is_plain() const { return start == 0 && step == 1 && group == 1 && chunk == 0; }
  bool operator==(const AxisUse&) const = default;
};
/// The same for all axes of a value.
using Use = std::vector<AxisUse>;

/// The use of a value that has the extents of the domain.
Use whole_domain(const Extents& extents);
/// Permutations and slices: the same elements, otherwise indexed.
bool is_view(TensorOp op);
/// Does a reshape only add or remove axes of one element?
bool moves_units(const TensorProgram& program, int reshape);
/// Is a value what its operand is, otherwise indexed: a view, or such a reshape?
bool indexes(const TensorProgram& program, int value);
/// Functions of dozens of instructions for each element.
bool is_costly(const Value& value);

/// A value that a kernel writes: into the storage of `stored`, which is the value itself, a reshaped one, or a
/// concatenation of which it is the part that begins at `part`.
struct Result {
  int value, stored;
  std::int64_t part = -1;
};

struct FusedKernel {
  std::vector<Result> results;
  Extents domain;                            ///< which the grid covers in tiles
  unsigned whole = 0;                        ///< axes of the domain that a tile has all of, as a mask
  unsigned single = 0;                       ///< axes of which a tile has one element
  unsigned fixed = 0;                        ///< axes along which the position of an element is computed
  std::array<std::int64_t, max_rank> row{};  ///< the elements along each axis that is whole
  bool loops = false;                        ///< rows are too long for a tile: they are read in chunks, once for each
                                             ///< reduction that depends on another one
  std::int64_t hidden_row = 1;               ///< the most elements along whole axes that are not the domain's
  int costly = 0;                            ///< functions that each tile computes for elements of other tiles, too
  std::size_t uses = 0;                      ///< of values
  std::vector<int> anchors;                  ///< products of one shape, or an attention: the kernel's loop
  Use anchor_use;                            ///< of each anchor
  std::vector<int> members;                  ///< the values that it computes, results and anchors included
  std::vector<std::pair<int, Use>> reads;    ///< stored values, as they are used
  std::vector<Use> made;                     ///< of values that are neither read nor computed from others
};

enum class Storage : std::uint8_t {
  none,    ///< computed in the kernels that use it
  input,   ///< given
  number,  ///< a scalar, or in the text
  buffer,  ///< memory of its own
  view,    ///< the memory of its operand, otherwise indexed
  part,    ///< in the memory of a concatenation or of a reshaped value
};

struct Fusion {
  std::vector<Storage> storage;       ///< by value
  std::vector<int> whole_of;          ///< of a part: the concatenation, or the reshaped value
  std::vector<std::int64_t> part_at;  ///< of a part: where it begins there
  std::vector<std::string> reason;    ///< why it is stored
  std::vector<FusedKernel> kernels;   ///< in an order in which they can run

  /// Is it in memory when kernels run that use it?
  bool is_stored(int value) const {
    const Storage at = storage[static_cast<std::size_t>(value)];
    return at != Storage::none && at != Storage::number;
  }
};

struct FusionLimits {
  bool fuse = true;                       ///< false: a kernel for each op
  std::int64_t repeated = 1 << 16;        ///< elements that each tile of a product may compute again
  std::int64_t folded = 256;              ///< elements of a row that each tile of a product may reduce again
  std::int64_t row = 1 << 14;             ///< elements along whole axes, in a tile
  std::size_t members = 128, uses = 512;  ///< of a kernel: values, and ways in which they are used
  std::size_t results = 12;               ///< of a kernel
  std::size_t ways = 4;                   ///< in which one value is used, in all kernels, if it is not stored
  std::int64_t launch = 1 << 17;          ///< elements that a kernel computes in less time than a launch takes
  int costly = 2;                         ///< of a kernel: costly functions that each tile computes again
};

Fusion fuse(const TensorProgram& program, const FusionLimits& limits);

/// The value that a chain of permutations, slices and reshapes takes from memory, or -1 if the chain ends at a computed
/// value.
int stored_source(const TensorProgram& program, const Fusion& fusion, int value);
/// Does the kernel take the value from memory? Else it computes it.
bool is_read(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel, int value);
/// The use with axes of which tiles have all as such.
Use normalized(const FusedKernel& kernel, Use use);
/// How an operand is used by a value that is used like this. `position` is the operand's number.
Use operand_use(const TensorProgram& program, int value, const Use& use, std::size_t position);

}  // namespace tessera::internal
