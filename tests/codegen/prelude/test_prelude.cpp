// The plain C++ of generated kernels' prelude, run here: it returns the bits of graph/math.hpp.
#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "graph/host_ops.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

namespace test_prelude {

using namespace tessera::internal;

namespace {

// The plain part of the prelude, with our own definitions of the device functions that it uses.
namespace host {

thread_local int thread = 0;
struct Warp {
  std::barrier<> meeting{32};
  std::array<std::int64_t, 32> values = {};
};
std::array<Warp, 2> warps;

#define __device__
#include "codegen/prelude/types.cuh"

inline u32 bits_of(float x) { return std::bit_cast<u32>(x); }
inline float float_of(u32 bits) { return std::bit_cast<float>(bits); }
[[maybe_unused]] inline u64 bits_of(double x) { return std::bit_cast<u64>(x); }
inline double double_of(i64 bits) { return std::bit_cast<double>(bits); }
inline float f16_value(u16 bits) {
  tessera::internal::f16 x;
  x.bits = bits;
  return static_cast<float>(x);
}
#include "codegen/prelude/values.cuh"
inline u16 f16_bits(float x) { return tessera::internal::f16(x).bits; }
inline u16 bf16_bits(float x) { return math::bf16_bits(x); }
inline u32 pack_f16(float low, float high) { return f16_bits(low) | static_cast<u32>(f16_bits(high)) << 16; }
inline u32 pack_bf16(float low, float high) { return bf16_bits(low) | static_cast<u32>(bf16_bits(high)) << 16; }
inline float round_to_tf32(float x) { return math::round_to_tf32(x); }
[[maybe_unused]] inline int cast_i32(float x) { return math::cast_to<ElementType::i32>(x); }
[[maybe_unused]] inline i64 cast_i64(float x) { return math::cast_to<ElementType::i64>(x); }
[[maybe_unused]] inline u32 cast_u32(float x) { return math::cast_to<ElementType::u32>(x); }
[[maybe_unused]] inline u64 cast_u64(float x) { return math::cast_to<ElementType::u64>(x); }
[[maybe_unused]] inline int cast_i32(double x) { return math::cast_to<ElementType::i32>(x); }
[[maybe_unused]] inline i64 cast_i64(double x) { return math::cast_to<ElementType::i64>(x); }
[[maybe_unused]] inline u32 cast_u32(double x) { return math::cast_to<ElementType::u32>(x); }
[[maybe_unused]] inline u64 cast_u64(double x) { return math::cast_to<ElementType::u64>(x); }

inline int lane_index() { return thread % 32; }
template <class T>
T shuffle(T x, int lane) {
  Warp& warp = warps[static_cast<std::size_t>(thread / 32)];
  T result = 0;
  warp.values[static_cast<std::size_t>(lane_index())] = 0;
  std::memcpy(&warp.values[static_cast<std::size_t>(lane_index())], &x, sizeof x);
  warp.meeting.arrive_and_wait();
  std::memcpy(&result, &warp.values[static_cast<std::size_t>(lane)], sizeof x);
  warp.meeting.arrive_and_wait();
  return result;
}
template <class T>
T shuffle_xor(T x, int mask) {
  return shuffle(x, lane_index() ^ mask);
}
template <class T>
T shuffle_up(T x, int delta) {
  return shuffle(x, lane_index() < delta ? lane_index() : lane_index() - delta);
}

template <int Bytes>
void load_input_over(u32* words, const void* from, bool inside) {
  if (inside) std::memcpy(words, from, Bytes);
}
template <int Bytes>
void load_input(u32* words, const void* from, bool inside) {
  std::memset(words, 0, sizeof(u32) * ((Bytes + 3) / 4));
  load_input_over<Bytes>(words, from, inside);
}
[[maybe_unused]] inline void store_words(void* to, const u32* words, bool inside) {
  if (inside) std::memcpy(to, words, 16);
}
template <int Bytes>
void load_no_hoist(u32* words, const void* from, bool inside) {
  load_input_over<Bytes>(words, from, inside);
}
[[maybe_unused]] void load_evict_last(u32* words, const void* from, bool inside, u64) {
  load_no_hoist<16>(words, from, inside);
}
bool less(float a, float b) { return a < b; }
[[maybe_unused]] bool less(double a, double b) { return a < b; }
float exp2_approximate(float x) { return std::exp2(x); }
float reciprocal_approximate(float x) { return 1 / x; }
#include "codegen/prelude/arithmetic.cuh"
#include "codegen/prelude/cast.cuh"
#include "codegen/prelude/halves.cuh"
#include "codegen/prelude/memory.cuh"
#include "codegen/prelude/random.cuh"
#include "codegen/prelude/scan.cuh"
#include "codegen/prelude/small_floats.cuh"
#include "codegen/prelude/sort.cuh"
#include "codegen/prelude/trig.cuh"
#undef __device__

}  // namespace host

template <class T>
auto bits(T x) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(x);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(x);
  else
    return x;
}

/// long long as the ops' type.
template <class T>
auto in_ops(T x) {
  if constexpr (std::is_same_v<T, host::i64>)
    return std::int64_t(x);
  else if constexpr (std::is_same_v<T, host::u64>)
    return std::uint64_t(x);
  else
    return x;
}

/// Edge values, then random ones of all magnitudes.
template <class T>
std::vector<T> samples(int random) {
  using limits = std::numeric_limits<T>;
  std::vector<T> values = {0, 1, 2, 3, 7, 127, 128, 255, 256, 257, limits::max(), limits::lowest()};
  std::mt19937_64 engine(1);
  if constexpr (std::is_floating_point_v<T>) {
    for (const T x :
         std::initializer_list<T>{0.25f, 0.5f, 1.5f, 254.99f, 255.5f, 3.4e38f, limits::min(), limits::denorm_min(),
                                  1.00048828125f, 2147483520.0f, 2147483648.0f, 9223371487098961920.0f,
                                  9223372036854775808.0f, limits::infinity(), limits::quiet_NaN()}) {
      values.push_back(x);
    }
    for (int i = 0; i < random; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(engine())));
    if constexpr (std::is_same_v<T, double>)
      for (int i = 0; i < random; ++i) {
        const std::uint64_t any = engine();
        values.push_back(std::bit_cast<double>(any));
        // Next to ties of narrower types, where double rounding goes wrong.
        const double tie = std::bit_cast<double>(any & ~((std::uint64_t{1} << (29 + any % 24)) - 1));
        values.push_back(std::nextafter(tie, 0));
        values.push_back(std::nextafter(tie, limits::max()));
      }
    for (std::size_t i = 0, end = values.size(); i < end; ++i) values.push_back(-values[i]);
  } else {
    for (const T x : {limits::max() - 1, limits::lowest() + 1}) values.push_back(x);
    for (const int x : {1, 2, 3, 7, 128, 255, 256}) values.push_back(static_cast<T>(-x));
    for (int i = 0; i < random; ++i) values.push_back(static_cast<T>(engine() >> engine() % 64));
  }
  return values;
}

/// The results of the prelude and of the op. Every check is of this type: there are hundreds.
struct Both {
  template <class R, class S>
  Both(R of_prelude, S of_op)
      : ours(static_cast<std::uint64_t>(bits(of_prelude))),
        theirs(static_cast<std::uint64_t>(bits(of_op))),
        same(ours == theirs || (of_prelude != of_prelude && of_op != of_op)) {}  // NaN has any bits
  std::uint64_t ours, theirs;
  bool same;
};

template <class T>
void check_pairs(const char* what, Both (*both)(T, T)) {
  INFO(what);
  const std::vector<T> values = samples<T>(100);
  for (const T a : values) {
    for (const T b : values) {
      const Both results = both(a, b);
      if (results.same) continue;
      CAPTURE(a, b, results.ours, results.theirs);
      FAIL_CHECK();
      return;
    }
  }
  SUCCEED();
}

template <class T>
void check_each(const char* what, Both (*both)(T)) {
  INFO(what);
  for (const T a : samples<T>(20000)) {
    const Both results = both(a);
    if (results.same) continue;
    CAPTURE(a, results.ours, results.theirs);
    FAIL_CHECK();
    return;
  }
  SUCCEED();
}

/// Runs it in each thread of a warp, at once.
void on_each_lane(const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      host::thread = t;
      body(t);
    });
  }
}

/// `order`, so that the sort is stable.
std::vector<int> sorted(std::vector<int> order, const std::function<bool(int, int)>& before) {
  std::ranges::stable_sort(order, before);
  return order;
}

/// 0, 1, ..., count - 1.
std::vector<int> numbers_to(std::size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

TEST_CASE("Prelude arithmetic returns the bits of the ops", "[prelude]") {
#define SAME2(T, name, other) \
  check_pairs<T>(#name, [](T a, T b) { return Both(host::name(a, b), math::other(in_ops(a), in_ops(b))); })
#define SAME1(T, name, other) \
  check_each<T>(#name, [](T a) { return Both(host::name(a), math::other(in_ops(a))); })
  SAME2(int, wrap_add, add);
  SAME2(int, wrap_sub, sub);
  SAME2(int, wrap_mul, mul);
  SAME2(int, floor_div, floor_div);
  SAME2(int, modulo, modulo);
  SAME2(int, cdiv, cdiv);
  SAME2(int, minimum, minimum);
  SAME2(int, maximum, maximum);
  SAME1(int, wrap_neg, neg);
  SAME1(int, wrap_abs, abs);
  SAME1(int, sign_of, sign);
  SAME2(int, shift_left, shift_left);
  SAME2(int, shift_right, shift_right);
  SAME2(host::i64, wrap_add, add);
  SAME2(host::i64, wrap_sub, sub);
  SAME2(host::i64, wrap_mul, mul);
  SAME2(host::i64, floor_div, floor_div);
  SAME2(host::i64, modulo, modulo);
  SAME2(host::i64, cdiv, cdiv);
  SAME2(host::i64, minimum, minimum);
  SAME2(host::i64, maximum, maximum);
  SAME1(host::i64, wrap_neg, neg);
  SAME1(host::i64, wrap_abs, abs);
  SAME1(host::i64, sign_of, sign);
  SAME2(host::i64, shift_left, shift_left);
  SAME2(host::i64, shift_right, shift_right);
#define UNSIGNED(T)                 \
  SAME2(T, wrap_add, add);          \
  SAME2(T, wrap_sub, sub);          \
  SAME2(T, wrap_mul, mul);          \
  SAME2(T, floor_div, floor_div);   \
  SAME2(T, modulo, modulo);         \
  SAME2(T, cdiv, cdiv);             \
  SAME2(T, minimum, minimum);       \
  SAME2(T, maximum, maximum);       \
  SAME1(T, wrap_neg, neg);          \
  SAME1(T, wrap_abs, abs);          \
  SAME1(T, sign_of, sign);          \
  SAME2(T, shift_left, shift_left); \
  SAME2(T, shift_right, shift_right)
  UNSIGNED(host::u32);
  UNSIGNED(host::u64);
  SAME1(float, sign_of, sign);
  SAME1(float, is_nan, isnan);
  SAME1(float, is_infinite, isinf);
  SAME1(float, is_finite, isfinite);
  SAME2(host::i64, random_bits, random_bits);
  SAME2(host::i64, random_uniform, random_uniform);
  CHECK(host::infinity() == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(host::nan_value()));
}

TEST_CASE("tanh_of is tanh, to 3e-7 of itself", "[prelude]") {
  for (double x = 1e-30; x < 100; x *= 1.0009765625)
    for (const float at : {static_cast<float>(x), static_cast<float>(-x)}) {
      const double wanted = std::tanh(static_cast<double>(at));
      INFO("tanh " << at);
      REQUIRE(std::abs(host::tanh_of(at) - wanted) <= 3e-7 * std::abs(wanted));
    }
  CHECK((host::tanh_of(0.0f) == 0 && !std::signbit(host::tanh_of(0.0f)) && std::signbit(host::tanh_of(-0.0f))));
  CHECK((host::tanh_of(host::infinity()) == 1 && host::tanh_of(-host::infinity()) == -1));
  CHECK(std::isnan(host::tanh_of(host::nan_value())));
}

TEST_CASE("Prelude trigonometry returns the bits of the ops, for large numbers, too", "[prelude]") {
  SAME1(float, sin_of, sin);
  SAME1(float, cos_of, cos);
  SAME1(float, tan_of, tan);
  CHECK(std::isnan(host::tan_of(host::infinity())));
  // Near multiples of pi / 2, the reduced argument consists of the last bits.
  for (const float x : {0x1.f9cbe2p+7f, 0x1.47d0fep+34f, 0x1.0f79ap+57f, 0x1.f37c8ap+95f, 0x1.7b9b4p+126f}) {
    INFO(x);
    const auto exact = std::cos(static_cast<long double>(x));
    CHECK(std::abs(host::cos_of(x) - exact) <= 3e-7L * std::abs(exact));
  }
}

TEST_CASE("sigmoid2_of is 1 / (1 + 2^-x), to 5e-7 of itself", "[prelude]") {
  const auto near = [](float at) {
    const double wanted = 1 / (1 + std::exp2(-static_cast<double>(at)));
    INFO("sigmoid2 " << at);
    REQUIRE(std::abs(host::sigmoid2_of(at) - wanted) <= 5e-7 * wanted);
  };
  for (double x = 1e-30; x < 200; x *= 1.0009765625) {
    near(static_cast<float>(x));
    if (x < 126) near(static_cast<float>(-x));
  }
  CHECK((host::sigmoid2_of(0.0f) == 0.5f && host::sigmoid2_of(-0.0f) == 0.5f));
  CHECK((host::sigmoid2_of(host::infinity()) == 1 && host::sigmoid2_of(-host::infinity()) == 0));
  CHECK((host::sigmoid2_of(3e38f) == 1 && host::sigmoid2_of(-3e38f) == 0));
  CHECK(std::isnan(host::sigmoid2_of(host::nan_value())));
}

TEST_CASE("Prelude casts return the bits of the ops", "[prelude]") {
  SAME1(float, cast_f32, cast_to<ElementType::f32>);
#define TO_NARROW(T)                             \
  SAME1(T, cast_i8, cast_to<ElementType::i8>);   \
  SAME1(T, cast_i16, cast_to<ElementType::i16>); \
  SAME1(T, cast_u8, cast_to<ElementType::u8>);   \
  SAME1(T, cast_u16, cast_to<ElementType::u16>)
#define TO_8_BITS(T)                                   \
  SAME1(T, cast_f8e4m3, cast_to<ElementType::f8e4m3>); \
  SAME1(T, cast_f8e5m2, cast_to<ElementType::f8e5m2>)
  TO_NARROW(float);
  TO_8_BITS(float);
  SAME1(float, cast_pred, to_pred);
  SAME1(float, cast_f16, cast_to<ElementType::f16>);
  SAME1(float, cast_bf16, cast_to<ElementType::bf16>);
  check_each<float>("tf32_bits", [](float x) { return Both(host::tf32_bits(x), bits(math::round_to_tf32(x))); });
#define FROM_INTEGER(T)                            \
  SAME1(T, cast_f32, cast_to<ElementType::f32>);   \
  SAME1(T, cast_f64, cast_to<ElementType::f64>);   \
  SAME1(T, cast_i32, cast_to<ElementType::i32>);   \
  SAME1(T, cast_i64, cast_to<ElementType::i64>);   \
  SAME1(T, cast_u32, cast_to<ElementType::u32>);   \
  SAME1(T, cast_u64, cast_to<ElementType::u64>);   \
  TO_NARROW(T);                                    \
  SAME1(T, cast_pred, to_pred);                    \
  SAME1(T, cast_f16, cast_to<ElementType::f16>);   \
  SAME1(T, cast_bf16, cast_to<ElementType::bf16>); \
  SAME1(T, cast_tf32, cast_to<ElementType::tf32>); \
  TO_8_BITS(T)
  FROM_INTEGER(double);
  FROM_INTEGER(int);
  FROM_INTEGER(host::i64);
  FROM_INTEGER(host::u32);
  FROM_INTEGER(host::u64);
  CHECK(host::cast_f32(true) == 1.0f);
  CHECK(host::cast_f16(true) == 1.0f);
  CHECK((host::cast_i32(true) == 1 && host::cast_i64(true) == 1 && host::cast_u8(true) == 1));
  CHECK((host::cast_pred(true) && !host::cast_pred(false)));
  for (int i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    if (bits(host::bf16_value(half)) != bits(math::bf16_value(half))) FAIL_CHECK(half);
  }
}

TEST_CASE("Prelude vectors move elements as the executor does", "[prelude]") {
  const auto moved = [](auto element, auto value, auto check) {
    using T = decltype(element);
    alignas(64) T from[32], to[32];
    std::memset(to, 0, sizeof to);
    std::mt19937 engine(2);
    for (auto& byte : std::as_writable_bytes(std::span(from))) byte = static_cast<std::byte>(engine());
    decltype(value) values[16];
    host::load_vector<8>(values, from);
    host::load_vector<1>(values + 8, from + 8);
    for (int i = 0; i < 9; ++i) check(from[i], values[i]);
    host::store_vector<8>(to, values);
    host::store_vector<1>(to + 8, values + 8);
    host::load_vector<16>(values, to);
    for (int i = 0; i < 9; ++i) check(to[i], values[i]);
    for (int i = 9; i < 16; ++i) check(T(), values[i]);
  };
  moved(0.0f, 0.0f, [](float a, float b) { CHECK(bits(a) == bits(b)); });
  moved(0, 0, [](int a, int b) { CHECK(a == b); });
  moved(0ll, 0ll, [](host::i64 a, host::i64 b) { CHECK(a == b); });
  moved(host::u8(), 0, [](host::u8 a, int b) { CHECK(a == b); });
  moved(host::bf16(), 0.0f, [](host::bf16 a, float b) { CHECK(bits(math::bf16_value(a.bits)) == bits(b)); });
  moved(host::f16(), 0.0f, [](host::f16 a, float b) { CHECK(bits(host::f16_value(a.bits)) == bits(b)); });
  CHECK(host::to_memory<host::u8>(-1) == 255);
  CHECK(host::from_memory(host::pred{255}));
  CHECK(!host::from_memory(host::pred{0}));
  CHECK(host::to_memory<host::pred>(true).bits == 1);
  CHECK(host::to_memory<host::u8>(256 + 3) == 3);
  CHECK(host::to_memory<host::bf16>(1.00390625f).bits == 0x3f80);  // a tie, to even
  CHECK(host::to_memory<host::f16>(65520.0f).bits == 0x7c00);
}

namespace {

/// argmax as a kernel computes it: each element against the initial value, then any two against each other.
template <class T>
int argmax_of(const std::vector<T>& line, std::mt19937& engine) {
  const T start = std::is_same_v<T, float> ? static_cast<T>(host::nan_value()) : std::numeric_limits<T>::lowest();
  std::vector<std::pair<T, int>> best;
  for (std::size_t i = 0; i < line.size(); ++i) {
    best.emplace_back(start, 0);
    host::keep_best(line[i], static_cast<int>(i), best.back().first, best.back().second);
  }
  while (best.size() > 1) {
    std::swap(best[engine() % best.size()], best.back());
    const auto [value, index] = best.back();
    best.pop_back();
    auto& other = best[engine() % best.size()];
    host::keep_best(value, index, other.first, other.second);
  }
  return best[0].second;
}

template <class T>
void check_argmax(const std::vector<T>& choices) {
  std::mt19937 engine(3);
  for (int length = 1; length < 9; ++length) {
    for (int repeat = 0; repeat < 300; ++repeat) {
      std::vector<T> line(static_cast<std::size_t>(length));
      for (T& x : line) x = choices[engine() % choices.size()];
      int expected = -1;
      for (int i = 0; i < length; ++i) {
        const T x = line[static_cast<std::size_t>(i)];
        if (x == x && (expected < 0 || x > line[static_cast<std::size_t>(expected)])) expected = i;
      }
      CAPTURE(line);
      REQUIRE(argmax_of(line, engine) == std::max(expected, 0));
    }
  }
}

}  // namespace

TEST_CASE("keep_best computes argmax in any order of comparison", "[prelude]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  check_argmax<float>({-infinity, infinity, 1, 2, nan, nan});
  check_argmax<float>({-infinity, nan, nan, nan});
  check_argmax<int>({std::numeric_limits<int>::lowest(), 0, 1});
  check_argmax<host::i64>({std::numeric_limits<host::i64>::lowest(), 0, 1});
}

TEST_CASE("Lanes reduce-scatter the sums of their registers, and gather them", "[prelude]") {
  std::array<std::array<float, 8>, 32> all{};
  std::mt19937 engine(5);
  for (auto& lane : all)
    for (float& x : lane) x = static_cast<float>(engine() % 1000);
  std::array<std::array<float, 8>, 32> expected{};  // sums over the lanes whose indices differ in the bits 2 and 16
  for (std::size_t lane = 0; lane < 32; ++lane)
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t bits : {0, 2, 16, 18}) expected[lane][i] += all[lane ^ bits][i];
  std::array<float, 32> kept{};
  on_each_lane([&](int t) {
    float* const x = all[static_cast<std::size_t>(t)].data();
    host::add_halves<8>(x, 2);
    host::add_halves<4>(x, 16);
    kept[static_cast<std::size_t>(t)] = x[1];
    host::gather_halves<4>(x, 16);
    host::gather_halves<8>(x, 2);
  });
  CHECK(all == expected);
  CHECK(kept[0] == expected[0][1]);
  CHECK(kept[2] == expected[0][5]);
  CHECK(kept[16] == expected[0][3]);
  CHECK(kept[18] == expected[0][7]);
}

namespace {

/// Lines of 32 / lanes * lanes * count keys, as a warp sorts them, compared with a sort.
template <int lanes, int unit, int kept, int count, class T>
void check_network(const std::vector<T>& choices) {
  CAPTURE(lanes, unit, kept, count);
  std::mt19937_64 engine(7);
  std::array<std::array<T, count>, 32> given{}, values{}, alone{};
  std::array<std::array<int, count>, 32> places{};
  for (auto& lane : given)
    for (T& x : lane) x = choices[engine() % choices.size()];
  const auto digit = [](int lane) { return lane / unit % lanes; };
  on_each_lane([&](int t) {
    const auto i = static_cast<std::size_t>(t);
    using Placed = decltype(host::placed_key<false>(T(), 0));
    using Key = decltype(host::key_of<true>(T()));
    Placed keys[count];
    Key falling[count];
    for (int r = 0; r < count; ++r) {
      const T x = given[i][static_cast<std::size_t>(r)];
      keys[r] = host::placed_key<false>(x, digit(t) * count + r);
      falling[r] = host::key_of<true>(x);
    }
    host::sort_lanes<lanes, unit, kept>(keys);
    host::sort_lanes<lanes, unit, kept>(falling);
    for (int r = 0; r < count; ++r) {
      values[i][static_cast<std::size_t>(r)] = host::placed_value<T, false>(keys[r]);
      places[i][static_cast<std::size_t>(r)] = host::key_place(keys[r]);
      alone[i][static_cast<std::size_t>(r)] = host::key_value<T, true>(falling[r]);
    }
  });
  const auto is_less = [](T a, T b) { return a != a || b != b ? a == a && b != b : a < b; };
  for (int line = 0; line < 32; ++line) {
    if (digit(line) != 0) continue;
    const auto in_line = [&](auto& all, int p) -> auto& {
      return all[static_cast<std::size_t>(line + p / count * unit)][static_cast<std::size_t>(p % count)];
    };
    const auto less = [&](int a, int b) { return is_less(in_line(given, a), in_line(given, b)); };
    const std::vector<int> order = sorted(numbers_to(lanes * count), less),
                           down = sorted(order, [&](int a, int b) { return less(b, a); });
    for (int p = 0; p < kept; ++p) {
      const auto at = static_cast<std::size_t>(p);
      CAPTURE(line, p);
      REQUIRE(in_line(places, p) == order[at]);
      const T expected = in_line(given, order[at]), falls = in_line(given, down[at]);
      REQUIRE((expected != expected ? in_line(values, p) != in_line(values, p)
                                    : bits(in_line(values, p)) == bits(expected)));
      REQUIRE((falls != falls ? in_line(alone, p) != in_line(alone, p) : in_line(alone, p) == falls));
    }
  }
}

template <class T>
void check_networks(const std::vector<T>& choices) {
  check_network<32, 1, 64, 2>(choices);
  check_network<32, 1, 32, 1>(choices);
  check_network<8, 1, 8, 1>(choices);
  check_network<8, 4, 32, 4>(choices);
  check_network<1, 1, 16, 16>(choices);
  check_network<32, 1, 4, 8>(choices);   // fewer than a lane has
  check_network<32, 1, 32, 8>(choices);  // the keys of some lanes
  check_network<16, 2, 1, 2>(choices);
}

}  // namespace

TEST_CASE("A sorting network of lanes and registers sorts, with indices and without", "[prelude]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  check_networks<float>({-infinity, infinity, 1, -1, 2.5f, -0.0f, 0.0f, nan, -nan});
  check_networks<int>({std::numeric_limits<int>::lowest(), std::numeric_limits<int>::max(), 0, 1, -1});
  check_networks<host::u32>({0, 1, ~host::u32(0), 1u << 31});
  check_networks<host::i64>(
      {std::numeric_limits<host::i64>::lowest(), std::numeric_limits<host::i64>::max(), 0, 1, -1, host::i64(1) << 32});
  check_networks<host::u64>({0, 1, ~host::u64(0), host::u64(1) << 63, host::u64(1) << 32});
}

TEST_CASE("An element of a chunk finds its position among those of others", "[prelude]") {
  std::mt19937 engine(8);
  for (const int extent : {9, 16, 17, 40})
    for (const int kept : {1, 2, 8}) {
      constexpr int chunk = 8;
      std::vector<float> line(static_cast<std::size_t>(extent));
      for (float& x : line) x = static_cast<float>(engine() % 6);
      for (int first = 0; first < extent; first += chunk)
        std::sort(line.begin() + first, line.begin() + std::min(first + chunk, extent), std::greater());
      const std::vector<int> order = sorted(numbers_to(line.size()), [&](int a, int b) {
        return line[static_cast<std::size_t>(a)] > line[static_cast<std::size_t>(b)];
      });
      for (int p = 0; p < kept; ++p) {
        const int at = order[static_cast<std::size_t>(p)];
        CAPTURE(extent, kept, p, at);
        REQUIRE((at % chunk < kept && host::rank_in_line<true, true>(line.data(), extent, chunk, kept, at,
                                                                     line[static_cast<std::size_t>(at)]) == p));
      }
    }
  host::thread = 3;
  const std::array<int, 8> counts = {1, 2, 3, 4, 50, 60, 70, 80};
  CHECK(host::sum_of_copies<4>(counts.data()) == 10);
  CHECK(host::sum_of_copies<8>(counts.data()) == 270);
}

TEST_CASE("Scans over lanes are inclusive, in either direction", "[prelude]") {
  const auto check = [](auto zero, auto lanes, auto step, auto from_behind) {
    using T = decltype(zero);
    constexpr int count = decltype(lanes)::value, apart = decltype(step)::value;
    constexpr bool reverse = decltype(from_behind)::value;
    CAPTURE(count, apart, reverse);
    const auto sum_of = [](T a, T b) { return math::add(a, b); };
    std::array<T, 32> given{}, through{}, below{}, highest{}, before{};
    std::mt19937_64 engine(4);
    for (T& x : given) x = static_cast<T>(std::is_same_v<T, float> ? engine() % 100 : engine());
    on_each_lane([&](int t) {
      const auto i = static_cast<std::size_t>(t);
      through[i] = host::scan_lanes<count, apart, reverse>(given[i], sum_of);
      below[i] = host::lane_before<count, apart, reverse>(through[i], T(-7));
      highest[i] = host::last_lane<count, apart, reverse>(through[i]);
      before[i] = host::scanned_before(through[i], t, T(-7));
    });
    for (int t = 0; t < 32; ++t) {
      const auto i = static_cast<std::size_t>(t);
      const int digit = t / apart % count;
      T sum = 0, all = 0;
      for (int other = 0; other < count; ++other) {
        const T x = given[static_cast<std::size_t>(t + (other - digit) * apart)];
        if (reverse ? other > digit : other < digit) sum = math::add(sum, x);
        all = math::add(all, x);
      }
      CAPTURE(t);
      CHECK(below[i] == (digit == (reverse ? count - 1 : 0) ? T(-7) : sum));
      CHECK(through[i] == math::add(sum, given[i]));
      CHECK(highest[i] == all);
      CHECK(before[i] == (t == 0 ? T(-7) : through[i - 1]));
    }
  };
  using std::integral_constant;
  const auto of_type = [&](auto zero) {
    check(zero, integral_constant<int, 32>(), integral_constant<int, 1>(), std::false_type());
    check(zero, integral_constant<int, 4>(), integral_constant<int, 8>(), std::false_type());
    check(zero, integral_constant<int, 8>(), integral_constant<int, 2>(), std::true_type());
    check(zero, integral_constant<int, 2>(), integral_constant<int, 1>(), std::true_type());
  };
  of_type(0.0f);
  of_type(0);
  of_type(host::i64(0));
}

}  // namespace test_prelude
