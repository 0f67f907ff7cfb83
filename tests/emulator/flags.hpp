// Flags in global memory that CTAs set for each other. Setting a flag releases what the thread knows; waiting for it
// acquires.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/knowledge.hpp"
#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class Flags final : public Place {
 public:
  explicit Flags(std::int64_t count);

  /// The flags' address in a launch.
  std::uint32_t* data() { return words_.data(); }
  void raise(Thread& self, const void* at, Code code);
  /// Waits until the flag is set, and clears it.
  void await(Thread& self, const void* at, Code code);
  /// Number of flags that are set.
  int raised() const;
  std::string story(const Thread& waits) const override;

 private:
  struct State {
    Knowledge of_raiser;
    std::vector<Thread*> waiting;
  };
  std::size_t index_of(Thread& self, const void* at, Code code);

  std::vector<std::uint32_t> words_;
  std::vector<State> states_;
};

}  // namespace tessera::internal::emulator
