#include "tessera/model/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "model/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

constexpr std::int32_t min_token = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t max_token = std::numeric_limits<std::int32_t>::max();

struct Size {
  std::string_view key;
  std::int32_t Gpt2Config::*member;
  std::int32_t most;
};
constexpr Size sizes[] = {
    {"vocab_size", &Gpt2Config::vocab, 1 << 20}, {"n_positions", &Gpt2Config::positions, 1 << 20},
    {"n_embd", &Gpt2Config::width, 1 << 15},     {"n_layer", &Gpt2Config::layers, 1 << 10},
    {"n_head", &Gpt2Config::heads, 1 << 12},     {"n_inner", &Gpt2Config::inner, 1 << 17},
};

std::string integers(std::int32_t least, std::int32_t most) {
  return fmt::format("an integer from {} to {}", least, most);
}

/// A JSON object in a file, read key by key. Each error names file, key, value and what is expected.
class Settings {
 public:
  explicit Settings(const std::filesystem::path& path) : file_(in_quotes(path.native())) {
    const std::string text = read_whole(path, std::size_t{1} << 20);
    // The parser takes NUL for the end of the text, and would ignore everything after it.
    if (const std::size_t at = text.find('\0'); at != text.npos)
      throw Error(fmt::format("{} is not JSON at byte {}", file_, at + 1));
    try {
      values_ = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& e) {
      throw Error(fmt::format("{} is not JSON at byte {}", file_, e.byte));
    } catch (const nlohmann::json::exception&) {  // a number beyond the range of double
      throw Error(fmt::format("{} is not JSON that can be represented", file_));
    }
    if (!values_.is_object()) throw Error(fmt::format("{} is not a JSON object", file_));
  }

  const std::string& file() const { return file_; }
  bool has(std::string_view key) const { return values_.contains(key); }
  bool is(std::string_view key, std::string_view text) const { return has(key) && values_[key] == text; }
  /// Present, and not null.
  bool sets(std::string_view key) const { return has(key) && !values_[key].is_null(); }

  std::int32_t integer(std::string_view key, std::int32_t least, std::int32_t most) const {
    return integer(key, value(key, integers(least, most)), least, most);
  }

  /// One integer or an array of them.
  std::vector<std::int32_t> integers_at(std::string_view key, std::int32_t least, std::int32_t most) const {
    const auto& found = value(key, integers(least, most));
    if (!found.is_array()) return {integer(key, found, least, most)};
    std::vector<std::int32_t> all;
    for (const auto& one : found) all.push_back(integer(key, one, least, most));
    return all;
  }

  double number(std::string_view key) const {
    const auto& found = value(key, "a number");
    if (!found.is_number()) refuse(key, found, "a number");
    return found.get<double>();
  }

  bool boolean(std::string_view key) const {
    const auto& found = value(key, "true or false");
    if (!found.is_boolean()) refuse(key, found, "true or false");
    return found.get<bool>();
  }

  /// Requires a string that is one of `allowed`.
  void require_one_of(std::string_view key, std::initializer_list<std::string_view> allowed) const {
    const std::string expected = fmt::format("{}", fmt::join(allowed, " or "));
    const auto& found = value(key, expected);
    if (!found.is_string() || std::find(allowed.begin(), allowed.end(), found.get<std::string>()) == allowed.end()) {
      refuse(key, found, expected);
    }
  }

  /// True unless it is null, false, the number `off`, or empty.
  bool turns_on(std::string_view key, double off) const {
    if (!sets(key)) return false;
    const auto& found = values_[key];
    if (found.is_boolean()) return found.get<bool>();
    if (found.is_number()) return found.get<double>() != off;
    return found.is_string() || !found.empty();
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const {
    refuse(key, value(key, expected), expected);
  }

 private:
  const nlohmann::json& value(std::string_view key, std::string_view expected) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw Error(fmt::format("{}: {} is missing, it must be {}", file_, key, expected));
    return *found;
  }

  std::int32_t integer(std::string_view key, const nlohmann::json& found, std::int32_t least, std::int32_t most) const {
    // Non-negative integers are read as unsigned, so that no large value wraps around.
    const bool fits = found.is_number_unsigned() ? std::cmp_greater_equal(found.get<std::uint64_t>(), least) &&
                                                       std::cmp_less_equal(found.get<std::uint64_t>(), most)
                                                 : found.is_number_integer() && found.get<std::int64_t>() >= least;
    if (!fits) refuse(key, found, integers(least, most));
    return found.get<std::int32_t>();
  }

  [[noreturn]] void refuse(std::string_view key, const nlohmann::json& found, std::string_view expected) const {
    const std::string shown = found.is_string()       ? in_quotes(found.get<std::string>())
                              : found.is_structured() ? fmt::format("an {}", found.type_name())
                                                      : found.dump();
    throw Error(fmt::format("{}: {} is {}, it must be {}", file_, key, shown, expected));
  }

  std::string file_;
  nlohmann::json values_;
};

/// A key of generation_config.json with which transformers 5.24 would generate a different text, and the number that
/// turns it off; null, false and empty values turn it off, too. Keys that do not affect the text (caches, outputs,
/// assistants) and keys that have no use in a model without an encoder are omitted.
struct IgnoredKey {
  std::string_view key;
  double off = 0;
};
constexpr IgnoredKey ignored_keys[] = {
    {"bad_words_ids"},
    {"begin_suppress_tokens"},
    {"constraints"},
    {"diversity_penalty"},
    {"dola_layers"},
    {"epsilon_cutoff"},
    {"eta_cutoff"},
    {"exponential_decay_length_penalty"},
    {"force_words_ids"},
    {"forced_bos_token_id", -1},
    {"forced_eos_token_id", -1},
    {"guidance_scale", 1},
    {"max_time", -1},
    {"min_length"},
    {"min_new_tokens"},
    {"no_repeat_ngram_size"},
    {"num_beam_groups", 1},
    {"num_beams", 1},
    {"num_return_sequences", 1},
    {"penalty_alpha"},
    {"remove_invalid_values"},
    {"sequence_bias"},
    {"stop_strings"},
    {"suppress_tokens"},
    {"token_healing"},
    {"top_h", -1},
    {"typical_p", 1},
    {"watermarking_config"},
};

Preset gpt2_like(std::string_view name, std::int32_t layers, std::int32_t width, std::int32_t heads) {
  constexpr std::int32_t end_of_text = 50256;
  return {name,
          {.vocab = 50257,
           .positions = 1024,
           .width = width,
           .layers = layers,
           .heads = heads,
           .inner = 4 * width,
           .bos = end_of_text,
           .eos = {end_of_text}}};
}

}  // namespace

void check_vocabulary(std::span<const std::int32_t> ids, const Gpt2Config& config) {
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config.vocab)
      throw Error(fmt::format("token {} is not in the vocabulary, which has 0 to {}", id, config.vocab - 1));
}

void check(const Gpt2Config& config) {
  for (const auto& [key, member, most] : sizes) {
    const std::int32_t value = config.*member;
    if (value < 1 || value > most) throw Error(fmt::format("{} is {}, it must be {}", key, value, integers(1, most)));
  }
  if (config.width % config.heads != 0) {
    throw Error(fmt::format("n_embd is {}, it must be a multiple of n_head, {}", config.width, config.heads));
  }
  if (!(config.epsilon > 0 && config.epsilon < 1)) {
    throw Error(fmt::format("layer_norm_epsilon is {}, it must be between 0 and 1", config.epsilon));
  }
}

Gpt2Config read_config(const std::filesystem::path& folder) {
  const Settings file(folder / "config.json");
  if (file.has("model_type")) file.require_one_of("model_type", {"gpt2"});
  if (file.has("activation_function"))
    file.require_one_of("activation_function", {"gelu_new", "gelu_pytorch_tanh", "gelu"});
  const auto require_flag = [&](std::string_view key, bool required) {
    if (file.has(key) && file.boolean(key) != required) file.refuse(key, required ? "true" : "false");
  };
  require_flag("scale_attn_weights", true);
  require_flag("scale_attn_by_inverse_layer_idx", false);
  require_flag("add_cross_attention", false);

  Gpt2Config config;
  // The other two names mean the same function.
  if (file.is("activation_function", "gelu")) config.gelu = Gelu::exact;
  for (const auto& [key, member, most] : sizes) {
    if (key == "n_inner" && !file.sets(key)) {
      config.inner = 4 * config.width;
    } else {
      const bool by_old_name = key == "n_positions" && !file.has(key) && file.has("n_ctx");
      config.*member = file.integer(by_old_name ? "n_ctx" : key, 1, most);
    }
  }
  if (file.has("layer_norm_epsilon")) {
    const double epsilon = file.number("layer_norm_epsilon");
    if (!(epsilon > 0 && epsilon < 1)) file.refuse("layer_norm_epsilon", "between 0 and 1");
    // A value below the smallest normal f32 matters only for constant rows, whose inverse deviation must stay finite.
    config.epsilon = std::max(static_cast<float>(epsilon), std::numeric_limits<float>::min());
  }
  if (file.sets("bos_token_id")) config.bos = file.integer("bos_token_id", min_token, max_token);
  if (file.sets("eos_token_id")) config.eos = file.integers_at("eos_token_id", min_token, max_token);
  if (file.has("tie_word_embeddings")) config.tied = file.boolean("tie_word_embeddings");
  try {
    check(config);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file.file(), e.what()));
  }
  return config;
}

GenerationDefaults read_generation_config(const std::filesystem::path& folder) {
  const auto path = folder / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found) return {};
  const Settings file(path);
  GenerationDefaults defaults;
  if (file.sets("temperature")) defaults.temperature = file.number("temperature");
  if (file.sets("top_p")) defaults.top_p = file.number("top_p");
  if (file.sets("min_p")) defaults.min_p = file.number("min_p");
  if (file.sets("repetition_penalty")) defaults.repetition_penalty = file.number("repetition_penalty");
  if (file.sets("top_k")) defaults.top_k = file.integer("top_k", 0, max_token);
  if (file.sets("max_new_tokens")) defaults.max_new_tokens = file.integer("max_new_tokens", 0, max_token);
  if (file.sets("max_length")) defaults.max_length = file.integer("max_length", 0, max_token);
  if (file.sets("do_sample")) defaults.do_sample = file.boolean("do_sample");
  if (file.sets("eos_token_id")) defaults.eos = file.integers_at("eos_token_id", min_token, max_token);
  for (const auto& [key, off] : ignored_keys)
    if (file.turns_on(key, off)) defaults.ignored.emplace_back(key);
  return defaults;
}

const std::vector<Preset>& presets() {
  static const auto& all = *new std::vector<Preset>{
      gpt2_like("nano", 3, 48, 3),        gpt2_like("micro", 4, 128, 4),          gpt2_like("mini", 6, 192, 6),
      gpt2_like("gpt2", 12, 768, 12),     gpt2_like("gpt2-medium", 24, 1024, 16), gpt2_like("gpt2-large", 36, 1280, 20),
      gpt2_like("gpt2-xl", 48, 1600, 25), gpt2_like("tile-small", 4, 64, 4),      gpt2_like("tile-medium", 6, 128, 4),
      gpt2_like("tile-large", 8, 256, 8),
  };
  return all;
}

Gpt2Config preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& p : presets()) {
    if (p.name == name) return p.config;
    names.push_back(p.name);
  }
  throw Error(fmt::format("there is no preset {}; the presets are {}", in_quotes(name), fmt::join(names, ", ")));
}

}  // namespace tessera::internal
