// Texts that join and leave a batch: the tokens of each are those that it has alone.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/emulated_device.hpp"
#include "support/small_model.hpp"
#include "support/support.hpp"
#include "tessera/model/continuous_batch.hpp"
#include "tessera/model/session.hpp"

namespace test_continuous_batch {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

constexpr Sampling greedy{.temperature = 0}, drawn{.temperature = 1, .top_k = 20, .seed = 9};
constexpr Sampling penalized{.temperature = 0, .repetition_penalty = 1.5f};

struct Result {
  Tokens tokens;
  FinishReason finished = FinishReason::none;
  bool operator==(const Result&) const = default;
};

/// The text alone, token by token.
Result alone(const Model& model, const TextRequest& request, int capacity, const Sampling& sampling) {
  Session session(model, 1, capacity);
  Result result;
  Tokens next = request.prompt;
  while (result.finished == FinishReason::none) {
    session.append(std::vector<Tokens>{next});
    next = session.sample(sampling, std::array{request.stream});
    result.tokens.push_back(next[0]);
    if (std::ranges::find(request.end_tokens, next[0]) != request.end_tokens.end())
      result.finished = FinishReason::end_token;
    else if (result.tokens.size() == static_cast<std::size_t>(request.new_tokens))
      result.finished = FinishReason::new_tokens;
    else if (session.length(0) == capacity)
      result.finished = FinishReason::capacity;
  }
  return result;
}

/// Steps until all texts have ended.
std::map<std::int64_t, Result> finish(ContinuousBatch& batch) {
  std::map<std::int64_t, Result> results;
  for (int steps = 0; batch.texts() > 0; ++steps) {
    REQUIRE(steps < 2000);
    for (const TextToken& token : batch.step()) {
      Result& result = results[token.text];
      CHECK(result.finished == FinishReason::none);  // no token follows the last one
      result.tokens.push_back(token.token);
      result.finished = token.finished;
    }
  }
  return results;
}

TextRequest random_request(std::mt19937& rng, std::int64_t stream) {
  const auto below = [&](unsigned n) { return static_cast<int>(rng() % n); };
  TextRequest request{.prompt = {}, .end_tokens = {}, .new_tokens = 1 + below(30), .stream = stream};
  // Many prompts share a beginning.
  const int shared = below(3) * 6, own = 1 + below(below(4) == 0 ? 25 : 5);
  for (int i = 0; i < shared; ++i) request.prompt.push_back(i * 7 % 61);
  for (int i = 0; i < own; ++i) request.prompt.push_back(below(61));
  for (int i = below(4); i > 0; --i) request.end_tokens.push_back(below(61));
  return request;
}

}  // namespace

TEST_CASE("texts that join and leave a batch have the tokens that they have alone", "[model]") {
  const Model model(test_device(), small_model(), 5);
  std::mt19937 rng(3);
  for (const Sampling& sampling : {greedy, drawn, penalized})
    for (const int sequences : {1, 3, 8})
      for (const int part : {1, 4, 512}) {
        INFO(sequences << " sequences, prompts in parts of " << part);
        ContinuousBatch batch(model, sampling, {.sequences = sequences, .capacity = 40, .prompt_tokens = part});
        std::vector<TextRequest> requests;
        for (int i = 0; i < 12; ++i) requests.push_back(random_request(rng, i));
        for (std::size_t i = 0; i < requests.size(); ++i) CHECK(batch.add(requests[i]) == static_cast<std::int64_t>(i));
        const std::map<std::int64_t, Result> results = finish(batch);
        REQUIRE(results.size() == requests.size());
        for (std::size_t i = 0; i < requests.size(); ++i) {
          INFO("text " << i);
          CHECK(results.at(static_cast<std::int64_t>(i)) == alone(model, requests[i], 40, sampling));
        }
      }
}

TEST_CASE("texts are added and removed between steps", "[model]") {
  const Model model(test_device(), small_model(), 5);
  std::mt19937 rng(4);
  ContinuousBatch batch(model, drawn, {.sequences = 4, .capacity = 50, .prompt_tokens = 7});
  std::map<std::int64_t, TextRequest> requests;
  std::map<std::int64_t, Result> results;
  std::vector<std::int64_t> removed;
  std::size_t most = 0;
  for (int step = 0; step < 150 || batch.texts() > 0; ++step) {
    REQUIRE(step < 1000);
    if (step < 150 && rng() % 4 == 0) {
      const TextRequest request = random_request(rng, step);
      requests[batch.add(request)] = request;
    }
    if (rng() % 12 == 0 && !requests.empty()) {
      const auto number = static_cast<std::int64_t>(rng() % requests.size());
      batch.remove(number);
      removed.push_back(number);
    }
    for (const TextToken& token : batch.step()) {
      CHECK(std::ranges::find(removed, token.text) == removed.end());
      results[token.text].tokens.push_back(token.token);
      results[token.text].finished = token.finished;
    }
    CHECK(batch.texts() - batch.waiting() <= 4);
    most = std::max(most, batch.waiting());
  }
  CHECK(most > 0);
  int ended = 0;
  for (const auto& [number, request] : requests) {
    INFO("text " << number);
    const Result expected = alone(model, request, 50, drawn);
    const Result& result = results[number];
    if (result.finished != FinishReason::none) {
      ++ended;
      CHECK(result == expected);
    } else {
      CHECK(std::ranges::find(removed, number) != removed.end());
      REQUIRE(result.tokens.size() <= expected.tokens.size());
      CHECK(std::equal(result.tokens.begin(), result.tokens.end(), expected.tokens.begin()));
    }
  }
  CHECK(ended > 20);
}

TEST_CASE("a prompt is read in parts, while other texts go on", "[model]") {
  const Model model(test_device(), small_model(), 5);
  ContinuousBatch batch(model, greedy, {.sequences = 2, .capacity = 60, .prompt_tokens = 5});
  batch.add({.prompt = {1}, .end_tokens = {}, .new_tokens = 40});
  CHECK(batch.step().size() == 2);  // the token behind the prompt, and the next
  batch.add({.prompt = Tokens(23, 4), .end_tokens = {}, .new_tokens = 2});
  for (int i = 0; i < 4; ++i) {
    CHECK(batch.step().size() == 1);
    CHECK(batch.waiting() == 1);
  }
  CHECK(batch.step().size() == 3);
  CHECK(batch.waiting() == 0);
}

TEST_CASE("a full batch queues texts, or refuses them", "[model]") {
  const Model model(test_device(), small_model(), 5);
  const TextRequest request{.prompt = {1, 2}, .end_tokens = {}, .new_tokens = 3};
  ContinuousBatch queues(model, greedy, {.sequences = 2});
  for (int i = 0; i < 5; ++i) queues.add(request);
  CHECK((queues.texts() == 5 && queues.waiting() == 5));
  queues.step();
  CHECK((queues.texts() == 5 && queues.waiting() == 3));

  ContinuousBatch refuses(model, greedy, {.sequences = 2, .when_full = ContinuousBatch::WhenFull::refuse});
  refuses.add(request), refuses.add(request);
  CHECK_THROWS_WITH(refuses.add(request), ContainsSubstring("all 2 sequences of the batch are in use"));
  finish(refuses);
  CHECK(refuses.add(request) == 2);
}

TEST_CASE("a batch rejects what it cannot do, and goes on", "[model]") {
  const Model model(test_device(), small_model(), 5);
  ContinuousBatch batch(model, greedy, {.sequences = 2, .capacity = 10});
  CHECK_THROWS_WITH(batch.add({.prompt = {}}), ContainsSubstring("the prompt is empty"));
  CHECK_THROWS_WITH(batch.add({.prompt = {1, 61}}), ContainsSubstring("token 61 is not in the vocabulary"));
  CHECK_THROWS_WITH(batch.add({.prompt = Tokens(11, 1)}), ContainsSubstring("the prompt has 11 tokens"));
  CHECK_THROWS_WITH(batch.add({.prompt = {1}, .end_tokens = {}, .new_tokens = 0}), ContainsSubstring("at least 1"));
  CHECK(batch.step().empty());
  batch.remove(7);
  CHECK(batch.add({.prompt = Tokens(10, 1)}) == 0);
  const std::map<std::int64_t, Result> results = finish(batch);
  CHECK((results.at(0).tokens.size() == 1 && results.at(0).finished == FinishReason::capacity));
  CHECK_THROWS_WITH(ContinuousBatch(model, greedy, {.sequences = 0}), ContainsSubstring("at least 1 sequence"));
  CHECK_THROWS_WITH(ContinuousBatch(model, greedy, {.sequences = -1}), ContainsSubstring("at least 1 sequence"));
  CHECK_THROWS_WITH(ContinuousBatch(model, greedy, {.prompt_tokens = 0}), ContainsSubstring("at least 1 token"));
  CHECK_THROWS_WITH(ContinuousBatch(model, greedy, {.capacity = 61}), ContainsSubstring("1 to 60"));
  CHECK_THROWS_AS(ContinuousBatch(model, {.temperature = -1}, {}), Error);
}

TEST_CASE("a sequence that is copied goes on as the other one", "[model]") {
  const Model model(test_device(), small_model(), 5);
  const Model other(test_device(), small_model(), 5);
  Session from(model, 2, 60), to(model, 3, 30);
  from.append(std::vector<Tokens>{{9, 8}, {1, 2, 3, 4}});
  to.append(std::vector<Tokens>{{5, 6, 7}, {1}, {2, 2}});
  to.copy(1, from, 1);
  from.append(std::vector<Tokens>{{1}, {}});  // the copy is independent
  from.truncate(1, 2);
  CHECK(to.length(1) == 4);
  const auto greedy_tokens = [](Session& session, int sequence, int sequences, std::int32_t token) {
    Tokens made;
    for (int i = 0; i < 6; ++i) {
      std::vector<Tokens> next(static_cast<std::size_t>(sequences));
      next[static_cast<std::size_t>(sequence)] = {token};
      session.append(next);
      token = session.sample(greedy)[static_cast<std::size_t>(sequence)];
      made.push_back(token);
    }
    return made;
  };
  const auto expected = [&](Tokens text, std::int32_t token) {
    Session session(model, 1, 60);
    session.append(std::vector<Tokens>{text});
    return greedy_tokens(session, 0, 1, token);
  };
  CHECK(greedy_tokens(to, 1, 3, 11) == expected({1, 2, 3, 4}, 11));
  CHECK(greedy_tokens(to, 0, 3, 3) == expected({5, 6, 7}, 3));
  // Within a session, and onto itself.
  to.copy(2, to, 0);
  to.copy(0, to, 0);
  CHECK(to.length(2) == to.length(0));
  CHECK(greedy_tokens(to, 2, 3, 4) == greedy_tokens(to, 0, 3, 4));
  // An empty one.
  to.copy(0, Session(model, 1, 60), 0);
  CHECK(to.length(0) == 0);

  Session of_other(other, 1, 60), small_one(model, 1, 3);
  CHECK_THROWS_WITH(to.copy(0, of_other, 0), ContainsSubstring("another model"));
  CHECK_THROWS_WITH(small_one.copy(0, to, 1), ContainsSubstring("room for 3"));
  CHECK_THROWS_WITH(to.copy(3, to, 0), ContainsSubstring("no sequence 3"));
  CHECK_THROWS_WITH(to.copy(0, from, 2), ContainsSubstring("no sequence 2"));
}

}  // namespace test_continuous_batch
