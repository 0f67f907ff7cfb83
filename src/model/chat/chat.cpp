#include "tessera/model/chat.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "model/chat/known_templates.hpp"
#include "model/files/input_file.hpp"
#include "model/tokenizer/normalize.hpp"
#include "model/tokenizer/spec.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

/// The names of all formats, with commas between.
std::string format_names() {
  std::vector<std::string_view> names;
  for (const KnownTemplate& each : known_templates())
    if (std::ranges::find(names, each.name) == names.end()) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// `text` without the white space at its ends, as Python's str.strip().
std::string_view trimmed(std::string_view text) {
  static constexpr std::array<std::string_view, 29> white = {
      " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",   "\x1f",
      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
      "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  const auto strip = [&](auto&& is_at_end, auto&& remove) {
    for (bool again = true; std::exchange(again, false);)
      for (const std::string_view one : white)
        if (is_at_end(one)) remove(one.size()), again = true;
  };
  strip([&](std::string_view one) { return text.starts_with(one); }, [&](std::size_t n) { text.remove_prefix(n); });
  strip([&](std::string_view one) { return text.ends_with(one); }, [&](std::size_t n) { text.remove_suffix(n); });
  return text;
}

/// The content that the template itself gives to a system message: that which follows `before` in one of its texts.
/// Throws Error if there is one that is put together from parts.
std::string default_system_of(const std::string& code, const KnownTemplate& known, std::string_view place) {
  const std::string before = with_replaced(known.system.before, "\n", "\\n");
  for (std::size_t at = 0; (at = code.find(before, at)) != code.npos;) {
    at += before.size();
    std::string rest;  // of the text
    for (; at < code.size() && code[at] != '\''; ++at) {
      const bool escaped = code[at] == '\\' && at + 1 < code.size();
      if (escaped) ++at;
      rest += escaped && code[at] == 'n' ? '\n' : escaped && code[at] == 't' ? '\t' : code[at];
    }
    if (rest.empty()) continue;
    const std::size_t end = rest.find(known.system.after);
    if (end == rest.npos)
      throw Error(fmt::format("{}: the system message that it begins with is not understood", place));
    return rest.substr(0, end);
  }
  return {};
}

std::string text_of(const Tokenizer& tokenizer, std::optional<std::int32_t> id) {
  return id ? std::string(tokenizer.bytes_of(*id)) : std::string();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  if (!::localtime_r(&now, &day)) return {};
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%d %b %Y", &day)};
}

}  // namespace

ChatFormat::ChatFormat(const KnownTemplate& known, const Tokenizer& tokenizer, std::string_view place)
    : known_(&known), bos_(text_of(tokenizer, tokenizer.spec().bos)), eos_(text_of(tokenizer, tokenizer.spec().eos)) {
  const auto uses = [&](std::string_view token) {
    for (const std::string_view text : {known.begin, known.user.before, known.assistant.after, known.end})
      if (text.find(token) != text.npos) return true;
    return false;
  };
  for (const auto& [token, text, key] :
       {std::tuple("{bos}", &bos_, "bos_token"), std::tuple("{eos}", &eos_, "eos_token")})
    if (uses(token) && text->empty())
      throw Error(fmt::format("{}: conversations of {} need a {}, and the tokenizer has none", place, known.name, key));
  end_ = filled(known.end);
  date_ = "26 Jul 2024";
}

ChatFormat ChatFormat::of(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  const std::string by_hand = fmt::format(
      "write the prompt by hand, with the tokens that mark its messages, or choose a format by its name: {}",
      format_names());
  if (!spec.chat_template)
    throw Error(fmt::format("{}: the model has no chat_template, so it may be none for conversations; {}", spec.source,
                            by_hand));
  const std::string code = code_of(spec.chat_template->text);
  const auto has = [&](std::string_view mark) { return code.find(mark) != code.npos; };
  for (const KnownTemplate& known : known_templates()) {
    if (!std::ranges::all_of(known.marks, has) || std::ranges::any_of(known.others, has)) continue;
    ChatFormat format(known, tokenizer, spec.chat_template->place);
    if (known.place == KnownTemplate::System::message && !known.always_system)
      format.default_system_ = default_system_of(code, known, spec.chat_template->place);
    if (has("strftime_now(")) format.date_ = today();
    return format;
  }
  throw Error(fmt::format("{} is not a known template, and is not run; {}", spec.chat_template->place, by_hand));
}

ChatFormat ChatFormat::named(std::string_view name, const Tokenizer& tokenizer) {
  for (const KnownTemplate& known : known_templates())
    if (known.name == name) return {known, tokenizer, tokenizer.spec().source};
  throw Error(fmt::format("there is no chat format {}; it must be one of {}", in_quotes(name), format_names()));
}

std::string_view ChatFormat::name() const { return known_->name; }

std::string ChatFormat::filled(std::string_view text) const {
  return with_replaced(with_replaced(with_replaced(text, "{bos}", bos_), "{eos}", eos_), "{date}", date_);
}

std::string ChatFormat::render(std::span<const ChatMessage> messages) const {
  using enum KnownTemplate::System;
  std::string system = default_system_;
  bool has_system = known_->always_system || !system.empty();
  if (!messages.empty() && messages[0].role == "system") {
    if (known_->place == none)
      throw Error(fmt::format("conversations of {} have no system message; put it into the first message of the user",
                              known_->name));
    system = messages[0].content, has_system = true;
    messages = messages.subspan(1);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string_view expected = i % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != expected)
      throw Error(
          fmt::format("message {} of the conversation, system message aside, has the role {}, it must have {}; "
                      "user and assistant take turns",
                      i + 1, in_quotes(messages[i].role), expected));
  }
  if (messages.size() % 2 == 0) throw Error("the last message of the conversation must be the user's");

  std::string text = filled(known_->begin);
  const auto add = [&](const KnownTemplate::Role& role, std::string_view content) {
    text += filled(role.before);
    text += content;
    text += filled(role.after);
  };
  const auto content_of = [](const KnownTemplate::Role& role, std::string_view content) {
    return role.trimmed ? trimmed(content) : content;
  };
  if (has_system && known_->place == message) add(known_->system, content_of(known_->system, system));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const KnownTemplate::Role& role = i % 2 == 0 ? known_->user : known_->assistant;
    std::string_view content = messages[i].content;
    if (i % 2 == 1 && known_->drops_thoughts) {
      constexpr std::string_view thought = "</think>";
      if (const std::size_t at = content.rfind(thought); at != content.npos) {
        content.remove_prefix(at + thought.size());
        content.remove_prefix(std::min(content.find_first_not_of('\n'), content.size()));
      }
    }
    const bool joins = has_system && ((known_->place == first_user && i == 0) ||
                                      (known_->place == last_user && i + 1 == messages.size()));
    if (!joins) {
      add(role, content_of(role, content));
      continue;
    }
    const std::string before = fmt::format("{}{}{}", known_->system.before, system, known_->system.after);
    if (known_->trimmed_together) {
      add(role, content_of(role, before + std::string(content)));
    } else {
      add(role, before + std::string(content_of(role, content)));
    }
  }
  return text + filled(known_->answer);
}

}  // namespace tessera::internal
