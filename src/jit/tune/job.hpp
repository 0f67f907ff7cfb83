// The job of a tuning worker: the graphs of a kernel's candidates, and the arguments of a launch.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The memory of one tensor, or of several that overlap.
struct TuneBlock {
  std::uint64_t bytes = 0;
  std::uint64_t misalignment = 0;  ///< of its address, relative to `block_alignment`
  bool is_read = false;            ///< a kernel may depend on its contents, so that they are sent
  bool is_written = false;
  std::uint8_t poison = 0xff;  ///< of contents that are not sent: NaN, or an unlikely integer
  std::uintptr_t address = 0;  ///< in the process that made the job
};
inline constexpr std::uint64_t block_alignment = 256;

/// An argument whose memory is in a block.
struct TuneArgument {
  int block = -1;  ///< none: a scalar, or a tensor without elements
  std::uint64_t offset = 0;
  Argument argument = {};  ///< without `data`
};

struct TuneJob {
  std::string version;              ///< of Tessera
  std::string device;               ///< as Device::parse takes it
  std::vector<std::string> graphs;  ///< of the candidates, from archive()
  std::vector<TuneBlock> blocks;
  std::vector<TuneArgument> arguments;
  double tolerance = 0;  ///< TuneOptions::tolerance
  bool equal_bits = false;
  bool compiles_one_by_one = false;

  std::string bytes() const;
  /// Throws Error if they are not those of a job.
  static TuneJob from(std::string_view bytes);

  /// Fills in the arguments of launches, and the blocks of memory behind them.
  void add_arguments(std::span<const Parameter> parameters, std::span<const Argument> arguments);
};

// The worker's stdin is a socket. It reads the length of a job, 8 bytes, its bytes, the contents of its blocks that are
// read, and then lines:
//   check I          runs candidate I, and compares its results with those of the first one that ran
//   time I CALLS     times so many launches of candidate I
// It answers by lines:
//   open             it has the job, and the memory
//   compiled I       candidate I can run
//   refused I WHY    it cannot
//   running I        it is launched now
//   ran I MS         it has run, in so many milliseconds
//   checked I        its results are right
//   wrong I WHY      they are not
//   timed I MS       milliseconds per launch
//   failed I WHY     it failed; the worker exits, as the device may not be usable any more
//   stuck WHY        the worker cannot do its work, and exits

/// Reads a job from stdin and does what the lines after it say. Returns the exit status.
int run_tune_worker();

}  // namespace tessera::internal
