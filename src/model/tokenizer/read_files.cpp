// The tokenizer of a model folder: which files it has, and GPT-2's two.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "model/files/gguf_config.hpp"
#include "model/files/input_file.hpp"
#include "model/tokenizer/json_file.hpp"
#include "model/tokenizer/read.hpp"
#include "model/tokenizer/token_texts.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

using nlohmann::json;
using std::filesystem::path;

constexpr std::string_view end_of_text = "<|endoftext|>";

bool has_file(const path& file) {
  std::error_code absent;
  return std::filesystem::exists(file, absent);
}

/// Calls `add(text, id)` for each entry of a flat JSON object. No document is built, because this is most of the
/// loading time, and a document would drop duplicate keys.
template <typename Add>
void read_ids(const path& file, const Add& add) {
  std::string text;
  const auto take = [&](int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (depth == 0 && (event == Event::object_start || event == Event::object_end)) return true;
    if (depth == 0) fail_at(file, "it must be one JSON object, {\"token\": id, ...}");
    if (event == Event::key) {
      text = std::move(value.get_ref<std::string&>());
      if (text.empty()) fail_at(file, "it has an empty token; remove it");
      return false;
    }
    // A number beyond int64 becomes negative here.
    const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      fail_at(file, fmt::format("the id of {} must be an integer from 0 on", in_quotes(text)));
    }
    add(std::move(text), static_cast<std::int32_t>(id));
    return false;
  };
  std::ignore = parse_json(file, take);
}

/// Calls `read(object)` for an optional file, whose content must look like `shape`.
template <typename Read>
void read_optional(const path& file, std::string_view shape, const Read& read) {
  if (!has_file(file)) return;
  try {
    const json document = parse_json(file);
    if (document.is_object()) return read(document);
  } catch (const json::exception&) {  // a value of the wrong type
  }
  fail_at(file, fmt::format("it must look like {{{}}}", shape));
}

bool is_set(const json& object, const char* flag) { return object.contains(flag) && object.at(flag) == true; }

/// Tokens by their texts. An id of -1 is not known yet: special_tokens_map.json has none.
using AddedTokens = std::map<std::string, AddedToken>;

void add(AddedTokens& tokens, const path& file, AddedToken token) {
  if (token.text.empty()) fail_at(file, "it has an empty token; remove it");
  token.source = in_quotes(file.native());
  AddedToken& known = tokens.try_emplace(token.text, token).first->second;
  if (token.id >= 0 && known.id >= 0 && known.id != token.id)
    fail_at(file, fmt::format("it gives {} id {}, after {}; keep one", in_quotes(token.text), token.id, known.id));
  if (token.id >= 0) known.id = token.id;
  known.lstrip |= token.lstrip, known.rstrip |= token.rstrip, known.single_word |= token.single_word;
}

/// A token, which is a string or an object with a `content`.
AddedToken token_of(const json& token, std::int32_t id) {
  if (token.is_string()) return {.text = token.get<std::string>(), .id = id};
  return {.text = token.at("content").get<std::string>(),
          .id = id,
          .lstrip = is_set(token, "lstrip"),
          .rstrip = is_set(token, "rstrip"),
          .single_word = is_set(token, "single_word")};
}

/// Also the flags that concern all of a text.
AddedTokens read_added_tokens(const path& folder, bool& adds_bos, bool& adds_space) {
  AddedTokens tokens;
  path file = folder / "added_tokens.json";
  if (has_file(file))
    read_ids(file, [&](std::string text, std::int32_t id) { add(tokens, file, {.text = std::move(text), .id = id}); });
  file = folder / "tokenizer_config.json";
  read_optional(file, R"("added_tokens_decoder": {"0": {"content": "<a>"}, ...})", [&](const json& config) {
    adds_bos = is_set(config, "add_bos_token");
    adds_space = is_set(config, "add_prefix_space");
    if (!config.contains("added_tokens_decoder")) return;
    for (const auto& [key, token] : config.at("added_tokens_decoder").items()) {
      std::int32_t id = -1;
      const char* const end = key.data() + key.size();
      if (std::from_chars(key.data(), end, id).ptr != end || id < 0) {
        fail_at(file, fmt::format("added_tokens_decoder: {} is not an id", in_quotes(key)));
      }
      add(tokens, file, token_of(token, id));
    }
  });
  file = folder / "special_tokens_map.json";
  read_optional(file, R"("eos_token": "<a>", "additional_special_tokens": ["<b>", ...], ...)", [&](const json& roles) {
    const auto take = [&](const json& token) { add(tokens, file, token_of(token, -1)); };
    for (const json& role : roles) {
      if (role.is_array()) {
        for (const json& token : role) take(token);
      } else if (!role.is_null()) {
        take(role);
      }
    }
  });
  return tokens;
}

void read_merges(TokenizerSpec& spec, const path& file) {
  const std::string text = read_tokenizer_file(file);
  const std::string before = in_quotes(file.native()) + ": line ";
  std::string_view rest = text;
  rest = rest.substr(0, rest.find_last_not_of("\r\n") + 1);
  spec.merges.reserve(spec.vocabulary.size());
  for (std::size_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line.starts_with("#version")) continue;
    add_merge(spec, line, {before, number});
  }
}

/// The text of a role such as `eos_token`, if the object has it.
std::optional<std::string> role_of(const json& object, const char* role) {
  if (!object.contains(role) || object.at(role).is_null()) return std::nullopt;
  return token_of(object.at(role), -1).text;
}

/// A template, or several with names.
void read_chat_template(TokenizerSpec& spec, const path& file, const json& value) {
  const std::string place = in_quotes(file.native()) + ": chat_template";
  if (value.is_string()) spec.chat_template = ChatTemplate{place, value.get<std::string>()};
  if (!value.is_array()) return;
  for (const json& one : value)
    if (one.at("name") == "default") spec.chat_template = ChatTemplate{place, one.at("template").get<std::string>()};
}

std::optional<std::int32_t> id_of(const TokenizerSpec& spec, const std::string& text) {
  const auto added = std::ranges::find(spec.added, text, &AddedToken::text);
  return added == spec.added.end() ? spec.vocabulary.find(text) : added->id;
}

}  // namespace

TokenizerSpec read_vocabulary_and_merges(const path& folder) {
  const path file = folder / "vocab.json";
  TokenizerSpec spec{.source = in_quotes(file.native())};
  read_ids(file, [&](const std::string& text, std::int32_t id) {
    if (!spec.vocabulary.add(text, id)) fail_at(file, fmt::format("it names {} twice; keep one", in_quotes(text)));
  });
  bool adds_bos = false, adds_space = false;
  AddedTokens added = read_added_tokens(folder, adds_bos, adds_space);
  if (spec.vocabulary.find(end_of_text))
    added.try_emplace(std::string(end_of_text), AddedToken{.text = std::string(end_of_text), .id = -1});
  for (auto& [text, token] : added) {
    if (token.id < 0) {
      const std::optional<std::int32_t> known = spec.vocabulary.find(text);
      if (!known)
        throw Error(fmt::format("{}: {} has no id; add it to added_tokens.json", token.source, in_quotes(text)));
      token.id = *known;
    }
    spec.added.push_back(std::move(token));
  }
  if (adds_space) spec.cuts.emplace_back(PrefixSpace{});
  use_byte_level(spec, *find_pre_tokenizer("gpt-2"));
  try {
    read_merges(spec, folder / "merges.txt");
    require_byte_ids(spec);
  } catch (const Error&) {
    std::ignore = token_texts(spec);  // if the vocabulary is wrong, that is the cause
    require_byte_ids(spec);
    throw;
  }
  read_marks(spec, folder);
  if (adds_bos && !spec.bos)
    fail_at(folder / "tokenizer_config.json", "add_bos_token is true, and bos_token is no token; add bos_token");
  if (adds_bos) spec.prefix = {*spec.bos};
  return spec;
}

void read_marks(TokenizerSpec& spec, const path& folder) {
  // The later file decides.
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    read_optional(folder / name, R"("bos_token": "<a>", "eos_token": "<b>", ...)", [&](const json& object) {
      for (const auto& [role, id] : {std::pair("bos_token", &spec.bos), std::pair("eos_token", &spec.eos)})
        if (const std::optional<std::string> text = role_of(object, role)) *id = id_of(spec, *text);
      if (object.contains("chat_template")) read_chat_template(spec, folder / name, object.at("chat_template"));
    });
  }
  const path file = folder / "chat_template.jinja";
  if (has_file(file)) spec.chat_template = ChatTemplate{in_quotes(file.native()), read_tokenizer_file(file)};
}

TokenizerSpec read_tokenizer(const path& folder) {
  if (const auto gguf = gguf_at(folder)) return read_tokenizer_gguf(Gguf::open(*gguf));
  const path file = folder / "tokenizer.json";
  if (!has_file(file)) return read_vocabulary_and_merges(folder);
  TokenizerSpec spec = read_tokenizer_json(file);
  read_marks(spec, folder);
  return spec;
}

}  // namespace tessera::internal
