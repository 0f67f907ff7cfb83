// Drafts: tokens after each position, texts that are shortened, and look-up in the text.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/draft_gain.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/emulated_device.hpp"
#include "support/small_model.hpp"
#include "support/support.hpp"
#include "tessera/model/draft_model.hpp"
#include "tessera/model/prompt_lookup.hpp"
#include "tessera/model/session.hpp"

namespace test_drafts {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

constexpr Sampling greedy{.temperature = 0}, drawn{.temperature = 1, .top_k = 20, .seed = 9};
constexpr Sampling penalized{.temperature = 0, .repetition_penalty = 100};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) error += std::pow(a[i] - b[i], 2), norm += std::pow(b[i], 2);
  return std::sqrt(error / norm);
}

/// A text that is continued token by token.
Tokens plain_text(const Model& model, Tokens text, std::size_t length, const Sampling& sampling) {
  Session session(model, 1, 60);
  Tokens next = text;
  while (text.size() < length) {
    session.append(std::vector<Tokens>{next});
    next = session.sample(sampling);
    text.push_back(next[0]);
  }
  return text;
}

}  // namespace

TEST_CASE("the token after each position is the one that a sample there chooses", "[model]") {
  const Model model(test_device(), small_model(), 5);
  const std::vector<Tokens> first{{1, 2, 3}, {4}, {5, 6}}, second{{7, 8, 9, 10}, {11, 12}, {}};
  const std::vector<std::int64_t> streams{3, 1, 2};
  for (const Sampling& sampling : {greedy, drawn}) {
    Session session(model, 3, 20);
    session.append(first);
    const auto of_first = session.sample_all(sampling, streams);
    session.append(second);
    const auto of_second = session.sample_all(sampling, streams);
    CHECK(of_second[2].empty());
    CHECK(session.sample_all(sampling, streams) == of_second);
    for (std::size_t b = 0; b < 3; ++b) {
      Session alone(model, 3, 20);
      Tokens chosen;
      for (const auto& part : {first[b], second[b]})
        for (const std::int32_t id : part) {
          std::vector<Tokens> one(3);
          one[b] = {id};
          alone.append(one);
          chosen.push_back(alone.sample(sampling, streams)[b]);
        }
      Tokens at_once = of_first[b];
      at_once.insert(at_once.end(), of_second[b].begin(), of_second[b].end());
      INFO(b);
      CHECK(at_once == chosen);
    }
    // The next token is still there.
    const Tokens next = session.sample(sampling, streams);
    CHECK((next[0] == of_second[0].back() && next[1] == of_second[1].back()));
  }
}

TEST_CASE("tokens after each position need logits, and no penalty", "[model]") {
  const Model model(test_device(), small_model(), 5);
  Session session(model, 1, 20);
  CHECK(says(error_of([&] { session.sample_all(greedy); }), {"no logits yet"}));
  session.append(std::vector<Tokens>{{1, 2}});
  CHECK(says(error_of([&] { session.sample_all(penalized); }), {"repetition penalty"}));
  CHECK(says(error_of([&] { session.sample_all(greedy, std::vector<std::int64_t>{1, 2}); }), {"2 streams"}));
  CHECK(session.sample_all(greedy)[0].size() == 2);
}

TEST_CASE("a text that is shortened continues as if it had never been longer", "[model]") {
  const Model model(test_device(), small_model(), 5);
  Session session(model, 2, 20), fresh(model, 2, 20);
  session.append(std::vector<Tokens>{{1, 2, 3, 4, 5, 6}, {7, 8}});
  session.sample(penalized);  // marks the tokens
  session.truncate(0, 3);
  CHECK((session.length(0) == 3 && session.length(1) == 2));
  CHECK(session.sample(greedy)[1] >= 0);  // the other one has logits
  fresh.append(std::vector<Tokens>{{1, 2, 3}, {7, 8}});
  fresh.sample(penalized);
  for (const Tokens& more : {Tokens{9}, Tokens{10, 11}}) {
    for (Session* one : {&session, &fresh}) one->append(std::vector<Tokens>{more, {12}});
    CHECK(difference(session.logits(), fresh.logits()) <= 1e-5);
    CHECK(session.sample(penalized) == fresh.sample(penalized));  // tokens 4 to 6 are not penalized any more
  }
  session.truncate(0, session.length(0));  // changes nothing
  CHECK(session.sample(greedy) == fresh.sample(greedy));
  session.truncate(0, 0), session.truncate(1, 1);
  CHECK(says(error_of([&] { session.sample(greedy); }), {"no logits yet"}));
  CHECK(says(error_of([&] { session.truncate(0, 1); }), {"sequence 0 has 0 tokens", "to 1"}));
  CHECK(says(error_of([&] { session.truncate(1, -1); }), {"sequence 1 has 1 tokens", "to -1"}));
  CHECK(says(error_of([&] { session.truncate(2, 0); }), {"no sequence 2"}));
}

TEST_CASE("drafts, right or wrong, do not change a text", "[model]") {
  const Model model(test_device(), small_model(), 5);
  std::mt19937 random(3);
  for (const Sampling& sampling : {greedy, drawn}) {
    const Tokens expected = plain_text(model, {1, 2, 3}, 50, sampling);
    for (const bool ahead : {false, true}) {
      Session session(model, 1, 60);
      session.run_ahead(ahead);
      Tokens text{1, 2, 3};
      while (text.size() < 45) {
        const auto held = static_cast<std::size_t>(session.length(0));
        Tokens appended(text.begin() + static_cast<std::ptrdiff_t>(held), text.end());
        const std::size_t waiting = appended.size(), drafted = random() % 5;
        for (std::size_t i = 0; i < drafted; ++i) appended.push_back(random() % 4 == 0 ? 0 : expected[text.size() + i]);
        session.append(std::vector<Tokens>{appended});
        if (drafted == 0) {
          text.push_back(session.sample(sampling)[0]);
          continue;
        }
        const Tokens chosen = session.sample_all(sampling)[0];
        std::size_t accepted = 0;
        while (accepted < drafted && chosen[waiting - 1 + accepted] == appended[waiting + accepted]) ++accepted;
        for (std::size_t i = 0; i <= accepted; ++i) text.push_back(chosen[waiting - 1 + i]);
        session.truncate(0, static_cast<int>(held + waiting + accepted));
      }
      CHECK(text == Tokens(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(text.size())));
    }
  }
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("emulated draws among few candidates are those of the CPU", "[emulated]") {
  const Sampling few{.temperature = 1, .top_k = 20, .top_p = 0.9f, .seed = 4, .min_p = 0.01f};
  const Sampling rare{.temperature = 1, .top_k = 20, .repetition_penalty = 3, .seed = 4};
  const auto texts = [&](const Device& device) {
    const Model model(device, small_model(), 5);
    Session session(model, 2, 20);
    session.append(std::vector<Tokens>{{1, 2, 3}, {4, 5}});
    std::vector<Tokens> chosen{session.sample(few), session.sample(rare)};
    for (const Tokens& all : session.sample_all(few)) chosen.push_back(all);
    session.append(std::vector<Tokens>{{chosen[0][0]}, {chosen[0][1]}});
    chosen.push_back(session.sample(rare));
    return chosen;
  };
  CHECK(texts(emulated_device()) == texts(Device::cpu()));
}
#endif

TEST_CASE("a draft is what followed the last tokens before", "[model]") {
  const auto draft = [](const Tokens& text, std::size_t count) {
    PromptLookup lookup;
    lookup.read(text);
    return lookup.draft(count);
  };
  CHECK(draft({1, 2, 3, 4, 5, 1, 2}, 3) == Tokens{3, 4, 5});
  CHECK(draft({1, 2, 3, 9, 7, 2, 3, 8, 1, 2, 3}, 1) == Tokens{9});  // three tokens rather than two
  CHECK(draft({1, 2, 3, 1, 2, 4, 1, 2}, 1) == Tokens{4});           // the last time
  CHECK(draft({5, 6, 5, 6}, 5) == Tokens{5, 6, 5, 6, 5});           // continues itself
  CHECK(draft({5, 5, 5}, 2) == Tokens{5, 5});
  CHECK(draft({1, 2, 3, 2, 1}, 3).empty());
  for (const Tokens& text : {Tokens{}, Tokens{1}, Tokens{1, 1}}) CHECK(draft(text, 3).empty());
  CHECK(draft({1, 2, 3, 1, 2}, 0).empty());

  // Token by token, and a text that becomes shorter or another.
  PromptLookup lookup;
  std::mt19937 random(1);
  Tokens text;
  for (int i = 0; i < 400; ++i) {
    if (i % 50 == 49) text.resize(text.size() / 2);
    if (i % 70 == 69) text[0] += 1;
    text.push_back(static_cast<std::int32_t>(random() % 4));
    lookup.read(text);
    CHECK(lookup.draft(6) == draft(text, 6));
  }
}

TEST_CASE("drafts are verified while that is faster", "[model]") {
  const auto drafts_of = [](double plain, double drafted, std::size_t tokens) {
    DraftGain gain;
    int drafts = 0;
    for (int i = 0; i < 1000; ++i)
      if (gain.drafts()) {
        ++drafts;
        gain.drafted(drafts <= 2 ? 1e3 : drafted, tokens);  // the first ones compile kernels
      } else {
        gain.plain(i < 2 ? 1e3 : plain);
      }
    return drafts;
  };
  CHECK(drafts_of(1, 2, 4) == 996);  // after four plain steps
  const int slow = drafts_of(1, 2, 1);
  CHECK((slow > 6 && slow < 20));
  // Drafts that become better are found.
  DraftGain gain;
  int late = 0;
  for (int i = 0; i < 2000; ++i)
    if (gain.drafts()) {
      gain.drafted(2, i < 500 ? 1 : 9);
      late += i > 1500;
    } else {
      gain.plain(1);
    }
  CHECK(late == 499);
}

TEST_CASE("a draft model drafts what it would continue a text with, however the text changes", "[model]") {
  const Model model(test_device(), small_model(), 5);
  for (const Sampling& sampling : {greedy, drawn}) {
    DraftModel drafter(model, 1000);  // the model has 60 positions
    const auto expect = [&](const Tokens& text, std::size_t count) {
      const Tokens all = plain_text(model, text, text.size() + count, sampling);
      CHECK(drafter.draft(text, count, sampling) ==
            Tokens(all.begin() + static_cast<std::ptrdiff_t>(text.size()), all.end()));
      return all;
    };
    const Tokens first = expect({1, 2, 3}, 5);
    expect(first, 4);                               // all accepted
    expect({first.begin(), first.begin() + 5}, 4);  // two accepted, and no other token
    Tokens other(first.begin(), first.begin() + 5);
    other.push_back((first[5] + 1) % 61);
    other.push_back(3);
    expect(other, 4);  // two accepted, and other tokens
    expect({7}, 3);    // another text
    expect({7}, 3);    // the same again
    std::mt19937 rng(1);  // other texts of the same length; most differ in their next tokens
    for (int i = 0; i < 20; ++i) {
      Tokens text(8);
      for (std::int32_t& token : text) token = static_cast<std::int32_t>(rng() % 61);
      expect(text, 6);
    }
  }
}

TEST_CASE("a draft model drafts as many tokens as it has room for", "[model]") {
  const Model model(test_device(), small_model(), 5);
  DraftModel drafter(model, 10);
  for (std::size_t length : {7, 9, 10, 11, 12, 3}) {
    const Tokens text(length, 4);
    CHECK(drafter.draft(text, 4, greedy).size() == std::min<std::size_t>(4, length > 10 ? 0 : 11 - length));
  }
  CHECK(drafter.draft(Tokens{1}, 0, greedy).empty());
  CHECK_THROWS_WITH(drafter.draft(Tokens{61}, 2, greedy), ContainsSubstring("not in the vocabulary"));
  CHECK(drafter.draft(Tokens{60}, 2, greedy).size() == 2);
}

}  // namespace test_drafts
