// The angles by which a model rotates queries and keys, and the order of their elements.
#pragma once
#include <cstdint>
#include <vector>

#include "tessera/model/checkpoint.hpp"
#include "tessera/model/config.hpp"

namespace tessera::internal {

/// Angles of the d / 2 pairs of a head, in radians a position; those that are not rotated have 0. Cosines and sines of
/// the first `rotated` pairs are multiplied by `factor`.
struct RotaryAngles {
  std::vector<double> frequencies;
  int rotated = 0;
  double factor = 1;
};
/// Those of layers with a window, if they are `local`, or of all other layers.
RotaryAngles rotary_angles(const TransformerConfig& config, bool local);

/// Cosines of the angles at positions `first`, ..., then the sines, [count,d].
std::vector<float> rotation_of(const RotaryAngles& angles, std::int64_t first, std::int64_t count);

/// The elements of a head in the file, in the order of memory, where pairs are d / 2 apart.
std::vector<StoredRun> order_of_head(const TransformerConfig& config);

}  // namespace tessera::internal
