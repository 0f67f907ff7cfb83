// A block of threads, each a fiber, and the places where they meet.
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

/// What all blocks of a launch share.
struct Launch {
  const std::string& kernel;  ///< its name
  void (*entry)(const std::uint64_t* cells);
  std::span<const std::uint64_t> cells;
  int threads;  ///< of a block
  int shared_bytes;
  std::int64_t blocks;        ///< of the launch
  int cluster;                ///< blocks of a cluster
  std::uint32_t first_block;  ///< blocks of the launches before it, plus one
  const Lines& lines;
  Random& random;
  Report& report;
  Flags& flags;
  Atomics& atomics;
  Checks* checks;  ///< null: none
};

/// A copy that copy_async started and no wait has covered yet.
struct Copy {
  char* to;
  const char* from;  ///< null: zeros
  int bytes;
  int group;  ///< index of the thread's group that it belongs to
};

/// Registers of a thread that an open wgmma has.
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
  int groups = 0;  ///< that the thread has closed
  std::vector<Lent> lent{};
  Fenced fenced{};
  Code outside = nullptr;  ///< where it first used memory outside of the block; none yet: null

  int lane() const { return index % warp_size; }
  int warp() const { return index / warp_size; }
};

/// The thread that runs. Ops are its words.
Thread& current_thread();

class Block {
 public:
  /// Stacks `first_stack` and after are for its threads.
  Block(Cluster& cluster, const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  /// Lets some warp run until all of its lanes wait or have ended, or a unit do a piece of its work. False: nothing can
  /// go on here.
  bool step();
  bool ended() const { return ended_ == launch_.threads; }
  /// Does some thread wait for another block to raise a flag?
  bool waits_for_flag() const;
  int live_threads() const { return launch_.threads - ended_; }
  /// Why, where the block has not ended.
  void report_stuck();

  const Launch& launch() const { return launch_; }
  std::int64_t index() const { return index_; }
  Cluster& cluster() { return cluster_; }
  char* shared_memory() { return shared_; }
  Shadow& shadow() { return shadow_; }  ///< of shared memory
  Order& order() { return order_; }
  MemoryBarriers& memory_barriers() { return memory_barriers_; }
  NamedBarriers& named_barriers() { return named_barriers_; }
  RegisterPool& registers() { return registers_; }
  CopyEngine& copy_engine() { return copy_engine_; }
  MatrixUnits& matrix_units() { return matrix_units_; }
  bool stopped() const { return stopped_; }

  /// An access of a thread, as far as the block knows of it; or of a unit that it gives work.
  Now now(const Thread& thread, int unit = no_unit);
  /// Has the access looked at, if there are checks.
  void check(Thread& self, const void* address, std::size_t bytes, std::size_t alignment, Use use, Code code,
             Space space = Space::any, int unit = no_unit);
  /// The same of shared memory, without checks, too. Where the place is.
  int offset_in_shared(Thread& self, const void* address, int bytes, int alignment, Use use, Code code,
                       int unit = no_unit);

  /// Returns when all threads of the block have come to the barrier.
  void meet_block(Thread& self, const Meeting& meeting);

  /// Returns when all lanes of the warp have come; `exchange` is called once, with what each lane brings.
  using Operands = std::array<void*, warp_size>;
  void meet_warp(Thread& self, const Meeting& meeting, void (*exchange)(const Operands&));
  /// Returns when all 128 threads of the warp group have come; `exchange` is called once.
  void meet_group(Thread& self, const Meeting& meeting, void (*exchange)(std::span<Thread> threads));

  /// Lets others run first, sometimes: of threads that wait for one another by what they read, each comes to its turn.
  void pause(Thread& self);
  /// Returns when somebody has woken the thread.
  void sleep(Thread& self, const Meeting& meeting);
  void wake(const Thread& thread);

  /// Reports a fault of a thread that is at `code`.
  void report(Fault::Kind kind, const Thread& thread, Code code, const std::string& text);
  /// Ends the block from inside a thread.
  [[noreturn]] void stop();
  /// Both, where an instruction is given what it does not take: "thread 3 " and `text`.
  [[noreturn]] void refuse(const Thread& thread, Code code, const std::string& text);

 private:
  struct Warp {
    std::uint32_t ready = ~0u;  ///< lanes that can run
    std::uint32_t waiting = 0;  ///< lanes that wait for the others of their warp
  };
  struct Group {
    int waiting = 0;  ///< threads that wait for the others of their warp group
    const Thread* first = nullptr;
  };

  int pick(std::uint32_t set);  // one of its elements
  void run(Thread& thread);
  void suspend();
  void compare(const Thread& self, const Meeting& meeting, const Thread& other, Fault::Kind kind);
  void report_deadlock();
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
  std::exception_ptr failure_;  ///< of the emulator itself, in the thread that ran last
  bool stopped_ = false;
  bool paused_ = false;  ///< since the last step began
};

}  // namespace tessera::internal::emulator
