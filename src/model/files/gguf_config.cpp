#include "model/files/gguf_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "model/files/input_file.hpp"
#include "model/files/settings.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Config = TransformerConfig;

constexpr std::string_view embedding_name = "token_embd.weight", head_name = "output.weight",
                           rope_factors_name = "rope_freqs.weight";

/// A layer's weights: the endings of their tensors. Gate and up are two tensors, QKV one or three.
struct GgufWeight {
  FamilyNames::Layer::Parts FamilyNames::Layer::*member;
  FamilyNames::Layer::Parts one, several = {};
};
const std::vector<GgufWeight>& gguf_weights() {
  using Layer = FamilyNames::Layer;
  static const auto& all = *new std::vector<GgufWeight>{
      {&Layer::attention_norm, {"attn_norm.weight"}},
      {&Layer::attention_norm_bias, {"attn_norm.bias"}},
      {&Layer::qkv, {"attn_qkv.weight"}, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}},
      {&Layer::qkv_bias, {"attn_qkv.bias"}, {"attn_q.bias", "attn_k.bias", "attn_v.bias"}},
      {&Layer::query_norm, {"attn_q_norm.weight"}},
      {&Layer::key_norm, {"attn_k_norm.weight"}},
      {&Layer::projection, {"attn_output.weight"}},
      {&Layer::projection_bias, {"attn_output.bias"}},
      {&Layer::attention_post_norm, {"post_attention_norm.weight"}},
      {&Layer::mlp_norm, {"ffn_norm.weight"}},
      {&Layer::mlp_norm_bias, {"ffn_norm.bias"}},
      {&Layer::up, {"ffn_up.weight"}, {"ffn_gate.weight", "ffn_up.weight"}},
      {&Layer::up_bias, {"ffn_up.bias"}, {"ffn_gate.bias", "ffn_up.bias"}},
      {&Layer::down, {"ffn_down.weight"}},
      {&Layer::down_bias, {"ffn_down.bias"}},
      {&Layer::mlp_post_norm, {"post_ffw_norm.weight"}},
  };
  return all;
}

/// Tokens that end a turn, by their texts: files often name only one of them.
constexpr std::string_view ends_of_turns[] = {"<|im_end|>",    "<|eot_id|>",    "<|eom_id|>",
                                              "<end_of_turn>", "<|endoftext|>", "<|end|>"};
constexpr std::int64_t control_token = 3;  // tokenizer.ggml.token_type

/// Collects the keys of config.json, and what each is in the file.
class Translation {
 public:
  Translation(const Gguf& file, const FamilyNames& names)
      : file_(file), names_(names), architecture_(std::string(names.gguf.architecture) + ".") {}

  Settings settings() {
    values_["model_type"] = names_.model_type;
    key_names_["model_type"] = "general.architecture";
    read_sizes();
    for (const std::string_view key : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"})
      translate(key, names_.epsilon);
    read_rotary();
    translate("attention.sliding_window", "sliding_window",
              [](const json& value) { return value == 0 ? json() : value; });
    translate("attn_logit_softcapping", "attn_logit_softcapping", off_if_zero);
    translate("final_logit_softcapping", "final_logit_softcapping", off_if_zero);
    translate("attention.causal", "is_causal");
    translate("expert_count", "num_experts");
    translate("use_parallel_residual", "use_parallel_residual");
    values_["attention_bias"] = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
    values_["mlp_bias"] = has("blk.0.ffn_up.bias");
    values_["tie_word_embeddings"] = !has(head_name);
    read_attention_scale();
    refuse_factors();
    read_tokens();
    return {in_quotes(file_.path().native()), std::move(values_), std::move(key_names_)};
  }

 private:
  static json off_if_zero(const json& value) { return value == 0 ? json() : value; }
  bool has(std::string_view tensor) const { return file_.find(tensor) != nullptr; }
  std::string full(std::string_view key) const { return architecture_ + std::string(key); }

  /// The value at a key of the architecture; null if there is none.
  json value(std::string_view key) const {
    const GgufEntry* const found = file_.entry(full(key));
    if (!found) return nullptr;
    return std::visit(
        [](const auto& value) -> json {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, GgufArray>)
            return json::array();  // a value of each layer, which is refused by its type
          else
            return value;
        },
        found->value);
  }
  double number(std::string_view key, double otherwise) const {
    const json found = value(key);
    if (found.is_null()) return otherwise;
    if (!found.is_number()) file_.refuse(full(key), "must be a number");
    return found.get<double>();
  }
  void set(std::string_view name, json value, std::string_view key) {
    values_[std::string(name)] = std::move(value);
    key_names_[std::string(name)] = key;
  }
  void translate(std::string_view key, std::string_view name, json (*change)(const json&) = nullptr) {
    const json found = value(key);
    if (found.is_null() || name.empty()) return;
    set(name, change ? change(found) : found, full(key));
  }

  void read_sizes() {
    const StoredTensor* const embedding = file_.find(embedding_name);
    if (!embedding || embedding->shape.size() != 2)
      throw Error(fmt::format("{} has no tensor {} with 2 extents, the embedding of tokens",
                              in_quotes(file_.path().native()), embedding_name));
    set(names_.key(&Config::vocab), embedding->shape[0], embedding_name);
    for (const auto& [key, member] : gguf_sizes) {
      const std::string_view name = names_.key(member);
      if (!name.empty()) {
        key_names_[std::string(name)] = full(key);
        translate(key, name);
      }
    }
    // Families have defaults of their own for what the file does not say.
    const json heads = value("attention.head_count"), width = value("embedding_length");
    const auto is_size = [](const json& value) { return value.is_number_integer() && value > 0 && value <= 1 << 20; };
    if (!is_size(heads) || !is_size(width)) return;  // refused by name, later
    const std::string_view of_keys = names_.key(&Config::key_value_heads), size = names_.key(&Config::head_size);
    if (!of_keys.empty() && !values_.contains(of_keys)) values_[std::string(of_keys)] = heads;
    if (of_keys.empty() && number("attention.head_count_kv", heads.get<double>()) != heads.get<double>())
      file_.refuse(full("attention.head_count_kv"), fmt::format("must be {}, the number of heads", heads.dump()));
    head_size_ = number("attention.key_length", std::floor(width.get<double>() / heads.get<double>()));
    if (!size.empty() && !values_.contains(size) && width.get<std::int64_t>() % heads.get<std::int64_t>() == 0)
      values_[std::string(size)] = width.get<std::int64_t>() / heads.get<std::int64_t>();
    if (number("attention.value_length", head_size_) != head_size_)
      file_.refuse(full("attention.value_length"), fmt::format("must be {}, the width of a head of keys", head_size_));
  }

  void read_rotary() {
    json scaling = json::object();
    const auto take = [&](std::string_view key, std::string_view name) {
      if (const json found = value(key); !found.is_null()) {
        scaling[std::string(name)] = found;
        key_names_[std::string(name)] = full(key);
      }
    };
    key_names_["rope_scaling"] = full("rope.scaling");
    key_names_["rope_type"] = full("rope.scaling.type");
    take("rope.freq_base", "rope_theta");
    scaling["rope_type"] = "default";
    if (const json type = value("rope.scaling.type"); !type.is_null() && type != "none") {
      scaling["rope_type"] = type;
      take("rope.scaling.factor", "factor");
      take("rope.scaling.original_context_length", "original_max_position_embeddings");
      take("rope.scaling.yarn_beta_fast", "beta_fast");
      take("rope.scaling.yarn_beta_slow", "beta_slow");
      const double factor = number("rope.scaling.factor", 1);
      if (type == "yarn" && factor > 1)
        scaling["attention_factor"] = number("rope.scaling.attn_factor", 1) * (0.1 * std::log(factor) + 1);
    } else if (const double linear = number("rope.scale_linear", 1); linear != 1) {  // in old files
      scaling["rope_type"] = "linear";
      take("rope.scale_linear", "factor");
    }
    if (const double rotated = number("rope.dimension_count", head_size_); rotated != head_size_) {
      // In the middle between two widths: the width is rounded down.
      scaling["partial_rotary_factor"] = (rotated + 0.5) / head_size_;
      key_names_["partial_rotary_factor"] = full("rope.dimension_count");
    }
    if (const StoredTensor* const factors = file_.find(rope_factors_name)) read_factors(*factors, scaling);
    values_["rope_scaling"] = std::move(scaling);
  }

  /// The divisors of frequencies that files of Llama 3.1 and later have, in place of the numbers that lead to them.
  void read_factors(const StoredTensor& stored, json& scaling) {
    constexpr double low = 1, high = 4, positions = 8192;  // of all these models
    std::vector<float> factors(stored.size / sizeof(float));
    const bool fits =
        stored.type == StoredType::f32 && !factors.empty() && static_cast<double>(factors.size()) == head_size_ / 2;
    if (fits) file_.read(stored, std::as_writable_bytes(std::span(factors)));
    const double base = number("rope.freq_base", 10000), most = fits ? *std::ranges::max_element(factors) : 0;
    bool is_llama3 = fits && most >= 1;
    for (std::size_t i = 0; is_llama3 && i < factors.size(); ++i) {
      const double turns =
          positions * std::pow(base, -2 * static_cast<double>(i) / head_size_) / (2 * std::numbers::pi);
      const double part = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      is_llama3 = std::abs(factors[i] * ((1 - part) / most + part) - 1) < 1e-3;
    }
    if (!is_llama3)
      throw Error(
          fmt::format("{}: tensor {} does not have the factors of Llama 3's scaling, which are f32, one for two "
                      "elements of a head; others are not computed",
                      in_quotes(file_.path().native()), rope_factors_name));
    scaling["rope_type"] = "llama3";
    scaling["factor"] = most;
    scaling["low_freq_factor"] = low, scaling["high_freq_factor"] = high;
    scaling["original_max_position_embeddings"] = static_cast<std::int64_t>(positions);
    key_names_["factor"] = rope_factors_name;
  }

  /// Gemma's, which is not in the files: that of a head, but that of the mean head in the models of 27 billion weights.
  void read_attention_scale() {
    const double layers = number("block_count", 0), heads = number("attention.head_count", 1);
    const bool is_largest =
        (names_.family == Family::gemma2 && layers == 46) || (names_.family == Family::gemma3 && layers == 62);
    if (is_largest && heads > 0)
      values_["query_pre_attn_scalar"] = number("embedding_length", 0) / heads;
    else if (head_size_ > 0)
      values_["query_pre_attn_scalar"] = head_size_;
  }

  /// Factors that no family here has.
  void refuse_factors() const {
    for (const std::string_view key : {"attention.scale", "logit_scale", "residual_scale", "embedding_scale",
                                       "attention.clamp_kqv", "attention.max_alibi_bias"})
      if (const double factor = number(key, 0); factor != 0 && factor != 1)
        file_.refuse(full(key), fmt::format("is {}, which is not computed", factor));
  }

  void read_tokens() {
    const auto bos = file_.integer("tokenizer.ggml.bos_token_id");
    set("bos_token_id", bos ? json(*bos) : json(), "tokenizer.ggml.bos_token_id");
    std::vector<std::int64_t> ends;
    const auto add = [&](std::int64_t id) {
      if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
    };
    for (const std::string_view key :
         {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
      if (const auto id = file_.integer(key)) add(*id);
    const auto* const tokens = file_.texts("tokenizer.ggml.tokens");
    const auto types = file_.integers("tokenizer.ggml.token_type");
    if (tokens && types)
      for (std::size_t i = 0; i < std::min(tokens->size(), types->size()); ++i)
        if ((*types)[i] == control_token && std::ranges::find(ends_of_turns, (*tokens)[i]) != std::end(ends_of_turns))
          add(static_cast<std::int64_t>(i));
    set("eos_token_id", ends, "tokenizer.ggml.eos_token_id");
  }

  const Gguf& file_;
  const FamilyNames& names_;
  std::string architecture_;
  double head_size_ = 0;
  json values_ = json::object();
  Settings::KeyNames key_names_;
};

const FamilyNames& family_of(const Gguf& file) {
  constexpr std::string_view key = "general.architecture";
  const std::string* const architecture = file.text(key);
  std::set<std::string_view> known;
  for (const FamilyNames& family : families()) {
    if (family.gguf.architecture.empty()) continue;
    if (architecture && *architecture == family.gguf.architecture) {
      // Mistral's files are Llama's, but for the window of attention.
      const bool has_window = file.integer(*architecture + ".attention.sliding_window").value_or(0) > 0;
      if (family.family != Family::llama || !has_window) return family;
      return names_of(Family::mistral);
    }
    known.insert(family.gguf.architecture);
  }
  file.refuse(key, fmt::format("is {}, it must be {}", architecture ? in_quotes(*architecture) : "missing",
                               fmt::join(known, " or ")));
}

}  // namespace

std::optional<fs::path> gguf_at(const fs::path& path) {
  std::error_code ignored;
  if (is_gguf(path)) return path;
  if (!fs::is_directory(path, ignored) || fs::exists(path / "config.json", ignored)) return std::nullopt;
  std::set<fs::path> found;
  for (const auto& each : fs::directory_iterator(path, ignored)) {
    const std::string name = each.path().filename().native();
    const std::size_t part = name.find("-of-");
    const bool is_later_part = part != name.npos && part >= 6 && name.substr(part - 6, 6) != "-00001";
    if (each.path().extension() == ".gguf" && !is_later_part) found.insert(each.path());
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return *found.begin();
  std::vector<std::string> names;
  for (const fs::path& each : found) names.push_back(in_quotes(each.native()));
  throw Error(
      fmt::format("{} has several models; give one of them: {}", in_quotes(path.native()), fmt::join(names, " or ")));
}

FamilyNames gguf_names(const FamilyNames& family) {
  FamilyNames names = family;
  names.prefix = {};
  names.embedding = embedding_name, names.positions = "position_embd.weight";
  names.last_norm = "output_norm.weight", names.last_norm_bias = "output_norm.bias";
  names.head = head_name;
  names.layer = "blk.{}.";
  names.is_out_in = true, names.qkv_by_head = false;
  names.ignored = {"attn_rot_embd"};
  names.ignored_beside_layers = {rope_factors_name};
  for (const GgufWeight& weight : gguf_weights()) {
    auto& parts = names.weights.*weight.member;
    if (!parts.empty()) parts = parts.size() > 1 ? weight.several : weight.one;
  }
  return names;
}

GgufModel read_gguf_config(const Gguf& file) {
  const FamilyNames& family = family_of(file);
  TransformerConfig config = config_of(Translation(file, family).settings());
  // llama.cpp uses no window of Qwen's either. Another family's model would attend to too many keys.
  const std::string window = fmt::format("{}.attention.sliding_window", family.gguf.architecture);
  if (config.window == 0 && family.family != Family::qwen2 && family.family != Family::qwen3 &&
      file.integer(window).value_or(0) > 0)
    file.refuse(window, fmt::format("is {}, which is not computed for this architecture", *file.integer(window)));
  config.norm_offset = 0;  // it is part of the weights in the file
  if (family.gguf.neighbors) config.rotary_pairs = RotaryPairs::neighbors;
  return {std::move(config), gguf_names(family)};
}

}  // namespace tessera::internal
