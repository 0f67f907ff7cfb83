// generate -i: a text that a person and a model write in turn.
#pragma once
#include "common/generation.hpp"
#include "common/interrupt.hpp"
#include "common/text_options.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

/// Reads lines until they end or /quit, and continues the text with the model after each. A line is put behind the text
/// as it is; an empty one lets it go on; one that begins with / is a command. `text`, if not empty, is what it begins
/// with, and is continued before the first line.
void chat(const TextOptions& options, const Gpt2& model, const Tokenizer& tokenizer, GenerationParams params,
          const Ids& text, Interrupt& interrupt, Timings& timings);

}  // namespace tessera::internal
