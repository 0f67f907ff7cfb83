#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tensors.hpp"

namespace test_analyze {
using namespace tessera;

template <class T, std::size_t R>
Tensor<T, static_cast<int>(R)> tensor_of(const std::int64_t (&extents)[R], const std::vector<T>& values) {
  auto tensor = test_device().tensor<T>(extents);
  tensor.copy_from(values);
  return tensor;
}
bool advises(const std::vector<std::string>& advice, std::initializer_list<std::string_view> words) {
  return std::any_of(advice.begin(), advice.end(), [&](const std::string& sentence) { return says(sentence, words); });
}

TEST_CASE("an analysis counts and measures elements", "[tensors]") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto a = analyze(tensor_of<f32>({2, 5}, {0, 1.5f, -3, nan, inf, 0, 0.25f, -inf, 7, -0.0f}));
  CHECK(a.elements == 10);
  CHECK(a.zeros == 3);
  CHECK(a.nans == 1);
  CHECK(a.infinities == 2);
  CHECK(a.fractions == 2);
  CHECK(a.lowest == -3);
  CHECK(a.highest == 7);
  CHECK(a.smallest == 0.25);
  CHECK(advises(a.advice, {"NaN", "1 of 10"}));
  CHECK(advises(a.advice, {"Infinities", "2 of 10"}));
  CHECK(advises(a.advice, {"f16 holds the range", "11 bits"}));
  CHECK(to_string(a).find("f32 [2,5]") != std::string::npos);
}

TEST_CASE("an analysis advises on types", "[tensors]") {
  CHECK(advises(analyze(tensor_of<f32>({3}, {1, -128, 100})).advice, {"i8 holds all elements exactly"}));
  CHECK(advises(analyze(tensor_of<i32>({3}, {0, 255, 3})).advice, {"u8 holds all"}));
  CHECK(advises(analyze(tensor_of<i64>({2}, {-40000, 3})).advice, {"i32 holds all"}));
  CHECK(!advises(analyze(tensor_of<i32>({2}, {-40000, 3})).advice, {"holds"}));
  CHECK(advises(analyze(tensor_of<f32>({2}, {0.5f, 70000.5f})).advice, {"bf16 holds the range"}));
  CHECK(!advises(analyze(tensor_of<f32>({2}, {0.5f, 70000.5f})).advice, {"f16 holds the range", "11 bits"}));
  CHECK(advises(analyze(tensor_of<f32>({2}, {0.5f, 400.5f})).advice, {"f8e4m3 holds the range"}));
  CHECK(advises(analyze(tensor_of<f32>({20}, std::vector<f32>(20, 0))).advice, {"Zeros", "20 of 20"}));
  CHECK(analyze(tensor_of<pred>({2}, {true, false})).zeros == 1);
  CHECK(analyze(test_device().tensor<f32>({0, 4})).elements == 0);
  CHECK(analyze(tensor_of<bf16>({2}, {bf16(1.5f), bf16(-2.0f)})).lowest == -2);
}

TEST_CASE("an analysis says how a tensor lies in memory", "[tensors]") {
  const auto x = tensor_of<f32>({6, 8}, std::vector<f32>(48, 1.5f));
  CHECK(analyze(x).dense);
  CHECK(analyze(x).contiguous_axis == 1);
  CHECK(analyze(x).alignment == 16);
  const auto turned = analyze(x.transposed());
  CHECK(!turned.dense);
  CHECK(turned.contiguous_axis == 0);
  CHECK(analyze(x.slice(1, 1, 4)).alignment == 4);
  CHECK(advises(analyze(x.slice(1, 1, 4)).advice, {"aligned to 4 bytes", "multiple of 4 elements"}));
  CHECK(advises(analyze(x.slice(1, 1, 4)).advice, {"not dense"}));
}

TEST_CASE("an analysis of a product has its tiles", "[tensors]") {
  const auto x = tensor_of<f32>({64, 96}, std::vector<f32>(64 * 96, 1.5f)),
             w = tensor_of<f32>({96, 32}, std::vector<f32>(96 * 32, 2.5f));
  const auto a = analyze(x, w);
  CHECK(a.tiles == choose<f32>(MatmulFamily::plain, {.m = 64, .n = 32, .k = 96}, test_device()));
  CHECK(advises(a.advice, {"Tiles of", "waves"}));
  CHECK(to_string(a).find("w: f32 [96,32]") != std::string::npos);
  CHECK(says(error_of([&] { analyze(w, x); }), {"f32 [96,32]", "f32 [64,96]", "[m,k] and [k,n]"}));
}

}  // namespace test_analyze
