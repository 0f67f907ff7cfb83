// The barrier at which the CTAs of a persistent kernel meet: a number of arrivals in global memory. An arrival releases
// what the thread knows; waiting acquires what arrivals at this barrier and at earlier ones have released.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/knowledge.hpp"
#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class GridBarrier final : public Place {
 public:
  /// For so many CTAs.
  explicit GridBarrier(std::int64_t ctas) : ctas_(static_cast<std::uint32_t>(ctas)) {}

  /// The address of the arrivals in a launch.
  std::uint32_t* data() { return &arrivals_; }
  std::uint32_t arrivals() const { return arrivals_; }
  void arrive(Thread& self, const void* at, Code code);
  /// The same for the last barrier of a launch, of `expected` arrivals in all: the last one makes their number 0.
  void leave(Thread& self, const void* at, std::uint32_t expected, Code code);
  void wait(Thread& self, const void* at, std::uint32_t expected, Code code);
  std::string story(const Thread& waits) const override;

 private:
  struct Waiting {
    Thread* thread;
    std::uint32_t expected;
  };
  void check(Thread& self, const void* at, Code code) const;

  std::uint32_t ctas_, arrivals_ = 0;
  std::vector<Knowledge> released_;  // at each barrier
  std::vector<Waiting> waiting_;
};

}  // namespace tessera::internal::emulator
