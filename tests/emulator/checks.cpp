#include "emulator/checks.hpp"

#include <fmt/format.h>

#include <limits>
#include <new>
#include <utility>

#include "emulator/block.hpp"
#include "emulator/cluster.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t most_faults = 20;  // a single mistake often causes many

std::string_view verb(Use use) {
  switch (use) {
    case Use::read:
      return "reads";
    case Use::write:
      return "writes";
    case Use::atomic:
    case Use::block_atomic:
      return "atomically updates";
    case Use::contended:
      return "scatters to";
    case Use::copy_start:
      return "starts a copy to";
    case Use::copy_end:
      return "ends a copy to";
  }
  return {};
}

}  // namespace

Checks::Checks(const Stacks& stacks, const Lines& lines, std::vector<Shadow> tensors)
    : stacks_(stacks), lines_(lines), tensors_(std::move(tensors)) {}

void Checks::begin_launch(std::uint32_t block, std::optional<Shadow> workspace) {
  first_block_ = block;
  workspace_ = std::move(workspace);
}

template <class Visit>
void Checks::for_each_shadow(Block& block, Visit&& visit) {
  for (const auto& each : block.cluster().blocks()) visit(each->shadow());
  for (Shadow& tensor : tensors_) visit(tensor);
  if (workspace_) visit(*workspace_);
}

void Checks::access(Thread& thread, const void* pointer, std::size_t bytes, std::size_t alignment, Use use, Code code,
                    Space space, int unit) {
  const char* const address = static_cast<const char*>(pointer);
  if (stacks_.contain(pointer) && space == Space::any) return check_registers(thread, address, bytes, code);
  const auto subject = [&](std::string_view place) {
    return fmt::format("thread {} {} {} ({} bytes) at {}", thread.index, verb(use), place, bytes, lines_[code]);
  };
  Shadow* shadow = nullptr;
  for_each_shadow(thread.block, [&](Shadow& candidate) {
    if (candidate.begin() <= address && address + bytes <= candidate.end()) shadow = &candidate;
  });
  if (!shadow) {
    if (use == Use::read && lines_.contain(address)) return;  // a constant of the kernel
    report(Fault::Kind::out_of_bounds, thread, code, subject(nearest(thread.block, address, bytes)));
    thread.block.stop();
  }
  const std::optional<int> rank = thread.block.cluster().rank_of(*shadow);  // of the CTA that owns the memory
  const bool own = shadow == &thread.block.shadow();
  if (space == Space::any ? rank && !own : space == Space::cluster ? !rank : (space == Space::shared) != own) {
    report(Fault::Kind::out_of_bounds, thread, code,
           subject(place(*shadow, address)) + ", with an instruction for " +
               (space == Space::shared    ? "shared memory"
                : space == Space::cluster ? "shared memory of the cluster"
                                          : "memory outside of the block"));
    thread.block.stop();
  }
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    report(Fault::Kind::misaligned, thread, code,
           subject(place(*shadow, address)) + fmt::format(", which is not a multiple of {} bytes", alignment));
    thread.block.stop();
  }
  Cluster& cluster = thread.block.cluster();
  const auto block_of = [&](int rank) -> Block& { return *cluster.blocks()[static_cast<std::size_t>(rank)]; };
  // A unit that writes to another CTA's shared memory is one of that CTA.
  Now now = (rank && !own ? block_of(*rank) : thread.block).now(thread, unit);
  now.launch = first_block_;
  now.event.code = lines_.offset(code);
  now.event.atomic = use == Use::atomic || use == Use::block_atomic || use == Use::contended;
  now.event.for_block = use == Use::block_atomic;
  now.event.in_flight = use == Use::copy_start;
  now.event.write = use != Use::read;
  std::optional<Verdict> wrong;
  try {
    shadow->visit(address, bytes, [&](const Owner* owner, Cell& cell) {
      const bool early = use == Use::read && owner && owner->early;
      if (!rank && !early && !thread.waited && !thread.outside) thread.outside = code;
      if (const std::optional<Verdict> verdict = judge(owner, cell, now, use); verdict && !wrong) wrong = verdict;
      (use == Use::read ? cell.reads : cell.writes).add(now);
    });
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(fmt::format(
        "there is no memory left to record the accesses of kernel '{}' to {}, of {} bytes, in the emulator; use a "
        "smaller tensor, or TESSERA_EMULATOR_CHECKS=0, which turns the checks off",
        thread.block.launch().kernel, shadow->owners().front().name, shadow->end() - shadow->begin()));
  }
  if (wrong) {
    const std::string owner = rank && !own ? fmt::format(" of block {}", block_of(*rank).index()) : "";
    report(wrong->kind, thread, code, subject(place(*shadow, address) + owner) + story(thread.block, *wrong),
           wrong->other.code);
  }
}

void Checks::end_copy(Block& block, const char* address, std::size_t bytes, int unit) {
  block.shadow().visit(address, bytes, [&](const Owner*, Cell& cell) {
    Event& written = cell.writes.last();
    if (written.by_unit && written.thread == unit) written.in_flight = false;
  });
}

/// Registers are private to a thread, but a wgmma in flight owns some.
void Checks::check_registers(Thread& thread, const char* address, std::size_t bytes, Code code) {
  for (const Lent& lent : thread.lent) {
    const char *const begin = static_cast<const char*>(lent.begin), *const end = static_cast<const char*>(lent.end);
    if (address + bytes <= begin || address >= end) continue;
    report(Fault::Kind::in_flight, thread, code,
           fmt::format("thread {} uses registers at {} that a wgmma in flight owns until its wgmma_wait", thread.index,
                       lines_[code]));
  }
}

/// Returns what is wrong with an access to a cell, if anything.
std::optional<Checks::Verdict> Checks::judge(const Owner* owner, Cell& cell, const Now& now, Use use) {
  Event& written = cell.writes.last();
  if (!owner) return Verdict{.kind = Fault::Kind::out_of_bounds};
  if (written.in_flight) {
    if (use != Use::copy_end) return Verdict{.kind = Fault::Kind::in_flight, .other = written};
    if (written.thread == now.event.thread && !written.by_unit) written.in_flight = false;
  }
  if (use == Use::read || use == Use::atomic || use == Use::block_atomic) {
    if (!owner->initialized && cell.writes.empty()) return Verdict{.kind = Fault::Kind::uninitialized};
  }
  if (use != Use::read && !owner->writable) return Verdict{.kind = Fault::Kind::read_only};
  if (const Event* other = cell.writes.unordered(now)) {
    Now of_thread = now;  // ignoring the fence
    of_thread.event.by_unit = false;
    const bool ordered = now.event.by_unit && is_ordered(*other, of_thread);
    return Verdict{.kind = ordered ? Fault::Kind::missing_fence : Fault::Kind::race, .other = *other};
  }
  if (use == Use::read) return {};
  if (const Event* other = cell.reads.unordered(now)) {
    return Verdict{.kind = Fault::Kind::race, .other = *other, .other_reads = true};
  }
  return {};
}

/// The rest of the message, after its subject.
std::string Checks::story(Block& block, const Verdict& verdict) const {
  const Event& other = verdict.other;
  const auto who = [&] {
    if (other.block == block.number()) return block.order().name(other.thread);
    for (const auto& peer : block.cluster().blocks())
      if (other.block == peer->number())
        return fmt::format("{} of block {}", peer->order().name(other.thread), peer->index());
    return fmt::format("{} of block {}",
                       other.by_unit ? "an asynchronous unit" : fmt::format("thread {}", other.thread),
                       other.block - first_block_);
  };
  switch (verdict.kind) {
    case Fault::Kind::out_of_bounds:
      return ", which is between elements";
    case Fault::Kind::uninitialized:
      return ", which was never written";
    case Fault::Kind::read_only:
      return ", which the kernel may only read";
    case Fault::Kind::in_flight:
      if (other.by_unit)
        return fmt::format(", while the copy there by {}, started at {}, is in flight", who(), line(other));
      return fmt::format(", before the copy_async_wait of the copy there that {} started at {}", who(), line(other));
    case Fault::Kind::missing_fence:
      return fmt::format(", which {} wrote at {} with no async_proxy_fence since", who(), line(other));
    default:
      return fmt::format(", which {} {} at {} with no barrier between them", who(),
                         verdict.other_reads ? "read" : "wrote", line(other));
  }
}

/// An address in memory, by name and offset.
std::string Checks::place(Shadow& shadow, const char* address) {
  const Owner* owner = nullptr;
  shadow.visit(address, 1, [&](const Owner* found, Cell&) { owner = found; });
  if (!owner) owner = &shadow.owners().front();
  return fmt::format("byte {} of {}", address - owner->base, owner->name);
}

/// An address outside of all memory, relative to the nearest.
std::string Checks::nearest(Block& block, const char* address, std::size_t bytes) {
  std::ptrdiff_t least = std::numeric_limits<std::ptrdiff_t>::max();
  std::string text;
  for_each_shadow(block, [&](Shadow& shadow) {
    const std::ptrdiff_t before = shadow.begin() - address;
    const std::ptrdiff_t past = address + bytes - shadow.end();
    const std::ptrdiff_t distance = std::max(before, past);
    if (distance >= least || shadow.owners().empty()) return;
    least = distance;
    const std::string& name = shadow.owners().front().name;
    text = before > 0 ? fmt::format("{} bytes before {}", before, name) : fmt::format("{} bytes past {}", past, name);
  });
  return text;
}

void Checks::report(Fault::Kind kind, Thread& thread, Code code, const std::string& text, std::uint32_t other) {
  if (!known_.emplace(kind, lines_.offset(code), other).second) return;
  thread.block.report(kind, thread, code, text);
  if (known_.size() == most_faults) thread.block.stop();
}

}  // namespace tessera::internal::emulator
