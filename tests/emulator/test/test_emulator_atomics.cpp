// Atomics of hand-written kernels in the emulator: their memory order, and blocks that wait for each other with them.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/raw_cuda.hpp"
#include "support/support.hpp"

namespace test_emulator_atomics {

using namespace tessera::internal;

TEST_CASE("atomics with block scope race with those of other blocks", "[emulator][atomics]") {
  std::vector<i32> y(1);
  const HandWritten both{.parameters = "int* y", .body = "atomic_add(y, 1);"};
  CHECK(run(both, {in_out(y)}, {.blocks_in_flight = 3}, {3}).text() == "");
  const HandWritten alone{.parameters = "int* y", .body = "atomic_add<Relaxed, BlockScope>(y, 1);"};
  CHECK(run(alone, {in_out(y)}, {}, {1}).text() == "");
  CHECK(only(run(alone, {in_out(y)}, {.blocks_in_flight = 3}, {3})).kind == Fault::Kind::race);
}

TEST_CASE("blocks that wait for each other by polling make progress", "[emulator][atomics]") {
  const HandWritten turns{.parameters = "int* y",
                          .body =
                              "const int me = static_cast<int>(block_index());\n"
                              "if (thread_index() == 0) {\n"
                              "  for (u32 i = 0; continues(atomic_or(y, 0) != me, i); ++i) {}\n"
                              "  atomic_add(y, 1);\n"
                              "}"};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<i32> y(1);
    CHECK(run(turns, {in_out(y)}, {.seed = seed, .blocks_in_flight = 5}, {5}).text() == "");
    CHECK(y[0] == 5);
  }
}

TEST_CASE("each atomic op has the requested memory order", "[emulator][atomics]") {
  // Operands with which an op releases, changing 3 to another value, and with which it acquires, leaving 3 or replacing
  // it.
  struct Ways {
    const char *type, *name, *released, *acquired;
  };
  const Ways all[] = {{"int", "atomic_add", "1", "0"},
                      {"float", "atomic_add", "1.0f", "0.0f"},
                      {"double", "atomic_add", "1.0", "0.0"},
                      {"int", "atomic_max", "7", "-9"},
                      {"float", "atomic_max", "7.0f", "-9.0f"},
                      {"double", "atomic_max", "7.0", "-9.0"},
                      {"int", "atomic_min", "1", "99"},
                      {"float", "atomic_min", "1.0f", "99.0f"},
                      {"double", "atomic_min", "1.0", "99.0"},
                      {"int", "atomic_and", "1", "-1"},
                      {"u32", "atomic_or", "4u", "0u"},
                      {"i64", "atomic_xor", "4ll", "0ll"},
                      {"float", "atomic_exchange", "4.0f", "3.0f"},
                      {"u64", "atomic_compare_exchange", "u64{3}, u64{8}", "u64{3}, u64{3}"}};
  for (const Ways& way : all) {
    INFO(way.type << ' ' << way.name);
    const std::string name = way.name, type = way.type;
    // y[2] selects the orders, so that one text is compiled for all.
    const std::pair<const char*, const char*> orders[] = {
        {"Release", "Acquire"}, {"AcquireRelease", "AcquireRelease"}, {"Relaxed", "Acquire"}, {"Release", "Release"}};
    std::string text = "if (thread_index() > 0) return;\n" + type + "* const flag = reinterpret_cast<" + type +
                       "*>(flags);\nconst int orders = y[2];\n";
    int number = 0;
    for (const auto& [release, acquire] : orders)
      text += "if (orders == " + std::to_string(number++) + ") {\n if (block_index() == 0) {\n  y[0] = 5;\n  " + name +
              "<" + release + ", DeviceScope>(flag, " + way.released + ");\n } else {\n  for (u32 i = 0; continues(" +
              name + "<" + acquire + ", DeviceScope>(flag, " + way.acquired + ") == " + type +
              "(3), i); ++i) {}\n  y[1] = y[0];\n }\n}\n";
    std::vector<i32> y(3);
    std::vector<i64> flags(1);
    const Prepared kernel = prepare({.parameters = "int* y, i64* flags", .body = text}, {in_out(y), in_out(flags)});
    const auto said = [&](int which) {
      y = {0, 0, which};
      flags[0] = type == "double" ? std::bit_cast<i64>(3.0) : type == "float" ? std::bit_cast<i32>(3.0f) : 3;
      const std::string report = kernel.run({.seed = 3, .blocks_in_flight = 2}, {2}).text();
      if (report.empty()) CHECK(y[1] == 5);
      return report;
    };
    CHECK(said(0) == "");
    CHECK(said(1) == "");
    CHECK(said(2).find("no barrier between") != std::string::npos);
    CHECK(said(3).find("no barrier between") != std::string::npos);
  }
}

namespace {

template <class T>
void check_extremes(const std::string& type) {
  const HandWritten both{.parameters = type + "* y",
                         .body = "const " + type + " x = static_cast<" + type +
                                 ">(block_index() * 32 + thread_index());\natomic_max(y, x);\natomic_min(y + 1, -x);"};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<T> y(2);
    INFO(type << ", seed " << seed);
    CHECK(run(both, {in_out(y)}, {.seed = seed, .blocks_in_flight = 4}, {4}).text() == "");
    CHECK(y == std::vector<T>{127, -127});
  }
}

}  // namespace

TEST_CASE("atomic maximum and minimum of reals lose no value", "[emulator][atomics]") {
  check_extremes<float>("float");
  check_extremes<double>("double");
}

}  // namespace test_emulator_atomics
