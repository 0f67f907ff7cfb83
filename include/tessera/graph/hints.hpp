// Hints: an author's preferences for the generated code, which change no result but the order of sums.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// 0 leaves the choice to the generator. A hint that cannot be followed is ignored, and the plan says so.
struct Hints {
  int warps = 0;      ///< of a CTA: 1, 2, 4, ... 32
  int stages = 0;     ///< buffers of a loop with a matmul; all but one are prefetched
  int cluster = 0;    ///< the most CTAs that share the k-iterations of a matmul (split-K), on sm_90a; 1: no clusters
  int occupancy = 0;  ///< CTAs per multiprocessor at a time; a thread has fewer registers for more
  /// The order of a matmul's sums does not depend on the number of a launch's tiles: CTAs do not share k-iterations
  /// (split-K).
  bool deterministic = false;
  /// May the next launch of a stream begin while this one runs (programmatic dependent launch)? False suits kernels
  /// whose successor has nothing to load before it must wait, so that its CTAs would only be in the way.
  bool launch_dependents = true;
  std::string arch = {};  ///< where the hints apply: "sm_90" or "sm_90a"; empty: everywhere
  bool operator==(const Hints&) const = default;
};

/// "warps 8, occupancy 2, arch sm_90".
std::string to_string(const Hints& hints);
/// The hints for an architecture such as "sm_90a". If several set the same value, the last one counts; `deterministic`
/// is true, and `launch_dependents` false, if one says so.
Hints hints_for(const std::vector<Hints>& all, std::string_view arch);

}  // namespace internal
}  // namespace tessera
