// New text as it comes: tokens in, characters out, and why it ended.
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

/// What one text has got: all new tokens, and the text they make, whole characters up to a stop text.
class OutputText {
 public:
  /// Without a tokenizer there are ids alone.
  OutputText(const Tokenizer* tokenizer, std::vector<std::string> stops, std::size_t most)
      : most(most), tokenizer_(tokenizer), stop_(std::move(stops)) {}

  /// What stands before it. A character that it ends within is left to the first new tokens, which complete it.
  void begin(const Ids& ids);
  /// The text that is certain by now. A token that ends the text belongs to ids, but has no text.
  std::string push(std::int32_t id, bool end);
  /// What was held back.
  std::string finish();

  bool stopped() const { return stop_.found(); }
  /// Are the bytes of prompt and new tokens no UTF-8 somewhere, and U+FFFD in their place?
  bool replaced() const { return find_invalid_utf8(bytes_).has_value(); }

  std::size_t most;  ///< new tokens
  std::string prompt;
  Ids ids;
  std::string text;
  std::optional<Ending> ending;

 private:
  std::string pass(std::string_view certain);

  const Tokenizer* tokenizer_;
  std::string bytes_;
  Utf8Stream utf8_;
  StopText stop_;
};

/// Lets all texts go on until each has ended, as `written` says in the end, and hands out the texts' parts as they
/// come: which of them, the token, its text, which may be empty. One that ends may have text left; finish() has it.
void generate_tokens(Generation& texts, const GenerationParams& params, std::vector<OutputText>& written,
                     const Interrupt& interrupt,
                     const std::function<void(std::size_t, std::int32_t, std::string_view)>& hand_out);

}  // namespace tessera::internal
