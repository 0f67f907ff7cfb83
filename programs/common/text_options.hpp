// The options of generate.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/generation.hpp"
#include "common/program.hpp"

namespace tessera::internal {

struct TextOptions {
  ModelOptions model;
  std::optional<std::string> prompt, file, batch, draft, profile, system, chat_template, messages;
  std::optional<Ids> prompt_ids;
  std::optional<std::uint32_t> new_tokens, draft_tokens;
  std::uint32_t samples = 1, batch_size = 8, lookup = 0;
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stops;
  std::optional<std::int32_t> keep;
  bool interactive = false, chat = false, json = false, context_shift = false;
  bool print_ids = false, no_display_prompt = false, quiet = false;

  /// Declares and parses the options. Throws Error for options that exclude each other.
  static TextOptions parse(CommandLine& line);

  /// Command-line options take precedence over the model's own defaults, and these over the program's.
  Sampling sampling(const GenerationDefaults& wishes) const;
  GenerationParams params(const OpenModel& opened) const;
  /// The model of --draft, on the device of `model`. Throws Error if it has another vocabulary.
  std::optional<OpenModel> open_drafter(const Model& model) const;
  /// The first steps, as far as the options alone tell: a prompt from stdin or a file has an unknown length.
  FirstUse first_use(const GenerationDefaults& wishes, const Tokenizer* tokenizer) const;

 private:
  static constexpr std::uint32_t default_draft = 4;
  /// Tokens of each draft; 0: there are no drafts.
  std::size_t drafted() const { return draft ? draft_tokens.value_or(default_draft) : lookup; }
};

}  // namespace tessera::internal
