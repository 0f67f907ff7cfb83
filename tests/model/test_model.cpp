// Models against golden data computed in double precision by another implementation.
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/golden_model.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/session.hpp"

namespace test_model {

using namespace tessera::internal;
using namespace test_golden;
using Tokens = std::vector<std::int32_t>;

namespace {

const std::filesystem::path root = TESSERA_SOURCE_DIR;

/// A model of one layer and 19 tokens with random weights, and its logits in double precision.
class OneLayer {
 public:
  OneLayer(std::size_t width, std::size_t heads) : c_(width), heads_(heads), inner_(2 * width) {
    write_text(folder_ / "config.json", nlohmann::json{{"vocab_size", vocab},
                                                       {"n_positions", positions},
                                                       {"n_embd", c_},
                                                       {"n_layer", 1},
                                                       {"n_head", heads_},
                                                       {"n_inner", inner_}}
                                            .dump());
    const double deviation = 0.4 / std::sqrt(static_cast<double>(c_));
    add("wte.weight", {vocab, c_}, 0, 1), add("wpe.weight", {positions, c_}, 0, 1);
    for (const char* norm : {"h.0.ln_1.", "h.0.ln_2.", "ln_f."})
      add(norm + std::string("weight"), {c_}, 1, 0.1), add(norm + std::string("bias"), {c_}, 0, 0.1);
    const auto linear = [&](const std::string& name, std::size_t in, std::size_t out) {
      add(name + ".weight", {in, out}, 0, deviation), add(name + ".bias", {out}, 0, 0.1);
    };
    linear("h.0.attn.c_attn", c_, 3 * c_), linear("h.0.attn.c_proj", c_, c_);
    linear("h.0.mlp.c_fc", c_, inner_), linear("h.0.mlp.c_proj", inner_, c_);
    std::vector<TensorBytes> tensors;
    for (const auto& [name, weight] : weights_)
      tensors.push_back({name, StoredType::f32, weight.shape, std::as_bytes(std::span(weight.values))});
    write_safetensors(folder_ / "model.safetensors", tensors);
  }
  Checkpoint checkpoint() const { return Checkpoint::open(folder_.path()); }

  std::vector<float> logits(const Tokens& ids) const {
    Rows x(ids.size(), std::vector<double>(c_));
    for (std::size_t t = 0; t < ids.size(); ++t)
      for (std::size_t i = 0; i < c_; ++i)
        x[t][i] = at("wte.weight", static_cast<std::size_t>(ids[t]) * c_ + i) + at("wpe.weight", t * c_ + i);
    const auto qkv = linear("h.0.attn.c_attn", norm("h.0.ln_1", x), 3 * c_);
    Rows attended(x.size(), std::vector<double>(c_));
    const std::size_t d = c_ / heads_;
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t h = 0; h < heads_; ++h) {
        std::vector<double> scores;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = h * d; i < (h + 1) * d; ++i) score += qkv[t][i] * qkv[s][c_ + i];
          scores.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
        }
        const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t i = h * d; i < (h + 1) * d; ++i) attended[t][i] += scores[s] / sum * qkv[s][2 * c_ + i];
      }
    add_to(x, linear("h.0.attn.c_proj", attended, c_));
    Rows up = linear("h.0.mlp.c_fc", norm("h.0.ln_2", x), inner_);
    for (auto& row : up)
      for (double& v : row) v *= 0.5 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    add_to(x, linear("h.0.mlp.c_proj", up, c_));
    std::vector<float> result;
    for (const auto& row : norm("ln_f", x))
      for (std::size_t token = 0; token < vocab; ++token) {
        double sum = 0;
        for (std::size_t i = 0; i < c_; ++i) sum += row[i] * at("wte.weight", token * c_ + i);
        result.push_back(static_cast<float>(sum));
      }
    return result;
  }

  static constexpr std::size_t vocab = 19, positions = 40;

 private:
  using Rows = std::vector<std::vector<double>>;
  struct Weight {
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
  };

  void add(const std::string& name, std::vector<std::uint64_t> shape, double mean, double deviation) {
    std::normal_distribution<double> normal(mean, deviation);
    std::size_t size = 1;
    for (const std::uint64_t extent : shape) size *= extent;
    Weight weight{std::move(shape), std::vector<float>(size)};
    for (float& value : weight.values) value = static_cast<float>(normal(random_));
    weights_.emplace(name, std::move(weight));
  }
  double at(const std::string& name, std::size_t i) const {
    return static_cast<double>(weights_.at(name).values.at(i));
  }
  static void add_to(Rows& x, const Rows& update) {
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += update[t][i];
  }
  Rows norm(const std::string& name, Rows x) const {
    for (auto& row : x) {
      const double size = static_cast<double>(row.size());
      const double mean = std::accumulate(row.begin(), row.end(), 0.0) / size;
      double variance = 0;
      for (const double v : row) variance += (v - mean) * (v - mean) / size;
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * at(name + ".weight", i) + at(name + ".bias", i);
    }
    return x;
  }
  Rows linear(const std::string& name, const Rows& x, std::size_t out) const {
    const auto &weight = weights_.at(name + ".weight").values, &bias = weights_.at(name + ".bias").values;
    Rows y;
    for (const auto& row : x) {
      auto& sums = y.emplace_back(bias.begin(), bias.end());
      for (std::size_t k = 0; k < row.size(); ++k)
        for (std::size_t n = 0; n < out; ++n) sums[n] += row[k] * static_cast<double>(weight[k * out + n]);
    }
    return y;
  }

  std::size_t c_, heads_, inner_;
  std::mt19937 random_{5};
  std::map<std::string, Weight> weights_;
  TempDir folder_;
};

}  // namespace

TEST_CASE("logits of awkward shapes equal the golden ones", "[model]") {
  const Golden golden(GENERATE(as<std::string>(), "nano-odd", "mini-192", "llama-odd", "llama-biases"));
  INFO(golden.folder);
  const auto all_logits = [&](Compute compute) {
    const Model model(test_device(), golden.checkpoint, compute);
    Session session(model, static_cast<int>(golden.prompts.size()), static_cast<int>(golden.prompts[0].size()));
    session.append(golden.prompts);
    return session.all_logits();
  };
  CHECK(largest_difference(all_logits(Compute::f32), golden.logits) <= 2e-5);
  CHECK(relative_difference(all_logits(Compute::tf32), golden.logits) <= 2.5e-3);
  CHECK(relative_difference(all_logits(Compute::bf16), golden.logits) <= 2e-2);
}

TEST_CASE("with the exact GELU, logits equal those computed with it", "[model]") {
  Golden golden("nano-odd");
  const auto expected = values<float>(SafeTensors::open(golden.folder / "golden-gelu.safetensors"), "logits");
  CHECK(largest_difference(golden.logits, expected) > 2e-4);
  golden.checkpoint.config.activation = Activation::gelu;
  const Model model(test_device(), golden.checkpoint);
  Session session(model, static_cast<int>(golden.prompts.size()), static_cast<int>(golden.prompts[0].size()));
  session.append(golden.prompts);
  CHECK(largest_difference(session.all_logits(), expected) <= 2e-5);
}

TEST_CASE("logits equal those with another activation, and scores of another scale in each layer", "[model]") {
  Golden golden("nano-odd");
  const auto expected = values<float>(SafeTensors::open(golden.folder / "golden-scales.safetensors"), "logits");
  CHECK(largest_difference(golden.logits, expected) > 2e-4);
  golden.checkpoint.config.activation = Activation::relu;
  golden.checkpoint.config.attention_scale = 1;
  const auto logits = [&] {
    const Model model(test_device(), golden.checkpoint);
    Session session(model, static_cast<int>(golden.prompts.size()), static_cast<int>(golden.prompts[0].size()));
    session.append(golden.prompts);
    return session.all_logits();
  };
  CHECK(largest_difference(logits(), expected) > 2e-4);
  golden.checkpoint.config.scales_by_layer = true;
  CHECK(largest_difference(logits(), expected) <= 2e-5);
}

TEST_CASE("a model with random weights has a head of its own if it is not tied", "[model]") {
  TransformerConfig config = preset("nano");
  config.vocab = 61, config.positions = 20;
  const auto logits = [&](bool tied) {
    config.tied = tied;
    const Model model(test_device(), config, 3);
    Session session(model, 1, 4);
    session.append(std::vector<Tokens>{{5, 6}});
    return session.logits();
  };
  CHECK(logits(true) != logits(false));
  CHECK(logits(false) == logits(false));
}

TEST_CASE("a checkpoint whose configuration was changed to need other weights is refused", "[model]") {
  Golden golden("nano-odd");
  golden.checkpoint.config.position_encoding = PositionEncoding::rotary;
  CHECK(says(error_of([&] { Model(test_device(), golden.checkpoint); }), {"other weights than its configuration"}));
  Golden deeper("nano-odd");
  deeper.checkpoint.config.layers = 4;
  CHECK(says(error_of([&] { Model(test_device(), deeper.checkpoint); }), {"other weights than its configuration"}));
  Golden worse("nano-odd");
  worse.checkpoint.config.heads = 5;
  CHECK(says(error_of([&] { Model(test_device(), worse.checkpoint); }), {"n_embd is 48"}));
}

TEST_CASE("the token's embedding has a factor", "[model]") {
  const Golden golden("llama-odd");
  TempDir folder;
  std::filesystem::copy_file(golden.folder / "config.json", folder.path() / "config.json");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorBytes> tensors;
  for (const StoredTensor& stored : golden.checkpoint.file.tensors()) {
    std::vector<float> halved(stored.size / sizeof(float));
    golden.checkpoint.file.read(stored, std::as_writable_bytes(std::span(halved)));
    if (stored.name == "model.embed_tokens.weight")
      for (float& value : halved) value /= 2;
    const auto raw = std::as_bytes(std::span(halved));
    tensors.push_back({stored.name, stored.type, stored.shape, bytes.emplace_back(raw.begin(), raw.end())});
  }
  write_safetensors(folder.path() / "model.safetensors", tensors);
  Checkpoint checkpoint = Checkpoint::open(folder.path());
  const auto logits = [&](float scale) {
    checkpoint.config.embedding_scale = scale;
    const Model model(test_device(), checkpoint);
    Session session(model, static_cast<int>(golden.prompts.size()), static_cast<int>(golden.prompts[0].size()));
    session.append(golden.prompts);
    return session.all_logits();
  };
  CHECK(largest_difference(logits(1), golden.logits) > 2e-4);
  CHECK(largest_difference(logits(2), golden.logits) <= 2e-5);
}

TEST_CASE("token embedding and head are tied as transformers 5 ties them", "[model]") {
  const std::filesystem::path stored = root / "tests/data/tied-head";  // wte and lm_head, which differ
  const SafeTensors golden = SafeTensors::open(stored / "golden.safetensors");
  const SafeTensors weights = SafeTensors::open(stored / "model.safetensors");
  const std::string wte = "transformer.wte.weight", head = "lm_head.weight";
  struct Case {
    const char *tied, *logits;
    std::string left_out;
    bool warns = false;
  };
  const Case cases[] = {{"true", "logits", "", true}, {"", "logits", "", true}, {"false", "logits", ""},
                        {"true", "logits.wte", head}, {"", "logits.wte", head}, {"true", "logits.lm_head", wte},
                        {"", "logits.lm_head", wte}};
  for (const Case& c : cases) {
    INFO("tie_word_embeddings " << c.tied << ", " << c.logits);
    const TempDir folder;
    auto config = nlohmann::json::parse(read_text(stored / "config.json"));
    config.erase("tie_word_embeddings");
    if (*c.tied) config["tie_word_embeddings"] = std::string_view(c.tied) == "true";
    write_text(folder / "config.json", config.dump());
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorBytes> tensors;
    for (const StoredTensor& t : weights.tensors()) {
      if (t.name == c.left_out) continue;
      tensors.push_back({t.name, t.type, t.shape, bytes.emplace_back(weights.read(t))});
    }
    write_safetensors(folder / "model.safetensors", tensors);
    std::optional<Checkpoint> checkpoint;
    const std::string warning = stderr_of([&] { checkpoint = Checkpoint::open(folder.path()); });
    if (c.warns) CHECK(says(warning.substr(0, warning.find('\n')), {"tie_word_embeddings", head, wte}));
    if (!c.warns) CHECK(warning.empty());
    CHECK((checkpoint->head == checkpoint->embedding) == !c.left_out.empty());
    const Model model(test_device(), *checkpoint);
    Session session(model, 1, 5);
    session.append(std::vector<Tokens>{values<std::int32_t>(golden, "ids")});
    CHECK(largest_difference(session.all_logits(), values<float>(golden, c.logits)) <= 2e-5);
  }
}

TEST_CASE("logits are products of hidden states with the head", "[model]") {
  const std::filesystem::path stored = root / "tests/data/tied-head";
  std::optional<Checkpoint> opened;
  stderr_of([&] { opened = Checkpoint::open(stored); });  // it warns of the two embeddings
  const Checkpoint& checkpoint = *opened;
  const std::vector<float> head = values<float>(SafeTensors::open(stored / "model.safetensors"), "lm_head.weight");
  const auto vocab = static_cast<std::size_t>(checkpoint.config.vocab);
  const auto width = static_cast<std::size_t>(checkpoint.config.width);
  const std::vector<std::vector<std::int32_t>> tokens{{1, 2, 3, 4, 5}, {6, 7}};
  for (const Compute compute : {Compute::f32, Compute::tf32, Compute::bf16}) {
    Session session(Model(test_device(), checkpoint, compute), 2, 10);
    const Tensor<f32, 2> wide(test_device(), {10, checkpoint.config.width});
    const Tensor<bf16, 2> narrow(test_device(), {10, checkpoint.config.width});
    CHECK(says(error_of([&] { session.hidden_states(wide); }), {"no logits"}));
    session.append(tokens);
    const std::vector<float> logits = session.all_logits();
    session.hidden_states(wide);
    session.hidden_states(narrow);
    const std::vector<float> states = wide.to_vector();
    const std::vector<bf16> rounded = narrow.to_vector();
    for (const std::size_t row : {0, 1, 2, 3, 4, 5, 6}) {
      std::vector<float> expected(vocab);
      for (std::size_t token = 0; token < vocab; ++token)
        for (std::size_t i = 0; i < width; ++i) expected[token] += states[row * width + i] * head[token * width + i];
      const std::span actual = std::span(logits).subspan(row * vocab, vocab);
      CHECK(relative_difference(actual, expected) <= (compute == Compute::f32 ? 1e-5 : 1e-2));
      for (std::size_t i = 0; i < width; ++i)
        CHECK(static_cast<float>(rounded[row * width + i]) ==
              Approx(states[row * width + i]).epsilon(1e-2).margin(1e-6));
    }
    const Tensor<f32, 2> other(test_device(), {9, checkpoint.config.width});
    CHECK(says(error_of([&] { session.hidden_states(other); }), {"the hidden states are [10, ", "[9, "}));
  }
}

TEST_CASE("a head that equals the token embedding is not stored twice", "[model]") {
  const std::filesystem::path stored = root / "tests/data/tied-head";
  const SafeTensors weights = SafeTensors::open(stored / "model.safetensors");
  const TempDir folder;
  std::filesystem::copy_file(stored / "config.json", folder / "config.json");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorBytes> tensors;
  for (const StoredTensor& t : weights.tensors())
    tensors.push_back(
        {t.name, t.type, t.shape,
         bytes.emplace_back(weights.read(t.name == "lm_head.weight" ? *weights.find("transformer.wte.weight") : t))});
  write_safetensors(folder / "model.safetensors", tensors);
  CHECK(stderr_of([&] {
          const Checkpoint checkpoint = Checkpoint::open(folder.path());
          CHECK(checkpoint.head == checkpoint.embedding);
        }).empty());
}

TEST_CASE("heads may have any width", "[model]") {
  // Width 1, as in sshleifer/tiny-gpt2, widths below that of matrix instructions, and ones that registers do not hold.
  constexpr std::pair<std::size_t, std::size_t> shapes[] = {{6, 2},  {2, 2},   {12, 3}, {7, 1},
                                                            {27, 3}, {300, 1}, {640, 2}};
  Cases cases(3 * 12 * std::size(shapes));  // that many kernels
  const Tokens ids = {3, 0, 18, 7, 7, 11, 2, 5, 16, 9, 1, 4, 4, 13, 8, 17, 6, 10, 12, 14, 15, 3, 2, 1, 0};
  for (const Compute compute : {Compute::bf16, Compute::f32, Compute::tf32}) {
    for (const auto& [width, heads] : shapes) {
      if (cases.skip()) continue;
      INFO("width " << width << ", " << heads << " heads, compute " << static_cast<int>(compute));
      const OneLayer one(width, heads);
      const Model model(test_device(), one.checkpoint(), compute);
      Session session(model, 1, OneLayer::positions);
      session.append(std::vector<Tokens>{{ids.begin(), ids.end() - 2}});
      std::vector<float> logits = session.all_logits();
      for (auto id = ids.end() - 2; id != ids.end(); ++id) {
        append_one(session, *id);
        const auto last = session.logits();
        logits.insert(logits.end(), last.begin(), last.end());
      }
      const auto expected = one.logits(ids);
      const float largest = std::abs(*std::ranges::max_element(expected, {}, [](float v) { return std::abs(v); }));
      if (compute == Compute::f32) CHECK(largest_difference(logits, expected) <= 2e-5 * std::max(largest, 1.0f));
      if (compute == Compute::tf32) CHECK(relative_difference(logits, expected) <= 2.5e-3);
      if (compute == Compute::bf16) CHECK(relative_difference(logits, expected) <= 2e-2);
    }
  }
}

TEST_CASE("the same input gives the same bits, every time", "[model]") {
  const Golden golden("nano-odd");
  for (const Compute compute : {Compute::f32, Compute::tf32, Compute::bf16}) {
    const Model model(test_device(), golden.checkpoint, compute);
    const auto run = [&] {
      Session session(model, static_cast<int>(golden.prompts.size()), static_cast<int>(golden.prompts[0].size()));
      session.append(golden.prompts);
      return session.all_logits();
    };
    const std::vector<float> first = run();
    for (int i = 1; i < (most_kernels() < 20 || sanitized ? 2 : 20); ++i) {
      const std::vector<float> again = run();
      CHECK(std::memcmp(again.data(), first.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("a prompt and two steps of the smallest model", "[model][sanitize][emulated]") {
  const Golden golden("nano-odd");
  const Tokens& tokens = golden.prompts[0];
  const std::size_t prompt = 5, vocab = golden.logits.size() / golden.prompts.size() / tokens.size();
  const Model model(test_device(), golden.checkpoint);
  Session session(model, 1, 8);
  session.append(std::vector<Tokens>{Tokens(tokens.begin(), tokens.begin() + prompt)});
  CHECK(largest_difference(session.all_logits(), std::span(golden.logits).first(prompt * vocab)) <= 2e-5);
  for (std::size_t t = prompt; t < prompt + 2; ++t) {
    append_one(session, tokens[t]);
    CHECK(largest_difference(session.logits(), std::span(golden.logits).subspan(t * vocab, vocab)) <= 2e-5);
  }
  const Tokens best = session.sample({});
  const auto last = session.logits();
  CHECK(best[0] == std::max_element(last.begin(), last.end()) - last.begin());
}

TEST_CASE("the smallest model writes eight tokens", "[model][emulated]") {
  const Golden golden("nano-odd");
  const Tokens prompt = golden.greedy_prompt();
  const std::size_t length = prompt.size() + 8;
  REQUIRE(length <= golden.greedy.size());
  CHECK(generate(Model(test_device(), golden.checkpoint), prompt, length) ==
        Tokens(golden.greedy.begin(), golden.greedy.begin() + static_cast<std::ptrdiff_t>(length)));
}

TEST_CASE("greedy ids equal the golden ones", "[model][long]") {
  const Golden golden(GENERATE(as<std::string>(), "nano-odd", "mini-192", "llama-odd", "llama-biases"));
  INFO(golden.folder);
  CHECK(generate(Model(test_device(), golden.checkpoint), golden.greedy_prompt(), golden.greedy.size()) ==
        golden.greedy);
}

TEST_CASE("the shipped model writes one token", "[model]") {
  const Model model(test_device(), Checkpoint::open(root / "samples/models/storyteller-6m"));
  const auto golden = nlohmann::json::parse(read_text(root / "tests/data/storyteller-golden.json")).at("cases").at(0);
  const auto prompt = golden.at("prompt_ids").get<Tokens>(), text = golden.at("greedy_ids").get<Tokens>();
  CHECK(generate(model, prompt, prompt.size() + 1) ==
        Tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt.size() + 1)));
}

TEST_CASE("greedy text of the shipped model equals every golden case", "[model][long]") {
  const Model model(test_device(), Checkpoint::open(root / "samples/models/storyteller-6m"));
  const auto cases = nlohmann::json::parse(read_text(root / "tests/data/storyteller-golden.json")).at("cases");
  REQUIRE(cases.size() == 5);
  for (const auto& golden : cases) {
    if (sanitized && &golden != &cases[0]) break;
    INFO(golden.at("prompt"));
    const auto prompt = golden.at("prompt_ids").get<Tokens>(), expected = golden.at("greedy_ids").get<Tokens>();
    CHECK(generate(model, prompt, expected.size()) == expected);
    Session session(model, 1, 512);
    session.append(std::vector<Tokens>{prompt});
    const auto logits = session.logits();
    for (const auto& top : golden.at("last_logits_top10"))
      CHECK(logits[top[0].get<std::size_t>()] == Approx(top[1].get<double>()).margin(1e-4));
    double sum = 0;
    for (float logit : logits) sum += logit;
    CHECK(sum == Approx(golden.at("last_logits_sum").get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("cached decode equals recomputation", "[model][long]") {
  const Golden golden(GENERATE(as<std::string>(), "nano-odd", "mini-192", "llama-odd"));
  const Model model(test_device(), golden.checkpoint);
  const Tokens& tokens = golden.prompts[1];
  Session cached(model, 1, static_cast<int>(tokens.size()));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    append_one(cached, tokens[t]);
    if (sanitized && t % 8 != 0) continue;
    Session fresh(model, 1, static_cast<int>(t) + 1);
    fresh.append(std::vector<Tokens>{Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(t) + 1)});
    CHECK(largest_difference(cached.logits(), fresh.logits()) <= 1e-5);
    CHECK(cached.sample({}) == fresh.sample({}));
  }
}

TEST_CASE("a prompt may be appended in parts", "[model]") {
  const Golden golden("mini-192");
  const Model model(test_device(), golden.checkpoint);
  const Tokens& tokens = golden.prompts[0];
  Session parts(model, 1, 64);
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 6}, {6, 40}, {40, 64}})
    parts.append(std::vector<Tokens>{Tokens(tokens.begin() + begin, tokens.begin() + end)});
  CHECK(largest_difference(parts.logits(), std::span(golden.logits).subspan(63 * 257, 257)) <= 2e-5);
}

TEST_CASE("a batch of different lengths gives each prompt's own result", "[model][long]") {
  const Model model(test_device(), Checkpoint::open(root / "samples/models/storyteller-6m"));
  const std::vector<Tokens> prompts{
      {2916, 580, 259, 557}, {33}, {2, 2098, 509, 316, 537, 789, 260, 44, 416}, Tokens(40, 12)};
  std::vector<Tokens> alone;
  for (const Tokens& prompt : prompts) alone.push_back(generate(model, prompt, prompt.size() + 12));
  Session session(model, 4, 64);
  session.append(prompts);
  std::vector<Tokens> together = prompts;
  for (int step = 0; step < 12; ++step) {
    const auto next = session.sample({});
    std::vector<Tokens> append(4);
    for (std::size_t b = 0; b < 4; ++b) {
      together[b].push_back(next[b]);
      append[b] = {next[b]};
    }
    if (step < 11) session.append(append);
  }
  CHECK(together == alone);
}

TEST_CASE("a sequence without new tokens stays as it is", "[model]") {
  const Golden golden("nano-odd");
  const Model model(test_device(), golden.checkpoint);
  Session session(model, 2, 37);
  session.append(std::vector<Tokens>{{1, 2, 3}, {4, 5}});
  session.append(std::vector<Tokens>{{}, {6}});
  session.append(std::vector<Tokens>{{7}, {}});
  CHECK(session.length(0) == 4);
  CHECK(session.length(1) == 3);
  Session alone(model, 1, 37);
  alone.append(std::vector<Tokens>{{1, 2, 3, 7}});
  const auto both = session.logits();
  CHECK(largest_difference(std::span(both).first(101), alone.logits()) <= 1e-5);
}

TEST_CASE("loading a model reports its progress", "[model]") {
  const Golden golden("nano-odd");
  std::vector<double> parts;
  const Model model(test_device(), golden.checkpoint, Compute::f32, [&](double part) { parts.push_back(part); });
  CHECK(parts.size() >= 12 * static_cast<std::size_t>(model.config().layers));
  CHECK(parts.front() > 0);
  CHECK(std::is_sorted(parts.begin(), parts.end()));
  CHECK(parts.back() > 0.9);
  CHECK(parts.back() <= 1);
}

TEST_CASE("a cleared sequence is a new one, and the others stay", "[model]") {
  const Golden golden("nano-odd");
  const Model model(test_device(), golden.checkpoint);
  constexpr Sampling penalized{.repetition_penalty = 100};
  Session session(model, 2, 37);
  session.append(std::vector<Tokens>{Tokens(30, 7), {4, 5}});
  session.clear(0);
  CHECK(session.length(0) == 0);
  CHECK(session.length(1) == 2);
  session.sample(penalized);  // from the other one
  session.append(std::vector<Tokens>{{1, 2, 3}, {6}});
  Session fresh(model, 2, 37);
  fresh.append(std::vector<Tokens>{{}, {4, 5}});
  fresh.append(std::vector<Tokens>{{1, 2, 3}, {6}});
  CHECK(session.logits() == fresh.logits());
  CHECK(session.sample(penalized) == fresh.sample(penalized));

  session.clear(0);
  session.clear(1);
  CHECK(says(error_of([&] { session.sample({}); }), {"no logits yet"}));
  CHECK(says(error_of([&] { session.clear(2); }), {"no sequence 2"}));
}

TEST_CASE("a sample depends on seed and stream, not on the sequences beside it", "[model]") {
  const Golden golden("nano-odd");
  const Model model(test_device(), golden.checkpoint);
  const Sampling hot{.temperature = 100, .seed = 3};
  Session session(model, 3, 37);
  session.append(std::vector<Tokens>{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  const Tokens numbered = session.sample(hot);
  CHECK(session.sample(hot, std::vector<std::int64_t>{0, 1, 2}) == numbered);
  CHECK(session.sample(hot, std::vector<std::int64_t>{2, 0, 1}) == Tokens{numbered[2], numbered[0], numbered[1]});
  CHECK(session.sample(hot, std::vector<std::int64_t>{0, 0, 0}) == Tokens(3, numbered[0]));
  CHECK(session.sample(hot) == numbered);
  CHECK(numbered != Tokens(3, numbered[0]));
  Session alone(model, 1, 37);
  alone.append(std::vector<Tokens>{{1, 2, 3}});
  CHECK(alone.sample(hot, std::vector<std::int64_t>{1}) == Tokens{numbered[1]});
  CHECK(says(error_of([&] { session.sample(hot, std::vector<std::int64_t>{1}); }), {"1 streams", "3 sequences"}));
}

TEST_CASE("min-p is from 0 to 1", "[model]") {
  for (const float min_p : {-0.1f, 1.1f, static_cast<float>(NAN)})
    CHECK(says(error_of([&] { check({.min_p = min_p}); }), {"min-p", "0 (off) to 1"}));
  check({.min_p = 1});
}

TEST_CASE("log probabilities are those of a softmax", "[model]") {
  const Golden golden("mini-192");
  const Model model(test_device(), golden.checkpoint);
  Session session(model, 1, 64);
  const std::size_t vocab = 257, rows = 64;
  Tokens targets(rows);
  std::iota(targets.begin(), targets.end(), 3);
  const std::span<const float> logits(golden.logits.data(), rows * vocab);
  const auto result = session.log_probabilities(logits, targets);
  for (std::size_t row = 0; row < rows; ++row) {
    double total = 0;
    for (std::size_t v = 0; v < vocab; ++v) total += std::exp(static_cast<double>(logits[row * vocab + v]));
    CHECK(result[row] ==
          Approx(static_cast<double>(logits[row * vocab + static_cast<std::size_t>(targets[row])]) - std::log(total))
              .margin(1e-5));
  }
}

TEST_CASE("any head width from 8 to 256 and any length", "[model]") {
  const int head_width = GENERATE(8, 17, 80, 256), heads = GENERATE(1, 3);
  const bool slow = test_device_name() == "emulated" || sanitized;
  if (slow && heads * head_width > (heads > 1 ? 64 : 256)) {
    SUCCEED("too many weights to make in the emulator, or under sanitizers");
    return;
  }
  TransformerConfig config;
  config.vocab = 211, config.positions = 200, config.width = heads * head_width, config.layers = 2,
  config.heads = heads;
  config.inner = 4 * config.width;
  const Model model(test_device(), config, 7);
  Tokens tokens(test_device_name() != "emulated" ? 200 : head_width > 128 ? 40 : 70);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 37 % 211);
  Session whole(model, 1, 200), steps(model, 1, 200);
  whole.append(std::vector<Tokens>{tokens});
  steps.append(std::vector<Tokens>{Tokens(tokens.begin(), tokens.end() - 3)});
  for (std::size_t i = tokens.size() - 3; i < tokens.size(); ++i) append_one(steps, tokens[i]);
  CHECK(largest_difference(whole.logits(), steps.logits()) <= 1e-5);
}

TEST_CASE("presets are made from a seed, the same each time", "[model]") {
  const TransformerConfig config = preset("nano");
  const std::vector<Tokens> prompt{{464, 1234, 50256}};
  const auto logits = [&](std::uint64_t seed, Compute compute) {
    Session session(Model(test_device(), config, seed, compute), 1, 8);
    session.append(prompt);
    return session.logits();
  };
  const auto one = logits(1, Compute::f32);
  CHECK(one == logits(1, Compute::f32));
  CHECK(one != logits(2, Compute::f32));
  CHECK(relative_difference(logits(1, Compute::bf16), one) <= 2e-2);
  double sum = 0, squares = 0;
  for (float logit : one) sum += logit, squares += logit * logit;
  CHECK(std::abs(sum) < 0.1 * static_cast<double>(one.size()));
  CHECK(squares > 0);
}

TEST_CASE("sessions reject invalid calls, and stay unchanged", "[model]") {
  const Golden golden("nano-odd");
  const Model model(test_device(), golden.checkpoint);
  CHECK(says(error_of([&] { Session(model, 0, 10); }), {"at least 1"}));
  CHECK(says(error_of([&] { Session(model, 1, 38); }), {"38", "37"}));
  Session session(model, 1, 20);
  CHECK(says(error_of([&] { session.sample({}); }), {"no logits"}));
  CHECK(says(error_of([&] { session.logits(); }), {"no logits"}));
  CHECK(says(error_of([&] { session.all_logits(); }), {"no logits"}));
  CHECK(says(error_of([&] { session.log_probabilities(std::vector<float>(101), Tokens{-5}); }), {"-5", "vocabulary"}));
  CHECK(says(error_of([&] { session.log_probabilities(std::vector<float>(100), Tokens{5}); }), {"100 logits"}));
  session.append(std::vector<Tokens>{{1, 2, 3}});
  const auto before = session.logits();
  CHECK(says(error_of([&] { append_one(session, 101); }), {"101", "vocabulary"}));
  CHECK(says(error_of([&] { append_one(session, -1); }), {"-1", "vocabulary"}));
  CHECK(says(error_of([&] { session.append(std::vector<Tokens>{Tokens(18, 1)}); }), {"21 tokens", "20"}));
  CHECK(says(error_of([&] { session.append(std::vector<Tokens>{{}}); }), {"no tokens"}));
  CHECK(says(error_of([&] { session.append(std::vector<Tokens>{{1}, {2}}); }), {"2 sequences"}));
  CHECK(session.length(0) == 3);
  for (const int sequence : {-1, 1})
    CHECK(says(error_of([&] { session.length(sequence); }), {"no sequence", "session of 1"}));
  CHECK(session.logits() == before);
  for (const Sampling& bad :
       {Sampling{-1}, Sampling{1, -1}, Sampling{1, 0, 0}, Sampling{1, 0, 1.5f}, Sampling{1, 0, 1, 0}, Sampling{NAN}})
    CHECK(error_of([&] { session.sample(bad); }) != "(no error)");
}

}  // namespace test_model
