// Formats of conversations: prompts against transformers' apply_chat_template (tests/data/make_chats.py), and templates
// that are not known.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "model/tokenizer/read.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/model/chat.hpp"

namespace test_chat {

using namespace tessera::internal;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;

const json& chats() {
  static const json all = json::parse(read_text(root / "tests/data/chats.json"));
  return all;
}

/// The golden template of this name; the `number`-th if there are several.
json golden(std::string_view name, std::size_t number = 0) {
  for (const json& each : chats()["templates"])
    if (each["name"] == name && number-- == 0) return each;
  throw std::logic_error(std::string(name));
}

/// A tokenizer of single bytes with the marks and the template of a golden one.
Tokenizer tokenizer_of(const json& chat) {
  TokenizerSpec spec{.source = "'model'"};
  use_sentencepiece(spec, false);
  const auto add = [&](const std::string& text) {
    const auto id = static_cast<std::int32_t>(spec.vocabulary.size());
    spec.vocabulary.add(text, id);
    return id;
  };
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const auto& [key, id] : {std::pair("bos_token", &spec.bos), std::pair("eos_token", &spec.eos)}) {
    if (!chat.contains(key) || chat[key].is_null()) continue;
    *id = add(chat[key]);
    spec.added.push_back({.text = chat[key], .id = **id});
  }
  if (chat.contains("template")) spec.chat_template = ChatTemplate{"'model': chat_template", chat["template"]};
  return Tokenizer(std::move(spec));
}

std::vector<ChatMessage> messages_of(const json& conversation) {
  std::vector<ChatMessage> messages;
  for (const json& each : conversation) messages.push_back({each["role"], each["content"]});
  return messages;
}

std::string refusal(const json& chat) {
  return error_of([&] { ChatFormat::of(tokenizer_of(chat)); });
}

}  // namespace

TEST_CASE("conversations are the prompts that transformers makes of them", "[model]") {
  const json& conversations = chats()["conversations"];
  REQUIRE(conversations.size() == 18);
  REQUIRE(chats()["templates"].size() == 16);
  std::set<std::string> names;
  for (const json& chat : chats()["templates"]) {
    INFO(chat["name"] << " " << chat["template"]);
    const ChatFormat format = ChatFormat::of(tokenizer_of(chat));
    CHECK(format.name() == chat["name"]);
    names.emplace(format.name());
    for (std::size_t i = 0; i < conversations.size(); ++i) {
      INFO(conversations[i].dump());
      if (chat["texts"][i].is_null()) {
        CHECK(says(error_of([&] { format.render(messages_of(conversations[i])); }),
                   {format.name(), "no system message"}));
      } else {
        CHECK(format.render(messages_of(conversations[i])) == chat["texts"][i]);
      }
    }
  }
  // Each format that there is.
  const std::string all = error_of([] { ChatFormat::named("none", tokenizer_of(json::object())); });
  for (const std::string& name : names) CHECK(all.find(name) != all.npos);
  CHECK(static_cast<std::size_t>(std::ranges::count(all, ',')) == names.size() - 1);
}

TEST_CASE("formats by name, and the ends of answers", "[model]") {
  const Tokenizer tokenizer = tokenizer_of({{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  const std::vector<ChatMessage> hello{{"user", "Hello"}};
  CHECK(ChatFormat::named("chatml", tokenizer).render(hello) ==
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
  CHECK(ChatFormat::named("chatml", tokenizer).end() == "<|im_end|>");
  CHECK(ChatFormat::named("llama2", tokenizer).render(hello) == "<s>[INST] Hello [/INST]");
  CHECK(ChatFormat::named("llama2", tokenizer).end() == "</s>");
  CHECK(ChatFormat::named("gemma", tokenizer).end() == "<end_of_turn>");
  CHECK(ChatFormat::named("llama3.1", tokenizer).render(hello).find("Today Date: 26 Jul 2024\n") != std::string::npos);
  CHECK(says(error_of([&] { ChatFormat::named("lama", tokenizer); }), {"'lama'", "chatml", "llama3.1"}));
  const Tokenizer without = tokenizer_of(json::object());
  CHECK(says(error_of([&] { ChatFormat::named("mistral", without); }), {"'model'", "mistral need a bos_token"}));
}

TEST_CASE("the date of a conversation", "[model]") {
  json chat = golden("llama3.1");
  const std::string fixed = R"({%- set date_string = "26 Jul 2024" %})";
  auto text = chat["template"].get<std::string>();
  text.replace(text.find(fixed), fixed.size(), R"({%- set date_string = strftime_now("%d %b %Y") %})");
  chat["template"] = text;
  const std::vector<ChatMessage> hello{{"user", "Hello"}};
  const std::string prompt = ChatFormat::of(tokenizer_of(chat)).render(hello);
  CHECK(prompt.find("26 Jul 2024") == prompt.npos);
  CHECK(prompt.find("Today Date: ") != prompt.npos);
}

TEST_CASE("roles take turns", "[model]") {
  const ChatFormat format = ChatFormat::of(tokenizer_of(golden("chatml")));
  const auto refused = [&](const std::vector<ChatMessage>& messages, std::initializer_list<std::string_view> parts) {
    CHECK(says(error_of([&] { format.render(messages); }), parts));
  };
  refused({}, {"last message", "user's"});
  refused({{"system", "a"}}, {"last message", "user's"});
  refused({{"user", "a"}, {"assistant", "b"}}, {"last message", "user's"});
  refused({{"user", "a"}, {"user", "b"}}, {"message 2", "'user'", "assistant"});
  refused({{"assistant", "a"}}, {"message 1", "'assistant'", "must have user"});
  refused({{"user", "a"}, {"assistant", "b"}, {"system", "c"}}, {"message 3", "'system'"});
  refused({{"tool", "a"}}, {"message 1", "'tool'"});
}

TEST_CASE("templates that are not known are refused", "[model]") {
  CHECK(says(refusal(json::object()), {"'model'", "no chat_template", "by hand", "chatml"}));
  json chat = golden("chatml");
  const auto refused = [&](const std::string& text) {
    chat["template"] = text;
    INFO(text);
    CHECK(says(refusal(chat), {"'model': chat_template", "not a known template", "by hand", "chatml"}));
  };
  const auto whole = chat["template"].get<std::string>();
  for (const char* text :
       {"", "{{", "{% for message in messages %}", "{{ '", "{#", "Hello", "{{ messages[0]['content'] }}"})
    refused(text);
  // Each change to a known template makes it unknown.
  const auto changed = [&](std::string_view name, std::string_view from, std::string_view to) {
    chat = golden(name);
    auto text = chat["template"].get<std::string>();
    REQUIRE(text.find(from) != text.npos);
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
    refused(text);
  };
  changed("chatml", "'<|im_end|>'", "'<|im_end|> '");
  changed("chatml", "assistant\\n", "model\\n");
  changed("chatml", "{% for", "Chat:{% for");
  changed("chatml", "{% for", "{{ bos_token }}{% for");
  changed("qwen3", "[-1]", "[0]");
  changed("llama2", "' [/INST]'", "'[/INST]'");
  changed("llama2", "<<SYS>>", "<SYS>");
  changed("llama3", " | trim", "");
  changed("llama3.1", "December 2023", "December 2025");
  changed("gemma", "model\\n", "assistant\\n");
  changed("gemma3", "+ '\\n\\n'", "+ ' '");
  changed("mistral", "'[INST] '", "'[INST]  '");
  changed("mistral-v2", "loop.first", "loop.odd");
  changed("mistral-v3", "|trim", "|upper");
  changed("mistral-nemo", "[INST]", "[ASK]");
  // A system message that the template puts together is not guessed.
  chat = golden("chatml", 1);
  auto text = chat["template"].get<std::string>();
  text.replace(text.find("SmolLM"), 6, "' + name + '");
  chat["template"] = text;
  CHECK(says(refusal(chat), {"'model': chat_template", "not understood"}));

  chat = golden("llama2");
  chat["bos_token"] = nullptr;
  CHECK(says(refusal(chat), {"'model': chat_template", "llama2 need a bos_token"}));
}

TEST_CASE("templates are found in a model's files", "[model]") {
  const TempDir folder;
  const fs::path story = root / "samples/models/storyteller-6m";
  for (const char* name : {"vocab.json", "merges.txt"}) fs::create_symlink(story / name, folder / name);
  const std::string text = golden("chatml")["template"];
  const auto spec = [&] { return read_tokenizer(folder.path()); };
  CHECK(!spec().chat_template);
  const auto config = [&](const json& value) { write_text(folder / "tokenizer_config.json", value.dump()); };
  config({{"chat_template", text}, {"eos_token", "<|endoftext|>"}});
  REQUIRE(spec().chat_template);
  CHECK(spec().chat_template->text == text);
  CHECK(says(spec().chat_template->place, {"tokenizer_config.json': chat_template"}));
  CHECK(spec().eos == 0);
  CHECK(!spec().bos);
  CHECK(ChatFormat::of(Tokenizer::open(folder.path())).name() == "chatml");
  config({{"chat_template", {{{"name", "tools"}, {"template", "x"}}, {{"name", "default"}, {"template", text}}}}});
  CHECK(spec().chat_template->text == text);
  config({{"chat_template", {{{"name", "tools"}, {"template", "x"}}}}});
  CHECK(!spec().chat_template);
  config({{"chat_template", {7}}});
  CHECK(says(error_of(spec), {"tokenizer_config.json", "must look like"}));
  config({{"chat_template", "x"}});
  write_text(folder / "chat_template.jinja", text);
  CHECK(spec().chat_template->text == text);
  CHECK(says(spec().chat_template->place, {"chat_template.jinja'"}));
}

}  // namespace test_chat
