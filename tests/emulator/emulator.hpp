// Runs generated CUDA C++ on the CPU: the very text that NVRTC compiles, with other bodies for the prelude's device
// helpers. The threads of a block are fibers that take turns where they meet: at barriers and warp-wide ops.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Something wrong with a kernel, seen while it ran.
struct Fault {
  enum class Kind : std::uint8_t {
    missing_lane,       ///< lanes of a warp wait in an op that others never come to
    divergent_barrier,  ///< threads of a block wait in a barrier that others never come to
    failed_check,       ///< the kernel called debug_fail, or a check of the author's failed
    deadlock,           ///< threads wait for what nobody is left to do
    misuse,             ///< an instruction that is given what it does not take
    out_of_bounds,      ///< memory that is no tensor's element, the block's shared memory or the workspace
    misaligned,         ///< an access whose address is no multiple of its size
    read_only,          ///< a write to an In
    uninitialized,      ///< a read of what nobody has written
    in_flight,          ///< an access to the target of an asynchronous copy or product before the wait that covers it
    race,               ///< two accesses, one of them a write, with no barrier between
    missing_fence,      ///< the copy engine or wgmma uses what a thread wrote, with a barrier between, but no fence
  };
  Kind kind{};
  std::string kernel;
  std::int64_t block = 0;  ///< index in its launch
  int thread = 0;          ///< in its block
  std::string line;        ///< "file:line" of the author
  std::string text;        ///< the whole story: one line
};

/// What came of a run.
struct Report {
  std::vector<Fault> faults;  ///< empty: none
  bool clean() const { return faults.empty(); }
  std::string text() const;  ///< a line for each fault
};

struct RunOptions {
  bool checks = true;         ///< of memory: all kinds from out_of_bounds on; takes a few times as long
  std::uint64_t seed = 1;     ///< of the order in which blocks, warps and lanes run
  int blocks_in_flight = 1;   ///< blocks that take turns
  int persistent_blocks = 3;  ///< blocks of a launch of a persistent kernel; of one that takes clusters, clusters
  int cluster = 1;            ///< blocks of a cluster, of a kernel that takes clusters
  int lockstep_rows = 1;      ///< tiles that blocks walk through together, of a kernel whose grid shares rounds
  bool ahead = true;          ///< launches before have ended: what they do not write may be brought ahead
};

/// Compiled kernels. One thread of the host at a time may use it.
class Emulator {
 public:
  /// Compiles the kernels with g++ as one translation unit, as soon as one of them runs: once for runs with
  /// checks, once for runs without. With `contract`, products are added with one rounding, as NVRTC does it, but not
  /// always at the same places.
  static Emulator compile(std::span<const KernelSource> kernels, bool contract = false);
  Emulator(Emulator&&) noexcept;
  Emulator& operator=(Emulator&&) noexcept;
  ~Emulator();

  /// Runs a kernel over a grid of these extents; `graph` is the one that it was generated from. Ends early at a fault
  /// that leaves nothing sensible to go on with. Throws Error with the compiler's words and the place of the text if
  /// the compiler refuses it.
  Report run(std::size_t kernel, const Graph& graph, std::span<const Argument> arguments,
             std::span<const std::int64_t> grid, const RunOptions& options = {}) const;

 private:
  class State;
  explicit Emulator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera::internal
