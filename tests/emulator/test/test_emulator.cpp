// The emulator of generated kernels, on hand-written kernels: correct ones, and ones with one planted fault each.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/prelude/prelude.hpp"
#include "emulator/emulator.hpp"
#include "emulator/history.hpp"
#include "emulator/library.hpp"
#include "emulator/mapping.hpp"
#include "emulator/prelude.hpp"
#include "emulator/shadow.hpp"
#include "graph/host_ops.hpp"
#include "support/catch.hpp"
#include "support/raw_cuda.hpp"
#include "support/support.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/element.hpp"
#include "tessera/graph/graph.hpp"

namespace test_emulator {

using namespace tessera::internal;

namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// Values that are exact in all three operand types; rows have no values in common.
std::vector<float> operand(std::size_t count, int step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int>(i) * step % 61 - 30) / 8;
  return values;
}

/// a [16, depth] times b [depth, 8].
std::vector<float> matmul(const std::vector<float>& a, const std::vector<float>& b) {
  const std::size_t depth = a.size() / 16;
  std::vector<float> c(16 * 8);
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < depth; ++k) sum += static_cast<double>(a[m * depth + k]) * b[k * 8 + n];
      c[m * 8 + n] = static_cast<float>(sum);
    }
  }
  return c;
}

const char* const store_fragment = R"(
    const int row = lane_index() / 4, column = lane_index() % 4 * 2;
    store_vector<2>(c + row * 8 + column, sum);
    store_vector<2>(c + (row + 8) * 8 + column, sum + 2);)";

template <class T>
void check_matmul(const std::string& type) {
  const std::vector<float> a = operand(16 * 16, 7), b = operand(16 * 8, 11);
  const std::vector<T> x(a.begin(), a.end()), y(b.begin(), b.end());
  std::vector<float> c(16 * 8);
  const Report report = run({.parameters = "const " + type + "* a, const " + type + "* b, float* c",
                             .body = R"(
    char* const memory = shared_memory();
    const int lane = lane_index();
    copy_async<16>(memory + lane * 16, a + lane * 8, true);
    copy_async<16>(memory + 512 + lane * 16, b + lane * 8, lane < 16);
    copy_async_commit();
    copy_async_wait<0>();
    barrier();
    u32 left[4], right[2];
    load_matrix_x4(left, memory + lane % 16 * 32 + lane / 16 * 16);
    load_matrix_x2_transposed(right, memory + 512 + lane % 16 * 16);
    float sum[4] = {};
    mma_)" + type + "(sum, left, right);" +
                                     store_fragment,
                             .shared_bytes = 1024},
                            {in(x), in(y), out(c)});
  CHECK(report.text() == "");
  CHECK(c == matmul(a, b));
}

/// Adds 64 values over a block, through shared memory.
HandWritten reduction(const std::string& barrier) {
  return {.parameters = "const float* x, float* y",
          .body =
              "float* const memory = reinterpret_cast<float*>(shared_memory());\n"
              "memory[thread_index()] = x[thread_index()];\n" +
              barrier +
              "\n"
              "float sum = 0;\n"
              "if (thread_index() == 0) for (int i = 0; i < 64; ++i)\n"
              "  sum += memory[i];\n"
              "if (thread_index() == 0) y[0] = sum;",
          .threads = 64,
          .shared_bytes = 256};
}

}  // namespace

TEST_CASE("each device item of the prelude has an emulated body", "[emulator]") {
  std::map<std::string, int> device, emulated;
  for (const PreludeItem& item : prelude_items()) {
    if (item.device) ++device[std::string(item.name)];
  }
  for (const emulator::EmulatedItem& item : emulator::emulated_items()) ++emulated[item.name];
  CHECK(device == emulated);
}

TEST_CASE("emulated conversions are those of the language", "[emulator]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,      -0.0f,     1.0f,      -1.5f,  65504.0f, 65520.0f,   65519.0f, 6e-8f,
                          2.98e-8f,  infinity,  -infinity, 3.0e9f, -3.0e9f,  1e19f,      -1e19f,   1.00048828125f,
                          1.001465f, 0.333333f, 3e38f,     1e-40f, 2.5e-39f, 1.0039062f, 1.01171f, 255.5f};
  x.resize(32, 0.1f);
  std::vector<float> halves(32), brains(32), tensors(32);
  std::vector<i32> ints(32);
  std::vector<i64> longs(32);
  const Report report = run(
      {.parameters = "const float* x, float* halves, float* brains, float* tensors, int* ints, i64* longs", .body = R"(
    const int i = thread_index();
    halves[i] = cast_f16(x[i]), brains[i] = cast_bf16(x[i]), tensors[i] = cast_tf32(x[i]);
    ints[i] = cast_i32(x[i]), longs[i] = cast_i64(x[i]);)"},
      {in(x), out(halves), out(brains), out(tensors), out(ints), out(longs)});
  CHECK(report.text() == "");
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i]);
    CHECK(halves[i] == round_to_f16(x[i]));
    CHECK(brains[i] == math::round_to_bf16(x[i]));
    CHECK(tensors[i] == math::round_to_tf32(x[i]));
    CHECK(ints[i] == math::cast_to<ElementType::i32>(x[i]));
    CHECK(longs[i] == math::cast_to<ElementType::i64>(x[i]));
  }
}

TEST_CASE("shuffles exchange values of every type", "[emulator]") {
  std::vector<float> x = counting(64), y(2);
  std::vector<i64> from_below(64);
  std::vector<i32> last(64);
  const Report report = run({.parameters = "const float* x, float* y, i64* from_below, int* last",
                             .body = R"(
    float sum = x[thread_index()];
    for (int mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane_index() == 0) y[warp_index()] = sum;
    from_below[thread_index()] = shuffle_up(i64{1} << lane_index(), 4);
    last[thread_index()] = shuffle(thread_index(), 31) + shuffle(lane_index() == 7, 7);)",
                             .threads = 64},
                            {in(x), out(y), out(from_below), out(last)});
  CHECK(report.text() == "");
  CHECK(y == std::vector<float>{31 * 16, 31 * 16 + 32 * 32});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(from_below[i] == i64{1} << (i % 32 < 4 ? i % 32 : i % 32 - 4));
    CHECK(last[i] == static_cast<i32>(i / 32 * 32 + 31 + 1));
  }
}

TEST_CASE("matrix instructions multiply", "[emulator]") {
  SECTION("f16") { check_matmul<f16>("f16"); }
  SECTION("bf16") { check_matmul<bf16>("bf16"); }
  SECTION("tf32") {
    std::vector<float> a = operand(16 * 8, 7);
    const std::vector<float> b = operand(8 * 8, 11), expected = matmul(a, b);
    std::vector<float> c(16 * 8);
    for (float& x : a) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) | 0x1fff);  // bits that are ignored
    const Report report = run({.parameters = "const float* a, const float* b, float* c",
                               .body = R"(
    float* const memory = reinterpret_cast<float*>(shared_memory());
    const int lane = lane_index();
    float four[4];
    load_vector<4>(four, a + lane * 4);
    store_vector<4>(memory + lane * 4, four);
    warp_barrier();
    u32 left[4], right[2];
    load_matrix_x4(left, memory + lane % 16 * 8 + lane / 16 * 4);
    for (int i = 0; i < 2; ++i) right[i] = bits_of(b[(lane % 4 + i * 4) * 8 + lane / 4]);
    float sum[4] = {};
    mma_tf32(sum, left, right);)" + std::string(store_fragment),
                               .shared_bytes = 512},
                              {in(a), in(b), out(c)});
    CHECK(report.text() == "");
    CHECK(c == expected);
  }
}

TEST_CASE("matrix instructions multiply bytes, with K-major and transposed operands", "[emulator]") {
  std::vector<std::int8_t> a(16 * 32), b(32 * 16), a_transposed(a.size()), b_transposed(b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<std::int8_t>(i * 7 % 253), b[i] = static_cast<std::int8_t>(i * 11 % 251);
  for (std::size_t k = 0; k < 32; ++k)
    for (std::size_t i = 0; i < 16; ++i)
      a_transposed[k * 16 + i] = a[i * 32 + k], b_transposed[i * 32 + k] = b[k * 16 + i];
  const auto matmul = [&](auto element) {
    std::vector<i32> c(16 * 16);
    for (std::size_t e = 0; e < c.size(); ++e)
      for (std::size_t k = 0; k < 32; ++k) c[e] += element(a[e / 16 * 32 + k]) * element(b[k * 16 + e % 16]);
    return c;
  };
  std::vector<i32> along(16 * 16), transposed(16 * 16);
  for (const std::string type : {"i8", "u8"}) {
    const Report report = run(
        {.parameters =
             "const i8* a, const i8* b, const i8* a_transposed, const i8* b_transposed, int* along, int* transposed",
         .body = "#define MULTIPLY mma_" + type + R"(
    char* const memory = shared_memory();
    const int lane = lane_index(), row = lane / 4, column = lane % 4;
    const i8* const from[] = {a, b_transposed, a_transposed, b};
    for (int i = lane; i < 4 * 512; i += 32) memory[i] = static_cast<char>(from[i / 512][i % 512]);
    warp_barrier();
    u32 left[4], right[4];
    for (int i = 0; i < 4; ++i) {
      load_vector<1>(&left[i], reinterpret_cast<const u32*>(memory + (row + i % 2 * 8) * 32 + i / 2 * 16 + column * 4));
      load_vector<1>(&right[i], reinterpret_cast<const u32*>(memory + 512 + (row + i / 2 * 8) * 32 + i % 2 * 16 + column * 4));
    }
    for (int j = 0; j < 2; ++j) {
      int sum[4] = {};
      MULTIPLY<1>(sum, left, right + 2 * j);
      for (int i = 0; i < 4; ++i) along[(row + i / 2 * 8) * 16 + j * 8 + column * 2 + i % 2] = sum[i];
    }
    load_bytes_transposed<1, 1>(left, memory + 1024, 0);
    load_bytes_transposed<1, 2>(right, memory + 1536, 0);
    int sum[8] = {};
    MULTIPLY<2>(sum, left, right);
    MULTIPLY<2>(sum + 1, left, right + 2);
    for (int i = 0; i < 8; ++i) transposed[(row * 2 + i / 4) * 16 + column * 4 + i % 4] = sum[i];)",
         .shared_bytes = 2048},
        {in(a), in(b), in(a_transposed), in(b_transposed), out(along), out(transposed)});
    CHECK(report.text() == "");
    const std::vector<i32> expected = type == "i8"
                                          ? matmul([](std::int8_t x) { return i32{x}; })
                                          : matmul([](std::int8_t x) { return i32{static_cast<std::uint8_t>(x)}; });
    CHECK(along == expected);
    CHECK(transposed == expected);
  }
}

TEST_CASE("rows of bytes that are transposed are in different banks", "[emulator]") {
  // Eight rows of 16 bytes of each of four matrices cover all 128 bytes of the banks.
  std::vector<i32> at(4 * 32);
  const Report report = run({.parameters = "int* at",
                             .body = R"(
    const char* const tile = shared_memory();
    at[lane_index()] = static_cast<int>(bytes_row_transposed<2>(tile, 1) - tile);
    at[32 + lane_index()] = static_cast<int>(bytes_row_transposed<4>(tile, 1) - tile);
    at[64 + lane_index()] = static_cast<int>(bytes_row_transposed<8>(tile, 1) - tile);
    at[96 + lane_index()] = static_cast<int>(bytes_row_transposed<16>(tile, 1) - tile);)",
                             .shared_bytes = 32 * 256},
                            {out(at)});
  CHECK(report.text() == "");
  for (auto matrix = at.begin(); matrix != at.end(); matrix += 8) {
    std::set<int> banks;
    std::for_each(matrix, matrix + 8, [&](i32 offset) { banks.insert(offset / 16 % 8); });
    CHECK(banks.size() == 8);
  }
}

TEST_CASE("matrix loads give each lane its elements", "[emulator]") {
  std::vector<f16> x(256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<std::uint16_t>(i);
  std::vector<i32> plain(32 * 4), transposed(32 * 4);
  const Report report = run({.parameters = "const f16* x, int* plain, int* transposed",
                             .body = R"(
    const int lane = lane_index();
    f16* const memory = reinterpret_cast<f16*>(shared_memory());
    for (int i = lane; i < 256; i += 32) memory[i] = x[i];
    warp_barrier();
    u32 out[4];
    load_matrix_x4(out, memory + lane * 8);
    for (int i = 0; i < 4; ++i) plain[lane * 4 + i] = static_cast<int>(out[i]);
    load_matrix_x4_transposed(out, memory + lane * 8);
    for (int i = 0; i < 4; ++i) transposed[lane * 4 + i] = static_cast<int>(out[i]);)",
                             .shared_bytes = 512},
                            {in(x), out(plain), out(transposed)});
  CHECK(report.text() == "");
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int row = matrix * 64 + lane / 4 * 8 + lane % 4 * 2, column = matrix * 64 + lane % 4 * 16 + lane / 4;
      CHECK(plain[static_cast<std::size_t>(lane * 4 + matrix)] == (row | (row + 1) << 16));
      CHECK(transposed[static_cast<std::size_t>(lane * 4 + matrix)] == (column | (column + 8) << 16));
    }
  }
}

TEST_CASE("lines are scanned by lanes", "[emulator]") {
  std::vector<float> x = counting(64), expected = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 32 >= 4) expected[i] += expected[i - 4];
  }
  const Report report = run(
      {.parameters = "float* x",
       .body =
           "x[thread_index()] = scan_lanes<8, 4, false>(x[thread_index()], [](float a, float b) { return a + b; });",
       .threads = 64},
      {in_out(x)});
  CHECK(report.text() == "");
  CHECK(x == expected);
}

TEST_CASE("kernels get the parameters of the launch", "[emulator]") {
  std::vector<i64> seen(7);
  const Tensor strided{{Access::in, ElementType::f32, 2},
                       {.data = seen.data(), .extent = {0, 7}, .stride = {9, 1}}};  // empty: never accessed
  const Tensor number{{Access::scalar, ElementType::f32, 0}, {.scalar = {.f32 = 2.5f}}};
  using Kind = KernelParameter::Kind;
  const HandWritten kernel{
      .parameters =
          "const float* x, i64* seen, int extent, i64 stride, float number, int across, i64 blocks, char* workspace",
      .body = R"(
    if (thread_index() > 0) return;
    const i64 analysis[7] = {extent, stride, static_cast<i64>(number * 2), across, blocks, block_index(), grid_size()};
    i64* const own = reinterpret_cast<i64*>(workspace) + block_index() * 7;
    for (int i = 0; i < 7; ++i) own[i] = analysis[i];
    if (block_index() == grid_size() - 1) {
      for (int i = 0; i < 7; ++i) seen[i] = own[i];
    })",
      .workspace_bytes = 64,
      .more = {{Kind::extent, 0, 1},
               {Kind::stride, 0, 0},
               {Kind::scalar, 2},
               {Kind::grid, 0, 1},
               {Kind::blocks},
               {Kind::workspace}}};
  const Report report = run(kernel, {strided, out(seen), number}, {}, {2, 3});
  CHECK(report.text() == "");
  CHECK(seen == std::vector<i64>{7, 9, 5, 3, 6, 5, 6});
}

TEST_CASE("persistent blocks process the whole grid", "[emulator]") {
  std::vector<i32> taken(10, -1);
  const Report report = run({.parameters = "int* taken, i64 blocks",
                             .body = R"(
    for (i64 block = block_index(); block < blocks; block += grid_size()) {
      if (thread_index() == 0) taken[block] = static_cast<int>(block_index());
    })",
                             .persistent = true,
                             .more = {{KernelParameter::Kind::blocks}}},
                            {out(taken)}, {.blocks_in_flight = 2}, {10});
  CHECK(report.text() == "");
  CHECK(taken == std::vector<i32>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
}

TEST_CASE("atomic adds of concurrent blocks are all counted", "[emulator]") {
  std::vector<float> sum(1);
  std::vector<i64> count(1);
  const Report report = run({.parameters = "float* sum, i64* count",
                             .body = "atomic_add(sum, 1.0f); atomic_add(count, i64{2});",
                             .threads = 64},
                            {in_out(sum), in_out(count)}, {.blocks_in_flight = 3}, {5});
  CHECK(report.text() == "");
  CHECK(sum[0] == 5 * 64);
  CHECK(count[0] == 5 * 128);
}

TEST_CASE("an atomic access does not hide a plain access before it", "[emulator]") {
  std::vector<float> sum(1);
  const Fault race = only(run({.parameters = "float* sum",
                               .body = "if (thread_index() == 0) sum[0] = 1;\n"
                                       "if (thread_index() == 0) atomic_add(sum, 1.0f);\n"
                                       "shuffle(0, 0);\n"
                                       "if (thread_index() > 0) atomic_add(sum, 1.0f);"},
                              {in_out(sum)}));
  CHECK(race.kind == Fault::Kind::race);
  CHECK(says(race.text, {"author.cpp:4", "which thread 0 wrote at author.cpp:1 with no barrier between"}));
}

TEST_CASE("each block in flight has shared memory of its own", "[emulator]") {
  std::vector<float> y(6 * 64);
  const Report report = run({.parameters = "float* y",
                             .body = R"(
    float* const memory = reinterpret_cast<float*>(shared_memory());
    memory[thread_index()] = static_cast<float>(block_index());
    barrier();
    y[block_index() * 64 + thread_index()] = memory[63 - thread_index()];)",
                             .threads = 64,
                             .shared_bytes = 256},
                            {out(y)}, {.blocks_in_flight = 4}, {6});
  CHECK(report.text() == "");
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == static_cast<float>(i / 64));
}

TEST_CASE("a missing barrier is reported as a race, with both lines", "[emulator]") {
  const std::vector<float> x = counting(64);
  std::vector<float> y(1);
  CHECK(run(reduction("barrier();"), {in(x), out(y)}).text() == "");
  CHECK(y[0] == 63 * 32);
  const Prepared kernel = prepare(reduction(""), {in(x), out(y)});
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Report report = kernel.run({.seed = seed});
    const auto race = std::ranges::find(report.faults, Fault::Kind::race, &Fault::kind);
    REQUIRE(race != report.faults.end());
    CHECK(says(race->text, {"kernel raw_cuda, block 0: thread ", "of shared memory", "author.cpp:6", "author.cpp:2",
                            "with no barrier between"}));
  }
}

TEST_CASE("a warp barrier orders only its warp, a shuffle nothing", "[emulator]") {
  std::vector<float> y(64);
  const auto rotate = [&](const std::string& barrier, int neighbor) {
    return run({.parameters = "float* y",
                .body = "float* const memory = reinterpret_cast<float*>(shared_memory());\n"
                        "memory[thread_index()] = 1;\n" +
                        barrier + "\ny[thread_index()] = memory[thread_index() ^ " + std::to_string(neighbor) + "];",
                .threads = 64,
                .shared_bytes = 256},
               {out(y)});
  };
  CHECK(rotate("warp_barrier();", 1).text() == "");
  CHECK(!rotate("warp_barrier();", 32).clean());
  CHECK(rotate("barrier();", 32).text() == "");
  CHECK(!rotate("shuffle(1, 0);", 1).clean());
}

TEST_CASE("two blocks that access the same element race in any order", "[emulator]") {
  std::vector<float> y(2);
  const HandWritten kernel{.parameters = "float* y", .body = "if (thread_index() == 0) y[block_index() / 2] = 1;"};
  const Prepared prepared = prepare(kernel, {out(y)});
  const Fault race = only(prepared.run({}, {3}));
  CHECK(race.kind == Fault::Kind::race);
  CHECK(says(race.text, {"byte 0 of argument 1 (Out<f32, 1>) (4 bytes) at author.cpp:1, which thread 0 of block "}));
}

TEST_CASE("an asynchronous copy is complete after the wait that covers it", "[emulator]") {
  const std::vector<float> x = counting(64);
  std::vector<float> y(64);
  const auto pipeline = [&](int pending, bool checks) {
    std::ranges::fill(y, -1.0f);
    return run({.parameters = "const float* x, float* y",
                .body = R"(float* const memory = reinterpret_cast<float*>(shared_memory());
        const int i = thread_index();
    memory[32 + i] = 0;  // lost as soon as the copy starts
    copy_async<4>(memory + i, x + i, true); copy_async_commit();
    copy_async<4>(memory + 32 + i, x + 32 + i, i < 30);
    copy_async_commit();
    copy_async_wait<1>();
    y[i] = memory[i];
    copy_async_wait<)" + std::to_string(pending) +
                        ">();\ny[32 + i] = memory[32 + i];",
                .shared_bytes = 256},
               {in(x), out(y)}, {.checks = checks});
  };
  std::vector<float> expected = x;
  expected[62] = expected[63] = 0;
  CHECK(pipeline(0, true).text() == "");
  CHECK(y == expected);
  CHECK(pipeline(0, false).text() == "");
  CHECK(y == expected);

  const Fault fault = only(pipeline(1, true));
  CHECK(fault.kind == Fault::Kind::in_flight);
  CHECK(fault.line == "author.cpp:10");
  CHECK(says(fault.text, {"shared memory", "author.cpp:5", "copy_async_wait"}));
  CHECK(pipeline(1, false).clean());
  CHECK(std::isnan(y[40]));
}

TEST_CASE("an asynchronous copy into memory that other threads still read is a race", "[emulator]") {
  const std::vector<float> x = counting(32);
  std::vector<float> y(32);
  const Report report = run({.parameters = "const float* x, float* y",
                             .body = R"(float* const memory = reinterpret_cast<float*>(shared_memory());
    const int i = thread_index();
    memory[i] = x[i];
    barrier();
    y[i] = memory[31 - i];
    copy_async<4>(memory + i, x + i, true);)",
                             .shared_bytes = 128},
                            {in(x), out(y)});
  REQUIRE(!report.clean());
  CHECK(report.faults[0].kind ==
        (report.faults[0].line == "author.cpp:6" ? Fault::Kind::race : Fault::Kind::in_flight));
  CHECK(says(report.faults[0].text, {"author.cpp:5", "author.cpp:6"}));
}

TEST_CASE("out-of-bounds accesses are reported before they are made", "[emulator]") {
  const std::vector<float> x = counting(64);
  std::vector<float> y(32);
  const auto fault = [&](const std::string& body) {
    const Fault fault = only(run({.parameters = "const float* x, float* y, char* workspace",
                                  .body = body,
                                  .shared_bytes = 128,
                                  .workspace_bytes = 32,
                                  .more = {{KernelParameter::Kind::workspace}}},
                                 {in(x), out(y)}));
    CHECK(fault.kind == Fault::Kind::out_of_bounds);
    CHECK(fault.line == "author.cpp:1");
    return fault.text;
  };
  CHECK(
      says(fault("y[thread_index() + 1] = 0;"), {"thread 31 writes 4 bytes past argument 2 (Out<f32, 1>) (4 bytes)"}));
  CHECK(
      says(fault("if (thread_index() == 3) y[3] = x[-2];"), {"thread 3 reads 8 bytes before argument 1 (In<f32, 1>)"}));
  CHECK(says(fault("shared_memory()[thread_index() * 4 + 4] = 0;"), {"thread 31 writes 1 bytes past shared memory"}));
  CHECK(says(fault("workspace[thread_index() + 1] = 0;"), {"thread 31 writes 1 bytes past the workspace"}));
  CHECK(says(fault("*reinterpret_cast<int*>(thread_index()) = 0;"), {"writes"}));
  CHECK(says(fault("copy_async<4>(shared_memory() + 128, x, true);"), {"starts a copy to 4 bytes past shared memory"}));
  CHECK(says(fault("copy_async<4>(shared_memory() + thread_index() * 4, x + 64, true);"),
             {"reads 4 bytes past argument 1"}));
  CHECK(says(fault("u32 out[2]; load_matrix_x2(out, shared_memory() + 128);"), {"reads 16 bytes past shared memory"}));
  CHECK(says(fault("atomic_add(y + 32, 1.0f);"), {"atomically updates 4 bytes past argument 2"}));
  // Some instructions address only one kind of memory.
  CHECK(says(fault("copy_async<4>(y + thread_index(), x, true);"),
             {"starts a copy to byte ", "of argument 2", "with an instruction for shared memory"}));
  CHECK(says(fault("copy_async<4>(shared_memory(), shared_memory() + 64, true);"),
             {"reads byte 64 of shared memory", "with an instruction for memory outside of the block"}));
  CHECK(says(fault("u32 out[2]; load_matrix_x2(out, x);"), {"reads byte 0 of argument 1", "for shared memory"}));
  CHECK(says(fault("u32 row[4], out[2]; load_matrix_x2(out, row);"), {"reads", "(16 bytes)"}));
}

TEST_CASE("gaps between a tensor's rows do not belong to the tensor", "[emulator]") {
  std::vector<float> memory = counting(3 * 48), y(16);
  const auto column = [&](int first) {
    return Tensor{{Access::in, ElementType::f32, 2},
                  {.data = memory.data() + first, .extent = {3, 16}, .stride = {48, 1}}};
  };
  const auto sum = [&](const std::string& x) {
    return run({.parameters = "const float* q, const float* k, float* y",
                .body = "if (thread_index() < 16) y[thread_index()] = " + x + "[thread_index() + 48];"},
               {column(0), column(16), out(y)});
  };
  CHECK(sum("q").text() == "");
  CHECK(y[3] == 51);
  CHECK(sum("k").text() == "");  // shares the rows of q
  CHECK(y[3] == 67);
  const Fault fault = only(sum("(k + 16)"));
  CHECK(fault.kind == Fault::Kind::out_of_bounds);
  CHECK(says(fault.text, {"which is between elements"}));
}

TEST_CASE("misaligned vector accesses are reported", "[emulator]") {
  const std::vector<float> x = counting(64);
  std::vector<float> y(32);
  const auto load = [&](int vector, const std::string& offset) {
    return run({.parameters = "const float* x, float* y",
                .body = "float values[16];\nload_vector<" + std::to_string(vector) + ">(values, x + " + offset +
                        ");\ny[thread_index()] = values[0];"},
               {in(x), out(y)});
  };
  CHECK(load(4, "thread_index() / 4 * 4").text() == "");
  CHECK(load(8, "4").text() == "");
  for (const int vector : {2, 4, 8}) {
    const Fault fault = only(load(vector, "1"));
    CHECK(fault.kind == Fault::Kind::misaligned);
    CHECK(fault.line == "author.cpp:2");
    CHECK(says(fault.text,
               {"byte 4 of argument 1 (In<f32, 1>)", vector == 2 ? "not a multiple of 8" : "not a multiple of 16"}));
  }
}

TEST_CASE("reads of uninitialized memory are reported", "[emulator]") {
  std::vector<float> y(32);
  const auto prepared = [&](const std::string& x) {
    return prepare({.parameters = "float* y, const float* workspace",
                    .body = "const float* const memory = reinterpret_cast<const float*>(shared_memory());\n"
                            "y[thread_index()] = " +
                            x + ";",
                    .shared_bytes = 128,
                    .workspace_bytes = 64,
                    .more = {{KernelParameter::Kind::workspace}}},
                   {out(y)});
  };
  for (const std::string x : {"memory[thread_index()]", "workspace[0]", "y[thread_index()]"}) {
    const Prepared kernel = prepared(x);
    const Fault found = only(kernel.run());
    CHECK(found.kind == Fault::Kind::uninitialized);
    CHECK(found.line == "author.cpp:2");
    CHECK(says(found.text, {"which was never written"}));
    CHECK(kernel.run({.checks = false}).clean());
    CHECK((x[0] == 'y' || std::isnan(y[0])));  // an Out has the host's values at first
  }
}

TEST_CASE("writes to an In are reported", "[emulator]") {
  const std::vector<float> x = counting(32);
  const Fault fault = only(run({.parameters = "float* x", .body = "x[thread_index()] = 0;"}, {in(x)}));
  CHECK(fault.kind == Fault::Kind::read_only);
  CHECK(x == counting(32));
}

TEST_CASE("a barrier that some threads never reach is reported", "[emulator]") {
  for (const bool checks : {false, true}) {
    const Fault ended =
        only(run({.body = "if (warp_index() == 0)\n  barrier();", .threads = 64}, {}, {.checks = checks}));
    CHECK(ended.kind == Fault::Kind::divergent_barrier);
    CHECK(ended.line == "author.cpp:2");
    CHECK(says(ended.text, {"waits in barrier at author.cpp:2 for thread", "which has ended"}));

    const Fault apart = only(run({.body = "if (warp_index() == 0)\n  barrier();\nelse\n  barrier();", .threads = 64},
                                 {}, {.checks = checks}));
    CHECK(apart.kind == Fault::Kind::divergent_barrier);
    CHECK(says(apart.text, {"arrives at barrier", "author.cpp:2", "author.cpp:4"}));
  }
}

TEST_CASE("a lane that is missing in a warp-wide op is reported", "[emulator]") {
  for (const bool checks : {false, true}) {
    const auto fault = [&](const std::string& body) {
      const Fault fault = only(run({.body = body, .threads = 64}, {}, {.checks = checks}));
      CHECK(fault.kind == Fault::Kind::missing_lane);
      return fault.text;
    };
    CHECK(says(fault("if (thread_index() != 37)\n  shuffle_xor(1.0f, 1);"),
               {"waits in shuffle_xor at author.cpp:2 for thread 37, which has ended"}));
    CHECK(says(fault("if (thread_index() != 37)\n  shuffle_xor(1.0f, 1);\nbarrier();"),
               {"waits in shuffle_xor at author.cpp:2 for thread 37, which waits in barrier at author.cpp:3"}));
    CHECK(says(fault("if (thread_index() == 37)\n  shuffle(1, 1);\nelse\n  warp_barrier();"),
               {"shuffle at author.cpp:2", "warp_barrier at author.cpp:4"}));
  }
}

TEST_CASE("a failed check of the kernel is reported", "[emulator]") {
  const Fault fault = only(run({.body = "if (thread_index() == 9)\n  debug_fail(\"index out of range\", 12);"}, {}));
  CHECK(fault.kind == Fault::Kind::failed_check);
  CHECK(fault.thread == 9);
  CHECK(says(fault.text, {"thread 9: index out of range (line 12)"}));
}

TEST_CASE("a seed determines the order of threads", "[emulator]") {
  std::vector<i32> y(1);
  const Prepared kernel = prepare({.parameters = "int* y", .body = "y[0] = thread_index();", .threads = 64}, {out(y)});
  const auto last = [&](std::uint64_t seed) {
    CHECK(kernel.run({.checks = false, .seed = seed}).clean());
    return y[0];
  };
  std::set<i32> threads;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    threads.insert(last(seed));
    CHECK(last(seed) == last(seed));
  }
  CHECK(threads.size() > 10);
}

TEST_CASE("kernels with the same name are compiled together", "[emulator]") {
  std::vector<KernelSource> sources(2);
  for (std::size_t i = 0; i < 2; ++i) {
    sources[i].name = "same";
    sources[i].text = "// the prelude\n// ---- kernel ----\nextern \"C\" __global__ void same(int* y) {\n  y[0] = " +
                      std::to_string(i) + " + y[0];\n}\n";
    sources[i].threads = 32;
    sources[i].parameters = {{}};
  }
  const Emulator emulator = Emulator::compile(sources);
  Graph graph;
  std::vector<i32> y = {10};
  graph.parameters = {in_out(y).parameter};
  CHECK(emulator.run(1, graph, std::array{in_out(y).argument}, {}, {.checks = false}).clean());
  CHECK(y[0] == 42);
}

TEST_CASE("a text is compiled once", "[emulator]") {
  using emulator::Library;
  std::vector<KernelSource> sources(1);
  const auto write = [&](int added) {
    sources[0].name = "adds";
    sources[0].text = "extern \"C\" __global__ void adds(int* y) { y[0] += " + std::to_string(added) + "; }\n";
    sources[0].threads = 32;
    sources[0].parameters = {{}};
  };
  write(1);
  const auto first = Library::of(sources, true, false);
  CHECK(Library::of(sources, false, false) != first);
  CHECK(Library::of(sources, true, true) != first);
  write(2);
  CHECK(Library::of(sources, true, false) != first);
  write(1);
  CHECK(Library::of(sources, true, false) == first);
}

TEST_CASE("text that does not compile is rejected with the compiler's message", "[emulator]") {
  CHECK(error_of([] { run({.body = "unknown_helper();"}, {}); }).find("unknown_helper") != std::string::npos);
}

TEST_CASE("two accesses represent a whole history", "[emulator]") {
  // Compares with a history that keeps everything, on random accesses of two blocks with two warps of three threads.
  using emulator::Event, emulator::History, emulator::Now;
  std::uint32_t state = 1;
  const auto random = [&](std::uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int round = 0; round < 2000; ++round) {
    History history;
    std::vector<Event> all;
    std::uint32_t clock[3] = {}, barrier[3] = {}, warp[3][2] = {};
    for (int step = 0; step < 12; ++step) {
      const std::uint32_t block = 1 + (random(8) == 0), thread = random(3) + 32 * random(2), w = thread / 32;
      if (random(5) == 0) {
        warp[block][0] = warp[block][1] = barrier[block] = ++clock[block];
      } else if (random(4) == 0) {
        warp[block][w] = ++clock[block];
      }
      const Now now{.event = {.block = block, .time = warp[block][w], .thread = static_cast<std::uint16_t>(thread)},
                    .thread = static_cast<std::uint16_t>(thread),
                    .barrier = barrier[block],
                    .warp_barrier = warp[block][w],
                    .launch = 1};
      const bool races = std::ranges::any_of(all, [&](const Event& past) { return !is_ordered(past, now); });
      REQUIRE((history.unordered(now) != nullptr) == races);
      history.add(now);
      all.push_back(now.event);
    }
  }
}

TEST_CASE("kernels share the stacks of the process", "[emulator]") {
  const auto mappings = [] {
    std::ifstream file("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  const HandWritten kernel{.parameters = "float* y", .body = "if (thread_index() == 0) y[0] = 1;", .threads = 1024};
  std::vector<float> y(1);
  std::vector<Prepared> kept;
  kept.push_back(prepare(kernel, {out(y)}));
  CHECK(kept.back().run({}).text() == "");
  const auto before = mappings();
  for (int i = 0; i < 6; ++i) {
    kept.push_back(prepare(kernel, {out(y)}));
    CHECK(kept.back().run({}).text() == "");
  }
  CHECK(mappings() < before + 500);
}

TEST_CASE("where there is no memory for an emulated kernel, the error names what is too large", "[emulator]") {
  std::vector<float> y(2048);
  const Prepared kernel =
      prepare({.parameters = "float* y", .body = "for (int i = 0; i < 64; ++i) y[thread_index() * 64 + i] = 1;"}, {out(y)});
  const std::size_t most = std::exchange(emulator::Shadow::most_bytes, 1 << 16);
  const std::string text = error_of([&] { kernel.run({}); });
  emulator::Shadow::most_bytes = most;
  CHECK(says(text, {"no memory left to record the accesses of kernel 'raw_cuda' to argument 1 "
                    "(Out<f32, 1>), of 8192 bytes",
                    "TESSERA_EMULATOR_CHECKS=0"}));
  CHECK(kernel.run({}).text() == "");
  CHECK(kernel.run({.checks = false}).text() == "");
  CHECK(says(error_of([] { emulator::Mapping(std::size_t{1} << 62, "a copy of argument 1"); }),
             {"the emulator has no memory for a copy of argument 1, 4611686018427387904 bytes: "}));
}

}  // namespace test_emulator
