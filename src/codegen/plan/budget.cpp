#include "codegen/plan/budget.hpp"

#include <algorithm>

#include "codegen/plan/effects.hpp"

namespace tessera::codegen {
namespace {

// What a step needs besides the values it names.
int besides(const Plan& plan, const Step& step) {
  // Addresses of elements that are moved one by one are computed ahead of the accesses.
  const auto addresses = [&](const Sweep& sweep, const TileAccess& access) {
    return sweep.unrolled && access.vector == 1 ? sweep.layout.registers() * (plan.variant.wide ? 2 : 1) : 0;
  };
  if (const Load* load = std::get_if<Load>(&step.action)) return addresses(load->sweep, load->access);
  if (const Store* store = std::get_if<Store>(&step.action))
    return store->kind == Store::Kind::store ? addresses(store->sweep, store->access) : 0;
  if (const Multiply* multiply = std::get_if<Multiply>(&step.action)) {
    const Product& product = multiply->product;
    if (product.kind == ProductKind::thin) return 0;
    const int m = multiply->layout.cover(0) / product.warps_m, n = multiply->layout.cover(1) / product.warps_n;
    return product.kind == ProductKind::tensor ? m / 4 + n / 4 : m / 2 + n / 2;
  }
  return 0;
}

}  // namespace

int Budget::registers() const {
  const int besides = has_products_ ? target_.registers_besides_products : target_.registers_besides;
  return std::min(target_.most_registers, target_.registers / threads_) - besides - besides_products();
}

int Budget::blocks(int registers) const {
  // Left to itself the compiler spills a little to make room for more blocks; so it is told how many, with room to
  // spare.
  constexpr int spare = 64;
  return std::clamp(target_.registers / (threads_ * (registers + spare + besides_products())), 1,
                    std::min(target_.most_blocks, target_.threads / threads_));
}

std::int64_t staging_bytes(const Target& target, int stages) {
  const std::int64_t room = target.shared_bytes - target.shared_bytes_besides;
  return stages > 2 ? room / 2 : room;
}

int pressure(const Plan& plan) {
  Intervals intervals(plan.storages.size());
  std::vector<std::pair<int, int>> extra;  // position, registers
  Walk walk(plan);
  const int positions =
      walk.each([&](const Role&, const Step& step, int at, const std::vector<const Interval*>& around) {
        for (ValueId id : operands(step)) intervals.touch(plan.values[id].storage.index, at, around);
        for (ValueId id : results(step)) intervals.touch(plan.values[id].storage.index, at, around);
        if (const int more = besides(plan, step)) extra.emplace_back(at, more);
      });
  std::vector<int> change(static_cast<std::size_t>(positions) + 2);
  for (int i = 0; i < plan.storages.size(); ++i) {
    const Storage& storage = plan.storages[StorageId{i}];
    if (storage.home != Home::registers && storage.home != Home::variable) continue;
    const Interval in_use = intervals.of(i);
    if (in_use.last < 0) continue;
    const int words = storage.registers * (storage.type == ElementType::i64 ? 2 : 1);
    change[static_cast<std::size_t>(in_use.first)] += words;
    change[static_cast<std::size_t>(in_use.last) + 1] -= words;
  }
  for (auto [at, registers] : extra) {
    change[static_cast<std::size_t>(at)] += registers;
    change[static_cast<std::size_t>(at) + 1] -= registers;
  }
  int now = 0, most = 0;
  for (int step : change) most = std::max(most, now += step);
  return most;
}

}  // namespace tessera::codegen
