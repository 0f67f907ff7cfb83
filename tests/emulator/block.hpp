// A CTA: its threads, each a fiber, and the synchronization between them.
#pragma once
#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/atomics.hpp"
#include "emulator/checks.hpp"
#include "emulator/copy_engine.hpp"
#include "emulator/device_memory.hpp"
#include "emulator/emulator.hpp"
#include "emulator/flags.hpp"
#include "emulator/grid_barrier.hpp"
#include "emulator/lines.hpp"
#include "emulator/matrix_units.hpp"
#include "emulator/memory_barriers.hpp"
#include "emulator/named_barriers.hpp"
#include "emulator/order.hpp"
#include "emulator/place.hpp"
#include "emulator/random.hpp"
#include "emulator/register_pool.hpp"
#include "emulator/shadow.hpp"
#include "emulator/stacks.hpp"

namespace tessera::internal::emulator {

inline constexpr int warp_size = 32;

/// Data that all CTAs of a launch share.
struct Launch {
  const std::string& kernel;  ///< the kernel's name
  void (*entry)(const std::uint64_t* cells);
  std::span<const std::uint64_t> cells;
  int threads;                   ///< per CTA
  int blocks_of_multiprocessor;  ///< CTAs that an SM runs at a time, by the kernel's launch bounds
  int shared_bytes;
  std::int64_t blocks;        ///< CTAs in the launch
  int cluster;                ///< CTAs per cluster
  std::uint32_t first_block;  ///< number of CTAs in earlier launches, plus one
  const Lines& lines;
  Random& random;
  Report& report;
  Flags& flags;
  GridBarrier& grid_barrier;
  Atomics& atomics;
  Checks* checks;  ///< null: no checks
};

/// A copy started by copy_async and not yet covered by a wait.
struct Copy {
  char* to;
  const char* from;  ///< null: zero fill
  int bytes;
  int group;  ///< index of its group in the thread
};

/// A thread's registers that a wgmma in flight owns.
struct Lent {
  const void *begin, *end;
};

class Block;
class Cluster;

struct Thread {
  Block& block;
  int index;
  boost::context::fiber fiber{};
  bool ended = false;
  Meeting meeting{};
  std::vector<Copy> copies{};
  int groups = 0;  ///< groups committed by the thread
  std::vector<Lent> lent{};
  Fenced fenced{};
  Code outside = nullptr;  ///< where it accessed memory outside of the CTA before a PDL wait; null: nowhere
  bool waited = false;     ///< for preceding launches

  int lane() const { return index % warp_size; }
  int warp() const { return index / warp_size; }
};

/// The running thread. The emulated ops are called on it.
Thread& current_thread();

class Block {
 public:
  /// Its threads use the stacks from `first_stack` on.
  Block(Cluster& cluster, const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  /// Runs one warp until all of its lanes wait or have ended, or lets an asynchronous unit do part of its work. Returns
  /// false if nothing in this CTA can make progress.
  bool step();
  bool ended() const { return ended_ == launch_.threads; }
  /// Returns true if a thread waits for another CTA, to set a flag or to arrive at the grid barrier.
  bool waits_for_others() const;
  int live_threads() const { return launch_.threads - ended_; }
  /// Reports why the CTA has not ended. `others` tells where other CTAs of its cluster wait.
  void report_stuck(const std::string& others);
  /// Where each thread waits, and for what; empty if all have ended.
  std::string waits() const;

  const Launch& launch() const { return launch_; }
  std::int64_t index() const { return index_; }
  /// Counted over all launches of a run, as in events.
  std::uint32_t number() const { return launch_.first_block + static_cast<std::uint32_t>(index_); }
  Cluster& cluster() { return cluster_; }
  char* shared_memory() { return shared_; }
  Shadow& shadow() { return shadow_; }  ///< for shared memory
  Order& order() { return order_; }
  MemoryBarriers& memory_barriers() { return memory_barriers_; }
  NamedBarriers& named_barriers() { return named_barriers_; }
  RegisterPool& registers() { return registers_; }
  CopyEngine& copy_engine() { return copy_engine_; }
  MatrixUnits& matrix_units() { return matrix_units_; }
  bool stopped() const { return stopped_; }

  /// Describes an access by a thread, as far as the CTA's ordering goes, or by a unit of this CTA on its behalf. The
  /// thread may be one of another CTA of the cluster.
  Now now(const Thread& thread, int unit = no_unit);
  /// Checks the access if checks are enabled.
  void check(Thread& self, const void* address, std::size_t bytes, std::size_t alignment, Use use, Code code,
             Space space = Space::any, int unit = no_unit);
  /// The same for shared memory of this CTA; bounds and alignment are checked even if checks are disabled. Returns the
  /// offset. The thread may be one of another CTA of the cluster.
  int offset_in_shared(Thread& self, const void* address, int bytes, int alignment, Use use, Code code,
                       int unit = no_unit);

  /// Returns once all threads of the CTA have reached the barrier.
  void meet_block(Thread& self, const Meeting& meeting);

  /// Returns once all lanes of the warp have arrived; `exchange` is called once with the operands of all lanes.
  using Operands = std::array<void*, warp_size>;
  void meet_warp(Thread& self, const Meeting& meeting, void (*exchange)(const Operands&));
  /// Returns once all 128 threads of the warp group have arrived; `exchange` is called once.
  void meet_group(Thread& self, const Meeting& meeting, void (*exchange)(std::span<Thread> threads));

  /// Sometimes lets other threads run first, so that threads that wait for each other by polling memory make progress.
  void pause(Thread& self);
  /// Returns once another thread has woken this one.
  void sleep(Thread& self, const Meeting& meeting);
  void wake(const Thread& thread);

  /// Reports a fault of a thread at `code`.
  void report(Fault::Kind kind, const Thread& thread, Code code, const std::string& text);
  /// Ends the CTA from inside a thread.
  [[noreturn]] void stop();
  /// Reports an instruction with invalid operands, as "thread 3 " and `text`, and ends the CTA.
  [[noreturn]] void refuse(const Thread& thread, Code code, const std::string& text);

 private:
  struct Warp {
    std::uint32_t ready = ~0u;  ///< lanes that can run
    std::uint32_t waiting = 0;  ///< lanes that wait for others of their warp
  };
  struct Group {
    int waiting = 0;  ///< threads that wait for others of their warp group
    const Thread* first = nullptr;
  };

  int pick(std::uint32_t set);  // a random element of the set
  void run(Thread& thread);
  void suspend();
  void compare(const Thread& self, const Meeting& meeting, const Thread& other, Fault::Kind kind);
  void report_deadlock(const std::string& others);
  /// All threads have ended; what other CTAs do to this one's shared memory must be over.
  void end();
  void report_missing(const Thread& waits, const Thread& missing, Fault::Kind kind);

  Cluster& cluster_;
  const Launch& launch_;
  std::int64_t index_;
  std::unique_ptr<char[]> memory_;
  char* shared_;
  Shadow shadow_;
  boost::context::fiber scheduler_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Group> groups_;
  const Thread* first_at_barrier_ = nullptr;
  int at_barrier_ = 0, ended_ = 0;
  Order order_;
  MemoryBarriers memory_barriers_{*this};
  NamedBarriers named_barriers_{*this};
  RegisterPool registers_;
  CopyEngine copy_engine_{*this};
  MatrixUnits matrix_units_{*this};
  std::exception_ptr failure_;  ///< an exception of the emulator itself, in the thread that ran last
  bool stopped_ = false;
  bool paused_ = false;  ///< since the last step began
};

}  // namespace tessera::internal::emulator
