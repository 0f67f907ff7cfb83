#include "codegen/analysis/budget.hpp"

#include <algorithm>
#include <set>

#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {
namespace {

// Index registers. An element that is moved on its own takes an index; but not in scatters and atomics, where each
// access is behind a condition. Panels take addresses: the swizzle leaves no constant distance between the eight chunks
// of a row, of which ldmatrix reads two at a time. A transposed matrix of bytes is unpacked, too.
int indices(const Plan& plan, const Step& step) {
  const auto of = [&](const Sweep& sweep, const TileAccess& access) {
    return sweep.unrolled && access.vector == 1 ? sweep.layout.registers() * (plan.variant.index64 ? 2 : 1) : 0;
  };
  if (const Load* load = step.action.as<Load>()) return of(load->sweep, load->access);
  if (const LoadFragment* read = step.action.as<LoadFragment>())
    return !read->by_matrix ? 8 : read->transposed ? 16 : 4;
  const Store* const store = step.action.as<Store>();
  return store && store->kind == Store::Kind::store ? of(store->sweep, store->access) : 0;
}

// Registers of 64-bit addresses that exist before the reads: those of the rows or elements of a gather, and those of
// the tiles that an expression reads, with the bounds of each tile.
int addresses(const Step& step) {
  constexpr int of_row = 2, of_tile = 4;
  const Sweep* const sweep = sweep_of(step);
  const int tiles = sweep ? of_tile * static_cast<int>(sweep->reads.size()) : 0;
  const Load* const load = step.action.as<Load>();
  if (!load || !load->sweep.unrolled || !(load->access.rows || load->access.by_elements())) return tiles;
  return of_row * load->sweep.layout.registers() / load->access.vector;
}

// Registers of the fragments of a matmul's operands.
int fragments(const Step& step) {
  const Mma* const mma = step.action.as<Mma>();
  if (!mma || mma->matmul.kind == MatmulKind::gemv) return 0;
  const Matmul& matmul = mma->matmul;
  const int m = mma->layout.cover(0) / matmul.warps_m, n = mma->layout.cover(1) / matmul.warps_n;
  return matmul.kind == MatmulKind::mma_sync ? m / 4 + n / 4 : m / 2 + n / 2;
}

// Registers of the prefixes that each run of neighbors of a scan starts from: ptxas keeps all of them at a time.
int beginnings(const Plan& plan, const Step& step) {
  const auto of = [&](ValueId out, int axis) {
    const Layout& layout = plan.values[out].layout;
    const std::optional<Line> line = line_of(layout, axis);
    return line ? layout.registers() / line->run.size : 0;
  };
  if (const Scan* scan = step.action.as<Scan>()) return of(scan->out, scan->axis);
  const AddScanPrefix* add = step.action.as<AddScanPrefix>();
  return add ? of(add->out, add->axis) : 0;
}

// Registers of sort keys, for rows in memory. Other sorts use the registers of their results.
int keys(const Plan& plan, const Step& step) {
  const Sort* const sort = step.action.as<Sort>();
  if (!sort || plan.storage(sort->out).storage_class != StorageClass::workspace) return 0;
  const std::optional<Line> line = line_of(plan.values[sort->out].layout, sort->axis);
  const int words = host_bytes(host_type(plan.storage(sort->out).type)) / 4;
  return line ? line->run.size * (words + (sort->at ? 1 : 0)) : 0;
}

// Registers in use between two positions, and their maximum over all positions.
class Usage {
 public:
  explicit Usage(int positions) : change_(static_cast<std::size_t>(positions) + 2) {}
  void add(Interval in_use, int registers) {
    change_[static_cast<std::size_t>(in_use.first)] += registers;
    change_[static_cast<std::size_t>(in_use.last) + 1] -= registers;
  }
  int most() const {
    int now = 0, most = 0;
    for (int change : change_) most = std::max(most, now += change);
    return most;
  }

 private:
  std::vector<int> change_;
};

}  // namespace

// All registers of a warp are in one partition of the multiprocessor.
int Budget::limit(int blocks) const {
  const int warps = (blocks * threads_ / 32 + target_.parts - 1) / target_.parts;
  const int registers = target_.registers / target_.parts / 32 / warps;
  return std::min(target_.most_registers, registers / target_.register_unit * target_.register_unit);
}

int Budget::besides() const {
  return (has_matmuls_ ? target_.registers_besides_matmuls : target_.registers_besides) + besides_matmuls();
}

int Budget::taken(int groups, int left, int blocks) const {
  const int registers = (limit(blocks) * (groups + 1) - left) / groups;
  return std::min(registers, target_.most_registers) / target_.register_unit * target_.register_unit;
}

int Budget::registers() const { return limit(1) - besides(); }

int Budget::blocks(const Plan& plan, int needed) const {
  // The compiler loads values that are kept in memory into registers when it likes: their number is unknown.
  for (int i = 0; i < plan.storages.size(); ++i)
    if (plan.storages[StorageId{i}].storage_class == StorageClass::workspace) return 1;
  // Left alone, the compiler spills a little to fit more CTAs. So it is given the number of CTAs, with spare registers.
  constexpr int spare = 64;
  int blocks = std::clamp(target_.registers / (threads_ * (needed + spare + besides_matmuls())), 1,
                          std::min(target_.most_blocks, target_.threads / threads_));
  while (blocks > 1 && !holds(blocks, needed)) --blocks;
  return blocks;
}

int shared_bytes_of_block(const Target& target, int blocks) {
  return (target.shared_bytes + target.shared_bytes_of_system) / blocks - target.shared_bytes_of_system;
}

std::int64_t staging_bytes(const Target& target, int stages, int blocks) {
  const std::int64_t room = target.shared_bytes - target.shared_bytes_besides;
  return stages > 2 ? room / blocks : room;
}

namespace {

// Does the value follow from the thread's position and from numbers, or is it a condition? ptxas computes such values
// where they are used.
bool is_place(const Plan& plan, const Compute& compute) {
  const auto is_number = [&](const Operand& operand) {
    return operand.kind != Operand::Kind::fetched &&
           (operand.kind != Operand::Kind::value || plan.storage(operand.value).registers <= 2);
  };
  const std::vector<Term>& terms = compute.sweep.expression.terms;
  if (plan.storage(compute.out).type == ElementType::pred) return true;
  return terms.size() <= 4 && std::ranges::all_of(terms, [&](const Term& term) {
    return info(term.type).kind != ElementKind::real && info(term.operand).kind != ElementKind::real &&
           std::ranges::all_of(term.in, is_number);
  });
}

}  // namespace

Pressure pressure(const Plan& plan, bool in_place, const std::set<StorageId>& without) {
  struct Extra {
    int at, values, all;
  };
  struct Computed {
    int at;
    int out;
    std::vector<int> from;
  };
  std::vector<Computed> computed;
  std::set<StorageId> anew;
  // A matmul that overwrites a storage starts a new live range: the previous contents are dead. A value that the matmul
  // leaves to the next tile is live until the end of this one, where steps name it, and from before the first tile.
  std::vector<int> life;
  std::vector<StorageId> lives;
  for (int i = 0; i < plan.storages.size(); ++i) life.push_back(i), lives.push_back(StorageId{i});
  Intervals intervals(plan.storages.size());
  const auto life_of = [&](ValueId id) { return life[static_cast<std::size_t>(plan.values[id].storage.index)]; };
  std::vector<Extra> extra;
  PlanWalk walk(plan, true);
  const int positions =
      walk.each([&](const Role&, const Step& step, int at, const std::vector<const Interval*>& around) {
    if (const Wgmma* wgmma = step.action.as<Wgmma>(); wgmma && wgmma->overwrites && around.empty()) {
      const StorageId out = plan.values[wgmma->out].storage;
      life[static_cast<std::size_t>(out.index)] = intervals.add();
      lives.push_back(out);
    }
    for (ValueId id : operands(step)) intervals.touch(life_of(id), at, around);
    for (ValueId id : results(step)) intervals.touch(life_of(id), at, around);
    if (const Compute* compute = step.action.as<Compute>(); compute && in_place) {
      std::vector<int> from;
      for (const ValueId id : operands(step)) from.push_back(life_of(id));
      computed.push_back({at, life_of(compute->out), std::move(from)});
      if (is_place(plan, *compute)) anew.insert(plan.values[compute->out].storage);
    }
    const int index = indices(plan, step), address = std::max(index, addresses(step));
    const int parts = fragments(step) + beginnings(plan, step) + keys(plan, step);
    if (address + parts > 0) extra.push_back({at, index + parts, address + parts});
  });
  Usage values(positions), all(positions);
  const auto words = [&](StorageId id) {
    const Storage& storage = plan.storages[id];
    if ((storage.storage_class != StorageClass::registers && storage.storage_class != StorageClass::variable) ||
        anew.contains(id) || without.contains(id))
      return 0;
    if (storage.packed > 1) return storage.registers / storage.packed;
    return storage.registers * (host_bytes(host_type(storage.type)) / 4);
  };
  const auto words_of = [&](int one) { return words(lives[static_cast<std::size_t>(one)]); };
  for (int one = 0; one < static_cast<int>(lives.size()); ++one) {
    const Interval in_use = intervals.of(one);
    if (in_use.last < 0) continue;
    values.add(in_use, words_of(one));
    all.add(in_use, words_of(one));
  }
  for (const auto& [at, out, from] : computed) {
    if (intervals.of(out).first != at) continue;
    std::set<int> ends;
    for (const int one : from)
      if (intervals.of(one).last == at) ends.insert(one);
    int given = 0;
    for (const int one : ends) given += words_of(one);
    given = std::min(given, words_of(out));
    extra.push_back({at, -given, -given});
  }
  for (const Extra& step : extra) {
    values.add({step.at, step.at}, step.values);
    all.add({step.at, step.at}, step.all);
  }
  return {values.most(), all.most()};
}

RolePressure role_pressure(const Plan& plan, bool reads_ahead) {
  const Target& target = plan.target;
  int tiles = 0;                // read by one step, beside the accumulators that it stores
  std::set<StorageId> in_loop;  // sums that are promoted: free when accumulators are stored
  PlanWalk walk(plan);
  walk.each([&](const Role&, const Step& step, int, const auto&) {
    if (const PromoteSums* const promoted = step.action.as<PromoteSums>())
      in_loop.insert(plan.values[promoted->sums].storage);
    const Sweep* const sweep = sweep_of(step);
    if (!sweep) return;
    const Load* const load = step.action.as<Load>();
    tiles = std::max(tiles, static_cast<int>(sweep->reads.size()) + (load && load->access.from_here));
  });
  const int set = plan.phases[0].roles.back().registers;
  const int stored = tiles * target.registers_ahead + (reads_ahead ? target.registers_of_epilogue : 0);
  // In a cluster ptxas hoists the values of the epilogue to where partials are added; in stream-K a loop is in between.
  const SplitK split_k = plan.phases[0].schedule.split_k;
  const int parts = split_k == SplitK::none ? 0 : target.registers_of_parts;
  const int state = split_k == SplitK::stream_k ? target.registers_of_stream_k : 0;
  const int epilogue = split_k == SplitK::stream_k ? std::max(stored + state, parts) : stored + parts;
  return {.values = std::max(pressure(plan, true).values + state, pressure(plan, true, in_loop).values + epilogue),
          .room = (set ? set : target.most_registers) - target.registers_besides};
}

}  // namespace tessera::internal::codegen
