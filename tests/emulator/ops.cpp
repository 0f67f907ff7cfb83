// The emulated device functions of machine.hpp, except those of warp groups (ops_groups.cpp).
#include <array>
#include <atomic>
#include <cstring>

#include "codegen/target/stamps.hpp"
#include "emulator/block.hpp"
#include "emulator/cluster.hpp"
#include "emulator/machine.hpp"
#include "emulator/operands.hpp"
#include "graph/host_ops.hpp"
#include "graph/reports.hpp"

using namespace tessera::internal;
using namespace tessera::internal::emulator;

namespace {

#define CALLER __builtin_return_address(0)

void check(Thread& thread, const void* address, int bytes, Use use, Code code, Space space = Space::any) {
  const auto size = static_cast<std::size_t>(bytes);
  thread.block.check(thread, address, size, size, use, code, space);
}

struct Shuffle {
  std::uint64_t value;
  int source;
  std::uint64_t result;
};

void shuffle_lanes(const Block::Operands& lanes) {
  for (void* lane : lanes) {
    auto& self = *static_cast<Shuffle*>(lane);
    self.result = static_cast<Shuffle*>(lanes[static_cast<std::size_t>(self.source & (warp_size - 1))])->value;
  }
}

struct LoadMatrix {
  unsigned* out;
  const char* row;
  int matrices;
  bool transposed;
};

/// PTX ISA, ldmatrix: lane l gets elements 2 (l % 4) and the next of row l / 4 of each matrix; lane 8 m + r passes the
/// address of row r of matrix m.
void load_matrices(const Block::Operands& lanes) {
  const auto& first = *static_cast<const LoadMatrix*>(lanes[0]);
  for (int matrix = 0; matrix < first.matrices; ++matrix) {
    std::uint16_t element[8][8];
    for (int row = 0; row < 8; ++row) {
      const auto lane = static_cast<std::size_t>(8 * matrix + row);
      std::memcpy(element[row], static_cast<const LoadMatrix*>(lanes[lane])->row, sizeof element[row]);
    }
    for (int lane = 0; lane < warp_size; ++lane) {
      const int i = lane / 4, j = lane % 4 * 2;
      const std::uint32_t low = first.transposed ? element[j][i] : element[i][j];
      const std::uint32_t high = first.transposed ? element[j + 1][i] : element[i][j + 1];
      static_cast<LoadMatrix*>(lanes[static_cast<std::size_t>(lane)])->out[matrix] = low | high << 16;
    }
  }
}

template <class Sum>
struct Mma {
  Sum* c;
  const unsigned* a;
  const unsigned* b;
};

/// PTX ISA, "Matrix Fragments for mma.m16n8k16", "mma.m16n8k8" and "mma.m16n8k32": a register holds `Packed` neighbors
/// along k. With g = lane / 4 and t = lane % 4, registers a0 and a2 belong to row g, a1 and a3 to row g + 8, b0 and b1
/// to column g; a2, a3 and b1 are half of k further on; c0 and c1 belong to row g, c2 and c3 to row g + 8, columns 2 t
/// and 2 t + 1.
template <int Packed, class Sum, Sum (*Value)(std::uint32_t bits)>
void mma_sync(const Block::Operands& lanes) {
  constexpr int half = 4 * Packed, depth = 2 * half, bits = 32 / Packed;
  Sum a[16][depth], b[depth][8];
  for (int lane = 0; lane < warp_size; ++lane) {
    const auto& self = *static_cast<const Mma<Sum>*>(lanes[static_cast<std::size_t>(lane)]);
    const int g = lane / 4, t = lane % 4;
    for (int p = 0; p < Packed; ++p) {
      const int k = t * Packed + p;
      for (int i = 0; i < 4; ++i) a[g + i % 2 * 8][k + i / 2 * half] = Value(self.a[i] >> (p * bits));
      for (int i = 0; i < 2; ++i) b[k + i * half][g] = Value(self.b[i] >> (p * bits));
    }
  }
  Sum c[16][8]{};
  for (int m = 0; m < 16; ++m) {
    for (int k = 0; k < depth; ++k) {
      for (int n = 0; n < 8; ++n) c[m][n] += a[m][k] * b[k][n];
    }
  }
  for (int lane = 0; lane < warp_size; ++lane) {
    const auto& self = *static_cast<const Mma<Sum>*>(lanes[static_cast<std::size_t>(lane)]);
    for (int i = 0; i < 4; ++i) self.c[i] += c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

/// The value that an instruction stores.
template <class T>
T changed(EmulatedAtomic op, T a, T b, T c) {
  const auto of_integers = [&]<Op Which>(std::integral_constant<Op, Which>) {
    if constexpr (std::is_integral_v<T>)
      return math::Host<Which>::apply(a, b, c);
    else
      return a;
  };
  switch (op) {
    case emulated_load:
      return a;
    case emulated_add:
      return math::Host<Op::atomic_add>::apply(a, b, c);
    case emulated_max:
      return math::Host<Op::atomic_max>::apply(a, b, c);
    case emulated_min:
      return math::Host<Op::atomic_min>::apply(a, b, c);
    case emulated_and:
      return of_integers(std::integral_constant<Op, Op::atomic_and>());
    case emulated_or:
      return of_integers(std::integral_constant<Op, Op::atomic_or>());
    case emulated_xor:
      return of_integers(std::integral_constant<Op, Op::atomic_xor>());
    case emulated_exchange:
      return b;
    case emulated_compare_exchange:
      return math::Host<Op::atomic_compare_exchange>::apply(a, b, c);
  }
  return a;
}

}  // namespace

int emulated_thread_index() { return current_thread().index; }
long long emulated_block_index() { return current_thread().block.index(); }
long long emulated_grid_size() { return current_thread().block.launch().blocks; }
char* emulated_shared_memory() { return current_thread().block.shared_memory(); }

int emulated_cluster_rank() { return current_thread().block.cluster().rank_of(current_thread().block); }
int emulated_cluster_size() { return current_thread().block.launch().cluster; }

void emulated_cluster_barrier() {
  Thread& self = current_thread();
  self.block.cluster().meet(self, {.what = "cluster_barrier", .code = CALLER, .place = &self.block.cluster()});
}

void emulated_load_from_block(void* out, const void* at, int bytes, int rank) {
  Thread& self = current_thread();
  const void* const there = self.block.cluster().place_in(self, at, bytes, rank, "reads", CALLER);
  check(self, there, bytes, Use::read, CALLER, Space::cluster);
  std::memcpy(out, there, static_cast<std::size_t>(bytes));
}

void emulated_set_flag(void* flag) {
  Thread& self = current_thread();
  self.block.launch().flags.raise(self, flag, CALLER);
}

void emulated_wait_flag(void* flag) {
  Thread& self = current_thread();
  self.block.launch().flags.await(self, flag, CALLER);
}

void emulated_grid_arrive(void* arrivals) {
  Thread& self = current_thread();
  self.block.launch().grid_barrier.arrive(self, arrivals, CALLER);
}

void emulated_grid_leave(void* arrivals, unsigned expected) {
  Thread& self = current_thread();
  self.block.launch().grid_barrier.leave(self, arrivals, expected, CALLER);
}

void emulated_grid_wait(void* arrivals, unsigned expected) {
  Thread& self = current_thread();
  self.block.launch().grid_barrier.wait(self, arrivals, expected, CALLER);
}

void emulated_barrier() {
  Thread& self = current_thread();
  self.block.meet_block(self, {.what = "barrier", .code = CALLER});
}

void emulated_warp_barrier() {
  Thread& self = current_thread();
  self.block.meet_warp(self, {.what = "warp_barrier", .code = CALLER}, [](const Block::Operands&) {
    current_thread().block.order().warp_barrier(current_thread().warp());
  });
}

unsigned long long emulated_shuffle(const char* what, unsigned long long value, int source) {
  Thread& self = current_thread();
  Shuffle shuffle{.value = value, .source = source, .result = 0};
  self.block.meet_warp(self, {.what = what, .code = CALLER, .operands = &shuffle}, shuffle_lanes);
  return shuffle.result;
}

void emulated_load_matrix(unsigned* out, const void* row, int matrices, bool transposed) {
  Thread& self = current_thread();
  if (self.lane() < 8 * matrices) check(self, row, 16, Use::read, CALLER, Space::shared);
  LoadMatrix load{.out = out, .row = static_cast<const char*>(row), .matrices = matrices, .transposed = transposed};
  self.block.meet_warp(self, {.what = "load_matrix", .code = CALLER, .operands = &load}, load_matrices);
}

void emulated_mma(EmulatedOperand type, float* c, const unsigned* a, const unsigned* b) {
  Thread& self = current_thread();
  Mma<float> mma{.c = c, .a = a, .b = b};
  constexpr auto exchange =
      std::array{mma_sync<2, float, f16_operand>, mma_sync<2, float, bf16_operand>, mma_sync<1, float, tf32_operand>};
  self.block.meet_warp(self, {.what = "mma", .code = CALLER, .operands = &mma}, exchange[type]);
}

void emulated_mma_bytes(bool is_signed, unsigned* c, const unsigned* a, const unsigned* b) {
  Thread& self = current_thread();
  Mma<std::uint32_t> mma{.c = c, .a = a, .b = b};
  self.block.meet_warp(self, {.what = "mma", .code = CALLER, .operands = &mma},
                       is_signed ? mma_sync<4, std::uint32_t, i8_operand> : mma_sync<4, std::uint32_t, u8_operand>);
}

void emulated_copy_async(void* to, const void* from, int bytes, bool valid) {
  Thread& self = current_thread();
  if (valid) check(self, from, bytes, Use::read, CALLER, Space::global);
  check(self, to, bytes, Use::copy_start, CALLER, Space::shared);
  std::memset(to, poison, static_cast<std::size_t>(bytes));
  self.copies.push_back({.to = static_cast<char*>(to),
                         .from = valid ? static_cast<const char*>(from) : nullptr,
                         .bytes = bytes,
                         .group = self.groups});
}

void emulated_copy_async_commit() { ++current_thread().groups; }

void emulated_copy_async_wait(int pending) {
  Thread& self = current_thread();
  const auto is_done = [&](const Copy& copy) { return copy.group < self.groups - pending; };
  for (const Copy& copy : self.copies) {
    if (!is_done(copy)) continue;
    check(self, copy.to, copy.bytes, Use::copy_end, CALLER);
    const auto bytes = static_cast<std::size_t>(copy.bytes);
    if (copy.from) {
      std::memcpy(copy.to, copy.from, bytes);
    } else {
      std::memset(copy.to, 0, bytes);
    }
  }
  std::erase_if(self.copies, is_done);
}

void emulated_access(const void* address, unsigned long bytes, unsigned long alignment, bool write, const void* from) {
  Thread& self = current_thread();
  self.block.check(self, address, bytes, alignment, write ? Use::write : Use::read, from);
}

void emulated_contended_write(void* to, const void* from, unsigned long bytes) {
  check(current_thread(), to, static_cast<int>(bytes), Use::contended, CALLER);
  std::memcpy(to, from, bytes);
}

void emulated_atomic(EmulatedAtomic op, EmulatedWord type, int scope, void* to, const void* x, const void* expected,
                     void* old) {
  Thread& self = current_thread();
  self.block.pause(self);
  const auto change = [&]<class T>(T) {
    check(self, to, sizeof(T), scope == 0 ? Use::block_atomic : Use::atomic, CALLER);
    self.block.launch().atomics.meet(self, to, scope > 0);
    const T before = *static_cast<T*>(to);
    *static_cast<T*>(old) = before;
    *static_cast<T*>(to) = changed(op, before, *static_cast<const T*>(x), *static_cast<const T*>(expected));
  };
  switch (type) {
    case emulated_float:
      return change(float{});
    case emulated_double:
      return change(double{});
    case emulated_int:
      return change(std::int32_t{});
    case emulated_unsigned:
      return change(std::uint32_t{});
    case emulated_long:
      return change(std::int64_t{});
    case emulated_unsigned_long:
      return change(std::uint64_t{});
  }
}

void emulated_fence(int scope) {
  Thread& self = current_thread();
  self.block.launch().atomics.fence(self, scope > 0);
}

void emulated_fail_check(unsigned* board, int text, long long block) {
  if (board[board::failed]) return;
  board[board::failed] = 1;
  board[board::text] = static_cast<unsigned>(text);
  std::memcpy(board + board::block, &block, sizeof block);
}

unsigned* emulated_new_record(unsigned* board, int text, long long block, unsigned words) {
  const unsigned length = words + board::record_header;
  std::uint64_t at = 0;
  std::memcpy(&at, board + board::used, sizeof at);
  const std::uint64_t end = at + length;
  std::memcpy(board + board::used, &end, sizeof end);  // even without space: later records are lost as well
  if (end > board::room) {
    board[board::lost] = 1;
    return nullptr;
  }
  unsigned* const record = board + board::header + at;
  record[0] = length;
  record[1] = static_cast<unsigned>(text);
  std::memcpy(record + 2, &block, sizeof block);
  return record + board::record_header;
}

void emulated_record(unsigned* to, const void* from, unsigned long bytes) { std::memcpy(to, from, bytes); }

namespace {

/// The clock of all emulated multiprocessors.
std::uint32_t tick() {
  static std::atomic<std::uint32_t> ticks{0};
  return ++ticks;
}

}  // namespace

void emulated_stamp(unsigned long long* row, unsigned room, unsigned* at, unsigned number) {
  if (*at < room) row[(*at)++] = std::uint64_t{number} << 32 | tick();
}

void emulated_stamp_place(unsigned long long* row, unsigned room, unsigned* at, unsigned number, unsigned tile) {
  if (*at + stamps::words_of_place > room) return;
  const std::uint32_t now = tick();
  row[*at] = std::uint64_t{number} << 32 | now;
  row[*at + 1] = now;
  row[*at + 2] = std::uint64_t{tile} << 32 | static_cast<std::uint32_t>(current_thread().block.index());
  *at += stamps::words_of_place;
}

void emulated_fail(const char* what, int line) {
  Thread& self = current_thread();
  self.block.report(Fault::Kind::failed_check, self, CALLER,
                    "thread " + std::to_string(self.index) + ": " + what + " (line " + std::to_string(line) + ")");
  self.block.stop();
}
