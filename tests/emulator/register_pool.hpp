// The registers of a CTA, which warps release and acquire (PTX ISA, "setmaxnreg").
#pragma once
#include <string>
#include <vector>

#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class Block;

class RegisterPool final : public Place {
 public:
  /// A CTA has so many threads, and an SM runs `blocks` CTAs at a time.
  RegisterPool(Block& block, int threads, int blocks);

  /// A thread releases all but `registers`, or acquires more up to `registers`, waiting until others have released
  /// enough.
  void give(Thread& self, int registers, Code code);
  void take(Thread& self, int registers, Code code);

  std::string story(const Thread& waits) const override;

 private:
  int& owned(const Thread& thread);
  void check(Thread& self, int registers, Code code);

  Block& block_;
  std::vector<int> owned_;
  int free_ = 0;
  std::vector<Thread*> waiting_;
};

}  // namespace tessera::internal::emulator
