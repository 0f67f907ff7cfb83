// Runs generated CUDA C++ on the CPU: exactly the text that NVRTC compiles, with other bodies for the prelude's device
// functions. The threads of a CTA are fibers that switch where they synchronize: at barriers and warp-wide ops.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/persistent_source.hpp"
#include "jit/backend/backend.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// A fault of a kernel, detected while it ran.
struct Fault {
  enum class Kind : std::uint8_t {
    missing_lane,       ///< lanes of a warp wait in an op that other lanes never reach
    divergent_barrier,  ///< threads of a CTA wait at a barrier that other threads never reach
    failed_check,       ///< the kernel called debug_fail, or a check of the author's failed
    deadlock,           ///< threads wait for something that no thread can still do
    misuse,             ///< an instruction with invalid operands
    out_of_bounds,      ///< an address outside of tensors' elements, the CTA's shared memory and the workspace
    misaligned,         ///< an address that is not a multiple of the access size
    read_only,          ///< a write to an In
    uninitialized,      ///< a read of memory that was never written
    in_flight,          ///< an access to the target of an asynchronous copy or matmul before the wait that covers it
    race,               ///< two accesses, at least one of them a write, with no barrier between them
    missing_fence,      ///< TMA or wgmma uses data written by a thread, after a barrier but without a fence
  };
  Kind kind{};
  std::string kernel;
  std::int64_t block = 0;  ///< index in its launch
  int thread = 0;          ///< index in its CTA
  std::string line;        ///< "file:line" of the author
  std::string text;        ///< the complete message, one line
};

/// The result of a run.
struct Report {
  std::vector<Fault> faults;  ///< empty if there are none
  bool clean() const { return faults.empty(); }
  std::string text() const;  ///< one line for each fault
};

struct RunOptions {
  bool checks = true;         ///< memory checks: all kinds from out_of_bounds on; a run takes a few times as long
  std::uint64_t seed = 1;     ///< for the order in which CTAs, warps and lanes run
  int blocks_in_flight = 1;   ///< CTAs that run concurrently
  int persistent_blocks = 3;  ///< CTAs in a launch of a persistent kernel, or clusters, if it uses them
  int cluster = 1;            ///< CTAs per cluster, for a split-K kernel that uses clusters
  int lockstep_rows = 1;      ///< tiles that CTAs process in lockstep, for a stream-K kernel
  std::vector<std::uint64_t>* stamps = nullptr;  ///< the log of a stamped kernel (codegen/target/stamps.hpp)
  std::uint32_t stamp_room = 4096;               ///< words of a row
  bool may_prefetch = true;  ///< the kernel may prefetch before the PDL wait: launches before do not write the inputs
};

/// Compiled kernels. Only one host thread at a time may use an instance.
class Emulator {
 public:
  /// Compiles the kernels with g++ as one translation unit, when the first of them runs: once for runs with checks,
  /// once for runs without. With `contract`, multiplications and additions are fused, as NVRTC does, but not always at
  /// the same places.
  static Emulator compile(std::span<const KernelSource> kernels, bool contract = false);
  Emulator(Emulator&&) noexcept;
  Emulator& operator=(Emulator&&) noexcept;
  ~Emulator();

  /// Runs a kernel over a grid of these extents; `graph` is the one that it was generated from. Ends early at a fault
  /// that makes it pointless to go on. Throws Error with the compiler's message and the location of the text if the
  /// compiler rejects it.
  Report run(std::size_t kernel, const Graph& graph, std::span<const Argument> arguments,
             std::span<const std::int64_t> grid, const RunOptions& options = {}) const;

  /// Runs a persistent kernel, compiled alone, which does these launches; `persistent_blocks` of the options are its
  /// CTAs, which run concurrently.
  Report run(const PersistentSource& kernel, std::span<const DeviceLaunch> launches,
             const RunOptions& options = {}) const;

 private:
  class State;
  explicit Emulator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera::internal
