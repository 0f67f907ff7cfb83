// Sampling against its definition: the kernel's choices over many samples, and the filters in double precision.
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "model/candidate_kernels.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

namespace test_sampling {

using namespace tessera::internal;

namespace {

struct Settings {
  float penalty = 1, temperature = 1;
  int top_k = 0;
  float top_p = 1, min_p = 0;
};

// The distribution from which transformers samples: penalty, temperature, top-k, top-p, min-p in this order. (No two of
// the tests' logits are equal.)
std::vector<double> expected(const std::vector<float>& logits, const std::vector<u8>& seen, const Settings& s) {
  const std::size_t n = logits.size();
  std::vector<double> x(logits.begin(), logits.end());
  for (std::size_t i = 0; i < n; ++i) {
    if (seen[i]) x[i] = x[i] > 0 ? x[i] / s.penalty : x[i] * s.penalty;
    x[i] /= s.temperature;
  }
  std::vector<double> sorted = x;
  std::sort(sorted.rbegin(), sorted.rend());
  const double bound =
      s.top_k > 0 && s.top_k < static_cast<int>(n) ? sorted[static_cast<std::size_t>(s.top_k - 1)] : sorted.back();
  std::vector<double> p(n);
  for (std::size_t i = 0; i < n; ++i) p[i] = x[i] >= bound ? std::exp(x[i] - sorted[0]) : 0;
  const auto normalize = [&] {
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& value : p) value /= total;
  };
  normalize();
  if (s.top_p < 1) {
    sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    double mass = 0, last = 0;
    for (std::size_t i = 0; i < n && mass < s.top_p; ++i) mass += last = sorted[i];
    for (double& value : p) value = value >= last ? value : 0;
    normalize();
  }
  const double best = *std::max_element(p.begin(), p.end());
  for (double& value : p) value = value >= s.min_p * best ? value : 0;
  normalize();
  return p;
}

/// Each row has a key of its own, as sequences of a session do.
std::vector<i32> draw(const std::vector<float>& logits, const std::vector<u8>& seen, const Settings& s,
                      std::int64_t rows, std::int64_t seed, int position = 3) {
  const Device& device = test_device();
  const auto vocab = static_cast<std::int64_t>(logits.size());
  const auto kernel = kernels::sample(static_cast<int>(vocab));
  Tensor<f32, 2> x(device, {rows, vocab});
  Tensor<u8, 2> marks(device, {rows, vocab});
  Tensor<i32, 1> past(device, {rows}), token(device, {rows}), chosen(device, {rows});
  std::vector<float> all_logits;
  std::vector<u8> all_seen;
  const Tensor<i64, 1> keys(device, {rows});
  std::vector<i64> all_keys;
  for (std::int64_t row = 0; row < rows; ++row) {
    all_logits.insert(all_logits.end(), logits.begin(), logits.end());
    all_seen.insert(all_seen.end(), seen.begin(), seen.end());
    all_keys.push_back(static_cast<i64>(static_cast<u64>(seed) + static_cast<u64>(row) * 0x1E3779B97F4A7C15));
  }
  x.copy_from(all_logits);
  marks.copy_from(all_seen);
  past.copy_from(std::vector<i32>(static_cast<std::size_t>(rows), position));
  keys.copy_from(all_keys);
  launch(device.stream(), kernel, x, marks, past, keys, token, chosen, s.penalty, s.temperature, s.top_k, s.top_p,
         s.min_p);
  const std::vector<i32> drawn = token.to_vector();
  if (s.top_k < 1 || s.top_k > kernels::most_candidates) return drawn;
  // The same among few candidates.
  const std::int64_t parts = kernels::candidate_parts(static_cast<int>(vocab));
  const Tensor<i32, 2> tokens(device, {rows * parts, kernels::most_candidates});
  const Tensor<f32, 2> scores(device, {rows * parts, kernels::most_candidates});
  const auto by_row = [&](const auto& all) { return all.reshaped(std::array{rows, parts * kernels::most_candidates}); };
  launch(device.stream(), kernels::candidates(static_cast<int>(vocab)), x, marks, tokens, scores, s.penalty);
  launch(device.stream(), kernels::sample_candidates(static_cast<int>(vocab)), by_row(tokens), by_row(scores), past,
         keys, token, chosen, s.temperature, s.top_k, s.top_p, s.min_p);
  CHECK(token.to_vector() == drawn);
  CHECK(chosen.to_vector() == drawn);
  return drawn;
}

/// Samples from one row of logits, each with a key of its own, for any vocabulary size: every row is that one.
std::vector<i32> draw_from_one(const std::vector<float>& logits, std::int64_t rows, std::int64_t seed) {
  const Device& device = test_device();
  const auto vocab = static_cast<std::int64_t>(logits.size());
  static std::map<std::int64_t, decltype(kernels::sample(0))> made;
  const auto& kernel = made.try_emplace(vocab, kernels::sample(static_cast<int>(vocab))).first->second;
  const Tensor<f32, 1> row(device, {vocab});
  row.copy_from(logits);
  const Tensor<f32, 2> x(device, row.data(), {rows, vocab}, {0, 1});
  const Tensor<i32, 1> past(device, {rows}), token(device, {rows}), chosen(device, {rows});
  const Tensor<i64, 1> keys(device, {rows});
  std::vector<i64> all_keys;
  for (std::int64_t i = 0; i < rows; ++i) all_keys.push_back(seed + i);
  past.copy_from(std::vector<i32>(static_cast<std::size_t>(rows), 5));
  keys.copy_from(all_keys);
  launch(device.stream(), kernel, x, std::nullopt, past, keys, token, chosen, 1.0f, 1.0f, 0, 1.0f, 0.0f);
  return token.to_vector();
}

/// Many more samples where they are cheap.
bool has_gpu() { return test_device_name().starts_with("cuda"); }

std::vector<float> random_logits(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(generator);
  return logits;
}

}  // namespace

TEST_CASE("tokens are sampled with their probabilities", "[model][many]") {
  const Settings settings =
      GENERATE(Settings{}, Settings{1, 0.5f}, Settings{1, 2}, Settings{1, 1, 5}, Settings{1, 1, 0, 0.7f},
               Settings{1, 0.8f, 12, 0.9f}, Settings{1.5f, 1, 8}, Settings{0.5f, 0.9f, 0, 0.95f}, Settings{1, 1, 1},
               Settings{1, 1, 0, 1e-6f}, Settings{1, 1, 0, 1, 0.1f}, Settings{1.2f, 2, 20, 0.9f, 0.25f});
  const auto logits = random_logits(31, 5);
  std::vector<u8> seen(31);
  for (std::size_t i = 0; i < 31; i += 3) seen[i] = 1;
  const auto p = expected(logits, seen, settings);
  constexpr int draws = 20000;
  std::vector<int> counts(31);
  for (i32 token : draw(logits, seen, settings, draws, 42)) {
    REQUIRE(token >= 0);
    REQUIRE(token < 31);
    ++counts[static_cast<std::size_t>(token)];
  }
  for (std::size_t i = 0; i < 31; ++i) {
    INFO("token " << i << " probability " << p[i] << " drawn " << counts[i]);
    if (p[i] == 0) CHECK(counts[i] == 0);
    CHECK(std::abs(counts[i] - draws * p[i]) <= 4.5 * std::sqrt(draws * p[i] * (1 - p[i])) + 1);  // 4.5 sigma
  }
}

TEST_CASE("filters keep exactly the tokens they should, in large vocabularies too", "[model][many]") {
  const auto logits = random_logits(5003, 9);
  const std::vector<u8> seen(5003);
  for (const Settings& settings :
       {Settings{1, 1, 1}, Settings{1, 1, 40}, Settings{1, 1, 0, 0.3f}, Settings{1, 0.7f, 200, 0.5f},
        Settings{1, 1, 0, 1, 0.3f}, Settings{1, 0.7f, 200, 0.5f, 0.5f}}) {
    const auto p = expected(logits, seen, settings);
    for (i32 token : draw(logits, seen, settings, 400, 7)) CHECK(p[static_cast<std::size_t>(token)] > 0);
  }
}

TEST_CASE("top-k keeps k tokens, the lowest among equals", "[model]") {
  const auto drawn = [](const std::vector<float>& logits, int k) {
    std::set<i32> tokens;
    for (i32 token : draw(logits, std::vector<u8>(logits.size()), {1, 1, k}, 500, 1)) tokens.insert(token);
    return tokens;
  };
  using Set = std::set<i32>;
  const std::vector<float> logits{1, 3, 2, 2, 2, 0};
  CHECK(drawn(logits, 1) == Set{1});
  CHECK(drawn(logits, 2) == Set{1, 2});
  CHECK(drawn(logits, 3) == Set{1, 2, 3});
  CHECK(drawn(logits, 4) == Set{1, 2, 3, 4});
  CHECK(drawn(logits, 5) == Set{0, 1, 2, 3, 4});
  CHECK(drawn(logits, 6) == Set{0, 1, 2, 3, 4, 5});
  CHECK(drawn(std::vector<float>(300, -7.5f), 3) == Set{0, 1, 2});
  CHECK(drawn({-0.0f, 0.0f, -1, 0.0f}, 2) == Set{0, 1});  // -0 is 0
  CHECK(drawn({1.5e-45f, 0, 3e-45f, -1.5e-45f}, 1) == Set{2});
  CHECK(drawn({-3e38f, 3e38f, -2e38f, 2.9e38f}, 1) == Set{1});
}

TEST_CASE("top-k holds at any temperature", "[model]") {
  std::vector<float> logits = random_logits(300, 4);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](auto a, auto b) { return logits[a] > logits[b]; });
  for (const float temperature : {1e-30f, 1.0f, 1e12f, 1e16f, 1e20f, 3e38f}) {
    INFO(temperature);
    std::set<std::size_t> tokens;
    for (i32 token : draw(logits, std::vector<u8>(300), {1, temperature, 3}, 200, 9))
      tokens.insert(static_cast<std::size_t>(token));
    const bool hot = temperature >= 1e12f;
    if (hot) CHECK(tokens == std::set<std::size_t>(order.begin(), order.begin() + 3));
    if (!hot) CHECK(std::ranges::all_of(tokens, [&](auto t) { return logits[t] >= logits[order[2]]; }));
  }
}

TEST_CASE("exponentials have the bits of f32 however small they are", "[model]") {
  constexpr int columns = 4096;
  const std::int64_t size = std::int64_t{1} << 22;
  const auto draw_all = kernel("exponentials", [=](Out<f32, 1> e) {
    Index block = blocks(cdiv(e.extent(0), columns));
    Tile word = (cast<i64>(block) * columns + cast<i64>(iota({columns}, 0))) * 2;
    store(e, {block}, kernels::exponential(random_bits(3, word), random_bits(3, word + 1)));
  });
  const Tensor<f32, 1> drawn(test_device(), {size});
  launch(test_device().stream(), draw_all, drawn);
  std::vector<float> e = drawn.to_vector();
  std::ranges::sort(e);
  const double n = static_cast<double>(size);
  const auto check = [&](double below, double probability) {
    INFO("below " << below);
    const auto count = std::ranges::lower_bound(e, static_cast<float>(below)) - e.begin();
    CHECK(std::abs(static_cast<double>(count) - n * probability) <=
          4.5 * std::sqrt(n * probability * (1 - probability)));
  };
  for (int k = -3; k <= 17; ++k) check(std::ldexp(1.0, -k), -std::expm1(-std::ldexp(1.0, -k)));
  CHECK(e.front() > 0);
  CHECK(e.back() < 17);
  CHECK(std::accumulate(e.begin(), e.end(), 0.0) / n == Approx(1).margin(4.5 / std::sqrt(n)));
  // The smallest win the race: all 256 below 2^-14 are distinct.
  const auto end = std::ranges::lower_bound(e, 0x1p-14f);
  CHECK(std::adjacent_find(e.begin(), end) == end);
}

TEST_CASE("flat distributions are sampled evenly over large vocabularies", "[model][many]") {
  const int vocab = GENERATE(50257, 1 << 20);
  constexpr std::int64_t bins = 64;
  const std::int64_t draws = has_gpu() ? 1000000 : vocab == 50257 ? 6400 : bins;
  std::vector<std::int64_t> counts(bins);
  const std::vector<float> logits(static_cast<std::size_t>(vocab), 0.25f);
  for (std::int64_t at = 0; at < draws;) {
    const std::int64_t rows = std::min<std::int64_t>(draws - at, 8192);
    for (const i32 token : draw_from_one(logits, rows, 1000 + at))
      ++counts.at(static_cast<std::size_t>(token * bins / vocab));
    at += rows;
  }
  double chi_square = 0;
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    // A bin with one token more is more probable.
    const auto first = [&](std::int64_t b) { return (b * vocab + bins - 1) / bins; };
    const double expected = static_cast<double>(draws * (first(bin + 1) - first(bin))) / vocab;
    chi_square += std::pow(static_cast<double>(counts[static_cast<std::size_t>(bin)]) - expected, 2) / expected;
  }
  INFO("vocabulary " << vocab << ", chi square " << chi_square);
  CHECK(chi_square < 115);  // 63 degrees of freedom: less with probability 0.9999
}

TEST_CASE("improbable tokens are sampled at their rate", "[model][many]") {
  constexpr int vocab = 50257;
  const std::int64_t draws = has_gpu() ? 2000000 : 1500;
  const double probability = has_gpu() ? 1e-8 : 1e-6;
  std::vector<float> logits(vocab, static_cast<float>(std::log(probability)));
  logits[7] = 0;
  std::int64_t rare = 0;
  for (std::int64_t at = 0; at < draws;) {
    const std::int64_t rows = std::min<std::int64_t>(draws - at, 8192);
    for (const i32 token : draw_from_one(logits, rows, 77 + at)) rare += token != 7;
    at += rows;
  }
  const double mass = (vocab - 1) * probability, expected = static_cast<double>(draws) * mass / (1 + mass);
  INFO(rare << " of " << draws << ", expected " << expected);
  CHECK(std::abs(static_cast<double>(rare) - expected) < 4 * std::sqrt(expected));
}

TEST_CASE("the fewest tokens whose mass is top-p are kept, be it exactly top-p", "[model]") {
  const auto drawn = [](const std::vector<float>& logits, float top_p) {
    std::map<i32, int> counts;
    for (i32 token : draw(logits, std::vector<u8>(logits.size()), {1, 1, 0, top_p}, 2000, 1)) ++counts[token];
    return counts.size();
  };
  const float ln_2 = 0.6931472f;                                    // its exponential is 1/2 on every device
  const std::vector<float> halves{0, -ln_2, -2 * ln_2, -2 * ln_2};  // probabilities 1/2, 1/4, 1/8, 1/8
  CHECK(drawn(halves, 0.4f) == 1);
  CHECK(drawn(halves, 0.5f) == 1);
  CHECK(drawn(halves, std::nextafter(0.5f, 1.0f)) == 2);
  CHECK(drawn(halves, 0.75f) == 2);
  CHECK(drawn(halves, std::nextafter(0.75f, 1.0f)) == 3);  // the first of two equals
  CHECK(drawn(halves, 0.875f) == 3);
  CHECK(drawn(halves, std::nextafter(0.875f, 1.0f)) == 4);
}

TEST_CASE("top-p keeps the lowest of equal tokens, min-p all of them", "[model]") {
  const auto drawn = [](const std::vector<float>& logits, const Settings& settings) {
    std::set<i32> tokens;
    for (i32 token : draw(logits, std::vector<u8>(logits.size()), settings, 500, 1)) tokens.insert(token);
    return tokens;
  };
  using Set = std::set<i32>;
  const std::vector<float> best{0, 2, 2, 1, 2};
  CHECK(drawn(best, {1, 1, 0, 0.01f}) == Set{1});
  CHECK(drawn(best, {1, 1, 0, 0.5f}) == Set{1, 2});
  CHECK(drawn(best, {1, 1, 0, 0.7f}) == Set{1, 2, 4});
  CHECK(drawn(best, {1, 1, 2, 0.99f}) == Set{1, 2});
  CHECK(drawn(best, {1, 1, 0, 1, 1}) == Set{1, 2, 4});
  CHECK(drawn(std::vector<float>(256), {1, 1, 0, 4 / 256.0f}) == Set{0, 1, 2, 3});
}

TEST_CASE("tokens at least min-p times as probable as the best are kept, be it exactly min-p", "[model]") {
  const float ln_2 = 0.6931472f;
  const std::vector<float> halves{-ln_2, 0, -2 * ln_2, -3 * ln_2, -3 * ln_2};
  const auto drawn = [&](const Settings& settings) {
    std::map<i32, int> counts;
    for (i32 token : draw(halves, std::vector<u8>(5), settings, 300, 1)) ++counts[token];
    return counts.size();
  };
  const auto of_min_p = [&](float min_p) { return drawn({1, 1, 0, 1, min_p}); };
  CHECK(of_min_p(0) == 5);
  // exp(-3 ln 2) is less than an eighth on a GPU, whose exponential is not rounded correctly.
  const float ulp = std::nextafter(0.125f, 1.0f) - 0.125f;
  CHECK(of_min_p(0.125f - 2 * ulp) == 5);
  CHECK(of_min_p(0.125f + 2 * ulp) == 3);
  CHECK(of_min_p(0.25f) == 3);
  CHECK(of_min_p(std::nextafter(0.25f, 1.0f)) == 2);
  CHECK(of_min_p(0.5f) == 2);
  CHECK(of_min_p(std::nextafter(0.5f, 1.0f)) == 1);
  CHECK(of_min_p(1) == 1);
  CHECK(drawn({1, 2, 0, 1, 0.3f}) == 5);  // the temperature is applied first: ratios of 0.71, 0.5, 0.35 and 0.35
  CHECK(drawn({1, 1, 2, 1, 0.125f}) == 2);
  CHECK(drawn({1, 1, 0, 0.6f, 0.125f}) == 2);  // 1/2 and 1/4 make up the mass
  CHECK(drawn({1, 1, 0, 0.6f, 0.75f}) == 1);
}

TEST_CASE("same seed and position, same sample; another gives another", "[model]") {
  const auto logits = random_logits(101, 3);
  const std::vector<u8> seen(101);
  const auto first = draw(logits, seen, {}, 200, 1);
  CHECK(draw(logits, seen, {}, 200, 1) == first);
  CHECK(draw(logits, seen, {}, 200, 2) != first);
  CHECK(draw(logits, seen, {}, 200, 1, 4) != first);
  CHECK(draw(logits, seen, {}, 200, -1) != first);
}

TEST_CASE("greedy takes the lowest of the most probable, after the penalty", "[model]") {
  const Device& device = test_device();
  const auto [columns, tiles] =
      GENERATE(std::pair(2, 1), std::pair(4, 1), std::pair(8, 1), std::pair(2, 2), std::pair(1, 3));
  const int parts = (5 + columns * tiles - 1) / (columns * tiles);
  const auto of_parts = kernels::greedy_parts(5, columns, tiles);
  const auto of_all = kernels::greedy_token(parts);
  const auto choose = [&](std::vector<float> logits, std::vector<u8> seen, float penalty) {
    Tensor<f32, 2> x(device, {1, 5});
    Tensor<u8, 2> marks(device, {1, 5});
    const Tensor<i32, 1> token(device, {1}), chosen(device, {1});
    x.copy_from(logits);
    marks.copy_from(seen);
    const Tensor<i32, 2> tokens(device, {1, parts});
    const Tensor<f32, 2> scores(device, {1, parts});
    launch(device.stream(), of_parts, x, marks, tokens, scores, penalty);
    launch(device.stream(), of_all, tokens, scores, token, chosen, std::nullopt, std::nullopt);
    CHECK(chosen.to_vector() == token.to_vector());
    return token.to_vector()[0];
  };
  CHECK(choose({1, 3, 2, 3, 0}, {0, 0, 0, 0, 0}, 1) == 1);
  CHECK(choose({1, 3, 2, 3, 0}, {0, 1, 0, 0, 0}, 1.1f) == 3);
  CHECK(choose({-1, -3, -2, -3, -1}, {1, 0, 0, 0, 0}, 2) == 4);
  CHECK(choose({1, 3, NAN, 3, 0}, {0, 0, 0, 0, 0}, 1) == -1);
  CHECK(choose({1, 3, static_cast<float>(inf), 3, 0}, {0, 0, 0, 0, 0}, 1) == -1);
  CHECK(choose({1, 3, 2, 3, -NAN}, {0, 0, 0, 0, 0}, 1) == -1);
  CHECK(choose({-2, -3, -2, -3, -1}, {0, 0, 0, 0, 0}, 1) == 4);  // with other tokens after the last one
}

TEST_CASE("a draw among few candidates finds what is not finite, wherever it is", "[model]") {
  const std::vector<u8> seen(2100);
  for (const std::size_t at : {0, 1023, 1024, 2099})
    for (const float wrong : {NAN, static_cast<float>(inf), -static_cast<float>(inf)}) {
      auto logits = random_logits(2100, 3);
      logits[at] = wrong;
      for (const i32 token : draw(logits, seen, {1, 1, 3}, 2, 1)) CHECK(token == -1);
    }
  // The most probable tokens are penalized.
  auto marked = seen;
  for (std::size_t i = 0; i < marked.size(); i += 2) marked[i] = 1;
  for (const i32 token : draw(random_logits(2100, 3), marked, {100, 1, 3}, 20, 1)) CHECK(token % 2 == 1);
  // Equal scores in several parts: the lowest tokens are kept.
  std::vector<float> equal(2100, 1.0f);
  for (const i32 token : draw(equal, seen, {1, 1, 5}, 100, 1)) CHECK((token >= 0 && token < 5));
  for (float& one : equal) one = -5;  // padding would be 0
  for (const i32 token : draw(equal, seen, {1, 1, 5}, 100, 1)) CHECK((token >= 0 && token < 5));
  equal[2000] = 2;
  for (const i32 token : draw(equal, seen, {1, 10, 2}, 100, 1)) CHECK((token == 0 || token == 2000));
}

TEST_CASE("the head finds the lowest of the most probable tokens, and what is not finite", "[model]") {
  constexpr int vocab = 11, columns = 16, parts = 4, width = 16;  // columns of logits behind the vocabulary
  const Device& device = test_device();
  const auto head = kernels::greedy_head<f32, f32>({4, 4, 16}, vocab);
  const auto choose = [&](const std::vector<float>& logits) {
    // One row of the activations is 1 in the first column, so that logits are weights.
    Tensor<f32, 2> x(device, {1, width}), w(device, {vocab, width}), y(device, {1, columns});
    std::vector<float> row(width), weights(vocab * width);
    row[0] = 1;
    for (std::size_t i = 0; i < vocab; ++i) weights[i * width] = logits[i];
    x.copy_from(row), w.copy_from(weights);
    const Tensor<i32, 2> tokens(device, {1, parts});
    const Tensor<f32, 2> scores(device, {1, parts});
    const Tensor<i32, 1> token(device, {1}), chosen(device, {1});
    launch(device.stream(), head, x, w, y, tokens, scores);
    launch(device.stream(), kernels::greedy_token(parts), tokens, scores, token, chosen, std::nullopt, std::nullopt);
    return token.to_vector()[0];
  };
  CHECK(choose({1, 3, 2, 3, 0, 1, 3, 3, 2, 1, 0}) == 1);
  CHECK(choose({1, 3, 2, 3, 0, 1, 4, 3, 2, 1, 4}) == 6);
  CHECK(choose({-5, -5, -5, -5, -5, -5, -5, -5, -5, -5, -2}) == 10);  // padding is 0
  for (const float wrong : {NAN, static_cast<float>(inf), -static_cast<float>(inf)})
    for (const std::size_t at : {0, 6, 10}) {
      std::vector<float> logits(vocab, 1);
      logits[at] = wrong;
      CHECK(choose(logits) == -1);
    }
}

TEST_CASE("extreme temperatures and penalties choose as their limits do", "[model]") {
  const std::vector<float> logits{1, 5, 2, 4.5f, -3};
  for (float temperature : {1e-45f, 1e-38f, 1e-6f})
    for (i32 token : draw(logits, std::vector<u8>(5), {1, temperature}, 50, 3)) CHECK(token == 1);
  std::map<i32, int> counts;
  for (i32 token : draw(logits, std::vector<u8>(5), {1, 1e30f}, 500, 3)) ++counts[token];
  CHECK(counts.size() == 5);
  for (i32 token : draw(logits, {0, 1, 0, 0, 0}, {100, 1e-3f}, 50, 3)) CHECK(token == 3);
}

TEST_CASE("samples do not depend on the rows beside them", "[model]") {
  const auto logits = random_logits(101, 3);
  const std::vector<u8> seen(101);
  const auto many = draw(logits, seen, {}, 64, 1);
  CHECK(draw(logits, seen, {}, 1, 1)[0] == many[0]);
  const auto some = draw(logits, seen, {}, 7, 1);
  CHECK(std::equal(some.begin(), some.end(), many.begin()));
}

}  // namespace test_sampling
