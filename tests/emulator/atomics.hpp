// What atomic operations on memory, and fences around them, say of the order of other accesses (PTX ISA, "Memory
// Consistency Model"): a fence, and then an operation on a word, releases; one that reads the word, and then a fence,
// acquires.
#pragma once
#include <map>

#include "emulator/knowledge.hpp"

namespace tessera::internal::emulator {

struct Thread;

/// Of a thread: what its last fence passed on, and what it has read from words since; for those of its block, and for
/// all.
struct Fenced {
  Knowledge passed_on[2], read[2];
  bool passes[2] = {false, false};
};

class Atomics {
 public:
  /// A thread reads and writes a word at once; for all threads, or for those of its block.
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
