// The roles of a kernel during a launch: when each did what, from the stamps that they logged.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/target/stamps.hpp"
#include "jit/profile/event.hpp"

namespace tessera::internal::profile {

/// A launch of a stamped kernel. Times are nanoseconds from its first stamp on.
struct StampedLaunch {
  /// From one stamp of a row to the next one.
  struct Span {
    int row = 0;
    std::uint32_t number = 0;  ///< of the stamp that begins it
    Time begin = 0, end = 0;
  };
  /// A grid tile, as the roles processed it that multiply or store.
  struct Tile {
    std::uint32_t multiprocessor = 0, tile = 0;
    std::int64_t cta = 0;
    int row = 0;
    Time begin = 0, end = 0;
  };

  SubjectRef subject;
  int device = 0;
  std::uint64_t number = 0;  ///< of the launch
  Details details = {};      ///< its grid
  std::shared_ptr<const StampTable> table;
  std::int64_t ctas = 0;
  std::int64_t full_rows = 0;                  ///< that lost stamps
  Time duration = 0;                           ///< to the last stamp
  std::vector<std::vector<Time>> totals = {};  ///< of all CTAs, by row and by number of the stamp
  std::int64_t shown_cta = 0;                  ///< of `spans`
  std::vector<Span> spans = {};                ///< of one CTA, by row, in order
  std::vector<Tile> tiles = {};                ///< of all CTAs
};

/// Reads the logs of all CTAs, `room` words for each row: the times, from `totals` on. Where the GPU's time has few
/// digits, the clocks of the multiprocessors, which run at one rate, tell the times between.
void read_stamps(std::span<const std::uint64_t> words, std::uint32_t room, StampedLaunch& launch);

/// The kernels to look into, by name: `inside:PATTERN` of TESSERA_PROFILE. Any thread may use it.
class StampedKernels {
 public:
  explicit StampedKernels(std::string pattern) : pattern_(std::move(pattern)) {}
  const std::string& pattern() const { return pattern_; }
  /// Is a launch of this kernel stamped? `turns` counts its launches: the first and the last of every four are stamped,
  /// so that the cost of stamps is known, also where two problems take turns; until `most_stamped` are.
  bool take(std::string_view kernel, std::atomic<int>& turns) const;

  static constexpr int most_stamped = 8;

 private:
  const std::string pattern_;
};

/// Words of a row for so many rows, 32 to 8,192 and at most 2^24 in all; 0: the rows are too many.
std::uint32_t stamp_room(std::int64_t rows);

struct Trace;
/// The shares of what each role did, for each kernel and grid, and what the stamps cost.
std::string inside_text(const Trace& trace);

}  // namespace tessera::internal::profile
