#include "jit/inspect/control_code.hpp"

#include <fmt/format.h>

namespace tessera::internal {
namespace {

/// Bits of the upper half of an encoding.
struct Field {
  unsigned first, bits;
  std::uint64_t mask() const { return ((std::uint64_t{1} << bits) - 1) << first; }
  unsigned of(const Encoding& encoding) const { return static_cast<unsigned>((encoding.high & mask()) >> first); }
  void set(Encoding& encoding, unsigned value) const {
    encoding.high = (encoding.high & ~mask()) | ((std::uint64_t{value} << first) & mask());
  }
};

constexpr Field stall{41, 4}, stay{45, 1}, write_barrier{46, 3}, read_barrier{49, 3}, wait{52, 6}, reuse{58, 4};

}  // namespace

ControlCode ControlCode::decode(const Encoding& encoding) {
  return {.stall = internal::stall.of(encoding),
          .yield = stay.of(encoding) == 0,
          .write_barrier = internal::write_barrier.of(encoding),
          .read_barrier = internal::read_barrier.of(encoding),
          .wait = internal::wait.of(encoding),
          .reuse = internal::reuse.of(encoding)};
}

Encoding ControlCode::encode(Encoding encoding) const {
  internal::stall.set(encoding, stall);
  stay.set(encoding, yield ? 0 : 1);
  internal::write_barrier.set(encoding, write_barrier);
  internal::read_barrier.set(encoding, read_barrier);
  internal::wait.set(encoding, wait);
  internal::reuse.set(encoding, reuse);
  return encoding;
}

std::string to_string(const ControlCode& code) {
  std::string text = "B";
  for (unsigned barrier = 0; barrier < 6; ++barrier)
    text += code.wait >> barrier & 1 ? static_cast<char>('0' + barrier) : '-';
  const auto set = [](unsigned barrier) {
    return barrier == ControlCode::no_barrier ? '-' : static_cast<char>('0' + barrier);
  };
  return text + fmt::format(":R{}:W{}:{}:S{:02}", set(code.read_barrier), set(code.write_barrier),
                            code.yield ? 'Y' : '-', code.stall);
}

}  // namespace tessera::internal
