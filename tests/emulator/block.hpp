// A block of threads, each a fiber, and the places where they meet.
#pragma once
#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/device_memory.hpp"
#include "emulator/emulator.hpp"
#include "emulator/lines.hpp"
#include "emulator/random.hpp"
#include "emulator/shadow.hpp"
#include "emulator/stacks.hpp"

namespace tessera::emulator {

class Checks;

inline constexpr int warp_size = 32;

/// What all blocks of a launch share.
struct Launch {
  const std::string& kernel;  ///< its name
  void (*entry)(const std::uint64_t* cells);
  std::span<const std::uint64_t> cells;
  int threads;  ///< of a block
  int shared_bytes;
  std::int64_t blocks;        ///< of the launch
  std::uint32_t first_block;  ///< blocks of the launches before it, plus one
  const Lines& lines;
  Random& random;
  Report& report;
  Checks* checks;  ///< null: none
};

/// A place where threads meet, as one of them comes to it.
struct Meeting {
  const char* what = nullptr;  ///< "barrier", "shuffle_xor"; null: the thread waits nowhere
  Code code = nullptr;
  void* operands = nullptr;  ///< what the thread brings and takes; lives until the meeting is over
};

/// A copy that copy_async started and no wait has covered yet.
struct Copy {
  char* to;
  const char* from;  ///< null: zeros
  int bytes;
  int group;  ///< index of the thread's group that it belongs to
};

class Block;

struct Thread {
  Block& block;
  int index;
  boost::context::fiber fiber{};
  bool ended = false;
  Meeting meeting{};
  std::vector<Copy> copies{};
  int groups = 0;  ///< that the thread has closed

  int lane() const { return index % warp_size; }
  int warp() const { return index / warp_size; }
};

/// The thread that runs. Ops are its words.
Thread& current_thread();

class Block {
 public:
  /// Stacks `first_stack` and after are for its threads.
  Block(const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  /// Lets some warp run until all of its lanes wait or have ended. False: the block has come to its end.
  bool step();

  const Launch& launch() const { return launch_; }
  std::int64_t index() const { return index_; }
  char* shared_memory() { return shared_; }
  Shadow& shadow() { return shadow_; }  ///< of shared memory
  bool stopped() const { return stopped_; }

  /// An access of a thread, as far as the block knows of it.
  Now now(const Thread& thread) const;

  /// Returns when all threads of the block have come to the barrier.
  void meet_block(Thread& self, const Meeting& meeting);

  /// Returns when all lanes of the warp have come; `exchange` is called once, with what each lane brings.
  using Operands = std::array<void*, warp_size>;
  void meet_warp(Thread& self, const Meeting& meeting, void (*exchange)(const Operands&));
  /// A barrier of the warp: what its lanes did before is over for its lanes.
  void order_warp(const Thread& self);

  /// Reports a fault of a thread that is at `code`.
  void report(Fault::Kind kind, const Thread& thread, Code code, const std::string& text);
  /// Ends the block from inside a thread.
  [[noreturn]] void stop();

 private:
  struct Warp {
    std::uint32_t ready = ~0u;  ///< lanes that can run
    std::uint32_t waiting = 0;  ///< lanes that wait for the others of their warp
    std::uint32_t barrier = 0;  ///< time of the last barrier, its own or the block's
  };

  int pick(std::uint32_t set);  // one of its elements
  void run(Thread& thread);
  void suspend();
  void compare(const Thread& self, const Meeting& meeting, const Thread& other, Fault::Kind kind);
  void report_stuck();
  void report_missing(const Thread& waits, const Thread& missing, Fault::Kind kind);

  const Launch& launch_;
  std::int64_t index_;
  std::unique_ptr<char[]> memory_;
  char* shared_;
  Shadow shadow_;
  boost::context::fiber scheduler_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  const Thread* first_at_barrier_ = nullptr;
  int at_barrier_ = 0, ended_ = 0;
  std::uint32_t clock_ = 0, barrier_ = 0;
  bool stopped_ = false;
};

}  // namespace tessera::emulator
