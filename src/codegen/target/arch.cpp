#include "tessera/codegen/arch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

Arch Arch::parse(std::string_view text) {
  std::vector<std::string> choices;
  for (const int number : {80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121}) {
    for (const char suffix : {'\0', 'a'}) {
      const Arch arch{number / 10, number % 10, suffix};
      if (suffix && number < 90) continue;
      if (arch.name() == text) return arch;
      choices.push_back(arch.name());
    }
  }
  throw Error(fmt::format("Tessera makes no kernels for '{}'; choose from {}", text, fmt::join(choices, ", ")));
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

}  // namespace tessera::internal
