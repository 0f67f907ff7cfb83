// Models of tests/data with golden logits and texts, and how sessions are compared with them.
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/session.hpp"

namespace test_golden {

using namespace tessera::internal;

template <class T>
std::vector<T> values(const SafeTensors& file, std::string_view name) {
  const StoredTensor* stored = file.find(name);
  REQUIRE(stored);
  std::vector<T> result(stored->size / sizeof(T));
  file.read(*stored, std::as_writable_bytes(std::span(result)));
  return result;
}

using Tokens = std::vector<std::int32_t>;

/// The model in a folder of tests/data, its texts, logits at each of their positions, and a greedy text.
struct Golden {
  explicit Golden(const std::string& name)
      : folder(std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/data" / name),
        checkpoint(Checkpoint::open(folder)),
        file(SafeTensors::open(folder / "golden.safetensors")) {
    const auto& shape = file.find("ids")->shape;
    const auto ids = values<std::int32_t>(file, "ids");
    for (std::size_t b = 0; b < shape[0]; ++b)
      prompts.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(b * shape[1]),
                           ids.begin() + static_cast<std::ptrdiff_t>((b + 1) * shape[1]));
    logits = values<float>(file, "logits");
    greedy = values<std::int32_t>(file, "greedy");
  }
  /// The golden text is the beginning of a prompt, continued.
  Tokens greedy_prompt() const {
    const auto end = std::mismatch(greedy.begin(), greedy.end(), prompts[0].begin(), prompts[0].end()).first;
    REQUIRE(end != greedy.begin());
    return {greedy.begin(), end};
  }
  std::filesystem::path folder;
  Checkpoint checkpoint;
  SafeTensors file;
  std::vector<Tokens> prompts;
  std::vector<float> logits;
  Tokens greedy;
};

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

inline double relative_difference(std::span<const float> a, std::span<const float> b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) error += std::pow(a[i] - b[i], 2), norm += std::pow(b[i], 2);
  return std::sqrt(error / norm);
}

inline void append_one(Session& session, std::int32_t token) {
  const std::vector<Tokens> tokens{{token}};
  session.append(tokens);
}

inline Tokens generate(const Model& model, const Tokens& prompt, std::size_t length, const Sampling& sampling = {}) {
  Session session(model, 1, static_cast<int>(length));
  session.append(std::vector<Tokens>{prompt});
  Tokens text = prompt;
  while (text.size() < length) {
    text.push_back(session.sample(sampling)[0]);
    if (text.size() < length) append_one(session, text.back());
  }
  return text;
}

}  // namespace tessera::internal
