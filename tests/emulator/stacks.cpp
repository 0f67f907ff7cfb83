#include "emulator/stacks.hpp"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stride = 32 * page;  // the lowest page is inaccessible, so that overflows fault
constexpr std::size_t color = 5 * 64;     // stacks start at different cache lines, so that they do not evict each other
constexpr std::size_t colors = 12;

std::string text_of(int count) { return "the stacks of " + std::to_string(count) + " threads"; }

std::mutex idle_mutex;
std::vector<std::unique_ptr<const Stacks>>& idle() {
  static auto& idle = *new std::vector<std::unique_ptr<const Stacks>>;  // never destroyed
  return idle;
}

}  // namespace

Stacks::Stacks(int count) : memory_(static_cast<std::size_t>(count) * stride, text_of(count)) {
  for (std::size_t at = 0; at < memory_.size(); at += stride) memory_.close(at, page, text_of(count));
}

LentStacks::LentStacks(int count) {
  {
    const std::lock_guard lock(idle_mutex);
    const auto largest = std::ranges::max_element(idle(), {}, [](const auto& stacks) { return stacks->count(); });
    if (largest != idle().end()) {
      stacks_ = std::move(*largest);
      idle().erase(largest);
    }
  }
  if (stacks_ && stacks_->count() >= count) return;
  stacks_.reset();  // frees them before others are allocated
  stacks_ = std::make_unique<const Stacks>(count);
}

LentStacks::~LentStacks() {
  const std::lock_guard lock(idle_mutex);
  idle().push_back(std::move(stacks_));
}

int Stacks::count() const { return static_cast<int>(memory_.size() / stride); }

boost::context::stack_context Stacks::operator[](int index) const {
  const auto i = static_cast<std::size_t>(index);
  boost::context::stack_context stack;
  stack.sp = memory_.data() + (i + 1) * stride - i % colors * color;
  stack.size = stride - page - i % colors * color;
  // A thread that did not end may have left AddressSanitizer's poison here, if the program uses it.
  ASAN_UNPOISON_MEMORY_REGION(memory_.data() + i * stride, stride);
  return stack;
}

}  // namespace tessera::internal::emulator
