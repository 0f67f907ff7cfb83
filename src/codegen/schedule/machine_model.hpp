// Constants of one model of GPU, for the cost model.
#pragma once
#include <compare>
#include <string_view>
#include <vector>

namespace tessera::internal {

/// The extents of a matmul's k-iteration: [m,k] times [k,n], of 16-bit elements. tf32 has twice as many bytes and half
/// the rate, so its k counts twice.
struct MmaExtents {
  int m = 0, n = 0, k = 0;
  auto operator<=>(const MmaExtents&) const = default;
};

/// Constants of one model of GPU: h200.def, h100.def.
struct MachineModel {
  struct Tile {
    MmaExtents extents;
    double rate;
  };
  struct FmaTile {
    MmaExtents extents;
    double rate, alone;
  };

#define CONSTANT(name, value, source, what) double name = value;
#include "codegen/schedule/h200.def"
  std::vector<Tile> tiles = {
#define TILE(m, n, k, rate, source) {{m, n, k}, rate},
#include "codegen/schedule/h200.def"
  };

  std::vector<Tile> narrow_tiles = {
#define NARROW_TILE(m, n, k, rate, source) {{m, n, k}, rate},
#include "codegen/schedule/h200.def"
  };

  std::vector<Tile> fp8_tiles = {
#define FP8_TILE(m, n, k, rate, source) {{m, n, k}, rate},
#include "codegen/schedule/h200.def"
  };

  std::vector<Tile> left_tiles = {
#define LEFT_TILE(m, n, k, rate, source) {{m, n, k}, rate},
#include "codegen/schedule/h200.def"
  };

  std::vector<FmaTile> fma_tiles = {
#define FMA_TILE(m, n, k, rate, alone, source) {{m, n, k}, rate, alone},
#include "codegen/schedule/h200.def"
  };

  /// The share of `macs` that a k-iteration reaches: that of the listed tile, or of the largest one that it contains.
  double rate(const MmaExtents& extents) const;

  static const MachineModel& h200();
  static const MachineModel& h100();
  /// Those of a CUDA device by its name; of an H200 for devices that were not measured.
  static const MachineModel& of(std::string_view device);
};

}  // namespace tessera::internal
