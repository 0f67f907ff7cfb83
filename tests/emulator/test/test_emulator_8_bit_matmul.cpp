// wgmma of 8-bit types in the emulator: integers, whose sums wrap, and fp8, of whose sums 14 bits remain.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "emulator/emulator.hpp"
#include "emulator/fp8_sum.hpp"
#include "support/catch.hpp"
#include "support/raw_cuda.hpp"
#include "support/support.hpp"
#include "tessera/graph/element.hpp"

namespace test_emulator_8_bit_matmul {

using namespace tessera::internal;

namespace {

constexpr std::size_t rows = 64, depth = 32;

/// The bits of a[64,32] and b[n,32], and c[64,n], to which their product is added.
template <class Sum>
struct Matmul {
  std::string type;
  int n;
  std::vector<u8> a = std::vector<u8>(rows * depth), b = std::vector<u8>(columns() * depth);
  std::vector<Sum> c = std::vector<Sum>(rows * columns());

  std::size_t columns() const { return static_cast<std::size_t>(n); }

  struct Text {
    std::string after = "wgmma_commit();\nwgmma_wait<0>();";  ///< the wgmma
    bool transposed_a = false, transposed_b = false, adds = true;
  };
  Report run(const Text& text, const RunOptions& options = {}) {
    const auto filled = [](const char* name, int other) {
      return fmt::format(
          "for (int e = thread; e < {0} * 32; e += 128)\n"
          "  at_{1}[panel_offset(e / 32, e % 32 / 16) + e % 16] = static_cast<char>({1}[e]);\n",
          other, name);
    };
    const auto each = [&](const char* what) {
      return fmt::format(
          "for (int i = 0; i < {}; ++i) {{\n"
          "  const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;\n"
          "  const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;\n  {};\n}}\n",
          n / 2, fmt::format(fmt::runtime(what), fmt::format("c[row * {} + column]", n)));
    };
    const char* const sum = element_type<Sum> == ElementType::i32 ? "int" : "float";
    const HandWritten kernel{
        .parameters = fmt::format("const u8* a, const u8* b, {}* c", sum),
        .body = "char *const at_a = panel_memory(), *const at_b = at_a + 8192;\nconst int thread = thread_index();\n" +
                filled("a", 64) + filled("b", n) + fmt::format("{} sums[{}];\n", sum, n / 2) + each("sums[i] = {}") +
                "const u64 left = matrix_descriptor<1, 64>(at_a), right = matrix_descriptor<1, 64>(at_b);\n"
                "async_proxy_fence();\nbarrier();\nregister_fence(sums);\nwgmma_fence();\n" +
                fmt::format("wgmma_{}_n{}<{}, {}>(sums, left, right, {});\n", type, n, int{text.transposed_a},
                            int{text.transposed_b}, text.adds) +
                text.after + "\nregister_fence(sums);\n" + each("{} = sums[i]"),
        .threads = 128,
        .shared_bytes = 8192 + 256 * 128};
    return tessera::internal::run(kernel, {in(a), in(b), in_out(c)}, options);
  }
};

/// The first pair of factors is multiplied once, the second 31 times.
template <class Type>
float sum(float d, float x, float y, float other_x = 0, float other_y = 0) {
  const auto operand = [](float x) {
    if constexpr (std::is_same_v<Type, f8e4m3>)
      return emulator::f8e4m3_operand(Type(x).bits);
    else
      return emulator::f8e5m2_operand(Type(x).bits);
  };
  std::vector<emulator::Fp8> a(depth, operand(other_x)), b(depth, operand(other_y));
  a[7] = operand(x), b[7] = operand(y);
  return emulator::fp8_sum(d, a, b);
}

template <class Type>
void check_small_integers(const std::string& type, int n) {
  Matmul<float> matmul{.type = type, .n = n};
  std::mt19937 random(1);
  const auto fill = [&](std::vector<u8>& bits) {
    std::vector<float> values;
    for (u8& each : bits) {
      values.push_back(static_cast<float>(random() % 15) - 7);
      each = Type(values.back()).bits;
    }
    return values;
  };
  const std::vector<float> a = fill(matmul.a), b = fill(matmul.b);
  for (const bool adds : {true, false}) {
    std::ranges::fill(matmul.c, 0.5f);
    CHECK(matmul.run({.adds = adds}).text() == "");
    int wrong = 0;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < matmul.columns(); ++j) {
        float expected = adds ? 0.5f : 0;
        for (std::size_t k = 0; k < depth; ++k) expected += a[i * depth + k] * b[j * depth + k];
        wrong += matmul.c[i * matmul.columns() + j] != expected;
      }
    CHECK(wrong == 0);
  }
}

template <class Type>
void check_integers(const std::string& type, int n) {
  Matmul<i32> matmul{.type = type, .n = n};
  std::mt19937 random(2);
  for (std::vector<u8>* const bits : {&matmul.a, &matmul.b})
    for (u8& each : *bits) each = static_cast<u8>(random());
  for (i32& each : matmul.c) each = static_cast<i32>(random());
  matmul.c[0] = std::numeric_limits<i32>::max(), matmul.c[1] = std::numeric_limits<i32>::min();
  for (const bool adds : {true, false}) {
    const std::vector<i32> before = matmul.c;
    CHECK(matmul.run({.adds = adds}).text() == "");
    int wrong = 0, wrapped = 0;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < matmul.columns(); ++j) {
        const std::size_t at = i * matmul.columns() + j;
        std::int64_t expected = adds ? before[at] : 0;
        for (std::size_t k = 0; k < depth; ++k)
          expected += static_cast<Type>(matmul.a[i * depth + k]) * static_cast<Type>(matmul.b[j * depth + k]);
        wrong += matmul.c[at] != static_cast<i32>(static_cast<u32>(expected));
        wrapped += matmul.c[at] != expected;
      }
    CHECK(wrong == 0);
    CHECK((wrapped > 0) == adds);
  }
}

}  // namespace

TEST_CASE("wgmma multiplies integers of 8 bits, whose sums wrap", "[emulator]") {
  for (const int n : {64, 192, 256}) check_integers<i8>("i8", n);
  for (const int n : {96, 128}) check_integers<u8>("u8", n);
}

TEST_CASE("wgmma multiplies fp8", "[emulator]") {
  for (const int n : {32, 64}) check_small_integers<f8e4m3>("f8e4m3", n);
  for (const int n : {48, 128}) check_small_integers<f8e5m2>("f8e5m2", n);
}

TEST_CASE("of sums of fp8, 14 bits remain", "[emulator]") {
  // The largest term is 65536, of which 14 bits end at 8.
  CHECK(sum<f8e4m3>(0, 256, 256, 1, 1) == 65536);
  CHECK(sum<f8e4m3>(7, 256, 256, 1, -1) == 65536);
  CHECK(sum<f8e4m3>(15, 256, 256) == 65536 + 8);
  CHECK(sum<f8e4m3>(-15, 256, 256) == 65536 - 8);
  CHECK(sum<f8e4m3>(0, 256, 256, 2, 4) == 65536 + 31 * 8);
  CHECK(sum<f8e5m2>(0, 256, 256, 1, 1) == 65536);
  CHECK(sum<f8e5m2>(-65536, 256, 256, 1, 1) == 0);
  // A sum with a higher exponent than its terms loses more: this one is -131320.
  CHECK(sum<f8e4m3>(-65536, -256, 256, 2, -4) == -131312);
  // d has 14 bits, too, even if nothing is added to it.
  CHECK(sum<f8e5m2>(1 + 0x1p-13f + 0x1p-14f, 0, 57344) == 1 + 0x1p-13f);
  CHECK(sum<f8e5m2>(0x1p-126f + 0x1p-139f + 0x1p-140f, 0, 0) == 0x1p-126f + 0x1p-139f);
  CHECK(sum<f8e5m2>(0x1p-130f + 0x1p-139f + 0x1p-140f, 0, 0) == 0x1p-130f + 0x1p-139f);
  CHECK_FALSE(std::signbit(sum<f8e5m2>(-0.0f, 0, 0)));
  // The exponent of 1.5 * 1.5 is 0, that of a subnormal is -6 or -14.
  CHECK(sum<f8e4m3>(0x1p-12f + 0x1p-13f, 1.5f, 1.5f) == 2.25f + 0x1p-12f);
  CHECK(sum<f8e4m3>(0, 1.5f, 1.5f, 0x1p-6f, 0x1p-7f) == 2.25f + 15 * 0x1p-12f);
  CHECK(sum<f8e4m3>(0, 2, 1, 0x1p-6f, 0x1p-7f) == 2);
  CHECK(sum<f8e4m3>(0x1p-19f + 0x1p-20f, 0x1p-9f, 1) == 0x1p-9f + 0x1p-19f);
  CHECK(sum<f8e5m2>(0x1p-27f + 0x1p-28f, 0x1p-16f, 1) == 0x1p-16f + 0x1p-27f);
  CHECK(sum<f8e5m2>(0x1p-29f, 0, 57344) == 0x1p-29f);  // 0 has none
}

TEST_CASE("sums of fp8 may be infinite or NaN", "[emulator]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(sum<f8e5m2>(1, infinity, 2) == infinity);
  CHECK(sum<f8e5m2>(1, infinity, -2, 3, 5) == -infinity);
  CHECK(sum<f8e5m2>(-infinity, 1, 2) == -infinity);
  CHECK(std::isnan(sum<f8e5m2>(1, infinity, 0)));
  CHECK(std::isnan(sum<f8e5m2>(-infinity, infinity, 1)));
  CHECK(std::isnan(sum<f8e5m2>(1, nan, 0)));
  CHECK(std::isnan(sum<f8e4m3>(1, nan, 0)));
  CHECK(std::bit_cast<std::uint32_t>(sum<f8e4m3>(nan, 1, 2)) == 0x7fffffff);
  for (const std::uint32_t bits : {0x7fu, 0xffu}) CHECK(std::isnan(emulator::f8e4m3_operand(bits).value));
}

TEST_CASE("wgmma of fp8 sums all products of its instruction at once", "[emulator]") {
  Matmul<float> matmul{.type = "f8e4m3", .n = 64};
  std::ranges::fill(matmul.a, f8e4m3(1.0f).bits);
  std::ranges::fill(matmul.b, f8e4m3(1.0f).bits);
  std::ranges::fill(matmul.c, 4.0f);
  std::fill_n(matmul.b.begin() + 2 * depth, depth, f8e4m3(8.0f).bits);  // column 2
  matmul.a[depth - 1] = f8e4m3(256.0f).bits;                            // row 0
  for (const std::size_t column : {0, 1, 2}) matmul.b[(column + 1) * depth - 1] = f8e4m3(256.0f).bits;
  matmul.a[depth] = f8e4m3(std::numeric_limits<float>::quiet_NaN()).bits;  // row 1
  CHECK(matmul.run({}).text() == "");
  CHECK(matmul.c[1] == 65536);  // 256 * 256 + 31 + 4
  CHECK(matmul.c[2] == 65536 + 31 * 8);
  CHECK(matmul.c[3] == 256 + 31 + 4);
  CHECK(std::isnan(matmul.c[64]));
  CHECK(matmul.c[2 * 64] == 256 + 31 + 4);
  CHECK(matmul.c[2 * 64 + 3] == 32 + 4);
}

TEST_CASE("faults of wgmma of 8 bits are found", "[emulator]") {
  Matmul<i32> integers{.type = "i8", .n = 64};
  Matmul<float> reals{.type = "f8e5m2", .n = 64};
  const auto check_misuse = [](const Report& report, std::string_view what) {
    const Fault fault = only(report);
    CHECK(fault.kind == Fault::Kind::misuse);
    CHECK(says(fault.text, {what}));
  };
  check_misuse(integers.run({.transposed_a = true}), "passes i8 operands to wgmma that are not K-major");
  check_misuse(reals.run({.transposed_b = true}), "passes f8e5m2 operands to wgmma that are not K-major");
  const std::string wait = "wgmma_commit();\nwgmma_wait<0>();";
  check_misuse(
      integers.run({.after = "wgmma_f8e5m2_n64<0, 0>(reinterpret_cast<float*>(sums), left, right, true);\n" + wait}),
      "passes registers to wgmma that a wgmma in flight sums in another type");
  CHECK(integers.run({.after = "wgmma_u8_n64<0, 0>(sums, left, right, true);\n" + wait}).text() == "");
  check_misuse(integers.run({.after = "sums[3] = 0;\n" + wait}, {.checks = false}),
               "wrote register 3 of an accumulator while its wgmma was in flight");
  const Report used = integers.run({.after = "sums[3] += 1;\n" + wait});
  REQUIRE_FALSE(used.clean());
  CHECK(used.faults[0].kind == Fault::Kind::in_flight);
}

}  // namespace test_emulator_8_bit_matmul
