// Conversations as texts: the format that a chat model was trained with.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/model/tokenizer.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

struct ChatMessage {
  std::string role;  ///< "system", which only the first may be; then "user" and "assistant" in turns
  std::string content;
};

struct KnownTemplate;

/// How a conversation becomes a prompt. A model has its format as a template, a program in Jinja. Tessera does not run
/// it: it recognizes known templates by their text, and renders them by a table.
class ChatFormat {
 public:
  /// The format of a model's template. Throws Error that names file and key if the model has none, or if it is not
  /// known.
  static ChatFormat of(const Tokenizer& tokenizer);
  /// The format of this name: chatml, llama2, llama3, ... Throws Error that lists all names if there is none, or if the
  /// format needs a beginning or an end of text that the tokenizer does not have.
  static ChatFormat named(std::string_view name, const Tokenizer& tokenizer);

  std::string_view name() const;
  /// The text of a conversation whose last message is the user's, up to where the answer begins. Special tokens are
  /// spelled out in it, so `TextPlace::inner` encodes it. Throws Error if the roles are in another order, or if there
  /// is a system message and the format has none.
  std::string render(std::span<const ChatMessage> messages) const;
  /// The text that ends an answer: in most models a token.
  const std::string& end() const { return end_; }

 private:
  ChatFormat(const KnownTemplate& known, const Tokenizer& tokenizer, std::string_view place);
  std::string filled(std::string_view text) const;

  const KnownTemplate* known_;
  std::string bos_, eos_, end_;
  std::string default_system_;  // empty: there is none
  std::string date_;            // of formats that tell the model the date
};

}  // namespace gnu::visibility("default")]]internal
}  // namespace tessera
