// generate -i: a text that the user and the model write in turns.
#pragma once
#include "common/conversation.hpp"
#include "common/generation.hpp"
#include "common/interrupt.hpp"
#include "common/text_options.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

/// The beginning of what is written in turns.
struct Beginning {
  std::string text;
  Ids ids;  ///< without a conversation
};

/// Reads lines until they end or /quit, and lets the model continue the text after each. A line is appended to the text
/// as it is; an empty line lets the model continue; a line that begins with / is a command. If `begin` is not empty, it
/// is the beginning of the text and is continued before the first line. With a `conversation`, a line is a message of
/// the user, and the model answers it. `conversation` and `drafter` may be null; see Generation.
void chat(const TextOptions& options, const Model& model, const Model* drafter, const Tokenizer& tokenizer,
          Conversation* conversation, GenerationParams params, const Beginning& begin, Interrupt& interrupt,
          Timings& timings);

}  // namespace tessera::internal
