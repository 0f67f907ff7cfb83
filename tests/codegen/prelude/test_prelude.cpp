// The prelude of generated kernels: which items a kernel gets, that it compiles for every architecture, and that its
// plain C++, run here, returns the bits of graph/math.hpp.
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
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "codegen/prelude/prelude.hpp"
#include "graph/host_ops.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/share.hpp"
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

namespace {

/// Is `line` the first of a declaration? All other lines of an item are indented, or close or prefix one.
bool declares(std::string_view line) {
  return line.starts_with("__device__ inline ") || line.starts_with("struct ") || line.starts_with("using ");
}

/// The words of C++ text outside of string literals.
std::set<std::string_view> words_of(std::string_view text) {
  std::set<std::string_view> words;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), [&](char c) { return is_word(c) || c == '"'; });
    if (begin != text.end() && *begin == '"') {
      begin = std::find(begin + 1, text.end(), '"');
      if (begin != text.end()) ++begin;
      continue;
    }
    const auto end = std::find_if_not(begin, text.end(), is_word);
    if (begin != end) words.emplace(begin, end);
    begin = end;
  }
  return words;
}

std::string_view without_comment(std::string_view item) {
  while (item.starts_with("//")) item.remove_prefix(item.find('\n') + 1);
  return item;
}

std::string names_in(std::string_view prelude) {
  std::string names;
  for (const PreludeItem& item : prelude_items()) {
    if (prelude.find(item.text) != prelude.npos) names += std::string(item.name) + " ";
  }
  return names;
}

}  // namespace

TEST_CASE("Every prelude item is one named declaration in the folder where it belongs", "[prelude]") {
  std::set<std::string_view> seen;
  for (const PreludeItem& item : prelude_items()) {
    INFO(item.file << ":\n" << item.text);
    CHECK(item.device == item.file.starts_with("device/"));
    CHECK(item.text.starts_with("// "));
    CHECK(item.text.find("\n\n") == item.text.npos);
    int declarations = 0;
    for (std::string_view rest = item.text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      declarations += declares(line);
      CHECK(line.size() <= 120);
    }
    CHECK(declarations == 1);

    // Features that only a device has: intrinsics, builtin variables, PTX, the functions of CUDA.
    const std::set<std::string_view> words = words_of(without_comment(item.text));
    CHECK(words.contains(item.name));
    const bool needs_device = std::any_of(words.begin(), words.end(), [](std::string_view word) {
      return (word.starts_with("__") && word != "__device__") || word == "asm" ||
             (word.starts_with("atomic") && word != "atomic" && word[6] != '_') || word == "threadIdx" ||
             word == "blockIdx" || word == "gridDim" || word == "blockDim";
    });
    CHECK((needs_device || item.name == "continues") == item.device);  // it detects endless loops, elsewhere

    // Declared before it is used; so is every overload, since a template would not see later ones.
    for (const PreludeItem& other : prelude_items()) {
      if (other.name == item.name || !words.contains(other.name)) continue;
      CHECK(std::find_if(prelude_items().begin(), prelude_items().end(), [&](const PreludeItem& i) {
        return i.text.data() == other.text.data();
      }) < std::find_if(prelude_items().begin(), prelude_items().end(), [&](const PreludeItem& i) {
        return i.text.data() == item.text.data();
      }));
    }
    seen.insert(item.name);
  }
  CHECK(seen.size() > 60);
}

TEST_CASE("A kernel gets the prelude that it uses", "[prelude]") {
  CHECK(prelude_for("").empty());
  CHECK(prelude_for("extern \"C\" __global__ void k(float* x) { x[0] = 1.0f; }").empty());
  CHECK(names_in(prelude_for("y = modulo(a, b);")) == "modulo ");
  CHECK(prelude_for("y = modulo(a, b);").starts_with("// The remainder of floor_div"));
  // Together with everything that an item uses, overloads included, in the order of the prelude whatever that of the
  // text.
  CHECK(names_in(prelude_for("floor_div")) == "u32 i64 u64 wrap_sub wrap_sub wrap_sub wrap_neg floor_div ");
  CHECK(prelude_for("floor_div modulo") == prelude_for("modulo floor_div floor_div"));
  CHECK(prelude_for("cast_i32").find("__float2int_rz") != std::string::npos);
  // Words in comments and strings, and parts of words, are no uses.
  CHECK(prelude_for("// modulo\n/* modulo\n modulo */ \"modulo \\\" modulo\" 'a' my_modulo modulo2 0modulo").empty());
  CHECK(names_in(prelude_for("// modulo\nmodulo")) == "modulo ");
  CHECK(names_in(prelude_for("'\\'' modulo \"")) == "modulo ");
  // Overloads for element types that the text does not have are left out. 64-bit values may occur without a type name.
  CHECK(names_in(prelude_for("from_memory(x)")) == "from_memory ");
  CHECK(names_in(prelude_for("const bf16* x; from_memory(x[0])")) ==
        "u32 u16 bf16 float_of bf16_value from_memory from_memory ");
  // So may a double: by a literal with digits, or as the result of a function.
  const auto of_double = [](std::string_view text) {
    return prelude_for(text).find("minimum(double") != std::string::npos;
  };
  CHECK(!of_double("minimum(1.5f, 0x1e - 3e2f)"));
  CHECK(!of_double("minimum(a1.b, 1)"));
  for (const char* text : {"double x; minimum(x, x)", "minimum(a, 2.5)", "minimum(a, 1e-30)", "minimum(a, cast_f64(1))",
                           "minimum(double_infinity(), double_nan_value())"}) {
    INFO(text);
    CHECK(of_double(text));
  }
  CHECK(prelude_for("cast_i8(cast_f64(1))").find("cast_i8(double") != std::string::npos);  // whichever comes first
  // One blank line between the items, a newline at the end.
  const std::string text = prelude_for("floor_div modulo");
  CHECK(text.find("\n\n\n") == std::string::npos);
  CHECK((text.ends_with("}\n") && !text.ends_with("\n\n")));
  CHECK(text.find("}\n\n// The remainder of floor_div") != std::string::npos);
}

namespace {

struct Kernel {
  const char* name;
  const char* text;  ///< the body; all kernels here have the same parameters
};

constexpr Kernel kernels[] = {
    {"threads", R"(  char* const shared = shared_memory();
  shared[thread_index()] = static_cast<char>(lane_index() + warp_index());
  barrier();
  l[thread_index()] = block_index() * grid_size() + shared[63 - thread_index()];
  warp_barrier();
  f[0] = *from_here(f + 1);
)"},
    {"shuffles", R"(  f[0] = shuffle_xor(f[0], 1) + shuffle(f[1], 2) + shuffle_up(f[2], 3);
  i[0] = shuffle_xor(i[0], 1) + shuffle(i[1], 2) + shuffle_up(i[2], 3);
  l[0] = shuffle_xor(l[0], 1) + shuffle(l[1], 2) + shuffle_up(l[2], 3);
  i[1] = shuffle_xor(i[0] > 0, 1) + shuffle(i[1] > 0, 2) + shuffle_up(i[2] > 0, 3);
  float x[4] = {f[0], f[1], f[2], f[3]};
  add_halves<4>(x, 1);
  gather_halves<4>(x, 1);
  f[1] = x[lane_index() % 4];
)"},
    {"casts", R"(  const bool p = i[0] > 0;
  f[0] = cast_f32(f[0]) + cast_f32(i[0]) + cast_f32(l[0]) + cast_f32(p);
  f[1] = cast_f16(f[0]) + cast_f16(i[0]) + cast_f16(l[0]) + cast_f16(p);
  f[2] = cast_bf16(f[0]) + cast_bf16(i[0]) + cast_bf16(l[0]) + cast_bf16(p);
  f[3] = cast_tf32(f[0]) + cast_tf32(i[0]) + cast_tf32(l[0]) + cast_tf32(p);
  f[5] = cast_f8e4m3(f[0]) + cast_f8e4m3(i[0]) + cast_f8e5m2(l[0]) + cast_f8e5m2(p);
  const double d = cast_f64(f[0]) + cast_f64(i[0]) + cast_f64(m[0]) + cast_f64(p);
  f[6] = cast_f32(d) + cast_f16(d) + cast_bf16(d) + cast_tf32(d) + cast_f8e4m3(d) + cast_f8e5m2(d);
  i[4] = cast_i8(d) + cast_i16(d) + cast_i32(d) + cast_u8(d) + cast_u16(d) + cast_pred(d);
  l[1] = cast_i64(d) + static_cast<i64>(bits_of(double_of(l[2])));
  w[3] = cast_u32(d);
  m[4] = cast_u64(d);
  i[0] = cast_i32(f[0]) + cast_i32(i[0]) + cast_i32(l[0]) + cast_i32(p);
  i[1] = cast_u8(f[0]) + cast_u8(i[0]) + cast_u8(l[0]) + cast_u8(p);
  i[2] = cast_pred(f[0]) + cast_pred(i[0]) + cast_pred(l[0]) + cast_pred(p);
  l[0] = cast_i64(f[0]) + cast_i64(i[0]) + cast_i64(l[0]) + cast_i64(p);
  w[0] = cast_u32(f[0]) + cast_u32(i[0]) + cast_u32(l[0]) + cast_u32(p) + cast_u32(m[1]);
  m[0] = cast_u64(f[0]) + cast_u64(i[0]) + cast_u64(l[0]) + cast_u64(p) + cast_u64(w[1]);
  i[3] = cast_i8(f[0]) + cast_i8(m[1]) + cast_i16(f[0]) + cast_i16(l[0]) + cast_u16(f[1]) + cast_u16(w[1]);
  f[4] = cast_f32(w[2]) + cast_f32(m[2]) + cast_bf16(m[3]);
)"},
    {"eight_bits", R"(  f[0] = from_memory(p8[0]) + from_memory(q8[0]);
  p8[1] = to_memory<f8e4m3>(f[2]);
  q8[1] = to_memory<f8e5m2>(f[2]);
  q[1] = to_memory<pred>(from_memory(q[0]) && f[1] > 0.0f);
  store_vector<16>(p8 + 16, f);
  read_input<4>(f + 4, q8, i[7] > 0);
)"},
    {"f64", R"(  double x = cast_f64(f[0]), y = cast_f64(f[1]), both[2] = {x, y};
  x = sin_of(x) + cos_of(y) + tan_of(x) + tanh_of(y) + exp2_of(x) + sigmoid2_of(y) + sign_of(x);
  if (less(x, y) || less_equal(y, x) || is_nan(x) || is_infinite(x) || is_finite(y)) x = minimum(x, y);
  y = minimum_nan(x, y) + maximum_nan(y, x) + double_infinity() * double_nan_value();
  keep_best(x, 1, y, i[4]);
  add_halves<2>(both, 1);
  f[0] = cast_f32(shuffle_xor(x, 1) + shuffle(y, 3) + shuffle_up(both[0], 1));
  f[1] = f8e4m3_value(f8e4m3_bits(f[2])) + f8e5m2_value(f8e5m2_bits(f[3])) + exp2_of(f[4]);
)"},
    {"elements", R"(  f[0] = from_memory(f[0]) + from_memory(h[0]) + from_memory(b[0]);
  i[0] = from_memory(i[0]) + from_memory(u[0]);
  l[0] = from_memory(l[0]);
  f[1] = to_memory<float>(f[2]);
  h[1] = to_memory<f16>(f[2]);
  b[1] = to_memory<bf16>(f[2]);
  i[1] = to_memory<int>(i[2]);
  u[1] = to_memory<u8>(i[2]);
  i[9] = from_memory(s[0]) + from_memory(t[0]) + from_memory(v[0]);
  s[1] = to_memory<i8>(i[2]);
  t[1] = to_memory<i16>(i[2]);
  v[1] = to_memory<u16>(i[2]);
  store_vector<8>(t + 8, i);
  store_vector<8>(v + 8, i);
  store_vector<4>(w + 4, w);
  l[1] = to_memory<i64>(l[2]);
  read_input<2>(f + 4, b, i[7] > 0);
  read_input<4>(f + 8, f + 16, i[7] > 0, 1.0f);
  f[5] = read_input(h, i[7] > 0) + read_input(b, i[7] > 0, 2.0f);
  store_whole<8>(b, f, i[7] > 0);
  store_whole<8>(h, f, i[7] > 0);
  store_whole<4>(f + 8, f, i[7] > 0);
  i[4] = read_input(u, i[7] > 0) + read_input(i, i[7] > 0, 3);
  l[4] = read_input(l, i[7] > 0);
  read_no_hoist<4>(f + 8, f + 16, i[7] > 0);
  read_no_hoist<2>(f + 4, b, i[7] > 0, 1.0f);
  f[5] = read_no_hoist(h, i[7] > 0) + read_no_hoist(b, i[7] > 0, 2.0f);
  i[4] = read_no_hoist(u, i[7] > 0) + read_no_hoist(i, i[7] > 0, 3);
  l[4] = read_no_hoist(l, i[7] > 0);
  read_evict_last<4>(f + 8, f + 16, i[7] > 0, priority_of_read(l[0]));
  read_evict_last<8>(f + 8, b, i[7] > 0, priority_of_read(l[0]));
)"},
    {"copies", R"(  copy_async<4>(shared_memory(), f, i[0] > 0);
  copy_async<8>(shared_memory() + 8, f, i[0] > 0);
  copy_async_commit();
  copy_async<16>(shared_memory() + 16, f, i[0] > 0);
  copy_async_commit();
  copy_async_wait<1>();
  copy_async_wait<0>();
  f[1] = *reinterpret_cast<float*>(shared_memory());
)"},
    {"matrices", R"(  float c[4] = {};
  u32 x[4], y[4];
  load_matrix_x4(x, shared_memory() + 16 * lane_index());
  load_matrix_x2(y, shared_memory() + 16 * lane_index());
  mma_f16(c, x, y);
  mma_bf16(c, x, y);
  mma_tf32(c, x, y);
  load_matrix_x4_transposed(x, shared_memory() + 16 * lane_index());
  load_matrix_x2_transposed(y, shared_memory() + 16 * lane_index());
  mma_bf16(c, x, y);
  store_vector<4>(f + 4 * thread_index(), c);
  int sums[8] = {};
  load_bytes_transposed<8, 1>(x, shared_memory(), 1);
  load_bytes_transposed<4, 2>(y, shared_memory(), 0);
  mma_i8<1>(sums, x, y);
  mma_u8<2>(sums + 1, x, y + 2);
  store_vector<4>(i, sums);
)"},
    {"bits", R"(  if (continues(i[2] > 0, 7)) i[3] = 0;
  i[0] = static_cast<int>(pack_f16(f[0], f[1]) + pack_bf16(f[0], f[1]) + bits_of(f[2]));
  f[0] = float_of(static_cast<u32>(i[1])) + infinity() * nan_value();
)"},
    {"arithmetic", R"(  f[0] = wrap_add(minimum_nan(f[0], f[1]), maximum_nan(f[0], f[1]));
  f[7] = less(f[0], f[1]) || less_equal(f[2], f[3]) ? minimum(f[0], f[2]) : 0.0f;
  i[0] = wrap_add(i[0], wrap_sub(i[1], wrap_mul(i[2], wrap_neg(wrap_abs(i[3])))));
  i[1] = wrap_add(floor_div(i[0], i[1]), modulo(i[0], cdiv(i[1], i[0])));
  i[2] = minimum(maximum(i[0], i[1]), i[2]);
  l[0] = wrap_add(l[0], wrap_sub(l[1], wrap_mul(l[2], wrap_neg(wrap_abs(l[3])))));
  l[1] = wrap_add(floor_div(l[0], l[1]), modulo(l[0], cdiv(l[1], l[0])));
  l[2] = minimum(maximum(l[0], l[1]), l[2]);
  w[1] = wrap_add(floor_div(w[0], w[1]), modulo(w[0], wrap_mul(cdiv(w[1], w[0]), wrap_abs(w[2])))) + sign_of(w[3]);
  m[1] = wrap_add(floor_div(m[0], m[1]), modulo(m[0], wrap_mul(cdiv(m[1], m[0]), wrap_abs(m[2])))) + sign_of(m[3]);
  w[4] = minimum(maximum(w[0], w[1]), shift_left(w[5], shift_right(w[6], w[7]))) + count_ones(w[8]) + leading_zeros(w[9]);
  m[4] = minimum(maximum(m[0], m[1]), shift_left(m[5], shift_right(m[6], m[7]))) + count_ones(m[8]) + leading_zeros(m[9]);
  i[3] = random_bits(l[0], l[1]);
  f[1] = random_uniform(l[0], l[1]);
  i[7] = shift_left(i[0], count_ones(i[1])) + shift_right(i[2], leading_zeros(i[3])) + sign_of(i[8]);
  l[3] = shift_left(l[0], count_ones(l[1])) + shift_right(l[2], leading_zeros(l[3])) + sign_of(l[4]);
  f[8] = is_nan(f[9]) || is_infinite(f[10]) || is_finite(f[11]) ? sin_of(f[8]) + cos_of(f[9]) : sign_of(tan_of(f[10]));
  keep_best(f[0], 1, f[1], i[4]);
  keep_best(i[0], 1, i[1], i[5]);
  keep_best(l[0], 1, l[1], i[6]);
  f[7] += sin_approximate(f[0]) + cos_approximate(f[1]) + tanh_approximate(f[2]) + log2_approximate(sqrt_approximate(f[3]));
  f[2] = tanh_of(f[3]) + sigmoid2_of(f[6]) + exp2_approximate(f[4]) * reciprocal_approximate(f[5]);
)"},
    {"tiles", R"(  char* const tile = shared_memory();
  clear_tile<64>(tile, 64);
  const Window inside = both(window(l[0], 16, l[1]), stepped_window(l[2], i[3], 16, l[3]));
  read_vector<4>(f, f + 64, within(inside, i[0]), 0.0f);
  read_tile<8, bf16, 8>(f + 4, tile, i[0], 8);
  const GridPlace place = grouped(snake_order(l[4]), i[1], i[2], 4);
  u32 x[12], y[8];
  load_matrix_x4(x, left_row<8>(tile, place.row, 0));
  load_matrix_x4_transposed(x + 4, left_row_transposed<8>(tile, place.column));
  load_matrix_x4(x + 8, right_row<4>(tile, 0, 0));
  load_matrix_x4_transposed(y, right_row_transposed<4>(tile, 0));
  load_matrix_x2(y + 4, right_row<2>(tile, 0, 0));
  load_matrix_x2_transposed(y + 6, right_row_transposed<2>(tile, 0));
  exchange_quads(x);
  store_words(f, x, inside.low < 8);
  mma_bf16(f, x, y);
  mma_bf16(f, x + 4, y + 2);
  mma_bf16(f, x + 8, y + 4);
  mma_bf16(f, x, y + 6);
)"},
    {"atomics", R"(  atomic_add(f, 1.0f);
  atomic_add(i, 1);
  scatter_element(i, 1);
  atomic_add(l, static_cast<i64>(-1));
  atomic_add(w, 1u);
  atomic_add(m, 1ull);
)"},
    // Macros, as NVRTC takes a generic lambda for a host function.
    {"orders", R"(
#define ALL(y)                                                 \
  y[1] = atomic_add<Acquire, BlockScope>(y, y[2]);             \
  y[1] = atomic_max<Release, DeviceScope>(y, y[1]);            \
  y[1] = atomic_min<AcquireRelease, SystemScope>(y, y[1]);     \
  y[1] = atomic_exchange<Relaxed, BlockScope>(y, y[1]);        \
  y[1] = atomic_compare_exchange<AcquireRelease, DeviceScope>(y, y[1], y[2]);
#define BITS(y)                                                \
  y[1] = atomic_and<Release, BlockScope>(y, y[2]);             \
  y[1] = atomic_or<Acquire, SystemScope>(y, y[1]);             \
  y[1] = atomic_xor(y, y[1]);
  double* const d = reinterpret_cast<double*>(l + 9);
  ALL(f) ALL(d) ALL(i) ALL(l) ALL(w) ALL(m)
  BITS(i) BITS(l) BITS(w) BITS(m)
)"},
    {"reports", R"(  u32* const board = reinterpret_cast<u32*>(i);
  if (f[0] < 0) fail_check(board, 3, l[0]);
  u32* const record = new_record(board, 4, l[1], 3);
  if (record) record_elements(record, f, 1);
  if (record) record_elements(record + 1, l, 1);
)"},
    {"scans", R"(  const auto largest = [](float a, float b) { return fmaxf(a, b); };
  const auto sum = [](int a, int b) { return wrap_add(a, b); };
  const auto wide = [](i64 a, i64 b) { return wrap_add(a, b); };
  f[0] = scanned_before(lane_before<32, 1>(scan_lanes<32, 1>(f[0], largest), 0.0f), i[0], 1.0f) + last_lane<4, 8>(f[1]);
  i[0] = scanned_before(lane_before<8, 4, true>(scan_lanes<8, 4, true>(i[0], sum), 0), i[1], 1) + last_lane<2, 1>(i[2]);
  l[0] = lane_before<4, 1>(scan_lanes<4, 1>(l[0], wide), i64(0)) + last_lane<32, 1, true>(l[1]);
)"},
    {"sorts", R"(  u64 keys[32];
  PlacedKey wide[16];
  u32 short_keys[4];
  for (int k = 0; k < 32; ++k) keys[k] = placed_key<true>(f[k], k);
  for (int k = 0; k < 16; ++k) wide[k] = k < i[0] ? placed_key<false>(l[k], k) : last_key<PlacedKey>();
  for (int k = 0; k < 4; ++k) short_keys[k] = key_of<false>(i[k]);
  sort_lanes<32, 1, 1024>(keys);
  sort_lanes<16, 2, 8>(wide);
  sort_lanes<1, 1, 4>(short_keys);
  for (int k = 0; k < 32; ++k) f[k] = placed_value<float, true>(keys[k]);
  for (int k = 0; k < 16; ++k) l[k] = placed_value<i64, false>(wide[k]);
  for (int k = 0; k < 4; ++k) i[k] = key_value<int, false>(short_keys[k]) + key_place(keys[k]) + key_place(wide[k]);
  i[4] = rank_in_line<false, true>(f, 100, 32, 8, i[5], f[0]) + sum_of_copies<8>(i);
)"},
};

// Features of sm_90a alone: TMA, mbarriers, warp groups.
constexpr Kernel hopper_kernels[] = {
    {"pipelines", R"(  u64* const full = reinterpret_cast<u64*>(panel_memory());
  if (thread_index() == 0) {
    barrier_init(full, 1);
    barrier_init_fence();
  }
  barrier();
  PipelineState at = {0, 0};
  barrier_expect(full + at.stage, 1024);
  barrier_arrive(full + stage_behind<4>(at, 1));
  barrier_wait(full + at.stage, at.phase);
  int left = i[0];
  if (!take_one(left)) advance<4>(at, 1);
  named_barrier_arrive(1, 64);
  named_barrier(2, 64);
  i[0] = at.stage + panel_offset(i[1], i[2]) + panels_offset<bf16, 64>(i[3], i[4]) + panels_offset<float, 64>(i[5], i[6]);
)"},
    {"clusters", R"(  float* const part = reinterpret_cast<float*>(shared_memory());
  float d[8] = {}, e[64] = {};
  put_part<64>(part, d, thread_index());
  cluster_barrier();
  add_parts<64>(d, part, thread_index());
  cluster_barrier();
  add_parts<64>(e, part, thread_index());
  cluster_barrier();
  i[block_index()] = share_of(i[0], cluster_rank()) + static_cast<int>(cluster_index() + clusters());
  f[thread_index()] = d[5] + e[60];
)"},
    {"walks", R"(  float* const part = reinterpret_cast<float*>(l);
  u32* const flags = reinterpret_cast<u32*>(l + 4096);
  float d[8] = {}, e[64] = {};
  for (WorkRange span = first_span(i[0], i[1], i[2]); span.k_iterations > 0; next_span(span, i[0], i[1], i[2])) {
    i[span.block] = span.first;
    if (thread_index() == 0) set_flag(flags + block_index());
    for (Peers others = peers_of(span, i[0], i[1], i[2]); others.left > 0; next_of(others, i[0], i[1], i[2])) {
      if (thread_index() == 0) wait_flag(flags + others.block);
      barrier();
      add_part<64>(d, of_block(part, 4096, others.block), thread_index());
      add_part<64>(e, of_block(part, 4096, others.block), thread_index());
    }
  }
  f[thread_index()] = d[5] + e[60];
)"},
    {"copy_engine", R"(  const TensorMap* const map = reinterpret_cast<const TensorMap*>(l);
  char* const tile = panel_memory();
  u64* const full = reinterpret_cast<u64*>(tile + 8192);
  prefetch_map(map);
  griddep_launch_dependents();
  griddep_wait();
  tma_load(map, tile, full, i[0], i[1]);
  tma_load(map, tile, full, i[0], i[1], i[2]);
  tma_load(map, tile, full, i[0], i[1], i[2], i[3]);
  tma_load(map, tile, full, i[0], i[1], i[2], i[3], box_coordinate(l[0]));
  async_proxy_fence();
  tma_store_guarded(map, tile, i[0], i[1]);
  tma_store(map, tile, i[0], i[1]);
  tma_store(map, tile, i[0], i[1], i[2]);
  tma_store_commit();
  tma_store_wait<0>();
)"},
    {"warp_groups", R"(  setmaxnreg_dec<40>();
  setmaxnreg_inc<232>();
  char* const tile = panel_memory();
  clear_rest<64, 64>(tile, i[1], i[0], thread_index());
  const u64 matrix = matrix_descriptor<1, 64>(tile);
  float d[128] = {};
  wgmma_fence();
  wgmma_bf16_n64<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n96<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n128<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n160<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n176<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n192<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n256<0, 1>(d, matrix, matrix, true);
  wgmma_f16_n64<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n96<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n128<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n160<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n176<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n192<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n256<0, 1>(d, matrix, matrix, true);
  wgmma_tf32_n64<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n96<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n128<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n192<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n256<0, 0>(d, matrix, matrix, true);
  wgmma_commit();
  register_fence(d);
  wgmma_wait<0>();
  u32 a[4] = {1, 2, 3, 4};
  fragment_fence(a);
  wgmma_fence();
  wgmma_left_bf16_n64<0>(d, a, matrix, true);
  wgmma_left_bf16_n96<0>(d, a, matrix, true);
  wgmma_left_bf16_n128<0>(d, a, matrix, true);
  wgmma_left_bf16_n160<0>(d, a, matrix, true);
  wgmma_left_bf16_n176<0>(d, a, matrix, true);
  wgmma_left_bf16_n192<0>(d, a, matrix, true);
  wgmma_left_bf16_n256<1>(d, a, matrix, true);
  wgmma_left_f16_n64<0>(d, a, matrix, true);
  wgmma_left_f16_n96<0>(d, a, matrix, true);
  wgmma_left_f16_n128<0>(d, a, matrix, true);
  wgmma_left_f16_n160<0>(d, a, matrix, true);
  wgmma_left_f16_n176<0>(d, a, matrix, true);
  wgmma_left_f16_n192<0>(d, a, matrix, true);
  wgmma_left_f16_n256<1>(d, a, matrix, true);
  float e[4] = {1, 2, 3, 4};
  register_fence(e);
  wgmma_left_tf32_n64<0>(d, e, matrix, true);
  wgmma_left_tf32_n96<0>(d, e, matrix, true);
  wgmma_left_tf32_n128<0>(d, e, matrix, true);
  wgmma_left_tf32_n192<0>(d, e, matrix, true);
  wgmma_left_tf32_n256<0>(d, e, matrix, true);
  wgmma_commit();
  register_fence(d);
  wgmma_wait<0>();
  load_vector<1>(f, panels_element<float, 64>(tile, i[0], i[1], i[2]));
  warp_barrier();
  store_matrix(tile + 16 * lane_index(), bits_of(d[0]), bits_of(d[1]), bits_of(d[2]), bits_of(d[3]));
  f[thread_index()] = d[5];
)"},
};

constexpr const char* archs[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"};

CompileRequest request(const std::string& name, const std::string& body, Arch arch) {
  const std::string kernel =
      "extern \"C\" __global__ void __launch_bounds__(64) " + name +
      "(float* f, int* i, i64* l, f16* h, bf16* b, u8* u, u32* w, u64* m, i8* s, i16* t, u16* v, f8e4m3* p8, "
      "f8e5m2* q8, pred* q) {\n" +
      body + "}\n";
  return {.source = prelude_for(kernel) + "\n" + kernel, .kernel = name, .arch = arch};
}

/// The compiler, or null after a warning if there is none.
const Nvrtc* nvrtc_here() {
  SUCCEED();
  try {
    return &Nvrtc::instance();
  } catch (const Error& e) {
    WARN("skipped: " << e.what());
    return nullptr;
  }
}

}  // namespace

TEST_CASE("Every prelude item is called by a kernel that compiles cleanly for every architecture", "[prelude]") {
  std::string called =
      "load_vector debug_fail check_offset reach_below reach_above check_number check_numbers";  // below
  for (const Kernel& kernel : kernels) called += std::string("\n") + kernel.text;
  for (const Kernel& kernel : hopper_kernels) called += std::string("\n") + kernel.text;
  const std::string all = prelude_for(called);
  for (const PreludeItem& item : prelude_items()) {
    INFO(item.file << ": no kernel here calls " << item.name);
    CHECK(all.find(item.text) != all.npos);
  }

  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  for (const Kernel& kernel : hopper_kernels) {
    CompileRequest whole_group = request(kernel.name, kernel.text, Arch::sm_90a);
    const std::size_t bounds = whole_group.source.find("__launch_bounds__(64)");
    whole_group.source.replace(bounds, 21, "__launch_bounds__(128)");
    // These set registers without roles and wait for each wgmma: only whole kernels show that they compile cleanly
    // (test_role_plans.cpp).
    CHECK_NOTHROW(nvrtc->compile(whole_group));
  }
  for (const char* arch : archs) {
    for (const Kernel& kernel : kernels) {
      if (!in_share(std::string(arch) + kernel.name, std::min<std::size_t>(test_share(1), 4))) continue;
      const CompileRequest kernel_request = request(kernel.name, kernel.text, Arch::parse(arch));
      const CompiledCode code = nvrtc->compile(kernel_request);
      INFO(arch << " " << kernel.name << "\n" << code.log);
      CHECK(code.report.warnings.empty());
      CHECK(is_clean(code.report, kernel_request.source));
    }
    // printf takes its arguments from local memory.
    CHECK(nvrtc
              ->compile(request(
                  "debug",
                  "  if (!(f[0] < 1)) debug_fail(\"f[0] < 1\", 7);\n  check_offset(l[0], 4, "
                  "reach_below(l[1]), reach_above(l[2]), 7);\n  check_number(f[0], 7);\n  check_numbers<4>(f, 7);\n",
                  Arch::parse(arch)))
              .report.warnings.empty());
  }
}

TEST_CASE("Vector accesses have their full width", "[prelude]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  struct Element {
    const char *pointer, *value;
    int bytes;
  };
  for (const Element element :
       {Element{"f", "float", 4}, {"h", "float", 2}, {"i", "int", 4}, {"u", "int", 1}, {"l", "i64", 8}}) {
    for (const int bytes : {1, 2, 4, 8, 16, 32, 64}) {
      if (bytes < element.bytes) continue;
      const std::string n = std::to_string(bytes / element.bytes),
                        offset = std::string(element.pointer) + " + thread_index() * " + n;
      const std::string body = "  " + std::string(element.value) + " x[" + n + "];\n  load_vector<" + n + ">(x, " +
                               offset + ");\n  store_vector<" + n + ">(" + offset + " + 64 * " + n + ", x);\n";
      const CompiledCode code = nvrtc->compile(request("move", body, Arch{99, 0}));  // PTX, for a GPU not yet known
      const std::string_view ptx = reinterpret_cast<const char*>(code.image.data());
      INFO(body << ptx);
      REQUIRE(code.is_ptx);
      for (const std::string_view access : {"ld.global", "st.global"}) {
        int count = 0;
        for (std::size_t at = ptx.find(access); at != ptx.npos; at = ptx.find(access, at + 1)) {
          // ld.global.v4.u32, ld.global.u8
          std::string_view kind = ptx.substr(at + access.size() + 1, 8);
          int width = 1;
          if (kind.starts_with('v')) {
            width = kind[1] - '0';
            kind.remove_prefix(3);
          }
          width *= std::atoi(std::string(kind.substr(1, 2)).c_str()) / 8;
          CHECK(width == std::min(bytes, 16));
          ++count;
        }
        CHECK(count == std::max(bytes / 16, 1));
      }
      CHECK(ptx.find(".local") == ptx.npos);
    }
  }
}

TEST_CASE("The ops' expressions compile, and exist exactly for the operands that the ops take", "[prelude]") {
  std::string body;
  const auto use = [&](Op op, ElementType type, const std::string& pointer) {
    if (!accepts(op, type)) return;
    const bool real = info(type).kind == ElementKind::real;
    const std::string_view text = real ? info(op).cuda_real : info(op).cuda_integer;
    INFO(name(op));
    CHECK_FALSE(text.empty());
    const std::string cell = pointer + "[" + std::to_string(static_cast<int>(op)) + "]";
    const bool pred = type == ElementType::pred;
    body += "  {\n    const auto a = " + cell + (pred ? " > 0" : "") + ", b = " + pointer + "[99]" +
            (pred ? " > 0" : "") + ", c = " + pointer + "[98]" + (pred ? " > 0" : "") + ";\n    " + cell + " = " +
            std::string(text) + ";\n    (void)b, (void)c;\n  }\n";
  };
  for (int i = 0; i <= static_cast<int>(Op::min_nan); ++i) {
    const Op op = static_cast<Op>(i);
    use(op, ElementType::f32, "f");
    use(op, ElementType::i32, "i");
    use(op, ElementType::i64, "l");
    use(op, ElementType::u32, "w");
    use(op, ElementType::u64, "m");
    use(op, ElementType::pred, "i");
    const Operands operands = info(op).operands;
    const bool real_only = operands == Operands::real || operands == Operands::single;
    CHECK(info(op).cuda_real.empty() != (real_only || operands == Operands::number));
    CHECK(info(op).cuda_integer.empty() == real_only);
  }
  CHECK((info(Op::load).cuda_real.empty() && info(Op::load).cuda_integer.empty()));
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const CompiledCode code = nvrtc->compile(request("ops", body, Arch::parse(arch)));
    INFO(body << code.log);
    CHECK(code.report.warnings.empty());
    CHECK(code.report.clean());
  }
}

}  // namespace test_prelude
