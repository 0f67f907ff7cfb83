// Flags in memory that blocks raise for each other: one that is raised passes on what its thread knows.
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

  /// Where the launch has them.
  std::uint32_t* data() { return words_.data(); }
  void raise(Thread& self, const void* at, Code code);
  /// Waits until it is raised, and takes it down.
  void await(Thread& self, const void* at, Code code);
  /// Flags that are up.
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
