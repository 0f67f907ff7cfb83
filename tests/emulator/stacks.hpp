// The stacks of threads: mapped once, used again by block after block.
#pragma once
#include <boost/context/stack_context.hpp>
#include <cstddef>

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

}  // namespace tessera::internal::emulator
