#include "common/machine.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace tessera::bench {
namespace {

struct Ceilings {
  std::string_view machine;
  std::array<double, 5> per_second;  // memory, f16, bf16, tf32, f32
};
// Memory: what a copy reaches, of 4.8 TB/s on paper. The others: NVIDIA's data sheet, without sparsity.
constexpr Ceilings table[] = {{"h200", {4.3e12, 989e12, 989e12, 494e12, 67e12}}};

}  // namespace

std::string machine_name(const Device& device) {
  const std::string_view name = device.name();
  if (!device.info().arch) return "cpu";
  const std::size_t begin = name.find('(') + 1;
  std::string_view product = name.substr(begin, name.rfind(',') - begin);
  constexpr std::string_view maker = "NVIDIA ";
  if (product.starts_with(maker)) product.remove_prefix(maker.size());
  std::string machine;
  for (const char letter : product) {
    const auto c = static_cast<unsigned char>(letter);
    machine += std::isalnum(c) ? static_cast<char>(std::tolower(c)) : '-';
  }
  return machine;
}

std::optional<double> ceiling(const Device& device, Resource resource) {
  const std::string machine = machine_name(device);
  const auto* found = std::ranges::find(table, machine, &Ceilings::machine);
  if (found == std::end(table)) return {};
  return found->per_second[static_cast<std::size_t>(resource)];
}

Turns turns_of(const Device& device, const Row& row) {
  // Before a set comes again, four times the L2 cache has gone through it.
  const double cache = 4 * static_cast<double>(device.info().l2_bytes);
  Turns turns;
  turns.sets = std::clamp(static_cast<int>(std::ceil(cache / row.bytes)) + 1, 2, 20);
  turns.calls = (turns.calls + turns.sets - 1) / turns.sets * turns.sets;
  return turns;
}

}  // namespace tessera::bench
