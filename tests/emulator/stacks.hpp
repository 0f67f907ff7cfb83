// The stacks of threads, mapped once and reused for all CTAs and runs of all kernels.
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

/// At least `count` stacks for a run, from a pool of the process. The pool has as many as there are concurrent runs,
/// not kernels, because each stack takes two of the mappings that a process may have.
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
