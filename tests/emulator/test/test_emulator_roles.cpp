// The emulator on the sm_90 features of warp-specialized kernels: mbarriers, TMA, wgmma. Hand-written kernels, a
// warp-specialized matmul from a plan, and faults planted in it, which the emulator finds without the verifier.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "codegen/kernel_source.hpp"
#include "emulator/emulator.hpp"
#include "emulator/operands.hpp"
#include "support/catch.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/raw_cuda.hpp"
#include "support/role_plans.hpp"
#include "support/support.hpp"
#include "tessera/graph/element.hpp"

namespace test_emulator_roles {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

const bf16 untouched = bf16(77.0f);

/// A matrix whose rows have a stride longer than a row.
struct Rows {
  int rows, columns, stride;
  std::vector<bf16> values;

  Rows(int rows, int columns)
      : rows(rows),
        columns(columns),
        stride((columns + 7) / 8 * 8 + 8),
        values(static_cast<std::size_t>(rows * stride), untouched) {}
  bf16& at(int row, int column) { return values[static_cast<std::size_t>(row * stride + column)]; }
  float operator()(int row, int column) const { return float(values[static_cast<std::size_t>(row * stride + column)]); }
  Argument argument() {
    return {.data = values.data(), .extent = {rows, columns}, .stride = {stride, 1}, .scalar = {}};
  }
};

/// C[M,N] = A[M,K] B, on numbers whose sums are exact.
struct WarpSpecializedMatmul {
  RoleTile tile;
  Rows a, b, c;
  Graph graph{};
  std::vector<bf16> expected{};

  WarpSpecializedMatmul(const RoleTile& tile, int m, int n, int k)
      : tile(tile), a(m, k), b(tile.b_along_n ? k : n, tile.b_along_n ? n : k), c(m, n) {
    int number = 0;
    for (Rows* rows : {&a, &b})
      for (int i = 0; i < rows->rows; ++i)
        for (int j = 0; j < rows->columns; ++j) rows->at(i, j) = bf16(static_cast<float>(number++ * 7 % 61 - 30) / 8);
    for (Access access : {Access::in, Access::in, Access::out})
      graph.parameters.push_back({.access = access, .type = ElementType::bf16, .rank = 2});
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) sum += double{a(i, l)} * (tile.b_along_n ? b(l, j) : b(j, l));
        c.at(i, j) = bf16(static_cast<float>(sum));
      }
    expected = c.values;
  }

  Report run(const Emulator& emulator, std::size_t kernel, const RunOptions& options) {
    std::ranges::fill(c.values, untouched);
    const std::vector<Argument> arguments = {a.argument(), b.argument(), c.argument()};
    const std::vector<std::int64_t> grid = {(c.rows + tile.m - 1) / tile.m, (c.columns + tile.n - 1) / tile.n};
    return emulator.run(kernel, graph, arguments, grid, options);
  }

  /// Number of wrong elements of C, including those between its rows.
  int wrong() const {
    int wrong = 0;
    for (std::size_t i = 0; i < c.values.size(); ++i) wrong += c.values[i].bits != expected[i].bits;
    return wrong;
  }
};

/// Two warps: one writes 32 values three times, the other reverses them, synchronized by mbarriers.
HandWritten two_warps(int arrivals, const std::string& full, const std::string& empty) {
  return {.parameters = "const float* x, float* y",
          .body = fmt::format(R"(u64* const full = reinterpret_cast<u64*>(shared_memory());
      u64* const empty = full + 1;
      float* const values = reinterpret_cast<float*>(shared_memory() + 64);
      const int lane = lane_index();
      if (thread_index() == 0) barrier_init(full, {}), barrier_init(empty, 32);
      barrier();
      for (int round = 0; round < 3; ++round) {{
        if (warp_index() == 0) {{
          {}
          values[lane] = x[round * 32 + lane];
          barrier_arrive(full);
        }} else {{
          {}
          y[round * 32 + lane] = values[31 - lane];
          barrier_arrive(empty);
        }}
      }})",
                              arrivals, empty, full),
          .threads = 64,
          .shared_bytes = 64 + 128};
}

/// A kernel of one warp group on a [64,16] and b [16,n] in shared memory, K-major or transposed, or with a in registers
/// (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16").
template <class T>
HandWritten one_wgmma(int n, bool transposed_a, bool transposed_b, const std::string& fence, const std::string& wait,
                      bool in_registers = false) {
  const auto place = [](bool transposed, int other) {
    return fmt::format(
        "const int row = {}, column = {}; char* const to = {{}} + column / 64 * {} + panel_offset(row, "
        "column % 64 / 8) + column % 8 * 2;",
        transposed ? "k" : "i", transposed ? "i" : "k", transposed ? 16 * 128 : other * 128);
  };
  const std::string type = std::is_same_v<T, f16> ? "f16" : "bf16";
  const auto filled = [&](const char* name, bool transposed, int other) {
    return fmt::format(
        "for (int e = thread; e < {0} * 16; e += 128) {{ const int i = e / 16, k = e % 16; {1} "
        "*reinterpret_cast<{2}*>(to) = {3}[e]; }}\n",
        other, fmt::format(fmt::runtime(place(transposed, other)), fmt::format("at_{}", name)), type, name);
  };
  const auto descriptor = [&](const char* name, bool transposed) {
    return fmt::format("matrix_descriptor<{}, 64>(at_{})", transposed ? 128 : 1, name);
  };
  return {
      .parameters = fmt::format("const {0}* a, const {0}* b, float* c", type),
      .body =
          "char *const at_a = panel_memory(), *const at_b = at_a + 8192;\nconst int thread = thread_index();\n" +
          filled("a", transposed_a, 64) + filled("b", transposed_b, n) + fence + "\nbarrier();\n" +
          fmt::format("float sums[{0}];\nfor (int i = 0; i < {0}; ++i) sums[i] = 0.5f;\n", n / 2) +
          (in_registers ? "u32 left[4];\nfor (int i = 0; i < 4; ++i) left[i] = *reinterpret_cast<const u32*>(a + "
                          "(thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8) * 16 + i / 2 * 8 + thread % 4 * 2);\n"
                        : "") +
          "wgmma_fence();\n" +
          (in_registers
               ? fmt::format("wgmma_left_{}_n{}<{}>(sums, left, {}, true);", type, n, int{transposed_b},
                             descriptor("b", transposed_b))
               : fmt::format("wgmma_{}_n{}<{}, {}>(sums, {}, {}, true);", type, n, int{transposed_a}, int{transposed_b},
                             descriptor("a", transposed_a), descriptor("b", transposed_b))) +
          fmt::format("\nwgmma_commit();\n{}\n", wait) +
          fmt::format("for (int i = 0; i < {}; ++i)\n  c[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * {} + "
                      "i / 4 * 8 + thread % 4 * 2 + i % 2] = sums[i];",
                      n / 2, n),
      .threads = 128,
      .shared_bytes = 8192 + 256 * 128};
}

/// [rows, 16] of numbers that both types represent exactly.
template <class T>
std::vector<T> rows_of_16(int rows, int step) {
  std::vector<T> values;
  for (int i = 0; i < rows * 16; ++i) values.push_back(T(static_cast<float>(i * step % 61 - 30) / 8));
  return values;
}

/// A tf32 matmul, [64,8] by [8,n]: bits beyond tf32 are ignored (PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk8").
void check_tf32(int n, bool in_registers) {
  const auto filled = [](const char* name, int other) {
    return fmt::format(
        "for (int e = thread; e < {0} * 8; e += 128)\n  *reinterpret_cast<float*>(at_{1} + panel_offset(e / 8, "
        "e % 8 / 4) + e % 4 * 4) = {1}[e];\n",
        other, name);
  };
  const HandWritten matmul{
      .parameters = "const float* a, const float* b, float* c",
      .body = "char *const at_a = panel_memory(), *const at_b = at_a + 8192;\nconst int thread = thread_index();\n" +
              filled("a", 64) + filled("b", n) +
              fmt::format("async_proxy_fence();\nbarrier();\nfloat sums[{0}], left[4];\n"
                          "for (int i = 0; i < 4; ++i)\n  left[i] = a[(thread / 32 * 16 + thread % 32 / 4 + "
                          "i % 2 * 8) * 8 + i / 2 * 4 + thread % 4];\nwgmma_fence();\n",
                          n / 2) +
              (in_registers ? fmt::format("wgmma_left_tf32_n{}<0>(sums, left, ", n)
                            : fmt::format("wgmma_tf32_n{}<0, 0>(sums, matrix_descriptor<1, 64>(at_a), ", n)) +
              "matrix_descriptor<1, 64>(at_b), false);\nwgmma_commit();\nwgmma_wait<0>();\n" +
              fmt::format("for (int i = 0; i < {}; ++i)\n  c[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * {} "
                          "+ i / 4 * 8 + thread % 4 * 2 + i % 2] = sums[i];",
                          n / 2, n),
      .threads = 128,
      .shared_bytes = 8192 + 256 * 128};
  std::vector<float> a, b, c(static_cast<std::size_t>(64 * n));
  for (int i = 0; i < 64 * 8; ++i) a.push_back(static_cast<float>(i * 7 % 61 - 30) + 0x1p-20f);
  for (int i = 0; i < n * 8; ++i) b.push_back(static_cast<float>(i * 11 % 61 - 30) / 8);
  CHECK(run(matmul, {in(a), in(b), out(c)}).text() == "");
  int wrong = 0;
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 8; ++k)
        sum += emulator::tf32_operand(std::bit_cast<std::uint32_t>(a[i * 8 + k])) * b[j * 8 + k];
      wrong += c[i * static_cast<std::size_t>(n) + j] != sum;
    }
  CHECK(wrong == 0);
}

template <class T>
void check_wgmma(int n, bool transposed_a, bool transposed_b, bool in_registers = false) {
  INFO("n " << n << ", transposed " << transposed_a << transposed_b);
  const std::vector<T> a = rows_of_16<T>(64, 7), b = rows_of_16<T>(n, 11);
  std::vector<float> c(static_cast<std::size_t>(64 * n));
  CHECK(run(one_wgmma<T>(n, transposed_a, transposed_b, "async_proxy_fence();", "wgmma_wait<0>();", in_registers),
            {in(a), in(b), out(c)})
            .text() == "");
  int wrong = 0;
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      float sum = 0.5f;
      for (std::size_t k = 0; k < 16; ++k) sum += float(a[i * 16 + k]) * float(b[j * 16 + k]);
      wrong += c[i * static_cast<std::size_t>(n) + j] != sum;
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("an mbarrier has phases", "[emulator]") {
  std::vector<float> x(96), y(96);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::string full = "barrier_wait(full, round % 2);", empty = "barrier_wait(empty, 1 - round % 2);";
  const auto report = [&](int arrivals, const std::string& full, const std::string& empty, std::uint64_t seed = 1) {
    return run(two_warps(arrivals, full, empty), {in(x), out(y)}, {.seed = seed});
  };
  for (const std::uint64_t seed : {1, 2, 3}) {
    CHECK(report(32, full, empty, seed).text() == "");
    std::vector<float> expected;
    for (int i = 0; i < 96; ++i) expected.push_back(static_cast<float>(i / 32 * 32 + 31 - i % 32));
    CHECK(y == expected);
    CHECK(!report(32, "", empty, seed).clean());
    CHECK(!report(32, full, "", seed).clean());
    CHECK(!report(32, "barrier_wait(full, 1 - round % 2);", empty, seed).clean());
    CHECK(!report(16, full, empty, seed).clean());  // only half of them
  }
  const Fault deadlock = only(report(33, full, empty));
  CHECK(deadlock.kind == Fault::Kind::deadlock);
  CHECK(deadlock.line == "author.cpp:9");
  CHECK(says(deadlock.text,
             {"no thread can make progress; thread 0 and 31 more wait in barrier_wait at author.cpp:9 for parity 0 "
              "of the mbarrier at byte 8 of shared memory, whose phase 0 lacks 32 of 32 arrivals",
              "thread 32 and 31 more wait in barrier_wait at author.cpp:13 for parity 0 of the mbarrier "
              "at byte 0 of shared memory, whose phase 0 lacks 1 of 33 arrivals and 0 bytes"}));
  const Fault missing = only(run(
      {.body = "barrier_arrive(reinterpret_cast<u64*>(shared_memory()));", .shared_bytes = 8}, {}, {.checks = false}));
  CHECK(missing.kind == Fault::Kind::misuse);
  CHECK(says(missing.text, {"uses byte 0 of shared memory as an mbarrier, which was not initialized at author.cpp:1"}));
}

TEST_CASE("a kernel accesses no global memory before it waits for the preceding launch", "[emulator]") {
  std::vector<float> x{3}, y(32);
  const auto waits = [&](const std::string& body) {
    return run({.parameters = "const float* x, float* y", .body = body}, {in(x), out(y)});
  };
  CHECK(waits("griddep_wait();\ny[thread_index()] = x[0];").text() == "");
  CHECK(y == std::vector<float>(32, 3.0f));
  CHECK(waits("griddep_wait();\nconst float first = x[0];\ngriddep_wait();\ny[thread_index()] = first;").text() == "");
  const Fault early = only(waits("const float first = x[0];\ngriddep_wait();\ny[thread_index()] = first;"));
  CHECK(early.kind == Fault::Kind::misuse);
  CHECK(says(early.text,
             {"waits for the preceding launch after it accessed global memory at author.cpp:1, at author.cpp:2"}));
}

TEST_CASE("TMA loads and stores boxes, clipped at the tensor's edges", "[emulator]") {
  const int rows = 5, columns = 44;
  std::vector<float> x(static_cast<std::size_t>(rows * columns)), y(8 * 32), z(x.size(), -1.0f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  const auto matrix = [&](Access access, std::vector<float>& values) {
    return Tensor{{access, ElementType::f32, 2}, {.data = values.data(), .extent = {rows, 40}, .stride = {columns, 1}}};
  };
  const auto moved = [&](const std::string& fence, int bytes, int to_row = 1) {
    return run({.parameters = "const float* x, float* y, float* z, const __grid_constant__ TensorMap from, const "
                              "__grid_constant__ TensorMap to",
                .body = fmt::format(R"(char* const panel = panel_memory();
      u64* const full = reinterpret_cast<u64*>(panel + 2048);
      const int thread = thread_index();
      if (thread == 0) {{
        barrier_init(full, 1);
        barrier_init_fence();
        barrier_expect(full, {});
        tma_load(&from, panel, full, 10, -2);
      }}
      barrier();
      barrier_wait(full, 0);
      for (int i = thread; i < 256; i += 32)
        y[i] = *reinterpret_cast<float*>(panel + panel_offset(i / 32, i % 32 / 4) + i % 4 * 4);
      for (int i = thread; i < 256; i += 32)
        *reinterpret_cast<float*>(panel + 1024 + panel_offset(i / 32, i % 32 / 4) + i % 4 * 4) = i;
      {}
      barrier();
      if (thread == 0) {{
        tma_store(&to, panel + 1024, 32, {});
        tma_store_commit();
        tma_store_wait<0>();
      }})",
                                    bytes, fence, to_row),
                .shared_bytes = 2048 + 8,
                .more = {{KernelParameter::Kind::tensor_map, 0}, {KernelParameter::Kind::tensor_map, 1}},
                .tma_tensors = {{.argument = 0, .axes = {1, 0, -1, -1, -1}, .box = {32, 8, 1, 1, 1}},
                                {.argument = 2, .axes = {1, 0, -1, -1, -1}, .box = {32, 8, 1, 1, 1}}}},
               {matrix(Access::in, x), out(y), matrix(Access::in_out, z)});
  };
  CHECK(moved("async_proxy_fence();", 1024).text() == "");
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 32; ++j) {
      const int row = i - 2, column = j + 10;
      const bool inside = row >= 0 && row < rows && column < 40;
      CHECK(y[static_cast<std::size_t>(i * 32 + j)] == (inside ? static_cast<float>(row * columns + column + 1) : 0));
    }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const bool written = i >= 1 && j >= 32 && j < 40;
      CHECK(z[static_cast<std::size_t>(i * columns + j)] ==
            (written ? static_cast<float>((i - 1) * 32 + j - 32) : -1.0f));
    }
  const Fault unfenced = only(moved("", 1024));
  CHECK(unfenced.kind == Fault::Kind::missing_fence);
  INFO(unfenced.text);
  CHECK(says(unfenced.text, {"thread 0 reads byte 1024 of shared memory (1024 bytes) at author.cpp:19", "author.cpp:15",
                             "with no async_proxy_fence since"}));
  const Fault hungry = only(moved("async_proxy_fence();", 1040));
  CHECK(hungry.kind == Fault::Kind::deadlock);
  CHECK(says(hungry.text, {"lacks 0 of 1 arrivals and 16 bytes"}));
  const Fault before = only(moved("async_proxy_fence();", 1024, -8));
  CHECK(before.kind == Fault::Kind::misuse);
  CHECK(says(before.text,
             {"thread 0 stores a box at (32, -8), and coordinates of a store must not be negative at author.cpp:"}));
}

TEST_CASE("a TMA box may have three axes", "[emulator]") {
  std::vector<float> x(3 * 5 * 24), y(2 * 3 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  const Tensor cube{{Access::in, ElementType::f32, 3},
                    {.data = x.data(), .extent = {3, 5, 24}, .stride = {5 * 24, 24, 1}}};
  CHECK(run({.parameters = "const float* x, float* y, const __grid_constant__ TensorMap from",
             .body = R"(u64* const full = reinterpret_cast<u64*>(panel_memory() + 1024);
      if (thread_index() == 0) {
        barrier_init(full, 1);
        barrier_init_fence();
        barrier_expect(full, 384);
        tma_load(&from, panel_memory(), full, 16, 3, 2);
      }
      barrier();
      barrier_wait(full, 0);
      for (int i = thread_index(); i < 96; i += 32) {
        const int chunk = i / 4;  // rows of 64 bytes
        y[i] = *reinterpret_cast<float*>(panel_memory() + (chunk ^ chunk / 8) * 16 + i % 4 * 4);
      })",
             .shared_bytes = 1024 + 8,
             .more = {{KernelParameter::Kind::tensor_map, 0}},
             .tma_tensors = {{.argument = 0, .axes = {2, 1, 0, -1, -1}, .box = {16, 3, 2, 1, 1}}}},
            {cube, out(y)})
            .text() == "");
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 16; ++k) {
        const bool inside = 2 + i < 3 && 3 + j < 5 && 16 + k < 24;
        CHECK(y[static_cast<std::size_t>((i * 3 + j) * 16 + k)] ==
              (inside ? static_cast<float>(((2 + i) * 5 + 3 + j) * 24 + 16 + k + 1) : 0));
      }
}

TEST_CASE("wgmma multiplies the matrices of its descriptors", "[emulator]") {
  for (const bool transposed_a : {false, true})
    for (const bool transposed_b : {false, true}) check_wgmma<bf16>(96, transposed_a, transposed_b);
  check_wgmma<f16>(64, false, true);
  check_wgmma<f16>(256, false, false);
  for (const bool in_registers : {false, true})
    for (const int n : {64, 96, 256}) check_tf32(n, in_registers);
  for (const bool transposed_b : {false, true}) {
    check_wgmma<bf16>(96, false, transposed_b, true);
    check_wgmma<f16>(192, false, transposed_b, true);
  }
}

TEST_CASE("registers of a left operand belong to the matmul until the wait that covers it", "[emulator]") {
  const std::vector<bf16> a = rows_of_16<bf16>(64, 7), b = rows_of_16<bf16>(64, 11);
  std::vector<float> c(64 * 64);
  const auto report = [&](const std::string& wait, bool checks = true) {
    return run(one_wgmma<bf16>(64, false, false, "async_proxy_fence();", wait, true), {in(a), in(b), out(c)},
               {.checks = checks});
  };
  CHECK(report("wgmma_wait<0>(); left[1] = 0;").clean());
  const Report used = report("left[1] = 0; wgmma_wait<0>();");
  REQUIRE(!used.clean());
  CHECK(used.faults[0].kind == Fault::Kind::in_flight);
  CHECK(says(used.faults[0].text, {"uses registers", "that a wgmma in flight owns until its wgmma_wait"}));
  const Report written = report("left[1] = 0; wgmma_wait<0>();", false);
  CHECK(only(written).kind == Fault::Kind::misuse);
  CHECK(says(only(written).text, {"wrote register 1 of a left operand while its wgmma was in flight"}));
  const std::string again =
      "wgmma_left_bf16_n64<0>(sums, left, matrix_descriptor<1, 64>(at_b), true);\n"
      "wgmma_commit();\nwgmma_wait<0>();";
  CHECK(report(again).clean());
  CHECK(report("wgmma_wait<0>(); wgmma_fence();\n" + again).clean());
  CHECK(only(report("wgmma_wait<0>();\n" + again, false)).kind == Fault::Kind::misuse);
  CHECK(only(report("wgmma_commit(); left[0] = 1;\n" + again, false)).kind == Fault::Kind::misuse);
}

TEST_CASE("the result of a matmul is complete after the wait that covers it", "[emulator]") {
  const std::vector<bf16> a = rows_of_16<bf16>(64, 7), b = rows_of_16<bf16>(64, 11);
  std::vector<float> c(64 * 64);
  const auto report = [&](const std::string& fence, const std::string& wait, bool checks = true) {
    return run(one_wgmma<bf16>(64, false, false, fence, wait), {in(a), in(b), out(c)}, {.checks = checks});
  };
  const Report open = report("async_proxy_fence();", "wgmma_wait<1>();");
  REQUIRE(!open.clean());
  CHECK(open.faults[0].kind == Fault::Kind::in_flight);
  CHECK(says(open.faults[0].text, {"uses registers", "that a wgmma in flight owns until its wgmma_wait"}));
  CHECK(report("async_proxy_fence();", "wgmma_wait<1>();", false).clean());
  CHECK(std::isnan(c[0]));
  const Report written = report("async_proxy_fence();", "sums[3] = 0; wgmma_wait<0>();", false);
  CHECK(only(written).kind == Fault::Kind::misuse);
  const Report unfenced = report("", "wgmma_wait<0>();");
  REQUIRE(!unfenced.clean());
  CHECK(unfenced.faults[0].kind == Fault::Kind::missing_fence);
}

TEST_CASE("named barriers are for the given number of threads", "[emulator]") {
  std::vector<float> y(64);
  const auto kernel = [&](const std::string& first, const std::string& second) {
    return run({.parameters = "float* y",
                .body = "float* const memory = reinterpret_cast<float*>(shared_memory());\n"
                        "if (warp_index() == 0) { memory[lane_index()] = 1;\n" +
                        first + "\n} else {\n" + second + "\ny[lane_index()] = memory[31 - lane_index()]; }",
                .threads = 64,
                .shared_bytes = 128},
               {out(y)});
  };
  CHECK(kernel("named_barrier_arrive(3, 64);", "named_barrier(3, 64);").text() == "");
  CHECK(!kernel("named_barrier_arrive(3, 64);", "").clean());
  CHECK(!kernel("named_barrier_arrive(3, 64);", "named_barrier_arrive(3, 64);").clean());
  CHECK(only(kernel("named_barrier_arrive(3, 64);", "named_barrier(3, 32);")).kind == Fault::Kind::divergent_barrier);
  CHECK(only(kernel("named_barrier_arrive(16, 64);", "named_barrier(16, 64);")).kind == Fault::Kind::misuse);
  const Fault alone = only(kernel("named_barrier_arrive(2, 64);", "named_barrier(3, 64);"));
  CHECK(alone.kind == Fault::Kind::deadlock);
  CHECK(
      says(alone.text, {"wait in named_barrier at author.cpp:5 at barrier 3, at which 32 of 64 threads have arrived"}));
}

TEST_CASE("threads get the registers that others release", "[emulator]") {
  const auto kernel = [](const std::string& first, const std::string& others) {
    return run({.body = "if (warp_index() < 4)\n" + first + "\nelse\n" + others, .threads = 384}, {});
  };
  CHECK(kernel("setmaxnreg_dec<40>();", "setmaxnreg_inc<232>();").text() == "");
  CHECK(only(kernel("setmaxnreg_dec<42>();", "setmaxnreg_inc<168>();")).kind == Fault::Kind::misuse);
  CHECK(only(kernel("setmaxnreg_inc<160>();", "setmaxnreg_inc<168>();")).kind == Fault::Kind::misuse);
  const Fault greedy = only(kernel("setmaxnreg_dec<40>();", "setmaxnreg_inc<240>();"));
  CHECK(greedy.kind == Fault::Kind::deadlock);
  CHECK(says(greedy.text, {"wait in setmaxnreg_inc at author.cpp:4 for 72 more registers, of which "}));
  // Three CTAs of a multiprocessor begin with 80 registers a thread each.
  const auto shared = [](int most) {
    return run(
        {.body = "if (warp_index() < 4)\nsetmaxnreg_dec<24>();\nelse\nsetmaxnreg_inc<" + std::to_string(most) + ">();",
         .threads = 256,
         .blocks = 3},
        {});
  };
  CHECK(shared(136).text() == "");
  CHECK(only(shared(144)).kind == Fault::Kind::deadlock);
}

TEST_CASE("a warp-specialized matmul is right in any order", "[emulator]") {
  std::vector<KernelSource> sources;
  for (const RoleTile& tile : role_tiles) sources.push_back(kernel_source(warp_specialized_matmul(tile)));
  const Emulator emulator = Emulator::compile(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const RoleTile& tile = role_tiles[i];
    INFO(tile.m << " x " << tile.n << (tile.in_turn ? " ping-pong" : "") << (tile.b_along_n ? " along n" : ""));
    WarpSpecializedMatmul ragged(tile, 200, 304, 328), small(tile, 8, 24, 40);
    for (std::uint64_t seed = 1; seed <= (test_share(1) == 1 ? 3 : 1); ++seed) {
      for (const int blocks : {1, 3}) {
        INFO("seed " << seed << ", " << blocks << " blocks");
        CHECK(ragged.run(emulator, i, {.seed = seed, .blocks_in_flight = 2, .persistent_blocks = blocks}).text() == "");
        CHECK(ragged.wrong() == 0);
      }
      CHECK(ragged.run(emulator, i, {.checks = false, .seed = seed, .persistent_blocks = 2}).text() == "");
      CHECK(ragged.wrong() == 0);
      CHECK(small.run(emulator, i, {.seed = seed}).text() == "");
      CHECK(small.wrong() == 0);
    }
  }
}

TEST_CASE("TMA stores whole chunks of 16 bytes", "[emulator]") {
  const KernelSource source = kernel_source(warp_specialized_matmul(role_tiles[0]));
  const Emulator emulator = Emulator::compile(std::span(&source, 1));
  WarpSpecializedMatmul torn(role_tiles[0], 8, 300, 64);  // a row of 37.5 chunks
  const Report report = torn.run(emulator, 0, {});
  REQUIRE_FALSE(report.clean());
  CHECK(report.faults[0].kind == Fault::Kind::out_of_bounds);
}

TEST_CASE("faults in warp-specialized kernels are found without the verifier", "[emulator]") {
  struct Planted {
    const char* name;
    const char* says;  ///< part of the emulator's message; "": no fault, but the results are wrong
    std::function<void(Plan&)> plant;
    const char *from = "", *to = "";  ///< replaced in the text
    bool in_turn = false;
    bool shows = false;  ///< without checks, too: the results are wrong in any order
  };
  const auto drop_all = []<class Kind>(Plan& p) {
    while (count<Kind>(p) > 0) place_of<Kind>(p).drop();
  };
  const auto nothing = [](Plan&) {};
  const char *const race = "with no barrier between", *const stuck = "no thread can make progress";
  // clang-format off
  std::vector<Planted> all{
      {"no wait for a full stage", "TMA for", [](Plan& p) { place_of<WaitFull>(p).drop(); },
       "", "", false, true},
      {"no wait for an empty stage", "once too often", [](Plan& p) { place_of<WaitEmpty>(p).drop(); }},
      {"the producer does not advance", "once too often", [](Plan& p) { place_of<AdvanceStage>(p).drop(); }},
      {"a consumer does not advance", stuck, [](Plan& p) { place_of<AdvanceStage>(p, 1).drop(); }},
      {"a stage is not released", stuck, [](Plan& p) { place_of<ArriveEmpty>(p).drop(); }},
      {"the last stage is not released", stuck, [](Plan& p) { place_of<ArriveEmpty>(p, 1).drop(); }},
      {"a stage is released while it is read", race, [](Plan& p) {
         the<ArriveEmpty>(p) = {.state = the<ArriveEmpty>(p).state, .behind = 0, .not_first = {}};
         place_of<ArriveEmpty>(p, 1).drop();
       }, "", "", false, true},
      {"one of two releases", race, [](Plan& p) { p.pipelines[PipelineId{0}].empty_arrivals = 1; }},
      {"too many expected arrivals", "lacks 1 of 3 arrivals", [](Plan& p) { p.pipelines[PipelineId{0}].empty_arrivals = 3; }},
      {"fewer bytes are expected", "-1024 bytes", [](Plan& p) { p.pipelines[PipelineId{0}].bytes -= 1024; }},
      {"more bytes are expected", "and 1024 bytes", [](Plan& p) { p.pipelines[PipelineId{0}].bytes += 1024; }},
      {"no expect_tx", "-49152 bytes", [](Plan& p) { place_of<ArriveExpectTx>(p).drop(); }},
      {"an operand is not loaded", "and 16384 bytes", [](Plan& p) { place_of<TmaLoad>(p).drop(); }},
      {"no fence before wgmma", "no wgmma_fence", [](Plan& p) { place_of<WgmmaFence>(p).drop(); }},
      {"wgmmas are not committed", race, [](Plan& p) { place_of<WgmmaCommit>(p).drop(); },
       "", "", false, true},
      {"the last wgmma stays in flight", race, [](Plan& p) { the<WgmmaWait>(p, 1).pending = 1; },
       "", "", false, true},
      {"no fence before a store", "no async_proxy_fence", [](Plan& p) { place_of<ProxyFence>(p).drop(); }},
      {"no barrier before a store", race, [](Plan& p) { place_of<NamedBarrier>(p, 1).drop(); }},
      {"no barrier after the wait for stores", race, [](Plan& p) { place_of<NamedBarrier>(p, 4).drop(); }},
      {"no wait for stores", race, [&](Plan& p) { drop_all.operator()<TmaStoreWait>(p); }},
      {"stores are not committed", race, [&](Plan& p) { drop_all.operator()<TmaStoreCommit>(p); }},
      {"a barrier for other threads", "and others for", [](Plan& p) { the<NamedBarrier>(p).threads = 128; }},
      {"a barrier for more threads than arrive", "256 of 288 threads have arrived", [](Plan& p) {
         for (StepPlace place : places_of<NamedBarrier>(p)) place.step().action.get<NamedBarrier>().threads = 288;
       }},
      {"more registers than there are", "setmaxnreg_inc", [](Plan& p) { the<SetMaxNReg>(p, 1).registers = 240; }},
      {"registers not in multiples of 8", "not a multiple of 8", [](Plan& p) { the<SetMaxNReg>(p).registers = 42; }},
      {"no barrier after pipeline initialization", race, [](Plan& p) { p.phases[0].prologue.pop_back(); }},
      {"no fence after pipeline initialization", "no barrier_init_fence", nothing, "barrier_init_fence();", ""},
      {"a wrong parity", "barrier at byte", nothing, "at_consumer0.phase);", "at_consumer0.phase ^ 1);"},
      {"a matrix of another stride", "", nothing, "matrix_descriptor<1, 64>", "matrix_descriptor<1, 32>"},
      {"a matrix that is transposed", "", nothing, "wgmma_bf16_n256<0, 0>", "wgmma_bf16_n256<1, 0>"},
      {"results of other rows", "", nothing, "pack_bf16(staged[0], staged[1])", "pack_bf16(staged[2], staged[3])"},
      {"no ping-pong turns", race, [](Plan& p) { place_of<NamedBarrier>(p, 9).drop(); }, "", "", true},
  };
  // clang-format on
  std::erase_if(all, [](const Planted& one) { return !in_share(one.name, std::min<std::size_t>(test_share(1), 3)); });
  std::vector<KernelSource> sources;
  for (const Planted& planted : all) {
    Plan plan = warp_specialized_matmul(role_tiles[planted.in_turn ? 1 : 0]);
    planted.plant(plan);
    KernelSource& source = sources.emplace_back(kernel_source(plan));
    const std::string_view from = planted.from, to = planted.to;
    if (from.empty()) continue;
    std::size_t at = source.text.find(from, source.text.find("// ---- kernel"));
    INFO(planted.name << "\n" << source.text);
    REQUIRE(at != std::string::npos);
    for (; at != std::string::npos; at = source.text.find(from, at + to.size()))
      source.text.replace(at, from.size(), to);
  }
  const Emulator emulator = Emulator::compile(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    WarpSpecializedMatmul matmul(role_tiles[all[i].in_turn ? 1 : 0], 136, 264, 264);
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Report report = matmul.run(emulator, i, {.seed = seed, .persistent_blocks = 1});
      INFO(all[i].name << ", seed " << seed);
      check_found(report, all[i].says, matmul.wrong() > 0);
      if (!all[i].shows) continue;
      CHECK(matmul.run(emulator, i, {.checks = false, .seed = seed, .persistent_blocks = 1}).text() == "");
      CHECK(matmul.wrong() > 0);
    }
  }
}

}  // namespace test_emulator_roles
