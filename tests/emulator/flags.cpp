#include "emulator/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emulator/block.hpp"

namespace tessera::internal::emulator {

Flags::Flags(std::int64_t count) : words_(static_cast<std::size_t>(count)), states_(words_.size()) {}

std::size_t Flags::index_of(Thread& self, const void* at, Code code) {
  const auto offset = static_cast<const char*>(at) - reinterpret_cast<const char*>(words_.data());
  if (offset < 0 || offset % 4 != 0 || offset / 4 >= static_cast<std::ptrdiff_t>(words_.size()))
    self.block.refuse(self, code, fmt::format("uses byte {} as a flag, and there are {} flags", offset, words_.size()));
  return static_cast<std::size_t>(offset / 4);
}

void Flags::raise(Thread& self, const void* at, Code code) {
  const std::size_t index = index_of(self, at, code);
  if (words_[index]) self.block.refuse(self, code, fmt::format("sets flag {}, which is already set", index));
  words_[index] = 1;
  states_[index].of_raiser = self.block.order().publish(self.index, self.block.number());
  for (Thread* thread : std::exchange(states_[index].waiting, {})) thread->block.wake(*thread);
}

void Flags::await(Thread& self, const void* at, Code code) {
  const std::size_t index = index_of(self, at, code);
  while (!words_[index]) {
    states_[index].waiting.push_back(&self);
    self.block.sleep(self, {.what = "wait_flag", .code = code, .place = this});
  }
  words_[index] = 0;
  self.block.order().acquire(self.index,
                             Knowledge::seen_from(self.block.number(), std::exchange(states_[index].of_raiser, {})));
}

int Flags::raised() const { return static_cast<int>(std::ranges::count(words_, 1u)); }

std::string Flags::story(const Thread& waits) const {
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (std::ranges::count(states_[i].waiting, &waits)) return fmt::format(" for flag {}, which is never set", i);
  return {};
}

}  // namespace tessera::internal::emulator
