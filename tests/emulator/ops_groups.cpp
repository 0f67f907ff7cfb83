// The emulated device functions of warp groups: mbarriers, TMA, wgmma.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "emulator/block.hpp"
#include "emulator/cluster.hpp"
#include "emulator/machine.hpp"

using namespace tessera::internal;
using namespace tessera::internal::emulator;

namespace {

#define CALLER __builtin_return_address(0)

struct StoreMatrix {
  char* row;
  const unsigned* registers;
  bool transposed;
};

/// PTX ISA, stmatrix: the inverse of ldmatrix. Half `half` of a lane's register is an element of row lane / 4.
void store_matrices(const Block::Operands& lanes) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    for (int lane = 0; lane < warp_size; ++lane) {
      const auto& self = *static_cast<const StoreMatrix*>(lanes[static_cast<std::size_t>(lane)]);
      for (int half = 0; half < 2; ++half) {
        const int row = lane / 4, column = lane % 4 * 2 + half;
        const int to = self.transposed ? column : row, at = self.transposed ? row : column;
        const auto& address = *static_cast<const StoreMatrix*>(lanes[static_cast<std::size_t>(8 * matrix + to)]);
        std::memcpy(address.row + 2 * at, reinterpret_cast<const char*>(self.registers + matrix) + 2 * half, 2);
      }
    }
  }
}

/// Waits for all threads of the warp group; `work` is done once, for the CTA's wgmma units.
template <class Work>
void with_group(const char* what, Code code, void* operands, Work) {
  Thread& self = current_thread();
  self.block.meet_group(self, {.what = what, .code = code, .operands = operands},
                        [](std::span<Thread> threads) { Work{}(threads[0].block.matrix_units(), threads); });
}

void start_matmul(Wgmma asked, Code code) {
  with_group("wgmma", code, &asked, [](MatrixUnits& units, std::span<Thread> threads) {
    std::vector<Wgmma> all;
    for (const Thread& thread : threads) all.push_back(*static_cast<const Wgmma*>(thread.meeting.operands));
    units.start(threads, all, threads[0].meeting.code);
  });
}

}  // namespace

void emulated_barrier_init(void* at, int arrivals) {
  Thread& self = current_thread();
  self.block.memory_barriers().init(self, at, arrivals, CALLER);
}

void emulated_barrier_init_fence() {
  Thread& self = current_thread();
  self.block.memory_barriers().fence(self);
}

void emulated_griddep_wait() {
  Thread& self = current_thread();
  if (self.outside)
    self.block.refuse(self, CALLER,
                      fmt::format("waits for the preceding launch after it accessed global memory at {},",
                                  self.block.launch().lines[self.outside]));
  self.waited = true;
}

void emulated_barrier_arrive(void* at, int expected_bytes) {
  Thread& self = current_thread();
  self.block.memory_barriers().arrive(self, at, expected_bytes, CALLER);
}

void emulated_barrier_arrive_cluster(void* at) {
  Thread& self = current_thread();
  self.block.cluster().arrive(self, at, CALLER);
}

void emulated_barrier_wait(void* at, unsigned parity) {
  Thread& self = current_thread();
  self.block.memory_barriers().wait(self, at, parity, CALLER);
}

void emulated_named_barrier(int id, int threads, bool waits) {
  Thread& self = current_thread();
  self.block.named_barriers().come(self, id, threads, waits, CALLER);
}

void emulated_give_registers(int registers) {
  Thread& self = current_thread();
  self.block.registers().give(self, registers, CALLER);
}

void emulated_take_registers(int registers) {
  Thread& self = current_thread();
  self.block.registers().take(self, registers, CALLER);
}

void emulated_box_load(const void* map, void* to, void* barrier, const int* at, int axes) {
  Thread& self = current_thread();
  self.block.copy_engine().load(self, map, to, barrier, {at, static_cast<std::size_t>(axes)}, CALLER);
}

void emulated_box_load_multicast(const void* map, void* to, void* barrier, const int* at, int axes) {
  Thread& self = current_thread();
  self.block.copy_engine().load_multicast(self, map, to, barrier, {at, static_cast<std::size_t>(axes)}, CALLER);
}

void emulated_box_store(const void* map, const void* from, const int* at, int axes) {
  Thread& self = current_thread();
  self.block.copy_engine().store(self, map, from, {at, static_cast<std::size_t>(axes)}, CALLER);
}

void emulated_box_store_commit() {
  Thread& self = current_thread();
  self.block.copy_engine().commit(self);
}

void emulated_box_store_wait(int pending) {
  Thread& self = current_thread();
  self.block.copy_engine().wait(self, pending);
}

void emulated_proxy_fence() {
  Thread& self = current_thread();
  self.block.order().fence(self.index);
}

void emulated_wgmma(EmulatedOperand type, int n, bool transposed_a, bool transposed_b, void* d, unsigned long long a,
                    unsigned long long b, bool adds) {
  start_matmul({.type = type,
                .n = n,
                .transposed_a = transposed_a,
                .transposed_b = transposed_b,
                .d = static_cast<unsigned*>(d),
                .a = a,
                .b = b,
                .adds = adds},
               CALLER);
}

void emulated_wgmma_left(EmulatedOperand type, int n, bool transposed_b, void* d, const unsigned* a,
                         unsigned long long b, bool adds) {
  start_matmul({.type = type,
                .n = n,
                .transposed_b = transposed_b,
                .d = static_cast<unsigned*>(d),
                .left = const_cast<unsigned*>(a),
                .b = b,
                .adds = adds},
               CALLER);
}

void emulated_wgmma_fence() {
  with_group("wgmma_fence", CALLER, nullptr,
             [](MatrixUnits& units, std::span<Thread> threads) { units.fence(threads); });
}

void emulated_wgmma_commit() {
  with_group("wgmma_commit", CALLER, nullptr,
             [](MatrixUnits& units, std::span<Thread> threads) { units.commit(threads); });
}

void emulated_wgmma_wait(int pending) {
  with_group("wgmma_wait", CALLER, &pending, [](MatrixUnits& units, std::span<Thread> threads) {
    units.wait(threads, *static_cast<const int*>(threads[0].meeting.operands));
  });
}

void emulated_store_matrix(void* row, const unsigned* registers, bool transposed) {
  Thread& self = current_thread();
  self.block.check(self, row, 16, 16, Use::write, CALLER, Space::shared);
  StoreMatrix store{.row = static_cast<char*>(row), .registers = registers, .transposed = transposed};
  self.block.meet_warp(self, {.what = "store_matrix", .code = CALLER, .operands = &store}, store_matrices);
}
