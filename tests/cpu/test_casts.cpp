// Casts between element types, by value and by bits.
#include <cfloat>

#include "support/catch.hpp"
#include "support/element_ops.hpp"

namespace test_casts {

using namespace tessera::internal;
using namespace element_ops;

TEST_CASE("a bitcast keeps the bits, in memory and of constants", "[cpu]") {
  const Device& device = test_device();
  const std::vector<float> x = {0, -0.0f, 1, -1.5f, FLT_MAX, FLT_MIN, 1e-45f, INFINITY, -INFINITY};
  constexpr int n = 9;
  Tensor<f32, 1> in(device, {n}), back(device, {n});
  Tensor<i32, 1> bits(device, {n}), folded(device, {2});
  Tensor<f16, 1> half(device, {n});
  Tensor<bf16, 1> other(device, {n});
  Tensor<f16, 1> same(device, {n});
  in.copy_from(x);
  std::vector<f16> halves;
  for (const int i : {0x0000, 0x8000, 0x3c00, 0x7bff, 0x0001, 0x03ff, 0xfc00, 0x7c00, 0xc001}) {
    halves.emplace_back();
    halves.back().bits = static_cast<std::uint16_t>(i);
  }
  half.copy_from(halves);
  const auto k = kernel("bits", [](In<f32, 1> v, In<f16, 1> h, Out<i32, 1> b, Out<f32, 1> r, Out<bf16, 1> o,
                                   Out<f16, 1> s, Out<i32, 1> f) {
    const Tile number = bitcast<i32>(load(v, {0}, {n}));
    store(b, {0}, number);
    store(r, {0}, bitcast<f32>(number ^ (-2147483647 - 1)));  // flips the sign
    const Tile rest = load(h, {0}, {n});
    store(o, {0}, bitcast<bf16>(rest));
    store(s, {0}, bitcast<f16>(bitcast<bf16>(rest)));
    store(f, {0}, concat(0, bitcast<i32>(full<f32>({1}, -2)), cast<i32>(bitcast<f32>(full<i32>({1}, 0x41100000)))));
  });
  launch(device.stream(), k, in, half, bits, back, other, same, folded);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(bits.to_vector()[i] == std::bit_cast<i32>(x[i]));
    CHECK(std::bit_cast<i32>(back.to_vector()[i]) == std::bit_cast<i32>(-x[i]));
    CHECK(other.to_vector()[i].bits == halves[i].bits);
    CHECK(same.to_vector()[i].bits == halves[i].bits);
  }
  CHECK(folded.to_vector() == std::vector<i32>{-0x40000000, 9});
}

namespace {

/// Values of a type for which conversions may go wrong.
Array awkward(oracle::Rng& rng, ElementType type) {
  if (!oracle::is_real(type)) {
    Array a = oracle::random_bits_array(rng, type, {1537});
    if (info(type).computes) {
      // Near the limits of exact floats, near ties of f32, f16 and bf16, and near the ranges of narrower integers.
      std::size_t at = 0;
      for (int bit : {7, 8, 9, 11, 12, 15, 16, 24, 25, 26, 30, 31, 32, 33, 40, 53, 54, 62})
        for (i64 delta = -4; delta <= 4; ++delta)
          for (i64 sign : {1, -1}) a.whole[at++] = oracle::wrapped(sign * ((i64{1} << bit) + delta), type);
      for (i64 x : {65503, 65504, 65519, 65520, 65521, 65536, 16777217, 33554434, 33554435, 2049, 2051, 257, 259})
        a.whole[at++] = x;
    }
    return a;
  }
  std::vector<Real> values = special_reals;
  for (ElementType other : {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f8e4m3,
                            ElementType::f8e5m2, ElementType::f32}) {
    const oracle::Format format = oracle::format_of(other);
    for (int exponent :
         {format.lowest - format.fraction - 2, format.lowest - format.fraction - 1, format.lowest - format.fraction,
          format.lowest - 3, format.lowest - 1, format.lowest, -3, 0, 5, format.highest - 1, format.highest}) {
      for (int step : {0, 1, 2, 3, 62, 63, 126, 127, (1 << format.fraction) - 2, (1 << format.fraction) - 1}) {
        // A number of the format, the tie after it, and the neighboring f32.
        const Real scale = std::ldexp(Real(1), std::max(exponent, format.lowest) - format.fraction);
        const Real number = std::ldexp(Real(1), exponent) + scale * step, tie = number + scale / 2;
        for (Real x : {number, tie, tie - scale / 64, tie + scale / 64, tie - std::ldexp(scale, -28),
                       tie + std::ldexp(scale, -28), -tie, -number})
          values.push_back(x);
      }
    }
  }
  for (Real x : {255.0L,
                 255.5L,
                 256.0L,
                 254.99L,
                 0.99L,
                 -0.99L,
                 -1.0L,
                 2147483647.0L,
                 2147483648.0L,
                 2147483520.0L,
                 -2147483648.0L,
                 -2147483904.0L,
                 9223372036854775807.0L,
                 9223371487098961920.0L,
                 -9223372036854775808.0L,
                 1e20L,
                 -1e20L,
                 65504.0L,
                 65519.0L,
                 65519.996L,
                 65520.0L,
                 -65520.0L,
                 1.5L,
                 2.5L,
                 -1.5L,
                 1e-8L})
    values.push_back(x);
  while (values.size() < 5000)
    values.push_back(oracle::number_of(rng(), oracle::chance(rng, 50) ? ElementType::f32 : ElementType::f64));
  Array a(type, {static_cast<int>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) a.real[i] = oracle::rounded(values[i], type);
  return a;
}

}  // namespace

TEST_CASE("cast between all pairs of element types", "[cpu]") {
  Cases cases(64);
  oracle::Rng rng(9);
  for (ElementType from : all_types) {
    const Array a = awkward(rng, from);
    for (ElementType to : all_types) {
      if (cases.skip()) continue;
      INFO(name(from) << " to " << name(to));
      const Array expected = oracle::cast(a, to);
      CHECK(oracle::difference(
                oracle::evaluate({a}, expected, [&](const Values& x) { return oracle::apply_cast(x[0], to); }),
                expected) == "");
    }
  }
}

TEST_CASE("cast of constants between all pairs of element types", "[cpu]") {
  Cases cases(24);
  oracle::Rng rng(10);
  for (ElementType from : {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32}) {
    const Array all = awkward(rng, from);
    for (ElementType to : all_types) {
      if (cases.skip()) continue;
      INFO(name(from) << " to " << name(to));
      std::vector<std::size_t> chosen;
      for (std::size_t i = 0; i < 30; ++i) chosen.push_back(oracle::between<std::size_t>(rng, 0, all.size() - 1));
      for (std::size_t i = 0; i < 23; ++i) chosen.push_back(i);
      const std::vector<Array> results =
          oracle::evaluate({}, std::vector<Array>(chosen.size(), Array(to, {})), [&](const Values&) {
        Values out;
        for (std::size_t i : chosen)
          out.push_back(oracle::apply_cast(oracle::is_real(from)
                                               ? oracle::literal(from, static_cast<double>(all.real[i]))
                                               : oracle::literal(from, all.whole[i]),
                                           to));
        return out;
      });
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        Array one(from, {});
        one.take(0, all, chosen[i]);
        INFO("of " << all.as_real(chosen[i]));
        CHECK(oracle::difference(results[i], oracle::cast(one, to)) == "");
      }
    }
  }
}

namespace {

template <class T>
void check_patterns() {
  constexpr int count = 1 << (8 * sizeof(T));
  const auto k = kernel("patterns", [](In<T, 1> in, Out<f32, 1> wide, Out<T, 1> back) {
    const Tile x = cast<f32>(load(in, {0}, {1 << (8 * sizeof(T))}));
    store(wide, {0}, x);
    store(back, {0}, cast<T>(x));
  });
  const Device& device = test_device();
  Tensor<T, 1> in(device, {count}), back(device, {count});
  Tensor<f32, 1> wide(device, {count});
  std::vector<T> patterns(count);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i].bits = static_cast<decltype(T::bits)>(i);
  in.copy_from(patterns);
  back.copy_from(std::vector<T>(count));
  wide.copy_from(std::vector<f32>(count, 12345.0f));
  launch(device.stream(), k, in, wide, back);
  const std::vector<f32> w = wide.to_vector();
  const std::vector<T> b = back.to_vector();
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Real exact = oracle::number_of(i, element_type<T>);
    if (std::isnan(exact))
      wrong += !std::isnan(w[i]) || !std::isnan(oracle::number_of(b[i].bits, element_type<T>));
    else
      wrong += Real(w[i]) != exact || std::signbit(w[i]) != std::signbit(exact) || b[i].bits != i;
    const T host(w[i]);  // the host's conversion agrees
    wrong += !std::isnan(exact) && (host.bits != i || static_cast<float>(host) != w[i]);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every number of 8 and 16 bits converts to every other type, by its value and by its bits", "[cpu]") {
  Cases cases(12);
  for (ElementType from : all_types) {
    if (!info(from).stored || info(from).bytes > 2) continue;
    const int bits = 8 * info(from).bytes;
    Array a(from, {1 << bits});
    for (int i = 0; i < 1 << bits; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (oracle::is_real(from))
        a.real[at] = oracle::number_of(static_cast<std::uint32_t>(i), from);
      else
        a.whole[at] = oracle::wrapped(i, from);
    }
    for (ElementType to : all_types) {
      if (cases.skip()) continue;
      INFO(name(from) << " to " << name(to));
      const Array expected = oracle::cast(a, to);
      CHECK(oracle::difference(
                oracle::evaluate({a}, expected, [&](const Values& x) { return oracle::apply_cast(x[0], to); }),
                expected) == "");
    }
  }
}

TEST_CASE("all patterns of f16, bf16, f8e4m3 and f8e5m2 convert to f32 and back", "[cpu]") {
  check_patterns<f8e4m3>();
  check_patterns<f8e5m2>();
  check_patterns<f16>();
  check_patterns<bf16>();
}

TEST_CASE("f32 is narrowed to the nearest number, ties to even", "[cpu]") {
  oracle::Rng rng(11);
  std::vector<Real> values;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 65521 - bits % 7)
    values.push_back(oracle::number_of(static_cast<std::uint32_t>(bits), ElementType::f32));
  for (std::uint32_t i = 0; i < 0x7c00; i += 3)  // every third tie between neighbors of f16, and numbers around it
    for (int delta : {-1, 0, 1}) {
      const Real tie = (oracle::number_of(i, ElementType::f16) +
                        (i == 0x7bff ? 65536 : oracle::number_of(i + 1, ElementType::f16))) /
                       2;
      const std::uint64_t bits = oracle::bits_of(tie, ElementType::f32) + static_cast<std::uint64_t>(delta);
      values.push_back(oracle::number_of(bits, ElementType::f32));
    }
  for (std::uint32_t i = 0; i < 0x10000; i += 5)
    for (std::uint32_t low : {0x7fffu, 0x8000u, 0x8001u})
      values.push_back(oracle::number_of(i << 16 | low, ElementType::f32));
  const Array a = oracle::reals({static_cast<int>(values.size())}, values);
  for (ElementType to :
       {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2}) {
    INFO(name(to));
    const Array expected = oracle::cast(a, to);
    CHECK(oracle::difference(
              oracle::evaluate({a}, expected, [&](const Values& x) { return oracle::apply_cast(x[0], to); }),
              expected) == "");
    // The host's own conversions.
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float x = static_cast<float>(values[i]);
      if (std::isnan(x) || to == ElementType::tf32) continue;
      const int bits = to == ElementType::f16      ? f16(x).bits
                       : to == ElementType::bf16   ? bf16(x).bits
                       : to == ElementType::f8e4m3 ? f8e4m3(x).bits
                                                   : f8e5m2(x).bits;
      wrong += static_cast<std::uint64_t>(bits) != oracle::bits_of(oracle::rounded(x, to), to);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("tf32 of NaN has the bits 0x7fffe000", "[cpu]") {
  const auto k = kernel(
      "tf32", [](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, cast<f32>(cast<tf32>(load(in, {0}, {6})))); });
  const Device& device = test_device();
  Tensor<f32, 1> in(device, {6}), out(device, {6});
  const std::uint32_t patterns[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0xffffffff, 0x7fa01234};
  std::vector<float> values(6);
  std::memcpy(values.data(), patterns, sizeof patterns);
  in.copy_from(values);
  launch(device.stream(), k, in, out);
  std::uint32_t results[6];
  std::memcpy(results, out.to_vector().data(), sizeof results);
  for (std::uint32_t bits : results) CHECK(bits == 0x7fffe000);
}

TEST_CASE("a cast to a narrow type and back rounds within an expression", "[cpu]") {
  oracle::Rng rng(12);
  const Array a = oracle::random_array(rng, ElementType::f32, {1537}, -300, 300);
  for (ElementType through :
       {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2,
        ElementType::f64, ElementType::i8, ElementType::u8, ElementType::i16, ElementType::u16, ElementType::i32,
        ElementType::u32, ElementType::u64, ElementType::pred}) {
    INFO("through " << name(through));
    const Array expected = oracle::cast(oracle::cast(oracle::unary(Op::neg, a), through), ElementType::f32);
    CHECK(oracle::difference(oracle::evaluate({a}, expected,
                                              [&](const Values& x) {
      return oracle::apply_cast(oracle::apply_cast(oracle::apply_unary(Op::neg, x[0]), through), ElementType::f32);
    }),
                             expected) == "");
  }
  SECTION("integers through narrower ones") {
    const Array b = oracle::random_bits_array(rng, ElementType::i64, {1537});
    for (ElementType through :
         {ElementType::i32, ElementType::i8, ElementType::i16, ElementType::u8, ElementType::u16, ElementType::u32,
          ElementType::u64, ElementType::pred, ElementType::f32, ElementType::f16}) {
      INFO("through " << name(through));
      const Array expected = oracle::cast(oracle::cast(b, through), ElementType::i64);
      CHECK(oracle::difference(oracle::evaluate({b}, expected,
                                                [&](const Values& x) {
        return oracle::apply_cast(oracle::apply_cast(x[0], through), ElementType::i64);
      }),
                               expected) == "");
    }
  }
}

// Random numbers
// ---------------------------------------------------------------------------------------------------------

}  // namespace test_casts
