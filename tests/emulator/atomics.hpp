// Ordering of other accesses by atomic operations and fences (PTX ISA, "Memory Consistency Model"): a fence followed by
// an operation on a word releases; an operation that reads the word, followed by a fence, acquires.
#pragma once
#include <map>

#include "emulator/knowledge.hpp"

namespace tessera::internal::emulator {

struct Thread;

/// Per thread: what its last fence released, and what it has read from words since; [0] for threads of its CTA, [1] for
/// all threads.
struct Fenced {
  Knowledge passed_on[2], read[2];
  bool passes[2] = {false, false};
};

class Atomics {
 public:
  /// A thread atomically reads and writes a word, with respect to all threads or to those of its CTA.
  void meet(Thread& self, const void* word, bool for_all);
  void fence(Thread& self, bool for_all);

 private:
  struct Word {
    Knowledge for_all;
    std::map<std::uint32_t, Knowledge> for_block;
  };
  std::map<const void*, Word> words_;
};

}  // namespace tessera::internal::emulator
