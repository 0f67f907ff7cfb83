#include "common/conversation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

Conversation::Conversation(const TextOptions& options, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      format_(options.chat_template ? ChatFormat::named(*options.chat_template, tokenizer) : ChatFormat::of(tokenizer)),
      system_(options.system) {
  clear();
}

void Conversation::clear() {
  messages_.clear();
  if (system_) add("system", *system_);
}

void Conversation::read(std::string_view text, const std::string& source) {
  using nlohmann::json;
  const auto refuse = [&] {
    throw Error(
        fmt::format(R"({}: messages must be a JSON array, [{{"role": "user", "content": "..."}}, ...])", source));
  };
  const json all = json::parse(text, nullptr, false);
  if (!all.is_array() || all.empty()) refuse();
  messages_.clear();
  for (const json& one : all) {
    if (!one.is_object() || one.size() != 2 || !one.contains("role") || !one.contains("content")) refuse();
    if (!one["role"].is_string() || !one["content"].is_string()) refuse();
    add(one["role"].get<std::string>(), one["content"].get<std::string>());
  }
}

Conversation::Prompt Conversation::prompt(std::size_t context, std::size_t answer) const {
  const std::size_t room = std::min(answer, context / 4);
  std::vector<ChatMessage> messages = messages_;
  const std::size_t first = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  for (Prompt prompt;; prompt.left_out += 2) {
    prompt.ids = tokenizer_.encode(format_.render(messages), TextPlace::inner);
    if (prompt.ids.size() + room <= context) return prompt;
    if (messages.size() < first + 3) {
      if (prompt.ids.size() < context) return prompt;
      throw Error(fmt::format("the message, with what belongs to it, has {} tokens, the model's context {}; shorten it",
                              prompt.ids.size(), context));
    }
    const auto oldest = messages.begin() + static_cast<std::ptrdiff_t>(first);
    messages.erase(oldest, oldest + 2);
  }
}

}  // namespace tessera::internal
