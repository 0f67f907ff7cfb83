// The stacks of threads: mapped once, used again by block after block, and by run after run of whatever kernel.
#pragma once
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <memory>

#include "emulator/mapping.hpp"

namespace tessera::internal::emulator {

class Stacks {
 public:
  explicit Stacks(int count);

  int count() const;
  boost::context::stack_context operator[](int index) const;
  bool contain(const void* address) const {
    const auto offset = static_cast<const char*>(address) - memory_.data();
    return offset >= 0 && static_cast<std::size_t>(offset) < memory_.size();
  }

 private:
  Mapping memory_;
};

/// Stacks for a run, at least `count`, of those of the process. There are as many as runs at a time, however many
/// kernels there are: each stack takes two of the mappings that a process may have.
class LentStacks {
 public:
  explicit LentStacks(int count);
  LentStacks(const LentStacks&) = delete;
  LentStacks& operator=(const LentStacks&) = delete;
  ~LentStacks();
  const Stacks& operator*() const { return *stacks_; }

 private:
  std::unique_ptr<const Stacks> stacks_;
};

}  // namespace tessera::internal::emulator
