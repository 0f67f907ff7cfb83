// Integer expressions in generated text: how they are printed, and what is folded.
#include <limits>

#include "codegen/emit/emit_index.hpp"
#include "support/catch.hpp"

namespace test_index_expression {

using namespace tessera::internal::codegen;

namespace {

using Index = IndexExpression;
Index variable(const char* name, std::int64_t below = 0) { return Index::variable(name, below); }

}  // namespace

TEST_CASE("index expressions have the parentheses that C++ needs", "[generate]") {
  const Index a = variable("a"), b = variable("b"), c = variable("c");
  CHECK((a + b * c).text() == "a + b * c");
  CHECK(((a + b) * c).text() == "(a + b) * c");
  CHECK((a + (b + c)).text() == "a + b + c");
  CHECK((a + (b - c)).text() == "a + b - c");
  CHECK((a - (b + c)).text() == "a - (b + c)");
  CHECK((a - b - c).text() == "a - b - c");
  CHECK((a / b % c * 2).text() == "a / b % c * 2");
  CHECK((a / (b * c)).text() == "a / (b * c)");
  CHECK((a * (b / c)).text() == "a * (b / c)");
  CHECK((a % (b + c)).text() == "a % (b + c)");
  CHECK(((a & 3) + 4).text() == "(a & 3) + 4");
  CHECK((a & (b + c)).text() == "a & b + c");
  CHECK(equal(a & 3, 0).text() == "(a & 3) == 0");
  CHECK((a + b < c * 2).text() == "a + b < c * 2");
  CHECK((a >= b - 1).text() == "a >= b - 1");
  CHECK(both(both(a < b, b < c), both(a >= 0, equal(a & 1, 0))).text() == "a < b && b < c && a >= 0 && (a & 1) == 0");
  CHECK((a + -3).text() == "a + -3");
  CHECK(fmt::format("{}", a + 1) == "a + 1");
}

TEST_CASE("calls and groups are a single operand", "[generate]") {
  const Index a = variable("a"), b = variable("b");
  CHECK(Index::call("window", {a + b, 16, b}).text() == "window(a + b, 16, b)");
  CHECK(Index::call("thread_index", {}).text() == "thread_index()");
  CHECK((cast_i64(a + b) * 4).text() == "static_cast<i64>(a + b) * 4");
  CHECK((Index::raw("(a ? 1 : 2)") * 4).text() == "(a ? 1 : 2) * 4");
  CHECK((grouped(a / 4) * 8).text() == "(a / 4) * 8");
  CHECK(grouped(a).text() == "a");
  CHECK(grouped(grouped(a + b)).text() == "(a + b)");
  CHECK(grouped(-3).text() == "(-3)");
  CHECK(grouped(Index::call("f", {a})).text() == "f(a)");
  CHECK(a.is_primary());
  CHECK(Index(7).is_primary());
  CHECK_FALSE(Index(-7).is_primary());
  CHECK_FALSE((a + b).is_primary());
  CHECK(grouped(a + b).is_primary());
}

TEST_CASE("neutral elements are folded", "[generate]") {
  const Index a = variable("a"), b = variable("b");
  CHECK((a + 0).text() == "a");
  CHECK((0 + a).text() == "a");
  CHECK((a - 0).text() == "a");
  CHECK((0 - a).text() == "0 - a");
  CHECK((a * 1).text() == "a");
  CHECK((a / 1).text() == "a");
  CHECK((1 * a).text() == "a");
  CHECK((a * 0 + b).text() == "b");
  CHECK((0 * a + b).text() == "b");
  CHECK((a % 1).is(0));
  CHECK((a & 0).is(0));
  CHECK((grouped(a + b) * 1).text() == "a + b");
  CHECK(both(Index::always(), a < b).text() == "a < b");
  CHECK(both(a < b, Index::always()).text() == "a < b");
  CHECK(both(Index::always(), Index::always()).is_always());
  CHECK_FALSE(both(a < b, Index::always()).is_always());
  CHECK(Index(0).is(0));
  CHECK_FALSE(Index(1).is(0));
  CHECK_FALSE(a.is(0));
}

TEST_CASE("constants are folded as C++ computes them", "[generate]") {
  const Index a = variable("a");
  CHECK((Index(4) * 32).text() == "128");
  CHECK((Index(4) + 2 - 7).text() == "-1");
  CHECK((Index(-7) / 2).text() == "-3");
  CHECK((Index(-7) % 2).text() == "-1");
  CHECK((Index(6) & 3).text() == "2");
  CHECK((a + Index(4) * 2).text() == "a + 8");
  CHECK((Index(4) / 0).text() == "4 / 0");
  // Overflowing constants stay unfolded: folding must not change the value.
  CHECK((Index(65536) * 32768).text() == "65536 * 32768");
  CHECK((Index(2147483647) + 1).text() == "2147483647 + 1");
  CHECK(Index(-2147483648).text() == "(-2147483647 - 1)");
  CHECK(Index(std::int64_t{1} << 40).text() == "1099511627776ll");
}

TEST_CASE("64-bit operands stay 64-bit", "[generate]") {
  const Index a = variable("a"), b = variable("b");
  CHECK(cast_i64(0).text() == "0ll");
  CHECK((cast_i64(-3) * 32768).text() == "-98304ll");
  CHECK((cast_i64(-3) * 32768 + a).text() == "-98304ll + a");
  CHECK((cast_i64(65536) * 65536).text() == "4294967296ll");
  CHECK((cast_i64(0) + a).text() == "static_cast<i64>(a)");
  CHECK((a * cast_i64(1)).text() == "static_cast<i64>(a)");
  CHECK((cast_i64(a) * 1 + b).text() == "static_cast<i64>(a) + b");
  CHECK((cast_i64(a) * 0).text() == "0ll");
  CHECK(cast_i64(cast_i64(a)).text() == "static_cast<i64>(a)");
  CHECK(cast_i64(grouped(a + b)).text() == "static_cast<i64>(a + b)");
  const Index lowest = std::numeric_limits<std::int64_t>::min();
  CHECK(lowest.text() == "(-9223372036854775807ll - 1)");
  CHECK((lowest - 1).text() == "(-9223372036854775807ll - 1) - 1");
  CHECK((lowest / -1).text() == "(-9223372036854775807ll - 1) / -1");
}

TEST_CASE("conditions that are always true or false are folded", "[generate]") {
  const Index a = variable("a"), r = variable("r", 32);
  CHECK((r < 32).is_always());
  CHECK((r < 31).text() == "r < 31");
  CHECK((r / 4 < 8).is_always());
  CHECK((r / 4 < 7).text() == "r / 4 < 7");
  CHECK((r < 0).is_never());
  CHECK((r >= 0).is_always());
  CHECK((r >= -4).is_always());
  CHECK((r >= 1).text() == "r >= 1");
  CHECK((a < 32).text() == "a < 32");
  CHECK((a >= 0).text() == "a >= 0");
  CHECK((Index(3) < 4).is_always());
  CHECK((Index(4) < 4).is_never());
  CHECK((Index(4) >= 4).is_always());
  CHECK((Index(3) >= 4).is_never());
  CHECK(equal(Index(3), 3).is_always());
  CHECK(equal(Index(3), 4).is_never());
  CHECK(both(a < 3, Index(4) < 4).is_never());
  CHECK(both(Index(4) < 4, a < 3).is_never());
  CHECK((Index(4) < 4).text() == "false");
  CHECK(Index::always().text() == "true");
}

TEST_CASE("a remainder is folded where the bound of its left side makes it redundant", "[generate]") {
  const Index r = variable("r", 32), any = variable("i");
  CHECK((r % 32).text() == "r");
  CHECK((r % 64).text() == "r");
  CHECK((r % 16).text() == "r % 16");
  CHECK((r / 4 % 8).text() == "r / 4");
  CHECK((r / 4 % 4).text() == "r / 4 % 4");
  CHECK((r / 3 % 11).text() == "r / 3");
  CHECK((r / 3 % 10).text() == "r / 3 % 10");
  CHECK((r % 8 % 8).text() == "r % 8");
  CHECK(((r % 4 + r / 8) % 7).text() == "r % 4 + r / 8");
  CHECK(((r % 4 + r / 8) % 6).text() == "(r % 4 + r / 8) % 6");
  CHECK((r % 4 * 3 % 10).text() == "r % 4 * 3");
  CHECK((r % 4 * 3 % 9).text() == "r % 4 * 3 % 9");
  CHECK(((r & 7) % 8).text() == "r & 7");
  CHECK((grouped(r / 4) % 8).text() == "r / 4");
  CHECK((any % 8).text() == "i % 8");
  CHECK((any % 8 % 8).text() == "i % 8 % 8");
  CHECK(((r - 1) % 32).text() == "(r - 1) % 32");
}

TEST_CASE("a quotient is folded where the bound of its left side makes it 0", "[generate]") {
  const Index warp = variable("warp", 4), g = variable("g", 32), any = variable("i");
  CHECK((warp / 4 * 64).is(0));
  CHECK((warp / 4 * 64 + g).text() == "g");
  CHECK((warp / 8).is(0));
  CHECK((warp / 3).text() == "warp / 3");
  CHECK((g % 2 / 64 * 16384).is(0));
  CHECK((g % 2 / 2).is(0));
  CHECK((g % 3 / 2).text() == "g % 3 / 2");
  CHECK(((g & 3) / 4).is(0));
  CHECK((cast_i64(warp) / 4).text() == "0ll");
  CHECK((any / 4).text() == "i / 4");
  CHECK(((warp - 1) / 4).text() == "(warp - 1) / 4");
  CHECK((warp / -4).text() == "warp / -4");
  CHECK((warp / 0).text() == "warp / 0");
}

}  // namespace test_index_expression
