#include "tessera/model/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "model/files/families.hpp"
#include "model/files/family_settings.hpp"
#include "model/files/input_file.hpp"
#include "model/files/settings.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

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

struct Limit {
  std::string_view name;  // if the family has no key
  std::int32_t TransformerConfig::*member;
  std::int32_t least, most;
};
constexpr Limit limits[] = {
    {"vocab", &TransformerConfig::vocab, 1, 1 << 20},
    {"positions", &TransformerConfig::positions, 1, 1 << 20},
    {"width", &TransformerConfig::width, 1, 1 << 15},
    {"layers", &TransformerConfig::layers, 1, 1 << 10},
    {"heads", &TransformerConfig::heads, 1, 1 << 12},
    {"inner", &TransformerConfig::inner, 1, 1 << 17},
    {"key_value_heads", &TransformerConfig::key_value_heads, 0, 1 << 12},
    {"head_size", &TransformerConfig::head_size, 0, 1 << 12},
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

Preset smollm2(std::string_view name, std::int32_t layers, std::int32_t width, std::int32_t heads, std::int32_t keys,
               std::int32_t inner) {
  return {name,
          {.family = Family::llama,
           .vocab = 49152,
           .positions = 8192,
           .width = width,
           .layers = layers,
           .heads = heads,
           .inner = inner,
           .key_value_heads = keys,
           .norm = Norm::rms,
           .position_encoding = PositionEncoding::rotary,
           .rotary_base = 100000,
           .activation = Activation::silu,
           .gated = true,
           .qkv_bias = false,
           .projection_bias = false,
           .mlp_bias = false,
           .bos = 0,
           .eos = {0}}};
}

}  // namespace

void check_vocabulary(std::span<const std::int32_t> ids, const TransformerConfig& config) {
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config.vocab)
      throw Error(fmt::format("token {} is not in the vocabulary, which has 0 to {}", id, config.vocab - 1));
}

namespace {

constexpr std::int32_t most_position_offset = 1 << 10;

void check(const RotaryScaling& scaling) {
  const auto is_positive = [](double number) { return std::isfinite(number) && number > 0; };
  if (scaling.kind == RotaryScaling::Kind::none) return;
  if (!(std::isfinite(scaling.factor) && scaling.factor >= 1))
    throw Error(fmt::format("the factor of the rotation's scaling is {}, it must be at least 1", scaling.factor));
  if (!is_positive(scaling.positions) || !is_positive(scaling.low_frequency) ||
      !(scaling.high_frequency > scaling.low_frequency) || !is_positive(scaling.beta_fast) ||
      !is_positive(scaling.beta_slow) || !is_positive(scaling.attention_factor))
    throw Error("the numbers of the rotation's scaling must be above 0, and high_frequency above low_frequency");
}

}  // namespace

void check(const TransformerConfig& config) {
  const FamilyNames& names = names_of(config.family);
  const auto key = [&](std::int32_t TransformerConfig::*member, std::string_view otherwise) {
    const std::string_view found = names.key(member);
    return found.empty() ? otherwise : found;
  };
  for (const auto& [name, member, least, most] : limits)
    if (const std::int32_t value = config.*member; value < least || value > most)
      throw Error(fmt::format("{} is {}, it must be {}", key(member, name), value, integers(1, most)));
  const std::string_view heads = names.key(&TransformerConfig::heads);
  if (config.head_size == 0 && config.width % config.heads != 0) {
    throw Error(fmt::format("{} is {}, it must be a multiple of {}, {}", names.key(&TransformerConfig::width),
                            config.width, heads, config.heads));
  }
  if (config.heads % config.key_heads() != 0) {
    throw Error(fmt::format("{} is {}, it must be a multiple of {}, {}", heads, config.heads,
                            key(&TransformerConfig::key_value_heads, "key_value_heads"), config.key_heads()));
  }
  if (config.is_rotary() && config.head_width() % 2 != 0) {
    throw Error(fmt::format("{} is {}, it must be even for rotary positions",
                            key(&TransformerConfig::head_size, "head_size"), config.head_width()));
  }
  if (!(config.epsilon > 0 && config.epsilon < 1)) {
    throw Error(fmt::format("{} is {}, it must be between 0 and 1", names.epsilon, config.epsilon));
  }
  for (const double base : {config.rotary_base, config.local_rotary_base.value_or(10000)})
    if (!(base > 1 && base < most_rotary_base))
      throw Error(fmt::format("rotary_base is {}, it must be above 1 and below {:.0e}", base, most_rotary_base));
  if (config.rotary_width < 0 || config.rotary_width > config.head_width() || config.rotary_width % 2 != 0)
    throw Error(fmt::format("rotary_width is {}, it must be even, and at most the width of a head, {}",
                            config.rotary_width, config.head_width()));
  check(config.rotary_scaling);
  if (config.qk_norm != QkNorm::none && !config.is_rotary())
    throw Error("queries and keys are normalized, but not rotated: no kernel does one without the other");
  if (config.norm == Norm::none) throw Error("norm is none; to leave out those of inputs, set norm_before to false");
  if (config.norm_after && config.norm != Norm::rms) throw Error("outputs are normalized, but not by Norm::rms");
  if (config.parallel && config.norm_after)
    throw Error("attention and the MLP are parallel, but their outputs are normalized: no kernel adds up both");
  if (config.window < 0) throw Error(fmt::format("window is {}, it must be at least 0", config.window));
  if (!config.local_layers.empty() && std::cmp_not_equal(config.local_layers.size(), config.layers))
    throw Error(fmt::format("local_layers has {} flags for {} layers", config.local_layers.size(), config.layers));
  for (const float cap : {config.score_cap, config.logit_cap})
    if (!(std::isfinite(cap) && cap >= 0))
      throw Error(fmt::format("a cap of scores or logits is {}, it must be at least 0", cap));
  if (config.position_offset < 0 || config.position_offset > most_position_offset)
    throw Error(
        fmt::format("position_offset is {}, it must be from 0 to {}", config.position_offset, most_position_offset));
  if (!std::isfinite(config.norm_offset))
    throw Error(fmt::format("norm_offset is {}, it must be finite", config.norm_offset));
  if (!(std::isfinite(config.attention_scale) && config.attention_scale >= 0))
    throw Error(fmt::format("attention_scale is {}, it must be at least 0", config.attention_scale));
  if (!std::isfinite(config.embedding_scale))
    throw Error(fmt::format("embedding_scale is {}, it must be finite", config.embedding_scale));
}

TransformerConfig read_config(const std::filesystem::path& folder) {
  return config_of(Settings(folder / "config.json"));
}

TransformerConfig config_of(const Settings& file) {
  const FamilyNames& names = names_of(file);
  TransformerConfig config;
  config.family = names.family;
  refuse_unknown_parts(file);
  for (const auto& [key, member, old_key, otherwise] : names.sizes) {
    const std::int32_t most = std::ranges::find(limits, member, &Limit::member)->most;
    if (file.sets(key))
      config.*member = file.integer(key, 1, most);
    else if (!old_key.empty() && file.sets(old_key))
      config.*member = file.integer(old_key, 1, most);
    else if (member == &TransformerConfig::inner && names.inner_of_width > 0)
      config.inner = names.inner_of_width * config.width;
    else if (otherwise)
      config.*member = file.has(key) ? 0 : *otherwise;  // null is what other sizes make of it
    else
      file.integer(key, 1, most);  // reports that it is missing
  }
  config.epsilon = names.default_epsilon;
  if (!names.epsilon.empty() && file.has(names.epsilon)) {
    const double epsilon = file.number(names.epsilon);
    if (!(epsilon > 0 && epsilon < 1)) file.refuse(names.epsilon, "between 0 and 1");
    // A value below the smallest normal f32 matters only for constant rows, whose inverse deviation must stay finite.
    config.epsilon = std::max(static_cast<float>(epsilon), std::numeric_limits<float>::min());
  }
  names.read(file, config);
  config.bos = names.bos, config.eos = names.eos;
  if (file.has("bos_token_id")) config.bos.reset();
  if (file.has("eos_token_id")) config.eos.clear();
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
      gpt2_like("nano", 3, 48, 3),
      gpt2_like("micro", 4, 128, 4),
      gpt2_like("mini", 6, 192, 6),
      gpt2_like("gpt2", 12, 768, 12),
      gpt2_like("gpt2-medium", 24, 1024, 16),
      gpt2_like("gpt2-large", 36, 1280, 20),
      gpt2_like("gpt2-xl", 48, 1600, 25),
      gpt2_like("tile-small", 4, 64, 4),
      gpt2_like("tile-medium", 6, 128, 4),
      gpt2_like("tile-large", 8, 256, 8),
      smollm2("smollm2-135m", 30, 576, 9, 3, 1536),
      smollm2("smollm2-360m", 32, 960, 15, 5, 2560),
  };
  return all;
}

TransformerConfig preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& p : presets()) {
    if (p.name == name) return p.config;
    names.push_back(p.name);
  }
  throw Error(fmt::format("there is no preset {}; the presets are {}", in_quotes(name), fmt::join(names, ", ")));
}

}  // namespace tessera::internal
