// generate -i: a text that the user and the model write in turns.
#pragma once
#include "common/generation.hpp"
#include "common/interrupt.hpp"
#include "common/text_options.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

/// Reads lines until they end or /quit, and lets the model continue the text after each. A line is appended to the text
/// as it is; an empty line lets the model continue; a line that begins with / is a command. If `text` is not empty, it
/// is the beginning of the text and is continued before the first line. `drafter` may be null; see Generation.
void chat(const TextOptions& options, const Model& model, const Model* drafter, const Tokenizer& tokenizer,
          GenerationParams params, const Ids& text, Interrupt& interrupt, Timings& timings);

}  // namespace tessera::internal
