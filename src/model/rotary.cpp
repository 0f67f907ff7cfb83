#include "model/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace tessera::internal {
namespace {

using Kind = RotaryScaling::Kind;

double between_0_and_1(double number) { return std::clamp(number, 0.0, 1.0); }

// The share of a frequency that stays, where the rest is divided by the scaling's factor.
double share_that_stays(const RotaryScaling& scaling, double base, double frequency, int pair, int width) {
  if (scaling.kind == Kind::linear) return 0;
  // In the text that the model was trained with.
  const double turns = scaling.positions * frequency / (2 * std::numbers::pi);
  if (scaling.kind == Kind::llama3)
    return between_0_and_1((turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency));
  const auto pair_of = [&](double turns_of_pair) {
    return width * std::log(scaling.positions / (turns_of_pair * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = pair_of(scaling.beta_fast), high = pair_of(scaling.beta_slow);
  if (scaling.truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, width - 1.0);
  if (low == high) high += 0.001;
  return 1 - between_0_and_1((pair - low) / (high - low));
}

}  // namespace

RotaryAngles rotary_angles(const TransformerConfig& config, bool local) {
  const bool has_own_base = local && config.local_rotary_base;
  const double base = has_own_base ? *config.local_rotary_base : config.rotary_base;
  const RotaryScaling scaling = has_own_base ? RotaryScaling{} : config.rotary_scaling;
  const int width = config.rotated_width();
  RotaryAngles angles{.frequencies = std::vector<double>(static_cast<std::size_t>(config.head_width() / 2)),
                      .rotated = width / 2,
                      .factor = scaling.kind == Kind::yarn ? scaling.attention_factor : 1};
  for (int pair = 0; pair < angles.rotated; ++pair) {
    const double frequency = std::pow(base, -2.0 * pair / width);
    const double share = scaling.kind == Kind::none ? 1 : share_that_stays(scaling, base, frequency, pair, width);
    angles.frequencies[static_cast<std::size_t>(pair)] = frequency * (share + (1 - share) / scaling.factor);
  }
  return angles;
}

std::vector<float> rotation_of(const RotaryAngles& angles, std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  const auto add = [&](std::int64_t position, double (*function)(double)) {
    for (std::size_t pair = 0; pair < angles.frequencies.size(); ++pair) {
      const double value = function(static_cast<double>(position) * angles.frequencies[pair]);
      const bool is_rotated = pair < static_cast<std::size_t>(angles.rotated);
      values.push_back(static_cast<float>(is_rotated ? value * angles.factor : value));
    }
  };
  for (std::int64_t position = first; position < first + count; ++position) {
    add(position, [](double angle) { return std::cos(angle); });
    add(position, [](double angle) { return std::sin(angle); });
  }
  return values;
}

std::vector<StoredRun> order_of_head(const TransformerConfig& config) {
  const std::int64_t width = config.head_width();
  if (!config.is_rotary()) return {{0, width}};
  const std::int64_t rotated = config.rotated_width(), others = width - rotated;
  std::vector<StoredRun> order;
  for (const std::int64_t half : {0, 1}) {
    if (config.rotary_pairs == RotaryPairs::halves)
      order.push_back({half * rotated / 2, rotated / 2});
    else
      for (std::int64_t pair = 0; pair < rotated / 2; ++pair) order.push_back({2 * pair + half, 1});
    order.push_back({rotated + half * others / 2, others / 2});
  }
  return order;
}

}  // namespace tessera::internal
