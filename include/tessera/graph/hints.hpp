// What an author would like of a kernel's code, from which no result follows.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// 0 says nothing. What cannot be had is left out, and the plan says so.
struct Hints {
  int warps = 0;      ///< of a block: 1, 2, 4, ... 32
  int stages = 0;     ///< rounds of a loop with a product that are under way at a time, of which it fetches all but one
  int cluster = 0;    ///< the most blocks that share the rounds of a product, on sm_90a; 1: none do
  int occupancy = 0;  ///< blocks of a multiprocessor at a time, for which a thread has the fewer registers
  std::string arch = {};  ///< where it holds: "sm_90" or "sm_90a"; empty: everywhere
  bool operator==(const Hints&) const = default;
};

/// "warps 8, occupancy 2, arch sm_90".
std::string to_string(const Hints& hints);
/// Those that hold for an architecture of the name "sm_90a": of several that say the same thing the last.
Hints hints_for(const std::vector<Hints>& all, std::string_view arch);

}  // namespace internal
}  // namespace tessera
