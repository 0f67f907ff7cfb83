// Random numbers.
#include <set>

#include "support/catch.hpp"
#include "support/element_ops.hpp"

namespace test_random_numbers {

using namespace tessera::internal;
using namespace element_ops;

TEST_CASE("random numbers are Philox 4x32-10", "[cpu]") {
  // Random123's known answers for all-zero and all-one counters and keys: the test's own Philox is right.
  CHECK(oracle::philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(oracle::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

  const auto k = kernel("random", [](Out<i32, 1> bits, Out<f32, 1> uniform, Scalar<i64> key, Scalar<i64> first) {
    const Tile index = first + cast<i64>(iota({4}, 0));
    store(bits, {0}, random_bits(key, index));
    store(uniform, {0}, random_uniform(key, index));
  });
  const Device& device = test_device();
  Tensor<i32, 1> bits(device, {4});
  Tensor<f32, 1> uniform(device, {4});
  launch(device.stream(), k, bits, uniform, 0, 0);
  CHECK(bits.to_vector() == std::vector<i32>{0x6627e8d5, static_cast<i32>(0xe169c58d), static_cast<i32>(0xbc57ac4c),
                                             static_cast<i32>(0x9b00dbd8)});
  oracle::Rng rng(13);
  for (ElementType type : {ElementType::i64}) {
    const Array key = oracle::random_bits_array(rng, type, {61, 1}),
                index = oracle::random_bits_array(rng, type, {1, 67});
    CHECK(difference(Op::random_bits, key, index) == "");
    CHECK(difference(Op::random_uniform, key, index) == "");
  }
}

TEST_CASE("random_uniform is strictly inside (0, 1), and uniform", "[cpu]") {
  constexpr int size = 250'000;
  const auto k = kernel("uniform", [](Out<f32, 1> out, Out<i32, 1> bits, Scalar<i64> key) {
    const Tile index = cast<i64>(iota({size}, 0));
    store(out, {0}, random_uniform(key, index));
    store(bits, {0}, random_bits(key, index));
  });
  const Device& device = test_device();
  Tensor<f32, 1> out(device, {size});
  Tensor<i32, 1> bits(device, {size});
  for (i64 key : {i64{0}, i64{42}, i64{-1}, i64{1} << 40}) {
    INFO("key " << key);
    launch(device.stream(), k, out, bits, key);
    double sum = 0, squares = 0, products = 0, last = 0.5;
    float low = 1, high = 0;
    for (float u : out.to_vector()) {
      low = std::min(low, u), high = std::max(high, u);
      sum += u, squares += (u - 0.5) * (u - 0.5), products += (u - 0.5) * (last - 0.5);
      last = u;
    }
    CHECK(low > 0);
    CHECK(high < 1);
    CHECK(low < 1e-4);
    CHECK(high > 1 - 1e-4);
    CHECK(std::abs(sum / size - 0.5) < 5 * std::sqrt(1 / 12.0 / size));
    CHECK(std::abs(squares / size - 1 / 12.0) < 5 * std::sqrt(1 / 180.0 / size));
    CHECK(std::abs(products / size) < 5 * (1 / 12.0) / std::sqrt(size));
    const std::vector<i32> words = bits.to_vector();
    const std::set<i32> distinct(words.begin(), words.end());
    CHECK(distinct.size() > size - 40);  // 7 collisions expected
    std::array<int, 32> ones{};
    for (i32 word : words)
      for (int bit = 0; bit < 32; ++bit) ones[bit] += word >> bit & 1;
    for (int count : ones) CHECK(std::abs(count - size / 2) < 5 * std::sqrt(size) / 2);
  }
  SECTION("words near the ends do not round to 0 or 1") {
    // Words with many leading ones or zeros, found by search with the test's Philox.
    std::vector<i64> extremes;
    for (i64 index = 0; index < 12'000'000 && extremes.size() < 24; index += 4) {
      const auto words = oracle::philox({static_cast<std::uint32_t>(index / 4), 0, 0, 0}, {7, 0});
      for (i64 word = 0; word < 4; ++word)
        if (words[word] >= 0xfffffa00u || words[word] < 0x400) extremes.push_back(index + word);
    }
    REQUIRE(extremes.size() > 0);
    const Array index = oracle::wholes(ElementType::i64, {static_cast<int>(extremes.size())}, extremes);
    const Array key = oracle::wholes(ElementType::i64, {}, {7});
    for (Real u : on_device(Op::random_uniform, key, index).real) {
      CHECK(u > 0);
      CHECK(u < 1);
    }
  }
}

}  // namespace test_random_numbers
