// A soak: texts that join, leave and are cancelled for minutes. TESSERA_SOAK_SECONDS sets the time; without it, the
// test takes seconds.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/model/continuous_batch.hpp"
#include "tessera/model/session.hpp"

namespace test_soak {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

/// Bytes of this process in memory, and of the device in use.
struct Memory {
  std::int64_t process = 0, device = 0;
};
Memory memory_in_use() {
  std::int64_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages;
  Memory memory{.process = pages * 4096};
  if (!test_device().shares_host_memory())
    memory.device = -static_cast<std::int64_t>(test_device().free_bytes().value_or(0));
  return memory;
}

/// The texts of a soak, each with the tokens that it has alone.
struct Known {
  TextRequest request;
  Tokens tokens;
};
std::vector<Known> known_texts(const Model& model, const Sampling& sampling, int count, int capacity) {
  std::mt19937 rng(11);
  const auto below = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
  Session session(model, 1, capacity);
  std::vector<Known> texts;
  for (int i = 0; i < count; ++i) {
    Known text{.request = {.prompt = {}, .new_tokens = 1 + below(60), .stream = i}, .tokens = {}};
    for (int shared = below(3) * 12, at = 0; at < shared; ++at) text.request.prompt.push_back(at * 31 % 211);
    for (int own = 1 + below(20); own > 0; --own) text.request.prompt.push_back(below(211));
    session.clear(0);
    for (Tokens next = text.request.prompt; static_cast<int>(text.tokens.size()) < text.request.new_tokens;) {
      session.append(std::array{next});
      next = session.sample(sampling, std::array{text.request.stream});
      text.tokens.push_back(next[0]);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace

TEST_CASE("a soak of texts that join, leave and are cancelled shows no wrong token and no growth of memory",
          "[model]") {
  const char* const given = std::getenv("TESSERA_SOAK_SECONDS");
  const double seconds = given ? std::atof(given) : 1;
  TransformerConfig config;
  config.vocab = 211, config.positions = 128, config.width = 64, config.layers = 2, config.heads = 2;
  config.inner = 4 * config.width;
  const Model model(test_device(), config, 5, Computation(Compute::bf16, true));
  constexpr Sampling sampling{.temperature = 0.9f, .top_k = 0, .seed = 3};
  constexpr int capacity = 120;
  const std::vector<Known> known = known_texts(model, sampling, 40, capacity);

  ContinuousBatch batch(model, sampling, {.sequences = 24, .capacity = capacity, .prompt_tokens = 64});
  struct Running {
    const Known* text;
    std::size_t tokens = 0;
  };
  std::map<std::int64_t, Running> running;
  std::mt19937 rng(12);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Memory settled;
  std::int64_t ended = 0, cancelled = 0, wrong = 0, tokens = 0;
  const auto adds_texts = [&] { return ended < 60 || passed() < seconds; };  // however long the first step compiles
  for (std::int64_t step = 0; adds_texts() || !running.empty(); ++step) {
    if (adds_texts())
      while (batch.waiting() < 4) {
        const Known& text = known[rng() % known.size()];
        running[batch.add(text.request)] = {&text};
      }
    if (rng() % 8 == 0 && !running.empty()) {
      const auto gone = std::next(running.begin(), static_cast<std::ptrdiff_t>(rng() % running.size()));
      batch.remove(gone->first);
      running.erase(gone);
      ++cancelled;
    }
    for (const TextToken& token : batch.step()) {
      const auto found = running.find(token.text);
      REQUIRE(found != running.end());  // a cancelled text has no tokens
      Running& text = found->second;
      ++tokens;
      wrong += text.tokens >= text.text->tokens.size() || token.token != text.text->tokens[text.tokens];
      ++text.tokens;
      if (token.finished == FinishReason::none) continue;
      wrong += text.tokens != text.text->tokens.size();
      running.erase(found);
      ++ended;
    }
    if (settled.process == 0 && ended >= 20 && passed() > seconds / 4) settled = memory_in_use();
  }
  const Memory last = memory_in_use();
  const std::int64_t grown = last.process - settled.process, grown_on_device = last.device - settled.device;
  if (given)
    WARN(passed() << " s: " << ended << " texts ended, " << cancelled << " were cancelled, " << tokens
                  << " tokens; memory grew by " << grown << " bytes of " << last.process << ", on the device by "
                  << grown_on_device);
  CHECK(ended > 20);
  CHECK(cancelled > 5);
  CHECK(wrong == 0);
  constexpr std::int64_t noise = 8 << 20;  // of the allocator
  CHECK(grown < noise);
  CHECK(grown_on_device < noise);
}

}  // namespace test_soak
