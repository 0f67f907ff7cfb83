// GPT-2: differences between devices that must not be visible: tiles, and tokens that stay on the device.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "model/tiles.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "tessera/model/session.hpp"

namespace test_model_devices {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

TransformerConfig small() {
  TransformerConfig config;
  config.vocab = 211, config.positions = 40, config.width = 48, config.layers = 2, config.heads = 3;
  config.inner = 4 * config.width;
  return config;
}

std::vector<float> logits_of(const Model& model, const std::vector<Tokens>& texts) {
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
  const Model model(test_device(), small(), 3);
  Session session(model, 2, 40);
  std::vector<Tokens> texts{{1, 2, 3}, {4, 5}};
  session.append(texts);
  // The tokens that are appended to each sequence, given the sampled ones.
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

TEST_CASE("chunks of any length are appended to sequences of any length", "[model][emulated]") {
  TransformerConfig config = small();
  const bool many = test_device_name() == "cpu" || test_device_name().starts_with("cuda");
  config.positions = many ? 150 : 40;
  const Model model(test_device(), config, 11);
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < (!many ? 1 : sanitized ? 3 : 25); ++round) {
    const std::size_t batch = many ? static_cast<std::size_t>(1 + below(3)) : 2;
    Session session(model, static_cast<int>(batch), config.positions);
    std::vector<Tokens> texts(batch);
    const auto is_full = [&](const Tokens& text) { return text.size() == static_cast<std::size_t>(config.positions); };
    for (int step = 0; !std::ranges::all_of(texts, is_full); ++step) {
      std::vector<Tokens> chunks(batch);
      std::size_t longest = 0;
      for (std::size_t b = 0; b < batch; ++b) {
        const int space = config.positions - static_cast<int>(texts[b].size());
        // The first is long enough to fill a tile of queries, then short and long ones alternate.
        const int most = step == 0 ? 20 : below(3) == 0 ? 40 : 6;
        const int length = std::min(space, step == 0 ? most : below(most));
        for (int i = 0; i < length; ++i) chunks[b].push_back(below(211));
        longest = std::max(longest, chunks[b].size());
      }
      if (longest == 0) continue;
      session.append(chunks);
      const auto last = session.logits(), all = session.all_logits();
      for (std::size_t b = 0; b < batch; ++b) {
        texts[b].insert(texts[b].end(), chunks[b].begin(), chunks[b].end());
        REQUIRE(session.length(static_cast<int>(b)) == static_cast<int>(texts[b].size()));
        if (chunks[b].empty()) continue;
        INFO("round " << round << ", " << chunks[b].size() << " tokens after " << texts[b].size() - chunks[b].size());
        Session fresh(model, 1, config.positions);
        fresh.append({&texts[b], 1});
        const auto whole = fresh.all_logits();
        const auto part = [](const std::vector<float>& values, std::size_t row, std::size_t rows) {
          const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * 211);
          return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(rows * 211));
        };
        const std::size_t rows = chunks[b].size();
        CHECK(relative_difference(part(all, b * longest, rows), part(whole, texts[b].size() - rows, rows)) <= 1e-5);
        CHECK(relative_difference(part(last, b, 1), part(whole, texts[b].size() - 1, 1)) <= 1e-5);
      }
    }
  }
}

TEST_CASE("tf32 converts matmul operands, and nothing else", "[model]") {
  CHECK(parse_compute("tf32") == Compute::tf32);
  const std::vector<Tokens> texts{{1, 2, 3, 4, 5, 6, 7}};
  const auto exact = logits_of(Model(test_device(), small(), 3), texts);
  const double difference =
      relative_difference(logits_of(Model(test_device(), small(), 3, Compute::tf32), texts), exact);
  CHECK(difference > 1e-5);
  CHECK(difference <= 2.5e-3);
}

TEST_CASE("tiles suit every width and device", "[model]") {
  const auto check = [](const TileTarget& target) {
    INFO((target.gpu ? "gpu " : "cpu ") << name(target.operands) << " " << target.width << " " << target.head_width);
    const AttentionTiles tiles = attention_tiles(target), of_one = tiles_of_one(target);
    CHECK((tiles.queries >= 16 && tiles.keys >= (target.head_width > 512 ? 8 : 16)));
    CHECK((of_one.queries >= 2 && of_one.queries <= tiles.queries && of_one.keys == tiles.keys));
    for (const KeyTiles& tiles : {key_tiles(target, 1), key_tiles(target, 300), key_tiles(target, 1024),
                                  key_tiles(target, 4096), part_key_tiles(target)}) {
      CHECK(tiles.keys % tiles.groups == 0);
      CHECK(tiles.groups * target.head_width <= 128 * 256);  // accumulators of 256 threads
    }
    CHECK(copy_rows(target) >= 1);
    for (const std::int64_t rows : {1, 5000}) {
      const NormTiles tiles = norm_tiles(target, rows);
      CHECK((tiles.rows >= 1 && tiles.warps >= 0 && tiles.warps <= 8));
      if (target.gpu) CHECK(tiles.rows * target.width <= std::max(1024, target.width));
      const int columns = std::max(tiles.columns, target.width);
      if (target.gpu && rows == 1)
        CHECK((columns % (64 * tiles.warps) == 0 && columns < target.width + 128 * tiles.warps));
    }
  };
  for (const bool gpu : {false, true})
    for (const ElementType operands : {ElementType::f32, ElementType::tf32, ElementType::bf16})
      for (const auto& [width, head] : {std::pair{8, 8},
                                        {17, 17},
                                        {48, 16},
                                        {192, 32},
                                        {256, 256},
                                        {768, 64},
                                        {1021, 1},
                                        {1600, 64},
                                        {32768, 128},
                                        {6, 3},
                                        {640, 320},
                                        {32768, 32768}})
        check({.gpu = gpu, .operands = operands, .width = width, .head_width = head});
}

}  // namespace test_model_devices
