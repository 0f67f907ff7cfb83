// New text as it is generated: tokens in, characters out, and the reason for its end.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/generation.hpp"
#include "common/interrupt.hpp"
#include "tessera/model/stop_text.hpp"
#include "tessera/model/tokenizer.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {

enum class Ending { end_token, stop_text, length, context, interrupt, failure };
/// "eos", "stop", "length", "context", "interrupt" or "error".
std::string_view name(Ending ending);

/// The output of one text: all new tokens, and their text, in whole characters, up to a stop text.
class OutputText {
 public:
  /// Without a tokenizer there are only ids.
  OutputText(const Tokenizer* tokenizer, std::vector<std::string> stops, std::size_t most)
      : most(most), stop_(std::move(stops)) {
    if (tokenizer) tokens_.emplace(*tokenizer, TextPlace::continuation);
  }

  /// Sets the tokens of the prompt. If it ends within a character, the first new tokens complete that character. Without
  /// this call, the new tokens continue a text that is not known.
  void begin(const Ids& ids);
  /// Adds a token and returns the text that is now certain. A token that ends the text is part of ids, but has no text.
  std::string push(std::int32_t id, bool end);
  /// Returns the text that was held back.
  std::string finish();

  bool stopped() const { return stop_.found(); }
  /// Are the bytes of prompt and new tokens not valid UTF-8, so that U+FFFD replaces some of them?
  bool replaced() const { return find_invalid_utf8(bytes_).has_value(); }

  std::size_t most;  ///< new tokens, at most
  std::string prompt;
  Ids ids;
  std::string text;
  std::optional<Ending> ending;

 private:
  std::string pass(std::string_view certain);

  std::optional<TokenBytes> tokens_;
  std::string bytes_;
  Utf8Stream utf8_;
  StopText stop_;
};

/// Continues all texts until each has its `ending`, and passes the new parts to `hand_out` as they are generated: the
/// index of the text, the token and its text, which may be empty. A text that has ended may have text left, which its
/// finish() returns.
void generate_tokens(Generation& texts, const GenerationParams& params, std::vector<OutputText>& written,
                     const Interrupt& interrupt,
                     const std::function<void(std::size_t, std::int32_t, std::string_view)>& hand_out);

}  // namespace tessera::internal
