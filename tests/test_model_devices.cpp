// GPT-2: what differs from device to device, and must not show: tiles, and tokens that stay on the device.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "catch.hpp"
#include "devices.hpp"
#include "model/gpt2.hpp"
#include "model/tiles.hpp"

using namespace tessera;
using Tokens = std::vector<std::int32_t>;

namespace {

Gpt2Config small() {
  Gpt2Config config;
  config.vocab = 211, config.positions = 40, config.width = 48, config.layers = 2, config.heads = 3;
  config.inner = 4 * config.width;
  return config;
}

std::vector<float> logits_of(const Gpt2& model, const std::vector<Tokens>& texts) {
  Session session(model, static_cast<int>(texts.size()), 40);
  session.append(texts);
  return session.logits();
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) error += std::pow(a[i] - b[i], 2), norm += std::pow(b[i], 2);
  return std::sqrt(error / norm);
}

}  // namespace

TEST_CASE("a sampled token is appended like any other", "[model]") {
  const Gpt2 model(test_device(), small(), 3);
  Session session(model, 2, 40);
  std::vector<Tokens> texts{{1, 2, 3}, {4, 5}};
  session.append(texts);
  // What is appended to each sequence, made of what was sampled.
  const auto step = [&](const std::function<std::vector<Tokens>(const Tokens&)>& next) {
    const Tokens sampled = session.sample({.temperature = 1, .seed = 5});
    const std::vector<Tokens> appended = next(sampled);
    session.append(appended);
    for (std::size_t b = 0; b < 2; ++b) texts[b].insert(texts[b].end(), appended[b].begin(), appended[b].end());
    const auto all = session.logits(), fresh = logits_of(model, texts);
    for (std::size_t b = 0; b < 2; ++b) {
      if (appended[b].empty()) continue;
      const auto begin = static_cast<std::ptrdiff_t>(b * 211);
      CHECK(relative_difference({all.begin() + begin, all.begin() + begin + 211},
                                {fresh.begin() + begin, fresh.begin() + begin + 211}) <= 1e-5);
    }
  };
  const auto as_sampled = [](const Tokens& sampled) { return std::vector<Tokens>{{sampled[0]}, {sampled[1]}}; };
  step(as_sampled);
  step(as_sampled);
  step([](const Tokens& sampled) { return std::vector<Tokens>{{sampled[0]}, {(sampled[1] + 1) % 211}}; });
  step([](const Tokens& sampled) { return std::vector<Tokens>{{sampled[0]}, {}}; });
  step(as_sampled);
  step([](const Tokens& sampled) { return std::vector<Tokens>{{sampled[0], 7}, {sampled[1]}}; });
  step(as_sampled);
}

TEST_CASE("tf32 rounds what is multiplied, and nothing else", "[model]") {
  CHECK(parse_compute("tf32") == Compute::tf32);
  const std::vector<Tokens> texts{{1, 2, 3, 4, 5, 6, 7}};
  const auto exact = logits_of(Gpt2(test_device(), small(), 3), texts);
  const double difference =
      relative_difference(logits_of(Gpt2(test_device(), small(), 3, Compute::tf32), texts), exact);
  CHECK(difference > 1e-5);
  CHECK(difference <= 2.5e-3);
}

TEST_CASE("tiles suit every width and device", "[model]") {
  const auto check = [](const TileTarget& target) {
    INFO((target.gpu ? "gpu " : "cpu ") << name(target.operands) << " " << target.width << " " << target.head_width);
    for (const std::int64_t rows : {1, 2, 16, 17, 64, 65, 1024, 1025, 100000}) {
      const int m = product_rows(target, rows);
      CHECK((m == 1) == (rows == 1));
      for (const auto& tiles : {linear_tiles(target, m), head_tiles(target, m)}) {
        CHECK((tiles.m == m && tiles.n >= 16 && tiles.k >= 1));
        if (target.width % 64 == 0) CHECK(target.width % tiles.k == 0);
        if (!target.gpu) continue;
        // One row: the weights of a tile are in registers, 64 of each thread at most. More: both operands, in three
        // steps at least, in the shared memory of the smallest GPU.
        const int bytes = target.operands == ElementType::bf16 ? 2 : 4;
        if (m == 1) CHECK(tiles.n * tiles.k <= 64 * 256);
        if (m > 1) CHECK(3 * (tiles.m + tiles.n) * tiles.k * bytes <= 99 * 1024);
      }
    }
    const auto [queries, keys] = attention_tiles(target);
    CHECK((queries >= 16 && keys >= 16 && decode_keys(target) >= 32));
    CHECK((norm_rows(target) >= 1 && copy_rows(target) >= 1));
    if (target.gpu) CHECK(norm_rows(target) * target.width <= std::max(1024, target.width));
  };
  for (const bool gpu : {false, true})
    for (const ElementType operands : {ElementType::f32, ElementType::tf32, ElementType::bf16})
      for (const auto& [width, head] :
           {std::pair{8, 8}, {17, 17}, {48, 16}, {192, 32}, {256, 256}, {768, 64}, {1021, 1}, {1600, 64}, {32768, 128}})
        check({gpu, operands, width, head});
}
