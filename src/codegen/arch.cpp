#include "codegen/arch.hpp"

#include <fmt/format.h>

#include <charconv>

#include "graph/error.hpp"

namespace tessera {

Arch Arch::parse(std::string_view text) {
  std::string_view digits = text;
  Arch arch;
  if (digits.ends_with('a')) {
    arch.suffix = 'a';
    digits.remove_suffix(1);
  }
  int number = 0;
  if (digits.starts_with("sm_")) {
    digits.remove_prefix(3);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > 3) number = 0;
  }
  if (number < 10) throw Error(fmt::format("'{}' is no GPU architecture; one is written sm_80 or sm_90a", text));
  arch.major = number / 10;
  arch.minor = number % 10;
  return arch;
}

std::string Arch::name() const { return fmt::format("sm_{}{}", number(), suffix ? "a" : ""); }

int Arch::shared_bytes() const {
  switch (number()) {
    case 80:
    case 87:
      return 163 << 10;
    case 90:
    case 100:
    case 101:
    case 103:
    case 110:
      return 227 << 10;
    default:
      return 99 << 10;
  }
}

}  // namespace tessera
