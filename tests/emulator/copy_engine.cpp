#include "emulator/copy_engine.hpp"

#include <fmt/ranges.h>

#include <cstring>
#include <utility>

#include "emulator/block.hpp"
#include "emulator/checks.hpp"
#include "emulator/cluster.hpp"
#include "emulator/swizzle.hpp"
#include "graph/math.hpp"

namespace tessera::internal::emulator {
namespace {

constexpr int chunk = 16, box_alignment = 128;

// As cvt.rn.tf32.f32 (seen on an H200).
void round_to_tf32(char* bytes, int count) {
  for (int i = 0; i < count; i += 4) {
    float x;
    std::memcpy(&x, bytes + i, sizeof x);
    x = math::round_to_tf32(x);
    std::memcpy(bytes + i, &x, sizeof x);
  }
}

// TMA stores whole chunks: a chunk that extends past the end of a row is written entirely (seen on an H200).
int whole_chunks(int bytes) { return (bytes + chunk - 1) / chunk * chunk; }

BoxMap::Coordinates coordinates(std::span<const int> at) {
  BoxMap::Coordinates result{};
  std::ranges::copy(at, result.begin());
  return result;
}

}  // namespace

BoxMap CopyEngine::box(Thread& self, const void* map, std::span<const int> at, Code code) {
  const BoxMap box = decode(map);
  if (box.axes != at.size())
    block_.refuse(self, code,
                  fmt::format("copies a box at {} coordinates, and its tensor map has {} axes", at.size(), box.axes));
  return box;
}

CopyEngine::Loads& CopyEngine::loads_of(const Thread& self, const MemoryBarrier& barrier) {
  const auto [known, is_new] = loads_of_.try_emplace({self.block.index(), &barrier});
  if (is_new) {
    const std::string by = &self.block == &block_ ? "" : fmt::format(" of block {}", self.block.index());
    known->second.unit = block_.order().new_unit(fmt::format("TMA{} for {}", by, barrier.name()));
  }
  return known->second;
}

/// The mbarrier in this CTA that shall count the bytes of a copy.
MemoryBarrier& CopyEngine::counting(Thread& self, const void* at_barrier, Code code) {
  MemoryBarrier& barrier = block_.memory_barriers().find(self, at_barrier, code);
  if (barrier.fenced) return barrier;
  self.block.report(Fault::Kind::missing_fence, self, code,
                    fmt::format("thread {} starts a copy that {} counts at {}, with no barrier_init_fence since it was "
                                "initialized",
                                self.index, barrier.name(), block_.launch().lines[code]));
  self.block.stop();
}

/// Checks the reads of the tensor.
void CopyEngine::check_box(Thread& self, const Load& load, Code code) {
  load.map.each_row(load.at, [&](int, const char* row, int first, int end) {
    if (end > first)
      block_.check(self, row, static_cast<std::size_t>(end - first), load.map.element_bytes, Use::read, code,
                   Space::global, load.unit);
  });
}

void CopyEngine::start(Thread& self, Load load, void* to, Code code) {
  load.to = static_cast<std::uint32_t>(
      block_.offset_in_shared(self, to, load.map.bytes(), box_alignment, Use::copy_start, code, load.unit));
  load.time = block_.order().tick();
  Loads& all = loads_of(self, *load.barrier);
  all.time = load.time, all.thread = &self, all.code = code;
  std::memset(block_.shared_memory() + load.to, poison, static_cast<std::size_t>(load.map.bytes()));
  loads_.push_back(load);
}

void CopyEngine::load(Thread& self, const void* map, void* to, const void* at_barrier, std::span<const int> at,
                      Code code) {
  MemoryBarrier& barrier = counting(self, at_barrier, code);
  const Load load{.map = box(self, map, at, code),
                  .at = coordinates(at),
                  .to = 0,
                  .barrier = &barrier,
                  .unit = loads_of(self, barrier).unit,
                  .time = 0};
  check_box(self, load, code);
  start(self, load, to, code);
}

void CopyEngine::load_multicast(Thread& self, const void* map, void* to, const void* at_barrier,
                                std::span<const int> at, Code code) {
  load(self, map, to, at_barrier, at, code);
  Load load = loads_.back();
  Cluster& cluster = block_.cluster();
  for (const auto& other : cluster.blocks()) {
    if (other.get() == &block_) continue;
    const int rank = cluster.rank_of(*other);
    const auto there = [&](const void* here, int bytes) {
      return cluster.place_in(self, here, bytes, rank, "copies to", code);
    };
    CopyEngine& engine = other->copy_engine();
    load.barrier = &engine.counting(self, there(at_barrier, barrier_bytes), code);
    load.unit = engine.loads_of(self, *load.barrier).unit;
    engine.start(self, load, there(to, load.map.bytes()), code);
  }
}

bool CopyEngine::end(const Now& now) const {
  for (const auto& [key, loads] : loads_of_) {
    if (key.first == block_.index() || loads.time <= now.knowledge->known[static_cast<std::size_t>(loads.unit)])
      continue;
    loads.thread->block.report(
        Fault::Kind::misuse, *loads.thread, loads.code,
        fmt::format("thread {} starts a copy to shared memory of block {} at {}, and block {} may end before the copy: "
                    "it does not wait for {}",
                    loads.thread->index, block_.index(), block_.launch().lines[loads.code], block_.index(),
                    key.second->name()));
    return false;
  }
  return true;
}

void CopyEngine::make(const Load& load) {
  char* const shared = block_.shared_memory();
  load.map.each_row(load.at, [&](int offset, const char* row, int first, int end) {
    char bytes[box_alignment] = {};
    std::memcpy(bytes + first, row, static_cast<std::size_t>(end - first));
    if (load.map.to_tf32) round_to_tf32(bytes, box_alignment);
    for (int i = 0; i < load.map.row_bytes(); i += chunk)
      std::memcpy(shared + swizzled(load.to + static_cast<std::uint32_t>(offset + i), 8), bytes + i, chunk);
  });
  if (Checks* const checks = block_.launch().checks)
    checks->end_copy(block_, shared + load.to, static_cast<std::size_t>(load.map.bytes()), load.unit);
  block_.memory_barriers().complete(*load.barrier, load.map.bytes(), load.unit, load.time);
}

CopyEngine::Stores& CopyEngine::stores_of(int thread) {
  const auto [known, is_new] = of_threads_.try_emplace(thread);
  if (is_new) {
    known->second.reads = block_.order().new_unit(fmt::format("a TMA store that thread {} started", thread));
    known->second.writes = block_.order().new_unit(fmt::format("a TMA store that thread {} started", thread));
  }
  return known->second;
}

void CopyEngine::store(Thread& self, const void* map, const void* from, std::span<const int> at, Code code) {
  if (std::ranges::any_of(at, [](int place) { return place < 0; }))
    block_.refuse(
        self, code,
        fmt::format("stores a box at ({}), and coordinates of a store must not be negative", fmt::join(at, ", ")));
  const Stores& own = stores_of(self.index);
  Store store{.map = box(self, map, at, code),
              .at = coordinates(at),
              .from = 0,
              .thread = self.index,
              .group = static_cast<int>(own.closed.size())};
  store.from = static_cast<std::uint32_t>(
      block_.offset_in_shared(self, from, store.map.bytes(), box_alignment, Use::read, code, own.reads));
  store.map.each_row(store.at, [&](int, const char* row, int first, int end) {
    if (end > first)
      block_.check(self, row, static_cast<std::size_t>(whole_chunks(end) - first), store.map.element_bytes, Use::write,
                   code, Space::global, own.writes);
  });
  stores_.push_back(store);
}

void CopyEngine::make(const Store& store) {
  const char* const shared = block_.shared_memory();
  store.map.each_row(store.at, [&](int offset, char* row, int first, int end) {
    char bytes[box_alignment];
    for (int i = 0; i < store.map.row_bytes(); i += chunk)
      std::memcpy(bytes + i, shared + swizzled(store.from + static_cast<std::uint32_t>(offset + i), 8), chunk);
    if (end > first) std::memcpy(row, bytes + first, static_cast<std::size_t>(whole_chunks(end) - first));
  });
}

void CopyEngine::commit(const Thread& self) { stores_of(self.index).closed.push_back(block_.order().tick()); }

void CopyEngine::wait(const Thread& self, int pending) {
  const Stores& own = stores_of(self.index);
  const int over = static_cast<int>(own.closed.size()) - pending;
  const auto is_over = [&](const Store& store) { return store.thread == self.index && store.group < over; };
  for (const Store& store : stores_)
    if (is_over(store)) make(store);
  std::erase_if(stores_, is_over);
  if (over > 0) block_.order().finish(self.index, own.reads, own.closed[static_cast<std::size_t>(over - 1)]);
}

void CopyEngine::make(int which) {
  auto i = static_cast<std::size_t>(which);
  const auto take = [](auto& copies, std::size_t i) {
    const auto copy = copies[i];
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(i));
    return copy;
  };
  if (i < loads_.size())
    make(take(loads_, i));
  else
    make(take(stores_, i - loads_.size()));
}

}  // namespace tessera::internal::emulator
