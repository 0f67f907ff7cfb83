// generate --chat: the messages of a conversation, and the prompt that they are for the model.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/generation.hpp"
#include "common/text_options.hpp"
#include "tessera/model/chat.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

class Conversation {
 public:
  /// Begins with the system message of `options`, if there is one. Throws Error if the model's format is not known.
  Conversation(const TextOptions& options, const Tokenizer& tokenizer);

  const ChatFormat& format() const { return format_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }
  void add(std::string role, std::string content) { messages_.push_back({std::move(role), std::move(content)}); }
  /// Removes the last message.
  void remove_last() { messages_.pop_back(); }
  /// Removes all messages but the first system message of the options.
  void clear();
  /// Replaces the messages by those of a JSON array, [{"role": "user", "content": "..."}, ...].
  void read(std::string_view json, const std::string& source);

  struct Prompt {
    Ids ids;
    std::size_t left_out = 0;  ///< messages
  };
  /// The prompt of the conversation, whose last message must be the user's. The oldest messages of user and assistant
  /// are left out, an exchange at a time, until `answer` tokens of the context, or a quarter of it if that is less, are
  /// free. Throws Error if the last message alone is too long for the context.
  Prompt prompt(std::size_t context, std::size_t answer) const;

 private:
  const Tokenizer& tokenizer_;
  ChatFormat format_;
  std::optional<std::string> system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace tessera::internal
