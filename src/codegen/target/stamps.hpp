// The log of a stamped kernel: when each role began what, for the profiler (TESSERA_PROFILE=inside:NAME).
//
// Each role of each CTA, or each of its consumer groups, has a row of `room` words of 64 bits, all 0 before the launch.
// A stamp is a word: the multiprocessor's clock in the lower half (PTX ISA, "%clock"), and the stamp's number above.
// A stamp of a place has two more words: the GPU's time in nanoseconds ("%globaltimer"); and the multiprocessor in the
// lower half, with the number of the grid tile above. Stamps that a row has no room for are lost.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

namespace stamps {
/// The numbers of stamps with a place; those of activities follow.
enum : std::uint32_t { role_begins = 1, role_ends = 2, tile_begins = 3, first_activity = 4 };
constexpr bool has_place(std::uint32_t number) { return number < first_activity; }
constexpr std::uint32_t no_tile = 0xffffffffu;
constexpr int words_of_place = 3;
}  // namespace stamps

/// The meaning of a kernel's rows and stamps.
struct StampTable {
  /// A role does this until its next stamp.
  struct Activity {
    enum class Kind : std::uint8_t { wait, load, matmul, compute, store };
    Kind kind{};
    std::string what;       ///< the plan's first step of it
    std::string file = {};  ///< of the author's line; empty: unknown
    unsigned line = 0;
  };
  std::vector<std::string> rows;     ///< of a CTA, by the names of roles; none: the kernel logs nothing
  std::vector<Activity> activities;  ///< by number, from stamps::first_activity on
};

std::string_view name(StampTable::Activity::Kind kind);

}  // namespace tessera::internal
