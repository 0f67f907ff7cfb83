// config.json of each family: defaults, old and new spellings, and how what no kernel computes is refused.
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/session.hpp"

namespace test_family_settings {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;

/// config.json of a family with sizes only, or changed.
class Settings {
 public:
  explicit Settings(std::string_view model_type)
      : base_{
            {"model_type", model_type},     {"vocab_size", 41},        {"hidden_size", 32}, {"num_hidden_layers", 3},
            {"num_attention_heads", 4},     {"intermediate_size", 56}, {"ffn_dim", 56},     {"num_key_value_heads", 2},
            {"max_position_embeddings", 64}} {}
  TransformerConfig with(const nlohmann::json& changes = {}) {
    auto changed = base_;
    changed.merge_patch(changes.is_null() ? nlohmann::json::object() : changes);
    return read(changed);
  }
  /// The same with a key that is null; a patch would remove it.
  TransformerConfig with_null(const std::string& key) {
    auto changed = base_;
    changed[key] = nullptr;
    return read(changed);
  }
  TransformerConfig without(const std::string& key) {
    auto changed = base_;
    changed.erase(key);
    return read(changed);
  }
  void check_refused(const nlohmann::json& changes, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { with(changes); });
    INFO(changes.dump() << ": " << message);
    CHECK(says(message, {(folder_ / "config.json").native()}));
    CHECK(says(message, parts));
  }

 private:
  TransformerConfig read(const nlohmann::json& config) {
    write_text(folder_ / "config.json", config.dump());
    return read_config(folder_.path());
  }

  nlohmann::json base_;
  TempDir folder_;
};

using Ids = std::vector<std::int32_t>;
using Flags = std::vector<bool>;

}  // namespace

TEST_CASE("keys that are missing have the defaults of transformers", "[model]") {
  const TransformerConfig opt = Settings("opt").with();
  CHECK((opt.norm == Norm::layer && opt.epsilon == 1e-5f && !opt.gated && opt.activation == Activation::relu));
  CHECK((opt.tied && opt.qkv_bias && opt.projection_bias && opt.mlp_bias && opt.position_offset == 2));
  CHECK((opt.bos == 2 && opt.eos == Ids{2}));

  const TransformerConfig neox = Settings("gpt_neox").with();
  CHECK((neox.norm == Norm::layer && neox.epsilon == 1e-5f && !neox.gated && neox.activation == Activation::gelu));
  CHECK((!neox.tied && neox.qkv_bias && neox.projection_bias && neox.mlp_bias && neox.parallel));
  CHECK((neox.rotary_base == 10000 && neox.rotary_width == 2 && neox.bos == 0 && neox.eos == Ids{2}));

  const TransformerConfig llama = Settings("llama").with();
  CHECK((llama.norm == Norm::rms && llama.epsilon == 1e-6f && llama.gated && llama.activation == Activation::silu));
  CHECK((!llama.tied && !llama.qkv_bias && !llama.mlp_bias && llama.rotary_base == 10000 && llama.window == 0));
  CHECK((llama.rotary_width == 0 && llama.qk_norm == QkNorm::none && llama.bos == 1 && llama.eos == Ids{2}));
  CHECK(Settings("llama").without("num_key_value_heads").key_heads() == 4);

  const TransformerConfig mistral = Settings("mistral").with();
  CHECK((mistral.window == 4096 && mistral.is_local(0) && mistral.is_local(2) && mistral.epsilon == 1e-6f));
  CHECK((mistral.bos == 1 && mistral.eos == Ids{2} && !mistral.qkv_bias));
  CHECK(says(error_of([] { Settings("mistral").without("num_key_value_heads"); }),
             {"num_attention_heads is 4", "num_key_value_heads, 8"}));
  CHECK(Settings("mistral").with_null("num_key_value_heads").key_heads() == 4);
  CHECK(Settings("mistral").with_null("sliding_window").window == 0);

  const TransformerConfig qwen2 = Settings("qwen2").with();
  CHECK((qwen2.qkv_bias && !qwen2.projection_bias && !qwen2.mlp_bias && qwen2.window == 0 && !qwen2.bos));
  CHECK(qwen2.eos.empty());
  const TransformerConfig qwen3 = Settings("qwen3").with();
  CHECK((qwen3.qk_norm == QkNorm::head && qwen3.head_width() == 128 && !qwen3.qkv_bias && qwen3.window == 0));

  const TransformerConfig olmo = Settings("olmo2").with();
  CHECK((!olmo.norm_before && olmo.norm_after && olmo.qk_norm == QkNorm::width && olmo.epsilon == 1e-5f));
  CHECK((olmo.eos == Ids{50279} && !olmo.bos && !olmo.tied));

  const TransformerConfig gemma = Settings("gemma").with();
  CHECK((gemma.norm_offset == 1 && gemma.tied && gemma.activation == Activation::gelu_tanh && gemma.gated));
  CHECK((gemma.head_width() == 256 && gemma.embedding_scale == std::sqrt(32.0f) && !gemma.norm_after));
  CHECK(Settings("gemma").with({{"hidden_act", "gelu"}}).activation ==
        Activation::gelu_tanh);  // as transformers has it

  const TransformerConfig gemma2 = Settings("gemma2").with();
  CHECK((gemma2.score_cap == 50 && gemma2.logit_cap == 30 && gemma2.norm_before && gemma2.norm_after));
  CHECK((gemma2.window == 4096 && gemma2.local_layers == Flags{true, false, true}));
  CHECK(gemma2.attention_scale == 1.0f / 16);
  CHECK(Settings("gemma2").with_null("final_logit_softcapping").logit_cap == 0);

  TempDir folder;
  write_text(folder / "config.json", R"({"model_type": "gemma3_text"})");
  const TransformerConfig gemma3 = read_config(folder.path());
  CHECK((gemma3.vocab == 262208 && gemma3.positions == 131072 && gemma3.width == 2304 && gemma3.layers == 26));
  CHECK((gemma3.heads == 8 && gemma3.key_heads() == 4 && gemma3.head_width() == 256 && gemma3.inner == 9216));
  CHECK((gemma3.rotary_base == 1e6 && gemma3.local_rotary_base == 1e4 && gemma3.qk_norm == QkNorm::head));
  CHECK((gemma3.is_local(4) && !gemma3.is_local(5) && gemma3.is_local(6) && gemma3.score_cap == 0));
  CHECK((gemma3.bos == 2 && gemma3.eos == Ids{1} && gemma3.tied));
}

TEST_CASE("rotations are read in old and new spellings", "[model]") {
  Settings llama("llama"), gemma("gemma3_text"), neox("gpt_neox"), qwen("qwen2");
  CHECK(llama.with_null("rope_theta").rotary_base == 10000);
  CHECK(llama.with({{"rope_theta", 500}}).rotary_base == 500);
  CHECK(llama.with({{"rope_parameters", {{"rope_theta", 7}}}}).rotary_base == 7);
  CHECK(llama.with({{"rope_theta", 500}, {"rope_scaling", nlohmann::json::object()}}).rotary_base == 500);
  CHECK(llama.with({{"partial_rotary_factor", 0.5}}).rotary_width == 4);
  CHECK(llama.with({{"rope_parameters", {{"partial_rotary_factor", 0.25}}}}).rotary_width == 2);
  const auto linear = llama.with({{"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}}).rotary_scaling;
  CHECK((linear.kind == RotaryScaling::Kind::linear && linear.factor == 2.5));
  const auto llama3 = llama.with({{"rope_scaling",
                                   {{"rope_type", "llama3"},
                                    {"factor", 8},
                                    {"low_freq_factor", 1},
                                    {"high_freq_factor", 4},
                                    {"original_max_position_embeddings", 20}}}});
  CHECK((llama3.rotary_scaling.kind == RotaryScaling::Kind::llama3 && llama3.rotary_scaling.positions == 20));
  CHECK(llama3.positions == 64);
  // YaRN makes the context longer; where no key says how much, it is as long as the file says.
  const auto yarn = [&](nlohmann::json keys) {
    keys["rope_type"] = "yarn";
    return qwen.with({{"rope_scaling", keys}});
  };
  CHECK(yarn({{"factor", 4}}).positions == 256);
  CHECK(yarn({{"factor", 4}, {"original_max_position_embeddings", 16}}).positions == 64);
  CHECK(yarn({{"original_max_position_embeddings", 16}}).rotary_scaling.factor == 4);
  CHECK(yarn({{"factor", 4}}).rotary_scaling.attention_factor == Approx(0.1 * std::log(4) + 1));
  CHECK(yarn({{"factor", 4}, {"attention_factor", 2}}).rotary_scaling.attention_factor == 2);

  CHECK(neox.with({{"rotary_pct", 1.0}, {"rotary_emb_base", 30}}).rotary_width == 0);
  CHECK(neox.with({{"rotary_pct", 1.0}, {"rotary_emb_base", 30}}).rotary_base == 30);
  CHECK(neox.with({{"rope_parameters", {{"partial_rotary_factor", 0.5}, {"rope_theta", 9}}}}).rotary_width == 4);

  const auto old = gemma.with({{"rope_theta", 300},
                               {"rope_local_base_freq", 20},
                               {"sliding_window_pattern", 2},
                               {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8}}}});
  CHECK((old.rotary_base == 300 && old.local_rotary_base == 20 && old.rotary_scaling.factor == 8));
  CHECK(old.local_layers == Flags{true, false, true});
  const auto types = gemma.with({{"layer_types", {"full_attention", "sliding_attention", "full_attention"}}});
  CHECK(types.local_layers == Flags{false, true, false});
  const auto window = qwen.with({{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 2}});
  CHECK((window.window == 9 && window.local_layers == Flags{false, false, true}));
}

TEST_CASE("what no kernel computes is refused by its key", "[model]") {
  Settings llama("llama"), gemma("gemma3_text"), neox("gpt_neox"), opt("opt"), qwen("qwen2");
  Settings("mixtral").check_refused({}, {"model_type is 'mixtral'", "gpt2 or llama or mistral"});
  Settings("qwen3_moe").check_refused({}, {"model_type is 'qwen3_moe'"});
  Settings("gemma3").check_refused({}, {"model_type is 'gemma3'", "gemma3_text"});
  llama.check_refused({{"num_local_experts", 8}}, {"num_local_experts is 8", "mixtures of experts"});
  llama.check_refused({{"num_experts", 2}}, {"num_experts is 2"});
  llama.check_refused({{"text_config", {{"hidden_size", 3}}}}, {"text_config is an object", "only models of text"});
  llama.check_refused({{"vision_config", {{"hidden_size", 3}}}}, {"vision_config is an object"});
  llama.check_refused({{"is_encoder_decoder", true}}, {"is_encoder_decoder is true", "only decoders"});
  gemma.check_refused({{"use_bidirectional_attention", true}}, {"use_bidirectional_attention is true", "causal"});
  CHECK(llama.with({{"num_experts", 0}, {"is_encoder_decoder", false}}).width == 32);
  for (const char* const type : {"dynamic", "longrope", "proportional", "mrope"})
    llama.check_refused({{"rope_scaling", {{"rope_type", type}, {"factor", 2}}}},
                        {"rope_scaling: rope_type is '", type, "default or linear or llama3 or yarn"});
  llama.check_refused({{"rope_scaling", {{"rope_type", "linear"}}}}, {"rope_scaling: factor is missing"});
  llama.check_refused({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0.5}}}}, {"factor is 0.5", "at least 1"});
  llama.check_refused({{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 2}}}}, {"low_freq_factor is missing"});
  llama.check_refused(
      {{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 2}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}}},
      {"high_freq_factor is 4", "above 4"});
  qwen.check_refused({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 1e9}}}}, {"factor is 1000000000.0", "2^20"});
  qwen.check_refused({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}, {"beta_fast", -1}}}},
                     {"beta_fast is -1"});
  llama.check_refused({{"rope_parameters", {{"full_attention", {{"rope_theta", 3}}}}}},
                      {"full_attention is an object", "one rotation"});
  gemma.check_refused({{"rope_parameters", {{"sliding_attention", {{"rope_type", "linear"}, {"factor", 2}}}}}},
                      {"sliding_attention: rope_type is 'linear'", "default"});
  neox.check_refused({{"rotary_pct", 0.9}}, {"rotary_pct is 0.9", "width 8"});
  neox.check_refused({{"rotary_pct", 1.5}}, {"rotary_pct is 1.5", "at most 1"});
  Settings("mistral").check_refused({{"sliding_window", 0}}, {"sliding_window is 0"});
  gemma.check_refused({{"layer_types", {"full_attention"}}}, {"layer_types is an array", "3 strings"});
  gemma.check_refused({{"layer_types", {"full_attention", "chunked_attention", "full_attention"}}},
                      {"layer_types[1] is 'chunked_attention'", "full_attention or sliding_attention"});
  gemma.check_refused({{"query_pre_attn_scalar", 0}}, {"query_pre_attn_scalar is 0"});
  Settings("gemma2").check_refused({{"attn_logit_softcapping", -1}}, {"attn_logit_softcapping is -1"});
  opt.check_refused({{"do_layer_norm_before", false}}, {"do_layer_norm_before is false"});
  opt.check_refused({{"word_embed_proj_dim", 16}}, {"word_embed_proj_dim is 16", "not projected"});
  // Without a type, only a GPT-2 is known by its keys.
  TempDir folder;
  write_text(folder / "config.json", R"({"hidden_size": 32})");
  CHECK(says(error_of([&] { read_config(folder.path()); }), {"model_type is missing", "gpt2 or llama"}));
}

TEST_CASE("configurations that no kernel computes are refused", "[model]") {
  using C = TransformerConfig;
  const auto refused = [](void (*change)(C&), std::initializer_list<std::string_view> parts) {
    C config = preset("smollm2-135m");
    change(config);
    const std::string message = error_of([&] { check(config); });
    INFO(message);
    CHECK(says(message, parts));
  };
  refused([](C& c) { c.rotary_width = 7; }, {"rotary_width is 7", "even"});
  refused([](C& c) { c.rotary_width = 66; }, {"rotary_width is 66", "64"});
  refused([](C& c) { c.local_rotary_base = 0; }, {"rotary_base is 0"});
  refused([](C& c) { c.rotary_scaling = {.kind = RotaryScaling::Kind::linear, .factor = NAN}; }, {"factor", "nan"});
  refused([](C& c) { c.rotary_scaling = {.kind = RotaryScaling::Kind::yarn}; }, {"numbers of the rotation"});
  refused([](C& c) { c.norm = Norm::none; }, {"norm is none", "norm_before"});
  refused([](C& c) { c.norm = Norm::layer, c.norm_after = true; }, {"outputs", "Norm::rms"});
  refused([](C& c) { c.parallel = c.norm_after = true; }, {"parallel"});
  refused([](C& c) { c.position_encoding = PositionEncoding::learned, c.qk_norm = QkNorm::head; }, {"not rotated"});
  refused([](C& c) { c.window = -1; }, {"window is -1"});
  refused([](C& c) { c.local_layers = {true}; }, {"local_layers has 1 flags for 30 layers"});
  refused([](C& c) { c.score_cap = -1; }, {"cap", "-1"});
  refused([](C& c) { c.logit_cap = INFINITY; }, {"cap", "inf"});
  refused([](C& c) { c.norm_offset = NAN; }, {"norm_offset is nan"});
  refused([](C& c) { c.position_offset = -2; }, {"position_offset is -2"});
}

TEST_CASE("weights of families that are missing, unknown or of another shape are named", "[model]") {
  const auto refusal = [](const std::string& name, auto edit) {
    const fs::path from = root / "tests/data/families" / name;
    TempDir to;
    fs::copy_file(from / "config.json", to / "config.json");
    const SafeTensors file = SafeTensors::open(from / "model.safetensors");
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorBytes> tensors;
    for (const StoredTensor& t : file.tensors())
      tensors.push_back({t.name, t.type, t.shape, bytes.emplace_back(file.read(t))});
    edit(tensors);
    write_safetensors(to / "model.safetensors", tensors);
    return error_of([&] { Checkpoint::open(to.path()); });
  };
  const auto without = [](std::string_view name) {
    return [=](std::vector<TensorBytes>& tensors) {
      std::erase_if(tensors, [&](const TensorBytes& t) { return t.name == name; });
    };
  };
  const auto shaped = [](std::string_view name, std::vector<std::uint64_t> shape) {
    return [=](std::vector<TensorBytes>& tensors) {
      for (TensorBytes& t : tensors)
        if (t.name == name) t.shape = shape;
    };
  };
  CHECK(says(refusal("qwen3", without("model.layers.1.self_attn.q_norm.weight")),
             {"missing: layers.1.self_attn.q_norm.weight"}));
  CHECK(says(refusal("qwen3", shaped("model.layers.0.self_attn.k_norm.weight", {3, 4})), {"[3, 4], not [12]"}));
  CHECK(says(refusal("qwen2", without("model.layers.0.self_attn.v_proj.bias")), {"layers.0.self_attn.v_proj.bias"}));
  CHECK(says(refusal("olmo2", without("model.layers.0.post_feedforward_layernorm.weight")),
             {"missing: layers.0.post_feedforward_layernorm.weight"}));
  CHECK(says(refusal("pythia", shaped("gpt_neox.layers.0.attention.query_key_value.weight", {48, 144})),
             {"[48, 144], not [144, 48]"}));
  CHECK(says(refusal("opt", shaped("model.decoder.embed_positions.weight", {64, 33})), {"[64, 33], not [66, 32]"}));
  CHECK(says(refusal(
                 "gemma",
                 [](std::vector<TensorBytes>& tensors) {
    for (TensorBytes& t : tensors)
      if (t.name == "model.norm.weight") t.name = "model.norm.scale";
                 }),
             {"missing: norm.weight", "unknown: 'model.norm.scale'"}));
}

}  // namespace test_family_settings
