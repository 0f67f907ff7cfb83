// Sessions in which a step fails: at each of its calls to the device, one after the other.
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "jit/backend/backend.hpp"
#include "jit/cpu/cpu_backend.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/small_model.hpp"
#include "support/support.hpp"
#include "tessera/model/continuous_batch.hpp"
#include "tessera/model/session.hpp"

namespace test_session {

using namespace tessera::internal;
using Tokens = std::vector<std::int32_t>;

namespace {

/// Throws once, at one of the calls that may fail.
struct Failure {
  static constexpr int never = std::numeric_limits<int>::max();
  int calls_left = never;
  void call() {
    if (calls_left != never && calls_left-- == 0) {
      calls_left = never;
      throw Error("a failure of the test");
    }
  }
};

class FailingKernel final : public DeviceKernel {
 public:
  FailingKernel(Failure& failure, const Graph& graph) : failure_(failure), cpu_(cpu_backend()->kernel(graph)) {}
  void launch(StreamBackend&, std::span<const Argument> arguments, std::span<const std::int64_t> grid) override {
    failure_.call();
    cpu_->launch(*cpu_backend()->stream(), arguments, grid);
  }

 private:
  Failure& failure_;
  std::unique_ptr<DeviceKernel> cpu_;
};

/// A failing copy has already begun.
void copy_or_fail(Failure& failure, void* to, const void* from, std::size_t bytes) {
  try {
    failure.call();
  } catch (const Error&) {
    std::memset(to, 0, bytes);
    throw;
  }
  if (bytes) std::memmove(to, from, bytes);
}

class FailingStream final : public StreamBackend {
 public:
  FailingStream(DeviceBackend& device, Failure& failure) : device_(device), failure_(failure) {}
  DeviceBackend& device() override { return device_; }
  void synchronize() override { failure_.call(); }
  void copy(void* to, const void* from, std::size_t bytes) override { copy_or_fail(failure_, to, from, bytes); }
  std::shared_ptr<EventBackend> record() override { return cpu_backend()->stream()->record(); }
  void wait(EventBackend&) override {}
  std::shared_ptr<GraphBackend> capture(const std::function<void()>&) override { throw Error("not recorded here"); }
  void launch(GraphBackend&) override {}
  void* native() override { return nullptr; }

 private:
  DeviceBackend& device_;
  Failure& failure_;
};

/// The CPU, with injected failures.
class FailingBackend final : public DeviceBackend, public std::enable_shared_from_this<FailingBackend> {
 public:
  Failure failure;

  const DeviceInfo& info() const override { return cpu_backend()->info(); }
  bool shares_host_memory() const override { return true; }
  std::optional<std::size_t> free;  // as the system says it; none: it does not
  std::size_t allocated = 0;
  std::optional<std::size_t> free_bytes(std::size_t) override { return free; }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    failure.call();
    allocated += bytes;
    return cpu_backend()->allocate(bytes);
  }
  std::shared_ptr<void> pinned(std::size_t bytes) override { return allocate(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { copy_or_fail(failure, to, from, bytes); }
  std::shared_ptr<StreamBackend> stream() override { return {shared_from_this(), &stream_}; }
  std::shared_ptr<StreamBackend> new_stream() override { return stream(); }
  std::shared_ptr<StreamBackend> stream_from(void*) override { throw Error("no stream of others"); }
  std::unique_ptr<DeviceKernel> kernel(const Graph& graph) override {
    failure.call();
    return std::make_unique<FailingKernel>(failure, graph);
  }

 private:
  FailingStream stream_{*this, failure};
};

TransformerConfig small() {
  TransformerConfig config;
  config.vocab = 61, config.positions = 40, config.width = 16, config.layers = 2, config.heads = 2;
  config.inner = 4 * config.width;
  return config;
}

constexpr Sampling penalized{.temperature = 0, .repetition_penalty = 100};
const std::string_view no_logits = "no logits, since the last append failed";

}  // namespace

TEST_CASE("a token that follows a step without its sequence is read", "[model]") {
  const Model model(test_device(), small_model(), 5, Computation(Compute::f32, true));
  Session session(model, 3, 40);
  session.append(std::vector<Tokens>{{1, 2}, {3, 4}, {5, 6}});
  // A step of the first sequence alone, sampled, then one of all.
  Tokens next = session.sample({.temperature = 0});
  session.append(std::vector<Tokens>{{next[0]}, {next[1]}, {next[2]}});
  next = session.sample({.temperature = 0});
  session.append(std::vector<Tokens>{{next[0]}, {}, {}});
  const Tokens chosen = session.sample({.temperature = 0});
  CHECK((chosen.size() == 3 && chosen[1] >= 0 && chosen[2] >= 0));
  const std::int32_t token = 0;
  session.append(std::vector<Tokens>{{chosen[0]}, {token}, {}});
  const std::vector<float> logits = session.logits();
  CHECK(logits.size() == 3 * 61);
  Session again(model, 1, 40);
  again.append(std::vector<Tokens>{{3, 4}});
  again.append(std::vector<Tokens>{again.sample({.temperature = 0})});
  again.append(std::vector<Tokens>{{token}});
  CHECK(std::vector<float>(logits.begin() + 61, logits.begin() + 122) == again.logits());
  // Results have rows for all sequences.
  session.append(std::vector<Tokens>{{1, 2, 3}, {}, {}});
  CHECK(session.all_logits().size() == 3 * 3 * 61);
  CHECK(session.sample_all({.temperature = 0}).size() == 3);
  const Tensor<f32, 2> all(test_device(), {9, 64}), few(test_device(), {3, 64});
  session.all_logits(all);
  CHECK(says(error_of([&] { session.all_logits(few); }), {"the logits are [9, 61]", "[3, 64]"}));
}

TEST_CASE("a step that fails anywhere leaves the text as it was", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  Failure& failure = backend->failure;
  const Model model(Device(backend), small(), 5);
  const std::vector<Tokens> first{{1, 2, 3}, {4, 5}};
  // Steps of one token and of several, with another length than the previous one and with the same, with one sequence
  // left out; and appending a sampled token.
  const std::vector<std::vector<Tokens>> steps{{{6}, {7}}, {{6, 7, 8, 9}, {10}}, {{6, 7, 8}, {}}, {{}, {11}}};
  // As many tokens as at first: the device's copy of them is known, or was lost with the step.
  const std::vector<Tokens> after{{12, 13, 14}, {15, 16}}, again{{17}, {18}};

  for (const bool sampled : {false, true}) {
    for (const std::vector<Tokens>& second : steps) {
      const auto begin = [&] {
        Session session(model, 2, 40);
        session.append(first);
        if (sampled) session.sample(penalized);
        return session;
      };
      Session fresh = begin();
      const std::vector<float> logits = fresh.logits(), all_logits = fresh.all_logits();
      const Tokens choice = fresh.sample(penalized);
      fresh.append(after);
      const std::vector<float> logits_after = fresh.logits(), all_after = fresh.all_logits();
      const Tokens choice_after = fresh.sample(penalized);
      fresh.append(again);
      const std::vector<float> logits_again = fresh.logits();

      int failures = 0;
      for (int n = 0;; ++n) {
        INFO("call " << n << " of a step of " << second[0].size() << " and " << second[1].size());
        Session session = begin();
        failure.calls_left = n;
        const std::string message = error_of([&] { session.append(second); });
        failure.calls_left = Failure::never;
        if (message == "(no error)") break;
        ++failures;
        CHECK(message == "a failure of the test");
        CHECK(session.length(0) == 3);
        CHECK(session.length(1) == 2);
        std::vector<float> found;
        std::string said = error_of([&] { found = session.logits(); });
        CHECK((says(said, {no_logits}) || found == logits));
        said = error_of([&] { found = session.all_logits(); });
        CHECK((says(said, {no_logits}) || found == all_logits));
        Tokens chosen;
        said = error_of([&] { chosen = session.sample(penalized); });
        CHECK((says(said, {no_logits}) || chosen == choice));
        // And the text continues as if nothing had happened.
        session.append(after);
        CHECK(session.logits() == logits_after);
        CHECK(session.all_logits() == all_after);
        CHECK(session.sample(penalized) == choice_after);
        session.append(again);
        CHECK(session.logits() == logits_again);
      }
      CHECK(failures > 15);
    }
  }
}

TEST_CASE("a failure to sample or to read logits leaves a session as it was", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  Failure& failure = backend->failure;
  const Model model(Device(backend), small(), 5);
  const std::vector<Tokens> first{{1, 2, 3}, {4, 5}}, next{{6}, {7}};
  const auto begin = [&] {
    Session session(model, 2, 40);
    session.append(first);
    session.append(next);
    return session;
  };
  Session fresh = begin();
  const std::vector<float> logits = fresh.logits(), all_logits = fresh.all_logits();
  const Tokens choice = fresh.sample(penalized);
  fresh.append(next);
  const std::vector<float> logits_after = fresh.logits();

  const std::function<void(Session&)> calls[] = {
      [](Session& session) { session.sample(penalized); }, [](Session& session) { session.sample({.temperature = 1}); },
      [](Session& session) { session.logits(); }, [](Session& session) { session.all_logits(); }};
  for (const auto& call : calls)
    for (int n = 0;; ++n) {
      Session session = begin();
      failure.calls_left = n;
      const std::string message = error_of([&] { call(session); });
      failure.calls_left = Failure::never;
      if (message == "(no error)") break;
      CHECK(session.logits() == logits);
      CHECK(session.all_logits() == all_logits);
      // The same tokens again: they are on the device, or the tokens being sampled are.
      session.append(next);
      CHECK(session.logits() == logits_after);
      CHECK(choice != Tokens{6, 7});
    }
}

TEST_CASE("logits of all positions are also written to a tensor of the caller", "[model]") {
  const Model model(test_device(), small(), 5);
  Session session(model, 2, 40);
  const Tensor<f32, 2> logits(model.device(), {6, small().vocab});
  CHECK(says(error_of([&] { session.all_logits(logits); }), {"no logits yet"}));
  session.append(std::vector<Tokens>{{1, 2, 3}, {4, 5, 6}});
  session.all_logits(logits);
  const std::vector<float> expected = session.all_logits();
  CHECK(logits.to_vector() == expected);
  // With more columns than tokens, and in 16 bits.
  const Tensor<f32, 2> wide(model.device(), {6, small().vocab + 7});
  wide.fill(NAN);
  session.all_logits(wide);
  CHECK(wide.slice(1, 0, small().vocab).to_vector() == expected);
  CHECK(wide.slice(1, small().vocab, 7).to_vector() == std::vector<float>(6 * 7, 0));
  const Tensor<bf16, 2> halves(model.device(), {6, small().vocab});
  session.all_logits(halves);
  const auto rounded = halves.to_vector();
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(static_cast<float>(rounded[i]) - expected[i]) <= std::abs(expected[i]) / 256);
  session.append(std::vector<Tokens>{{1}, {2}});
  CHECK(says(error_of([&] { session.all_logits(logits); }), {"the logits are [2, ", "tensor for them is [6, "}));
}

TEST_CASE("a sequence is cleared without the device", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  const Model model(Device(backend), small(), 5);
  Session session(model, 2, 40), fresh(model, 2, 40);
  session.append(std::vector<Tokens>{{1, 2, 3}, {4, 5}});
  session.sample(penalized);
  backend->failure.calls_left = 0;
  session.clear(0);
  backend->failure.calls_left = Failure::never;
  fresh.append(std::vector<Tokens>{{}, {4, 5}});
  for (Session* one : {&session, &fresh}) one->append(std::vector<Tokens>{{7}, {8}});
  CHECK(session.logits() == fresh.logits());
  CHECK(session.sample(penalized) == fresh.sample(penalized));  // tokens 1, 2 and 3 are not penalized any more
}

TEST_CASE("a copy of a sequence that fails leaves it empty", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  Failure& failure = backend->failure;
  const Model model(Device(backend), small(), 5);
  const std::vector<Tokens> first{{1, 2, 3}, {4, 5}}, next{{7}, {8}};
  int failures = 0;
  for (int n = 0;; ++n) {
    INFO("call " << n);
    Session session(model, 2, 40), from(model, 1, 40), fresh(model, 2, 40);
    session.append(first);
    from.append(std::vector<Tokens>{{9, 9, 9, 9}});
    failure.calls_left = n;
    const std::string message = error_of([&] { session.copy(0, from, 0); });
    failure.calls_left = Failure::never;
    const bool failed = message != "(no error)";
    failures += failed;
    CHECK(session.length(0) == (failed ? 0 : 4));
    fresh.append(std::vector<Tokens>{failed ? Tokens{} : Tokens{9, 9, 9, 9}, {4, 5}});
    for (Session* one : {&session, &fresh}) one->append(next);
    CHECK(session.logits() == fresh.logits());
    CHECK(session.sample(penalized) == fresh.sample(penalized));
    if (!failed) break;
  }
  CHECK(failures >= 4);  // keys and values of two layers
}

TEST_CASE("a step of a batch that fails anywhere loses no token", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  Failure& failure = backend->failure;
  const Model model(Device(backend), small(), 5);
  // All tokens, in the order of texts; one of the calls fails, and the step is tried again.
  const auto tokens = [&](int call) {
    ContinuousBatch batch(model, penalized, {.sequences = 3, .capacity = 40, .prompt_tokens = 4});
    // The prompt of the second is read in parts, while the first goes on.
    for (const Tokens& prompt : {Tokens{7}, Tokens{1, 2, 3, 4, 5, 6}, Tokens{1, 2, 3}, Tokens{1, 2, 3, 9}})
      batch.add({.prompt = prompt, .new_tokens = 4});
    std::vector<Tokens> made(4);
    failure.calls_left = call;
    for (int step = 0; batch.texts() > 0; ++step) {
      REQUIRE(step < 100);
      std::vector<TextToken> some;
      const std::string message = error_of([&] { some = batch.step(); });
      CHECK((message == "(no error)" || says(message, {"a failure of the test"})));
      for (const TextToken& token : some) made[static_cast<std::size_t>(token.text)].push_back(token.token);
    }
    return made;
  };
  const std::vector<Tokens> expected = tokens(Failure::never);
  for (const Tokens& text : expected) CHECK(text.size() == 4);
  int call = 0;
  for (; call < 10000; ++call) {
    INFO("call " << call);
    CHECK(tokens(call) == expected);
    if (failure.calls_left != Failure::never) break;  // there are fewer calls
  }
  failure.calls_left = Failure::never;
  CHECK(call > 200);
}

TEST_CASE("a model or session that needs more memory than is free is refused before anything is allocated", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  const Device device(backend);
  TransformerConfig config = small();
  config.vocab = 5000, config.width = 160, config.inner = 640, config.positions = 900;
  // The bytes that an error says are needed.
  const auto needed = [&](const auto& make) {
    backend->free = 1000, backend->allocated = 0;
    const std::string message = error_of(make);
    INFO(message);
    CHECK(says(message, {" take ", " MB, and ", " has 0.0 MB free; "}));
    CHECK(backend->allocated == 0);
    backend->free = {};
    return std::stod(message.substr(message.find(" take ") + 6)) * 1e6;
  };
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    const double weights = needed([&] { Model(device, config, 5, compute); });
    backend->allocated = 0;
    const Model model(device, config, 5, compute);
    CHECK(std::abs(static_cast<double>(backend->allocated) - weights) < 0.05 * weights);
    const double cache = needed([&] { Session(model, 7, 900); });
    CHECK(std::abs(cache - 2.0 * 7 * 900 * 160 * 2 * (compute == Compute::bf16 ? 2 : 4)) < 1e5);
    backend->free = static_cast<std::size_t>(cache) + 100'000;
    Session(model, 7, 900);
    backend->free = {};
  }
  CHECK(Device::cpu().free_bytes().value_or(1) > 0);
}

TEST_CASE("a session or model that cannot be made is an error", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  Failure& failure = backend->failure;
  const std::function<void()> makes[] = {
      [&] { Model(Device(backend), small(), 5); },
      [&] { Session(Model(Device(backend), small(), 5), 2, 40); },
      [&] {
    Model(Device(backend), Checkpoint::open(std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/data/nano-odd"));
      },
  };
  for (const auto& make : makes) {
    int n = 0;
    for (;; ++n) {
      failure.calls_left = n;
      const std::string message = error_of(make);
      failure.calls_left = Failure::never;
      if (message == "(no error)") break;
      CHECK(message == "a failure of the test");
    }
    CHECK(n > 10);
  }
}

TEST_CASE("a step that is computed ahead changes no result", "[model]") {
  const Model model(test_device(), small(), 5);
  const Sampling drawn{.temperature = 1, .seed = 3}, greedy{.temperature = 0};
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(n)); };
  for (int turn = 0; turn < 20; ++turn) {
    Session ahead(model, 2, 24), plain(model, 2, 24);
    ahead.run_ahead(true), plain.run_ahead(false);
    std::vector<Tokens> last;
    const auto append = [&](const std::vector<Tokens>& tokens) {
      const std::string said = error_of([&] { ahead.append(tokens); });
      CHECK(said == error_of([&] { plain.append(tokens); }));  // perhaps the text is full
      if (said == "(no error)") last = tokens;
    };
    append({{1, 2, 3}, {4}});
    for (int step = 0; step < 24; ++step) {
      INFO("turn " << turn << ", step " << step);
      const Sampling sampling = std::array{drawn, penalized, greedy}[static_cast<std::size_t>(below(3))];
      const auto sample = [&](Session& session) {
        Tokens tokens;
        error_of([&] { tokens = session.sample(sampling); });  // there may be no logits
        return tokens;
      };
      const Tokens tokens = sample(ahead);
      CHECK(tokens == sample(plain));
      const int what = below(8);
      if (what == 0) CHECK(sample(ahead) == sample(plain));
      if (what == 1) {
        const int which = below(2);
        ahead.clear(which), plain.clear(which);
        if (below(2) == 0) CHECK(sample(ahead) == sample(plain));  // the token on the device is that of a step ahead
      }
      if (what == 2) {
        // Positions of padding are meaningless.
        const std::vector<float> all = ahead.all_logits(), others = plain.all_logits();
        const std::size_t longest = std::max(last[0].size(), last[1].size()), vocab = 61;
        for (std::size_t b = 0; b < 2; ++b) {
          const auto from = static_cast<std::ptrdiff_t>(b * longest * vocab);
          const auto count = static_cast<std::ptrdiff_t>(last[b].size() * vocab);
          CHECK(std::equal(all.begin() + from, all.begin() + from + count, others.begin() + from));
        }
      }
      if (what == 3 || tokens.empty())
        append({{below(61)}, {below(61)}});
      else if (what == 4)
        append({{tokens[0]}, {}});
      else if (what == 5)
        append({{tokens[0], 5}, {tokens[1]}});
      else
        append({{tokens[0]}, {tokens[1]}});
      std::vector<float> logits;
      CHECK(error_of([&] { logits = ahead.logits(); }) == error_of([&] { plain.logits(); }));
      if (!logits.empty()) CHECK(logits == plain.logits());
    }
  }
}

TEST_CASE("each sample of a step is that of its own settings", "[model]") {
  const Model model(test_device(), small(), 5);
  for (const bool ahead : {false, true}) {
    Session session(model, 2, 24);
    session.run_ahead(ahead);
    session.append(std::vector<Tokens>{{1, 2, 3}, {4}});
    for (int step = 0; step < 4; ++step) {
      const Tokens best = session.sample({.temperature = 0});
      const Tokens other = session.sample(penalized);
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const Tokens drawn = session.sample({.temperature = 5, .seed = seed});
        CHECK(session.sample({.temperature = 0}) == best);
        CHECK(session.sample(penalized) == other);
        CHECK(session.sample({.temperature = 5, .seed = seed}) == drawn);
      }
      session.append(std::vector<Tokens>{{best[0]}, {other[1]}});
    }
  }
}

TEST_CASE("a token that is sampled again behind a step ahead is the one that is appended", "[model]") {
  const Model model(test_device(), small(), 5);
  int different = 0;
  for (std::int32_t first = 0; first < 20; ++first) {
    Session ahead(model, 2, 24), plain(model, 2, 24);
    ahead.run_ahead(true), plain.run_ahead(false);
    std::vector<Tokens> tokens{{first}, {first + 20}};
    const auto next = [&](Session& session) {
      for (int step = 0; step < 2; ++step) session.append(tokens);  // of one position each, so that it runs ahead
      session.sample({.temperature = 0});
      session.clear(1);
      const Tokens sampled = session.sample({.temperature = 0});
      session.append(std::vector<Tokens>{{sampled[0]}, {sampled[1]}});
      const std::vector<float> logits = session.logits();
      different += session.sample({.temperature = 0})[0] != sampled[0];
      return logits;
    };
    CHECK(next(ahead) == next(plain));
  }
  CHECK(different > 0);
}

TEST_CASE("a failure of a step that is computed ahead is one of the append that needs it, if at all", "[model]") {
  const auto backend = std::make_shared<FailingBackend>();
  const Model model(Device(backend), small(), 5);
  const auto begin = [&](bool ahead) {
    Session session(model, 2, 40);
    session.run_ahead(ahead);
    session.append(std::vector<Tokens>{{1, 2, 3}, {4, 5}});
    session.append(std::vector<Tokens>{{6}, {7}});
    return session;
  };
  const auto next = [](Session& session) {
    const Tokens chosen = session.sample(penalized);
    session.append(std::vector<Tokens>{{chosen[0]}, {chosen[1]}});
    return session.logits();
  };
  Session fresh = begin(false);
  const std::vector<float> first = next(fresh), second = next(fresh);
  int hidden = 0;
  for (int n = 0; n < 60; ++n) {
    INFO("call " << n);
    Session session = begin(true);
    backend->failure.calls_left = n;
    Tokens chosen;
    const bool failed = error_of([&] { chosen = session.sample(penalized); }) != "(no error)";
    hidden += !failed && backend->failure.calls_left == Failure::never;
    backend->failure.calls_left = Failure::never;
    CHECK(next(session) == first);
    CHECK(next(session) == second);
  }
  CHECK(hidden > 10);
}

}  // namespace test_session
