// Model folders: what good ones contain, and how each bad one is rejected.
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/session.hpp"

namespace test_checkpoint {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path nano = root / "tests/data/nano-odd";

/// config.json of nano-odd with some keys replaced; "" removes one, other text is JSON.
std::string config_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  auto config = nlohmann::json::parse(read_text(nano / "config.json"));
  for (const auto& [key, text] : changes) {
    if (text.empty()) {
      config.erase(key);
    } else {
      config[key] = nlohmann::json::parse(text);
    }
  }
  return config.dump(2);
}

/// Writes the weights of a folder to another one, changed by `edit`.
void copy_weights(const fs::path& from, const fs::path& to, const auto& edit) {
  const SafeTensors file = SafeTensors::open(from / "model.safetensors");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorBytes> tensors;
  for (const StoredTensor& t : file.tensors())
    tensors.push_back({t.name, t.type, t.shape, bytes.emplace_back(file.read(t))});
  edit(tensors);
  write_safetensors(to / "model.safetensors", tensors);
}

/// A folder in which one file at a time is corrupted.
class ModelFolder {
 public:
  ModelFolder() {
    for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
      fs::copy_file(nano / name, folder_ / name);
    }
  }
  const fs::path& path() const { return folder_.path(); }
  fs::path operator/(std::string_view name) const { return folder_ / name; }

  TransformerConfig config(const std::vector<std::pair<std::string, std::string>>& changes) {
    write_text(folder_ / "config.json", config_with(changes));
    return read_config(path());
  }
  void check_config_refused(const std::vector<std::pair<std::string, std::string>>& changes,
                            std::initializer_list<std::string_view> parts) {
    check_refused([&] { config(changes); }, "config.json", parts);
  }
  GenerationDefaults generation(std::string_view text) {
    write_text(folder_ / "generation_config.json", text);
    return read_generation_config(path());
  }
  void check_generation_refused(std::string_view text, std::initializer_list<std::string_view> parts) {
    check_refused([&] { generation(text); }, "generation_config.json", parts);
  }

  /// Rewrites the weights, changed by `edit`.
  template <class Edit>
  void edit_weights(Edit&& edit) {
    copy_weights(nano, path(), edit);
  }
  void check_open_refused(std::initializer_list<std::string_view> parts, const char* file = "model.safetensors") {
    check_refused([&] { Checkpoint::open(path()); }, file, parts);
  }

 private:
  template <class Action>
  void check_refused(Action&& action, const char* file, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of(action);
    INFO(message);
    CHECK(says(message, parts));
    CHECK(says(message, {(folder_ / file).native()}));
  }

  TempDir folder_;
};

TensorBytes& named(std::vector<TensorBytes>& tensors, std::string_view name) {
  for (TensorBytes& t : tensors) {
    if (t.name == name) return t;
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

std::span<const std::byte> zeros(std::size_t size) {
  static const std::vector<std::byte> all(1 << 20);
  return std::span(all).first(size);
}

}  // namespace

TEST_CASE("config.json of the models at hand", "[model]") {
  const TransformerConfig odd = read_config(nano);
  CHECK(odd.vocab == 101);
  CHECK(odd.positions == 37);
  CHECK(odd.width == 48);
  CHECK(odd.layers == 3);
  CHECK(odd.heads == 3);
  CHECK(odd.head_width() == 16);
  CHECK(odd.inner == 192);
  CHECK(odd.epsilon == 1e-5f);
  CHECK(odd.bos == 0);
  CHECK(odd.eos == std::vector<std::int32_t>{0});
  CHECK(odd.tied);
  CHECK(read_config(root / "tests/data/mini-192").heads == 6);
  CHECK(read_config(root / "samples/models/storyteller-6m").vocab == 4096);
}

TEST_CASE("optional keys of config.json, and alternative spellings", "[model]") {
  ModelFolder folder;
  CHECK(folder.config({{"n_inner", ""}}).inner == 192);
  CHECK(folder.config({{"n_inner", "null"}}).inner == 192);
  CHECK(folder.config({{"n_inner", "100"}}).inner == 100);
  CHECK(folder.config({{"n_positions", ""}, {"n_ctx", "40"}}).positions == 40);
  CHECK(folder.config({{"n_positions", "37"}, {"n_ctx", "40"}}).positions == 37);
  CHECK(folder.config({{"layer_norm_epsilon", ""}}).epsilon == 1e-5f);
  CHECK(folder.config({{"layer_norm_epsilon", "1e-6"}}).epsilon == 1e-6f);
  CHECK(folder.config({{"layer_norm_epsilon", "1e-60"}}).epsilon == std::numeric_limits<float>::min());
  CHECK(folder.config({{"layer_norm_epsilon", "1e-300"}}).epsilon == std::numeric_limits<float>::min());
  using Ids = std::vector<std::int32_t>;
  const TransformerConfig endless = folder.config({{"bos_token_id", "null"}, {"eos_token_id", ""}});
  CHECK_FALSE(endless.bos);
  CHECK(endless.eos.empty());
  CHECK(folder.config({{"eos_token_id", "null"}}).eos.empty());
  CHECK(folder.config({{"eos_token_id", "[]"}}).eos.empty());
  CHECK(folder.config({{"eos_token_id", "100"}}).eos == Ids{100});
  // Tokens outside of the vocabulary, of 101, are ignored.
  CHECK(folder.config({{"eos_token_id", "101"}}).eos == Ids{101});
  CHECK(folder.config({{"eos_token_id", "-1"}}).eos == Ids{-1});
  CHECK(folder.config({{"eos_token_id", "[0, 50256]"}}).eos == Ids{0, 50256});
  CHECK(folder.config({{"bos_token_id", "50256"}}).bos == 50256);
  CHECK(folder.config({{"n_head", "48"}}).head_width() == 1);
  CHECK(folder.config({{"n_embd", "1536"}}).head_width() == 512);
  CHECK(folder.config({{"tie_word_embeddings", ""}}).tied);
  CHECK_FALSE(folder.config({{"tie_word_embeddings", "false"}}).tied);
  CHECK(folder.config({{"model_type", ""}, {"activation_function", ""}, {"scale_attn_weights", ""}}).width == 48);
  CHECK(folder.config({}).activation == Activation::gelu_tanh);
  CHECK(folder.config({{"activation_function", "\"gelu_pytorch_tanh\""}}).activation == Activation::gelu_tanh);
  CHECK(folder.config({{"activation_function", "\"gelu\""}}).activation == Activation::gelu);
  CHECK(folder.config({{"activation_function", "\"relu\""}}).activation == Activation::relu);
  CHECK(folder.config({{"activation_function", "\"swish\""}}).activation == Activation::silu);
  CHECK(folder.config({}).attention_scale == 0);
  CHECK(folder.config({{"scale_attn_weights", "false"}}).attention_scale == 1);
  CHECK_FALSE(folder.config({}).scales_by_layer);
  CHECK(folder.config({{"scale_attn_by_inverse_layer_idx", "true"}}).scales_by_layer);
  CHECK(folder.config({{"reorder_and_upcast_attn", "true"}}).width == 48);
  CHECK(folder.config({{"unknown", R"({"a":[1,2,{"b":null}]})"}}).width == 48);
  CHECK(folder.config({{"vocab_size", "1048576"}}).vocab == 1 << 20);
}

TEST_CASE("bad sizes in config.json are rejected by key and value", "[model]") {
  ModelFolder folder;
  for (const std::string key : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head"}) {
    folder.check_config_refused({{key, ""}}, {key + " is missing", "an integer from 1 to"});
    folder.check_config_refused({{key, "null"}}, {key + " is null"});
  }
  for (const std::string key : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"}) {
    for (const std::string value : {"0", "-1", "2097152", "2147483648", "4294967297", "18446744073709551615",
                                    "-9223372036854775808", "48.0", "1.5", "true"}) {
      folder.check_config_refused({{key, value}}, {key + " is " + value, "an integer from 1 to"});
    }
    folder.check_config_refused({{key, "18446744073709551664"}}, {key + " is 1.8446744073709552e+19"});
    folder.check_config_refused({{key, "\"48\""}}, {key + " is '48'"});
    folder.check_config_refused({{key, "[48]"}}, {key + " is an array"});
    folder.check_config_refused({{key, "{}"}}, {key + " is an object"});
  }
  folder.check_config_refused({{"n_positions", ""}, {"n_ctx", "0"}}, {"n_ctx is 0"});
  folder.check_config_refused({{"n_head", "5"}}, {"n_embd is 48", "multiple of n_head, 5"});
  for (const std::string key : {"bos_token_id", "eos_token_id"}) {
    folder.check_config_refused({{key, "2147483648"}}, {key + " is 2147483648", "an integer"});
    folder.check_config_refused({{key, "-2147483649"}}, {key + " is -2147483649", "an integer"});
    folder.check_config_refused({{key, "1.0"}}, {key + " is 1.0"});
    folder.check_config_refused({{key, "true"}}, {key + " is true"});
    folder.check_config_refused({{key, "\"<|endoftext|>\""}}, {key + " is '<|endoftext|>'"});
    folder.check_config_refused({{key, "[[0]]"}}, {key + " is an array"});
  }
  folder.check_config_refused({{"bos_token_id", "[0]"}}, {"bos_token_id is an array"});
  for (const std::string value : {"0", "-1e-05", "1.0", "1e+300", "null", "false", "[]"}) {
    folder.check_config_refused({{"layer_norm_epsilon", value}}, {"layer_norm_epsilon is"});
  }
}

TEST_CASE("models that need other arithmetic are rejected by name", "[model]") {
  ModelFolder folder;
  folder.check_config_refused({{"model_type", "\"bert\""}}, {"model_type is 'bert'", "gpt2 or llama"});
  folder.check_config_refused({{"model_type", "\"llama\""}}, {"max_position_embeddings is missing"});
  folder.check_config_refused({{"model_type", "null"}}, {"model_type is null"});
  folder.check_config_refused({{"model_type", "2"}}, {"model_type is 2"});
  for (const std::string name : {"gelu_fast", "quick_gelu", "tanh", "", "GELU_NEW"}) {
    folder.check_config_refused({{"activation_function", "\"" + name + "\""}},
                                {"activation_function is '" + name + "'", "gelu_new or gelu_pytorch_tanh or gelu"});
  }
  folder.check_config_refused({{"activation_function", R"("two\nlines")"}}, {"two\\x0alines"});
  folder.check_config_refused({{"activation_function", "null"}}, {"activation_function is null"});
  folder.check_config_refused({{"scale_attn_by_inverse_layer_idx", "1"}}, {"scale_attn_by_inverse_layer_idx is 1"});
  folder.check_config_refused({{"scale_attn_weights", "1"}}, {"scale_attn_weights is 1"});
  folder.check_config_refused({{"add_cross_attention", "true"}}, {"add_cross_attention is true"});
  folder.check_config_refused({{"tie_word_embeddings", "\"yes\""}}, {"tie_word_embeddings is 'yes'"});
}

TEST_CASE("config.json of a Llama", "[model]") {
  const TransformerConfig odd = read_config(root / "tests/data/llama-odd");
  CHECK((odd.family == Family::llama && odd.norm == Norm::rms && odd.position_encoding == PositionEncoding::rotary));
  CHECK((odd.vocab == 101 && odd.positions == 37 && odd.width == 48 && odd.layers == 2 && odd.inner == 100));
  CHECK((odd.heads == 4 && odd.key_heads() == 2 && odd.head_width() == 12 && odd.qkv_width() == 96));
  CHECK((odd.activation == Activation::silu && odd.gated && odd.up_width() == 200 && odd.rotary_base == 500));
  CHECK_FALSE((odd.qkv_bias || odd.projection_bias || odd.mlp_bias || odd.tied));
  CHECK(odd.epsilon == 1e-6f);
  const TransformerConfig biases = read_config(root / "tests/data/llama-biases");
  CHECK((biases.qkv_bias && biases.projection_bias && biases.mlp_bias && biases.tied));
  CHECK((biases.activation == Activation::gelu && biases.head_width() == 16 && biases.query_width() == 64));
  CHECK(parameter_count(biases) ==
        61 * 40 + 40 + 2 * (2 * 40 + 40 * 128 + 128 + 64 * 40 + 40 + 40 * 144 + 144 + 72 * 40 + 40));

  TempDir folder;
  const auto config = nlohmann::json::parse(read_text(root / "tests/data/llama-odd/config.json"));
  const auto with = [&](std::string_view key, const nlohmann::json& value) {
    auto changed = config;
    if (value.is_discarded())
      changed.erase(std::string(key));
    else
      changed[std::string(key)] = value;
    write_text(folder.path() / "config.json", changed.dump());
    return read_config(folder.path());
  };
  const nlohmann::json absent(nlohmann::json::value_t::discarded);
  CHECK(with("rope_parameters", absent).rotary_base == 10000);
  CHECK(with("rope_theta", 7).rotary_base == 500);  // the object counts
  CHECK(with("head_dim", nullptr).head_width() == 12);
  CHECK(with("num_key_value_heads", absent).key_heads() == 4);
  CHECK(with("rms_norm_eps", absent).epsilon == 1e-6f);
  const auto refused =
      [&](std::string_view key, const nlohmann::json& value, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { with(key, value); });
    INFO(message);
    CHECK(says(message, {(folder.path() / "config.json").native()}));
    CHECK(says(message, parts));
  };
  refused("hidden_size", absent, {"hidden_size is missing"});
  refused("intermediate_size", absent, {"intermediate_size is missing"});
  refused("num_key_value_heads", 3, {"num_attention_heads is 4", "multiple of num_key_value_heads, 3"});
  refused("num_key_value_heads", 0, {"num_key_value_heads is 0", "an integer from 1"});
  refused("head_dim", 13, {"head_dim is 13", "even"});
  refused("hidden_act", "mish", {"hidden_act is 'mish'", "silu"});
  refused("rms_norm_eps", 0, {"rms_norm_eps is 0"});
  refused("attention_bias", 1, {"attention_bias is 1", "true or false"});
  refused("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}},
          {"rope_scaling: rope_type is 'dynamic'", "default or linear or llama3 or yarn"});
  refused("rope_parameters", {{"rope_theta", -1}}, {"rope_parameters: rope_theta is -1"});
  refused("rope_parameters", 3, {"rope_parameters is 3", "an object"});
  CHECK(with("rope_scaling", {{"rope_theta", 100}}).rotary_base == 100);  // the older name counts
  refused("is_causal", false, {"is_causal is false", "true"});
  refused("quantization_config", {{"quant_method", "fp8"}}, {"quantization_config is an object", "null"});
  refused("rope_theta", "big", {"rope_theta is 'big'", "a number"});
}

TEST_CASE("weights of a Llama are found by its names, in parts", "[model]") {
  const fs::path stored = root / "tests/data/llama-odd";
  const Checkpoint model = Checkpoint::open(stored);
  CHECK(model.is_out_in);
  CHECK((model.positions.tensor == nullptr && model.last_norm_bias == nullptr && model.head != model.embedding));
  const Checkpoint::Layer& layer = model.layers.at(1);
  REQUIRE((layer.qkv.size() == 3 && layer.up.size() == 2));
  CHECK(layer.qkv[1]->name == "model.layers.1.self_attn.k_proj.weight");
  CHECK(layer.qkv[1]->shape == std::vector<std::uint64_t>{24, 48});
  CHECK(layer.up[0]->name == "model.layers.1.mlp.gate_proj.weight");
  CHECK((layer.qkv_bias.empty() && layer.attention_norm_bias.empty()));

  TempDir folder;
  fs::copy_file(stored / "config.json", folder.path() / "config.json");
  const auto refusal = [&](auto edit) {
    copy_weights(stored, folder.path(), edit);
    return error_of([&] { Checkpoint::open(folder.path()); });
  };
  const std::string layer_0 = "model.layers.0.";
  CHECK(says(refusal([&](auto& t) {
               std::erase_if(t, [&](const auto& one) { return one.name == layer_0 + "mlp.up_proj.weight"; });
             }),
             {"missing: layers.0.mlp.up_proj.weight"}));
  CHECK(says(refusal([&](auto& t) {
               named(t, layer_0 + "self_attn.k_proj.weight").shape = {48, 24};
             }),
             {"layers.0.self_attn.k_proj.weight [48, 24], not [24, 48]"}));
  CHECK(says(refusal([&](auto& t) {
               t.push_back({layer_0 + "self_attn.q_proj.bias", StoredType::f32, {48}, zeros(4 * 48)});
             }),
             {"unknown: 'model.layers.0.self_attn.q_proj.bias'"}));
  CHECK(refusal([&](auto& t) {
          t.push_back({layer_0 + "self_attn.rotary_emb.inv_freq", StoredType::f32, {6}, zeros(4 * 6)});
        }) == "(no error)");
}

TEST_CASE("an invalid config.json is rejected", "[model]") {
  ModelFolder folder;
  const auto refused = [&](std::string_view text, std::string_view reason) {
    write_text(folder / "config.json", text);
    const std::string message = error_of([&] { read_config(folder.path()); });
    INFO(message);
    CHECK(says(message, {(folder / "config.json").native(), reason}));
  };
  refused("", "empty");
  refused("{", "not JSON at byte");
  refused("{\"n_embd\": 48,}", "not JSON at byte 15");
  refused("{\"n_embd\": NaN}", "not JSON at byte");
  refused("{\"n_embd\": \"\xff\"}", "not JSON at byte");
  refused("{\"n_embd\": 1e999}", "not JSON");
  refused(std::string("{}\0garbage", 10), "not JSON at byte 3");
  refused(std::string("{}\0", 3), "not JSON at byte 3");
  refused("[]", "not a JSON object");
  refused("null", "not a JSON object");
  refused("<!DOCTYPE html>", "not JSON at byte 1");
  refused("version https://git-lfs.github.com/spec/v1\n", "not JSON at byte 1");
  refused(std::string(1 << 20, '['), "not JSON at byte");
  refused("{\"a\":\"" + std::string(1 << 20, 'x') + "\"}", "more than the limit of 1048576 bytes");
  fs::remove(folder / "config.json");
  const std::string missing = error_of([&] { read_config(folder.path()); });
  CHECK(says(missing, {(folder / "config.json").native(), "No such file"}));
}

TEST_CASE("check() covers configurations that were never in a file", "[model]") {
  const auto refused = [](auto change, std::initializer_list<std::string_view> parts) {
    TransformerConfig config = preset("nano");
    change(config);
    const std::string message = error_of([&] { check(config); });
    INFO(message);
    CHECK(says(message, parts));
  };
  using C = TransformerConfig;
  refused([](C& c) { c = {}; }, {"vocab_size is 0"});
  refused([](C& c) { c.vocab = 1 << 21; }, {"vocab_size is 2097152", "from 1 to 1048576"});
  refused([](C& c) { c.positions = -1; }, {"n_positions is -1"});
  refused([](C& c) { c.width = 50; }, {"n_embd is 50", "n_head, 3"});
  refused([](C& c) { c.layers = 0; }, {"n_layer is 0"});
  refused([](C& c) { c.heads = 0; }, {"n_head is 0"});
  refused([](C& c) { c.inner = 0; }, {"n_inner is 0"});
  refused([](C& c) { c.epsilon = 0; }, {"layer_norm_epsilon is 0"});
  refused([](C& c) { c.key_value_heads = 2; }, {"n_head is 3", "multiple of key_value_heads, 2"});
  refused([](C& c) { c.key_value_heads = 6; }, {"multiple of key_value_heads, 6"});
  refused([](C& c) { c.position_encoding = PositionEncoding::rotary, c.head_size = 7; }, {"head_size is 7", "even"});
  refused([](C& c) { c.rotary_base = 1; }, {"rotary_base is 1", "above 1"});
  refused([](C& c) { c.rotary_base = std::numeric_limits<double>::quiet_NaN(); }, {"rotary_base is nan"});
  refused([](C& c) { c.attention_scale = std::numeric_limits<float>::infinity(); }, {"attention_scale is inf"});
  refused([](C& c) { c.attention_scale = -1; }, {"attention_scale is -1", "at least 0"});
  refused([](C& c) { c.head_size = 1 << 20; }, {"head_size is 1048576", "an integer from 1 to 4096"});
  refused([](C& c) { c.key_value_heads = -1; }, {"key_value_heads is -1"});
  CHECK(error_of([] { parameter_count(TransformerConfig()); }).find("vocab_size is 0") != std::string::npos);
  refused([](C& c) { c.embedding_scale = std::numeric_limits<float>::quiet_NaN(); }, {"embedding_scale is nan"});
  refused([](C& c) { c.epsilon = std::numeric_limits<float>::quiet_NaN(); }, {"layer_norm_epsilon is nan"});
}

TEST_CASE("every preset is a valid configuration", "[model]") {
  CHECK(presets().size() == 12);
  for (const Preset& p : presets()) {
    INFO(p.name);
    CHECK(error_of([&] { check(p.config); }) == "(no error)");
    CHECK(preset(p.name).width == p.config.width);
    if (p.config.family == Family::llama) continue;
    CHECK(p.config.vocab == 50257);
    CHECK(p.config.positions == 1024);
    CHECK(p.config.inner == 4 * p.config.width);
  }
  CHECK(preset("nano").head_width() == 16);
  CHECK(preset("gpt2").layers == 12);
  CHECK(preset("gpt2-medium").heads == 16);
  CHECK(preset("gpt2-large").width == 1280);
  CHECK(preset("gpt2-xl").head_width() == 64);
  CHECK(preset("tile-large").layers == 8);
  CHECK(parameter_count(preset("smollm2-135m")) == 134515008);  // as transformers counts them
  CHECK(parameter_count(preset("smollm2-360m")) == 361821120);
  CHECK(parameter_count(preset("gpt2")) == 124439808);
  const std::string message = error_of([] { preset("gpt3"); });
  CHECK(says(
      message,
      {"'gpt3'", "nano, micro, mini, gpt2, gpt2-medium, gpt2-large, gpt2-xl, tile-small, tile-medium, tile-large"}));
}

TEST_CASE("generation_config.json is optional, its values are checked", "[model]") {
  ModelFolder folder;
  CHECK(read_generation_config(nano).eos == std::vector<std::int32_t>{0});
  const GenerationDefaults all = folder.generation(
      R"({"temperature":0.7,"top_p":1,"min_p":0.1,"repetition_penalty":1.1,"top_k":50,"do_sample":true,"eos_token_id":[5,7],"max_new_tokens":9,"max_length":0,"x":{}})");
  CHECK(all.temperature == 0.7);
  CHECK(all.top_p == 1.0);
  CHECK(all.min_p == 0.1);
  CHECK(all.repetition_penalty == 1.1);
  CHECK(all.top_k == 50);
  CHECK(all.do_sample == true);
  CHECK(all.eos == std::vector<std::int32_t>{5, 7});
  CHECK(all.max_new_tokens == 9);
  CHECK(all.max_length == 0);
  CHECK(all.ignored.empty());
  const GenerationDefaults none = folder.generation(R"({"temperature":null,"eos_token_id":null})");
  CHECK_FALSE(none.temperature);
  CHECK_FALSE(none.top_k);
  CHECK_FALSE(none.do_sample);
  CHECK(none.eos.empty());
  CHECK(folder.generation(R"({"eos_token_id":[]})").eos.empty());
  CHECK(folder.generation(R"({"eos_token_id":[101,-7]})").eos == std::vector<std::int32_t>{101, -7});

  for (const std::string key : {"temperature", "top_p", "min_p", "repetition_penalty"}) {
    folder.check_generation_refused("{\"" + key + "\":\"0.7\"}", {key + " is '0.7'", "a number"});
    folder.check_generation_refused("{\"" + key + "\":true}", {key + " is true"});
  }
  folder.check_generation_refused(R"({"top_k":1.5})", {"top_k is 1.5", "an integer"});
  folder.check_generation_refused(R"({"top_k":-1})", {"top_k is -1"});
  folder.check_generation_refused(R"({"top_k":2147483648})", {"top_k is 2147483648"});
  folder.check_generation_refused(R"({"do_sample":1})", {"do_sample is 1", "true or false"});
  folder.check_generation_refused(R"({"eos_token_id":"x"})", {"eos_token_id is 'x'"});
  folder.check_generation_refused(R"({"max_new_tokens":-1})", {"max_new_tokens is -1", "an integer"});
  folder.check_generation_refused(R"({"max_length":"20"})", {"max_length is '20'"});
  folder.check_generation_refused(R"({"eos_token_id":[[5]]})", {"eos_token_id is an array"});
  folder.check_generation_refused(R"({"eos_token_id":4294967296})", {"eos_token_id is 4294967296"});
  folder.check_generation_refused("[]", {"not a JSON object"});
  folder.check_generation_refused("x", {"not JSON at byte 1"});

  fs::remove(folder / "generation_config.json");
  CHECK_FALSE(read_generation_config(folder.path()).temperature);
  CHECK(error_of([&] { Checkpoint::open(folder.path()); }) == "(no error)");
  fs::create_directory(folder / "generation_config.json");
  CHECK(says(error_of([&] { read_generation_config(folder.path()); }), {"generation_config.json", "folder"}));
}

TEST_CASE("unsupported keys of generation_config.json are reported by name, unless they are off", "[model]") {
  ModelFolder folder;
  using Keys = std::vector<std::string>;
  CHECK(folder
            .generation(R"({"no_repeat_ngram_size":3,"num_beams":4,"bad_words_ids":[[5]],"suppress_tokens":[1,2],
      "typical_p":0.9,"stop_strings":"x","guidance_scale":1.5,"remove_invalid_values":true,"forced_eos_token_id":0,
      "max_time":0,"sequence_bias":[[[1],2.0]]})")
            .ignored == Keys{"bad_words_ids", "forced_eos_token_id", "guidance_scale", "max_time",
                             "no_repeat_ngram_size", "num_beams", "remove_invalid_values", "sequence_bias",
                             "stop_strings", "suppress_tokens", "typical_p"});
  CHECK(folder
            .generation(R"({"no_repeat_ngram_size":0,"num_beams":1,"bad_words_ids":null,"suppress_tokens":[],
      "typical_p":1.0,"guidance_scale":1,"remove_invalid_values":false,"forced_eos_token_id":null,"min_length":0,
      "use_cache":true,"pad_token_id":5,"_from_model_config":true,"transformers_version":"5.24.0"})")
            .ignored.empty());
}

TEST_CASE("the available checkpoints open", "[model]") {
  const char* folder = GENERATE("tests/data/nano-odd", "tests/data/mini-192", "samples/models/storyteller-6m");
  const Checkpoint model = Checkpoint::open(root / folder);
  const auto width = static_cast<std::uint64_t>(model.config.width), inner = 4 * width;
  using Shape = std::vector<std::uint64_t>;
  CHECK(model.layers.size() == static_cast<std::size_t>(model.config.layers));
  CHECK(model.embedding->shape == Shape{static_cast<std::uint64_t>(model.config.vocab), width});
  CHECK(model.positions->shape == Shape{static_cast<std::uint64_t>(model.config.positions), width});
  CHECK(model.head == model.embedding);
  CHECK(model.last_norm->name == "transformer.ln_f.weight");
  CHECK(model.last_norm_bias->name == "transformer.ln_f.bias");
  int i = 0;
  for (const Checkpoint::Layer& layer : model.layers) {
    const std::string h = "transformer.h." + std::to_string(i++) + ".";
    const auto check = [&](const StoredTensor* t, const char* name, const Shape& shape) {
      REQUIRE(t);
      CHECK(t->name == h + name);
      CHECK(t->shape == shape);
    };
    check(layer.attention_norm.at(0).tensor, "ln_1.weight", {width});
    check(layer.attention_norm_bias.at(0).tensor, "ln_1.bias", {width});
    check(layer.qkv.at(0).tensor, "attn.c_attn.weight", {width, 3 * width});
    check(layer.qkv_bias.at(0).tensor, "attn.c_attn.bias", {3 * width});
    check(layer.projection.at(0).tensor, "attn.c_proj.weight", {width, width});
    check(layer.projection_bias.at(0).tensor, "attn.c_proj.bias", {width});
    check(layer.mlp_norm.at(0).tensor, "ln_2.weight", {width});
    check(layer.mlp_norm_bias.at(0).tensor, "ln_2.bias", {width});
    check(layer.up.at(0).tensor, "mlp.c_fc.weight", {width, inner});
    check(layer.up_bias.at(0).tensor, "mlp.c_fc.bias", {inner});
    check(layer.down.at(0).tensor, "mlp.c_proj.weight", {inner, width});
    check(layer.down_bias.at(0).tensor, "mlp.c_proj.bias", {width});
  }
  const Checkpoint copy = model;  // points into the same file
  CHECK(copy.layers.at(0).up_bias == model.layers.at(0).up_bias);
}

TEST_CASE("names with and without prefix are found, old masks are ignored", "[model]") {
  ModelFolder folder;
  folder.edit_weights([](auto& tensors) {
    for (TensorBytes& t : tensors) t.name = t.name.substr(std::strlen("transformer."));
    tensors.push_back({"h.0.attn.bias", StoredType::boolean, {1, 1, 37, 37}, zeros(37 * 37)});
    tensors.push_back({"transformer.h.11.attn.masked_bias", StoredType::f32, {}, zeros(4)});
  });
  const Checkpoint bare = Checkpoint::open(folder.path());
  CHECK(bare.embedding->name == "wte.weight");
  CHECK(bare.layers.at(2).down_bias.at(0)->name == "h.2.mlp.c_proj.bias");
  CHECK(bare.head == bare.embedding);

  folder.edit_weights([](auto& tensors) {
    tensors.push_back({"lm_head.weight", StoredType::bf16, {101, 48}, zeros(2 * 101 * 48)});
  });
  const Checkpoint headed = Checkpoint::open(folder.path());
  CHECK(headed.head->name == "lm_head.weight");
  CHECK(headed.head->type == StoredType::bf16);
  CHECK(headed.embedding->type == StoredType::f32);
}

TEST_CASE("an untied model without a head is tied, and a warning says so", "[model]") {
  ModelFolder folder;
  folder.config({{"tie_word_embeddings", "false"}});
  const std::string warning = stderr_of([&] {
    const Checkpoint model = Checkpoint::open(folder.path());
    CHECK(model.config.tied);
    CHECK(model.head == model.embedding);
  });
  CHECK(says(warning.substr(0, warning.find('\n')), {"tie_word_embeddings is false", "no lm_head.weight"}));
  folder.edit_weights([](auto& tensors) { named(tensors, "transformer.wte.weight").name = "lm_head.weight"; });
  folder.check_open_refused({"missing: wte.weight"});
}

TEST_CASE("one message names all weights that are wrong", "[model]") {
  ModelFolder folder;
  folder.edit_weights([](auto& tensors) {
    std::erase_if(tensors, [](const TensorBytes& t) { return t.name == "transformer.h.1.ln_1.bias"; });
    named(tensors, "transformer.wpe.weight").shape = {48, 37};
    tensors.push_back({"lm_head.weight", StoredType::f16, {48, 101}, zeros(2 * 101 * 48)});
    tensors.push_back({"transformer.h.3.ln_1.bias", StoredType::f32, {48}, zeros(4 * 48)});
    tensors.push_back({"h.x.attn.bias", StoredType::f32, {}, zeros(4)});
    tensors.push_back({"two\nlines", StoredType::f32, {}, zeros(4)});
    TensorBytes& t = named(tensors, "transformer.ln_f.bias");
    t = {t.name, StoredType::i32, {48}, t.bytes};
  });
  folder.check_open_refused({"missing: h.1.ln_1.bias;", "'transformer.h.3.ln_1.bias'", "'h.x.attn.bias'",
                             "'two\\x0alines'", "transformer.wpe.weight [48, 37], not [37, 48]",
                             "lm_head.weight [48, 101], not [101, 48]",
                             "F32, F16 and BF16: transformer.ln_f.bias I32"});
}

TEST_CASE("a weight under both spellings is rejected", "[model]") {
  ModelFolder folder;
  folder.edit_weights([](auto& tensors) {
    tensors.push_back(named(tensors, "transformer.wte.weight"));
    tensors.back().name = "wte.weight";
  });
  folder.check_open_refused({"unknown: 'wte.weight'"});
}

TEST_CASE("other element types are rejected by name", "[model]") {
  ModelFolder folder;
  const auto type = GENERATE(StoredType::f64, StoredType::i8, StoredType::f8_e4m3, StoredType::boolean);
  folder.edit_weights([&](auto& tensors) {
    TensorBytes& t = named(tensors, "transformer.h.0.ln_1.weight");
    t = {t.name, type, {48}, zeros(static_cast<std::size_t>(48 * bits(type) / 8))};
  });
  folder.check_open_refused({"transformer.h.0.ln_1.weight " + std::string(name(type))});
}

TEST_CASE("long lists are cut", "[model]") {
  ModelFolder folder;
  folder.config({{"n_layer", "1024"}});
  folder.check_open_refused({"missing: h.3.ln_1.weight", "h.3.ln_2.bias and 12244 more"});
  folder.config({{"n_embd", "96"}});
  folder.check_open_refused({"of the wrong shape: transformer.wte.weight [101, 48], not [101, 96]", " more"});
}

TEST_CASE("the message for a folder that is no model describes a model", "[model]") {
  const TempDir folder;
  const auto refused = [](const fs::path& path, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { Checkpoint::open(path); });
    INFO(message);
    CHECK(says(message, parts));
  };
  const std::string_view what = "a folder with config.json, model.safetensors, vocab.json and merges.txt";
  refused("", {"''", "no such folder", what});
  refused(folder / "missing", {(folder / "missing").native(), "no such folder", what});
  refused(nano / "model.safetensors", {"model.safetensors' is a file", what});
  refused(folder.path(), {(folder / "config.json").native(), "no such file", what});
  fs::copy_file(nano / "config.json", folder / "config.json");
  refused(folder.path(), {(folder / "model.safetensors").native(), "no such file", what});
  write_text(folder / "pytorch_model.bin", "PK");
  refused(folder.path(), {"model.safetensors", "pytorch_model.bin; convert"});
  fs::create_symlink("nowhere", folder / "model.safetensors");
  refused(folder.path(), {"model.safetensors", "no such file", "it is a broken link"});
  fs::remove(folder / "model.safetensors");
  write_text(folder / "model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
  refused(folder.path(), {"model.safetensors' holds no weights"});
  write_text(folder / "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  refused(folder.path(), {"model.safetensors", "git lfs pull"});
  fs::remove(folder / "model.safetensors");
  fs::create_directory(folder / "model.safetensors");
  refused(folder.path(), {"model.safetensors", "folder"});
}

TEST_CASE("a truncated download is reported with the missing bytes", "[model]") {
  ModelFolder folder;
  const auto size = fs::file_size(folder / "model.safetensors");
  fs::resize_file(folder / "model.safetensors", size - 1000);
  folder.check_open_refused({"1000 bytes are missing"});
}

TEST_CASE("a file that is shortened while it is read is an error, and has no effect afterward", "[model]") {
  ModelFolder folder;
  const fs::path weights = folder / "model.safetensors";
  const auto size = fs::file_size(weights);
  const Device device = Device::cpu();
  const std::vector<std::vector<std::int32_t>> text{{1, 2, 3}};
  const auto logits = [&](const Model& model) {
    Session session(model, 1, 8);
    session.append(text);
    return session.logits();
  };
  const std::vector<float> expected = logits(Model(device, Checkpoint::open(nano)));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const Model before(device, checkpoint);
  for (const std::uintmax_t left : {size - 1, size / 2, std::uintmax_t{0}}) {
    fs::resize_file(weights, left);
    const std::string message = error_of([&] { Model(device, checkpoint); });
    INFO(message);
    CHECK(says(message, {weights.native(), "truncated"}));
    CHECK(logits(before) == expected);
  }
  // Another file at its path is not the opened one.
  fs::copy_file(nano / "model.safetensors", folder / "new");
  fs::remove(weights);
  fs::copy_file(nano / "model.safetensors", weights);
  const Checkpoint again = Checkpoint::open(folder.path());
  write_text(folder / "new", "nothing");
  fs::rename(folder / "new", weights);
  CHECK(logits(Model(device, again)) == expected);
}

TEST_CASE("settings and weights too large to be meant are rejected unread", "[model]") {
  ModelFolder folder;
  for (const char* name : {"config.json", "generation_config.json"}) {
    const std::string before = read_text(folder / name);
    fs::resize_file(folder / name, std::uintmax_t{1} << 33);  // sparse
    folder.check_open_refused({"8589934592 bytes", "more than the limit of 1048576 bytes"}, name);
    write_text(folder / name, before);
  }
  fs::resize_file(folder / "model.safetensors", std::uintmax_t{1} << 42);
  folder.check_open_refused({"belong to no tensor"});
  // A file as large as its header says, with weights that the model does not have.
  std::string header = R"({"wte.weight":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}})";
  const std::uint64_t size = header.size();
  write_text(folder / "model.safetensors", std::string(reinterpret_cast<const char*>(&size), sizeof size) + header);
  fs::resize_file(folder / "model.safetensors", 8 + size + (std::uintmax_t{1} << 42));
  folder.check_open_refused({"of the wrong shape: wte.weight [1099511627776]"});
}

}  // namespace test_checkpoint
