// generate --chat: messages in, answers out, and a conversation that outgrows the context.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"
#include "tessera/model/chat.hpp"
#include "tessera/model/tokenizer.hpp"

namespace test_chat_option {

using namespace tessera::internal;
namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

namespace {

const fs::path root = TESSERA_SOURCE_DIR;
const fs::path story = root / "samples/models/storyteller-6m";

/// The shipped model with ChatML, whose marks are tokens in place of rare ones if `has_tokens`, else text.
struct ChatModel {
  explicit ChatModel(bool has_tokens = true) {
    for (const char* name : {"config.json", "model.safetensors", "merges.txt"})
      fs::create_symlink(story / name, folder / name);
    json vocabulary = json::parse(read_text(story / "vocab.json"));
    if (has_tokens) {
      std::string merges, line;
      std::istringstream lines(read_text(story / "merges.txt"));
      std::vector<std::string> last;
      while (std::getline(lines, line)) last.push_back(line);
      // The last merges make room for two marks.
      const std::vector<std::string> marks{"<|im_start|>", "<|im_end|>"};
      for (const std::string& mark : marks) {
        std::string token = last.back();
        token.erase(token.find(' '), 1);
        const json id = vocabulary.at(token);
        vocabulary.erase(token);
        vocabulary[mark] = id;
        last.pop_back();
      }
      for (const std::string& each : last) merges += each + "\n";
      fs::remove(folder / "merges.txt");
      write_text(folder / "merges.txt", merges);
      json added = json::object();
      for (const std::string& mark : marks) added[vocabulary[mark].dump()] = {{"content", mark}};
      config["added_tokens_decoder"] = added;
    }
    write_text(folder / "vocab.json", vocabulary.dump());
    const json chats = json::parse(read_text(root / "tests/data/chats.json"));
    config["chat_template"] = chats["templates"][0]["template"];
    save();
  }
  void save() const { write_text(folder / "tokenizer_config.json", config.dump()); }

  TempDir folder;
  std::string path = folder.path();
  json config = json::object();
  Arguments options{"-q", "-m", path, "--temp", "0", "-n", "12"};
};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  return objects;
}

std::string marked(const std::string& role, const std::string& content) {
  return "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
}

}  // namespace

TEST_CASE("A message is answered as the prompt that the template makes of it", "[programs]") {
  const ChatModel model;
  const std::string prompt = marked("user", "Once upon a time") + "<|im_start|>assistant\n";
  const std::string answer = output("generate", with(model.options, {"--no-display-prompt", prompt}));
  REQUIRE(answer.size() > 5);
  CHECK(output("generate", with(model.options, {"--chat", "Once upon a time"})) == answer);
  CHECK(output("generate", with(model.options, {"--chat", "-i"}), {.input = "Once upon a time\n"}) == answer);
  CHECK(output("generate", with(model.options, {"--chat", "-i", "Once upon a time"})) == answer);

  const std::string system = marked("system", "Tell.");
  const json told =
      json::parse(output("generate", with(model.options, {"--chat", "--json", "--system", "Tell.", "Once"})));
  CHECK(told["prompt"] == "Once");
  CHECK(told["prompt_ids"] ==
        Tokenizer::open(model.path).encode(system + marked("user", "Once") + "<|im_start|>assistant\n"));
  CHECK(told["messages"] == json({{{"role", "system"}, {"content", "Tell."}},
                                  {{"role", "user"}, {"content", "Once"}},
                                  {{"role", "assistant"}, {"content", told["text"]}}}));

  SECTION("the messages of a conversation") {
    json messages = told["messages"];
    messages.push_back({{"role", "user"}, {"content", "And then?"}});
    const json next = json::parse(
        output("generate", with(model.options, {"--chat", "--json", "--messages", "-"}), {.input = messages.dump()}));
    messages.push_back({{"role", "assistant"}, {"content", next["text"]}});
    CHECK(next["messages"] == messages);
    // A conversation in turns.
    const std::string talked = output("generate", with(model.options, {"--chat", "-i", "--system", "Tell."}),
                                      {.input = "Once\n\nAnd then?\n/reset\nOnce\n"});
    const auto text = [](const json& made) { return made["text"].get<std::string>(); };
    CHECK(talked == fmt::format("{0}\n---\n{1}\n---\n{0}\n", text(told), text(next)));
  }
  SECTION("a batch of messages") {
    const auto made = lines_of(
        output("generate", with(model.options, {"--chat", "--batch", "-"}), {.input = "Once upon a time\nOnce\n"}));
    REQUIRE(made.size() == 2);
    CHECK(made[0]["text"].get<std::string>() + "\n" == answer);
    CHECK(made[1]["messages"].size() == 2);
  }
}

TEST_CASE("An answer ends at the token, or the text, that ends a message", "[programs]") {
  for (const bool has_tokens : {true, false}) {
    INFO(has_tokens);
    const ChatModel model(has_tokens);
    const json made = json::parse(output("generate", with(model.options, {"--chat", "--json", "Once"})));
    const Tokenizer tokenizer = Tokenizer::open(model.path);
    CHECK(tokenizer.id_of("<|im_end|>").has_value() == has_tokens);
    // The first token of the answer, taken for the end of a message.
    ChatModel ending(has_tokens);
    const auto first = made["ids"][0].get<std::int32_t>();
    const std::string word(tokenizer.bytes_of(first));
    if (has_tokens) {
      write_text(ending.folder / "generation_config.json", json({{"eos_token_id", {first, 3}}}).dump());
    } else {
      ending.options.insert(ending.options.end(), {"--stop", word});
    }
    const json ended = json::parse(output("generate", with(ending.options, {"--chat", "--json", "Once"})));
    CHECK(ended["ended_by"] == (has_tokens ? "eos" : "stop"));
    CHECK(ended["text"] == "");
  }
}

TEST_CASE("A conversation that outgrows the context loses its oldest messages", "[programs]") {
  const ChatModel model;
  const Arguments loud{"-m", model.path, "--temp", "0", "-n", "60", "--chat", "-i", "--system", "Tell."};
  std::string input;
  for (int n = 0; n < 8; ++n) input += fmt::format("Once upon a time there was king number {}\n", n);
  const Run talked = run("generate", loud, {.input = input});
  CHECK(talked.status == 0);
  CHECK(talked.err.find("the oldest 2 messages are left out: the context has 512 tokens") != talked.err.npos);
  CHECK(talked.err.find("error") == talked.err.npos);
  std::vector<std::string> answers;
  for (std::size_t at = 0; at < talked.out.size();) {
    const std::size_t end = std::min(talked.out.find("\n---\n", at), talked.out.size() - 1);
    answers.push_back(talked.out.substr(at, end - at));
    at = end + 5;
  }
  REQUIRE(answers.size() == 8);
  // Each answer is the one to the conversation so far, as if it had not grown message by message.
  json so_far = {{{"role", "system"}, {"content", "Tell."}}};
  for (int n = 0; n < 8; ++n) {
    so_far.push_back({{"role", "user"}, {"content", fmt::format("Once upon a time there was king number {}", n)}});
    if (n > 4)
      CHECK(output("generate", {"-q", "-m", model.path, "--temp", "0", "-n", "60", "--chat", "--messages", "-"},
                   {.input = so_far.dump()}) == answers[static_cast<std::size_t>(n)] + "\n");
    so_far.push_back({{"role", "assistant"}, {"content", answers[static_cast<std::size_t>(n)]}});
  }

  SECTION("as does one that is given, but for the system message") {
    json messages = {{{"role", "system"}, {"content", "Tell."}}};
    for (int n = 0; n < 60; ++n) {
      messages.push_back({{"role", "user"}, {"content", fmt::format("Who is number {}?", n)}});
      messages.push_back({{"role", "assistant"}, {"content", "The king."}});
    }
    messages.push_back({{"role", "user"}, {"content", "Why?"}});
    const Run made =
        run("generate", {"-m", model.path, "--temp", "0", "-n", "5", "--chat", "--json", "--messages", "-"},
            {.input = messages.dump()});
    CHECK(made.status == 0);
    CHECK(made.err.find("messages are left out") != made.err.npos);
    const json object = json::parse(made.out);
    const std::string kept = Tokenizer::open(model.path).decode(object["prompt_ids"].get<Ids>());
    CHECK(kept.starts_with(marked("system", "Tell.") + "<|im_start|>user\nWho is number "));
    CHECK(kept.ends_with(marked("user", "Who is number 59?") + marked("assistant", "The king.") +
                         marked("user", "Why?") + "<|im_start|>assistant\n"));
    CHECK(object["prompt_ids"].size() + 5 <= 512);
    CHECK(object["messages"].size() == messages.size() + 1);
  }
  SECTION("a message that is too long by itself is refused, and nothing changes") {
    std::string message = "Once";
    for (int n = 0; n < 600; ++n) message += " upon";
    check_refused("generate", {"-m", model.path, "--chat", message}, {"tokens, the model's context 512", "shorten"});
    const Run refused = run("generate", with(model.options, {"--chat", "-i"}), {.input = message + "\nOnce\n"});
    CHECK(refused.status == 0);
    CHECK(refused.out == output("generate", with(model.options, {"--chat", "Once"})));
    CHECK(says(refused.err.substr(0, refused.err.size() - 1), {"shorten"}));
  }
}

TEST_CASE("Chat options without a meaning, and models without a known template, are refused", "[programs]") {
  ChatModel model;
  const auto refused = [&](const Arguments& more, std::initializer_list<std::string_view> parts) {
    check_refused("generate", with({"-m", model.path}, more), parts);
  };
  refused({"--system", "a", "b"}, {"--system requires --chat"});
  refused({"--chat-template", "chatml", "b"}, {"--chat-template requires --chat"});
  refused({"--messages", "-"}, {"--messages requires --chat"});
  refused({"--chat", "--prompt-ids", "1"}, {"--prompt-ids"});
  refused({"--chat", "--context-shift", "a"}, {"--context-shift"});
  refused({"--chat", "-i", "--messages", "x"}, {"-i excludes"});
  refused({"--chat", "--messages", "x", "a"}, {"--messages", "--prompt"});
  refused({"--chat", "--chat-template", "none", "a"}, {"'none'", "chatml", "llama3.1"});
  refused({"--chat", "--chat-template", "mistral", "a"}, {"bos_token"});
  check_refused("generate", {"--chat", "--preset", "nano", "a"}, {"tokenizer"});
  for (const char* messages :
       {"", "7", "[]", "{}", "[7]", R"([{"role": "user"}])", R"([{"role": "user", "content": 7}])",
        R"([{"role": "user", "content": "a", "name": "b"}])", R"([{"role": "user", "content": "a"}] x)"}) {
    INFO(messages);
    const Run made = run("generate", with(model.options, {"--chat", "--messages", "-"}), {.input = messages});
    CHECK(made.status == 2);
    CHECK(made.err.find("JSON array") != made.err.npos);
  }
  const Run turns = run("generate", with(model.options, {"--chat", "--messages", "-"}),
                        {.input = R"([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])"});
  CHECK(turns.status == 2);
  CHECK(turns.err.find("take turns") != turns.err.npos);

  model.config["chat_template"] = "{{ messages }}";
  model.save();
  refused({"--chat", "a"}, {"tokenizer_config.json': chat_template", "not a known template", "by hand", "chatml"});
  model.config.erase("chat_template");
  model.save();
  refused({"--chat", "a"}, {"no chat_template", "by hand"});
  CHECK(!output("generate", with(model.options, {"--chat", "--chat-template", "chatml", "Once"})).empty());
}

}  // namespace test_chat_option
