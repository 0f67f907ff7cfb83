// Writes a fused kernel in the language of kernels, from its values and the tiles of its domain.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "jit/launch/matmul_tiles.hpp"
#include "tensors/placement.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal {

/// The argument of a kernel's parameter: memory of a value, or a number.
struct Passed {
  Placement place;
  int scalar = -1;  ///< if not -1: the value whose number it is
};

struct WrittenKernel {
  Graph graph;
  std::vector<Passed> arguments;
};

/// The tiles of a kernel's domain. Some axes are merged into the next one where memory allows it: they then have one
/// element, and the next one has those of both.
struct Tiling {
  Extents domain;  ///< after merging
  unsigned merged = 0;
  std::array<int, max_rank> tile{};
  int inner = 1;  ///< elements of an iteration of the kernel's loop
  int occupancy = 0, warps = 0;
  std::int64_t row = 0;  ///< if not 0: elements of rows, which are read in chunks of `inner`
};
Tiling choose_tiling(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel,
                     const MatmulTarget& target);

/// `name` becomes the kernel's.
WrittenKernel write_kernel(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel,
                           const Tiling& tiling, std::string name);

class KernelWriter {
 public:
  KernelWriter(const TensorProgram& program, const Fusion& fusion, const FusedKernel& kernel, const Tiling& tiling,
               std::string name);
  WrittenKernel write();

 private:
  struct Parameterized {
    int value;
    Use use;
    Placement place;
  };
  const Value& value(int v) const { return program_.values[static_cast<std::size_t>(v)]; }
  bool is_read(int v) const;
  Placement merged(Placement place, const Use& use) const;
  void add_parameters();
  void require_extents();

  // Tiles.
  Shape tile_shape(const Use& use) const;
  int tile_extent(const Use& use, std::size_t axis) const;
  Handle coordinate(const Use& use, std::size_t axis);
  /// The positions of a tile's elements along an axis of a value, as i32.
  Handle positions(const Use& use, std::size_t axis);

  Handle emit(int v, const Use& use);
  Handle compute(int v, const Use& use);
  Handle operand(int v, const Use& use, std::size_t position) {
    const Location here = location_;  // of the value; those of its operands are theirs
    const Handle tile = emit(value(v).in[position], use_of_operand(v, use, position));
    location_ = here;
    return tile;
  }
  Use use_of_operand(int v, const Use& use, std::size_t position) const {
    return normalized(kernel_, operand_use(program_, v, use, position));
  }
  Handle read(int v, const Use& use);
  Handle reduce(int v, const Use& use);
  Handle masked(Handle tile, int v, const Use& inside, std::int64_t extent);
  Handle identity_of(Op reduction, ElementType of);
  void store(std::size_t result);

  // Rows in chunks.
  struct RowReduction {
    int value;
    Use use;
    int stage;  ///< the loop that computes it
  };
  bool is_chunked(const AxisUse& along) const;
  bool is_chunked(const Use& use) const;
  bool is_row_reduction(int v) const;
  int stage_of(int v);
  using Seen = std::vector<std::pair<int, Use>>;
  void collect(int v, const Use& use, std::vector<RowReduction>& reductions, Seen& seen);
  void emit_ahead(int v, const Use& use, Seen& seen);
  void write_row_loops();
  Handle gather(int v, const Use& use);
  Handle matmul(int v, const Use& use);
  Handle attention(int v, const Use& use);
  Handle inner_extent(std::int64_t extent);
  Handle extent_of_domain(int axis);
  Handle masked_inner(Handle tile, int v, const Use& use);
  Handle factor(int v, const Use& use, std::size_t position, ElementType of, const Shape& matrix);

  // Ops.
  Handle op(Op op, ElementType type, std::initializer_list<Handle> in, std::initializer_list<std::int64_t> attr = {},
            const Shape& shape = {}) {
    return trace_.apply(op, type, in, attr, location_, shape);
  }
  Handle elementwise(Op op, Handle a, Handle b) { return this->op(op, result_type(op, type(a)), {a, b}); }
  Handle number(ElementType type, Number number, const Shape& shape = {}) {
    return trace_.literal(type, number, location_, shape);
  }
  Handle index(std::int64_t i) { return number(ElementType::i32, i); }
  Handle reshaped(Handle tile, const Shape& shape);
  Handle converted(Handle tile, ElementType to);
  Handle computing(Handle tile) { return converted(tile, computing_type(type(tile))); }
  Handle stretched(Handle tile, const Shape& shape);
  ElementType type(Handle tile) const { return trace_.type(tile, location_); }
  const Shape& shape(Handle tile) const { return trace_.shape(tile, location_); }

  const TensorProgram& program_;
  const Fusion& fusion_;
  const FusedKernel& kernel_;
  const Tiling& tiling_;
  std::string name_;
  Location location_;
  std::vector<Parameterized> reads_;
  std::vector<int> scalars_;
  std::vector<Parameter> parameters_;
  std::vector<Passed> arguments_;
  Trace trace_;
  std::vector<Handle> views_;  // of reads, then of results
  std::array<Handle, max_rank> coordinates_{};
  Handle inner_{};  // the loop's counter
  std::map<int, int> stages_;
  std::vector<std::pair<std::pair<int, Use>, Handle>> known_;

  static std::vector<Parameter> parameters_of(const TensorProgram& program, const Fusion& fusion,
                                              const FusedKernel& kernel);
};

}  // namespace tessera::internal
