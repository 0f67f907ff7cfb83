// tokenizer.json, the format of Hugging Face's tokenizers: https://huggingface.co/docs/tokenizers.
#include <fmt/format.h>

#include <limits>
#include <tuple>
#include <utility>

#include "model/files/input_file.hpp"
#include "model/tokenizer/json_file.hpp"
#include "model/tokenizer/read.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

using nlohmann::json;
using std::filesystem::path;
using Pair = std::pair<std::string, std::string>;

/// Vocabulary and merges are most of the file, and are taken out while it is parsed: a document of them would take most
/// of the loading time, and would drop duplicate keys.
class Document {
 public:
  explicit Document(const path& file) : file_(file) {
    root_ =
        parse_json(file, [&](int depth, json::parse_event_t event, json& value) { return take(depth, event, value); });
  }

  const json& root() const { return root_; }
  Vocabulary vocabulary;
  std::vector<std::variant<std::string, Pair>> merges;  // "a b" in older files

 private:
  /// Keeps what belongs to the rest of the document.
  bool take(int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::key && depth <= 2) {
      (depth == 1 ? first_ : second_) = value.get_ref<std::string&>();
      if (depth == 1) second_.clear();
    }
    if (depth >= 3 && in_model("vocab")) {
      if (event == Event::key) {
        token_ = std::move(value.get_ref<std::string&>());
        if (token_.empty()) fail_at(file_, "model.vocab: it has an empty token; remove it");
      } else {
        add_token(value);
      }
      return false;
    }
    if (depth >= 3 && in_model("merges")) {
      if (event == Event::value) {
        add_merge_text(depth, value);
      } else if (event == Event::array_start && depth == 3) {
        parts_.clear();
      } else if (event == Event::array_end && depth == 3 && parts_.size() == 2) {
        merges.emplace_back(Pair(std::move(parts_[0]), std::move(parts_[1])));
      } else {
        refuse_merge();
      }
      return event != Event::value && event != Event::array_end;
    }
    return true;
  }

  [[noreturn]] void refuse_merge() const {
    fail_at(file_,
            fmt::format("model.merges: entry {} must be a text of two tokens, or an array of two", merges.size()));
  }

  bool in_model(std::string_view key) const { return first_ == "model" && second_ == key; }

  void add_token(const json& value) {
    // A number beyond int64 becomes negative here.
    const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
      fail_at(file_, fmt::format("model.vocab: the id of {} must be an integer from 0 on", in_quotes(token_)));
    if (!vocabulary.add(token_, static_cast<std::int32_t>(id)))
      fail_at(file_, fmt::format("model.vocab: it names {} twice; keep one", in_quotes(token_)));
  }

  void add_merge_text(int depth, json& value) {
    if (!value.is_string()) refuse_merge();
    auto& text = value.get_ref<std::string&>();
    if (depth == 3) {
      merges.emplace_back(std::move(text));
    } else {
      parts_.push_back(std::move(text));
    }
  }

  const path& file_;
  json root_;
  std::string first_, second_, token_;  // keys on the way to the present value
  std::vector<std::string> parts_;      // of a merge
};

class Reader {
 public:
  explicit Reader(const path& file) : file_(file), document_(file), root_(file, document_.root()) {}

  TokenizerSpec spec() {
    spec_.source = in_quotes(file_.native());
    spec_.gaps = true;
    read_model(root_["model"]);
    if (root_.has("added_tokens"))
      for (const JsonAt& token : root_["added_tokens"].elements()) read_added(token);
    if (root_.has("normalizer")) read_normalizer(root_["normalizer"], 0);
    if (root_.has("pre_tokenizer")) read_pre_tokenizer(root_["pre_tokenizer"], 0);
    if (root_.has("post_processor")) read_post_processor(root_["post_processor"], 0);
    if (!root_.has("decoder")) fail_at(file_, "decoder is missing, so it is unknown how tokens become text");
    read_decoder(root_["decoder"], 0);
    check_byte_level();
    return std::move(spec_);
  }

 private:
  void read_model(const JsonAt& model) {
    if (model.has("type")) model["type"].one_of({"BPE"});
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (model.has(key) && !model[key].text().empty()) model[key].refuse("null or empty");
    if (model.has("dropout")) model["dropout"].refuse("null: the ids of a text must not be random");
    if (!model["vocab"].items().empty()) model["vocab"].refuse("an object of ids");  // taken out already
    if (!model["merges"].elements().empty()) model["merges"].refuse("an array of merges");
    spec_.vocabulary = std::move(document_.vocabulary);
    if (model.has("unk_token")) {
      spec_.unknown = spec_.vocabulary.find(model["unk_token"].text());
      if (!spec_.unknown) model["unk_token"].refuse("a token of model.vocab, or null");
    }
    spec_.byte_fallback = model.flag("byte_fallback", false);
    spec_.fuse_unknown = model.flag("fuse_unk", false);
    spec_.ignore_merges = model.flag("ignore_merges", false);
    const std::string before = fmt::format("{}: model.merges: entry ", spec_.source);
    spec_.merges.reserve(document_.merges.size());
    MergePlace place{before, 0};
    for (const auto& merge : document_.merges) {
      if (const auto* pair = std::get_if<Pair>(&merge)) {
        add_merge(spec_, pair->first, pair->second, place);
      } else {
        add_merge(spec_, std::get<std::string>(merge), place);
      }
      ++place.number;
    }
  }

  void read_added(const JsonAt& token) {
    spec_.added.push_back({.text = token["content"].some_text(),
                           .id = token["id"].integer(),
                           .special = token.flag("special", false),
                           .normalized = token.flag("normalized", true),
                           .lstrip = token.flag("lstrip", false),
                           .rstrip = token.flag("rstrip", false),
                           .single_word = token.flag("single_word", false)});
  }

  /// The parts of a Sequence, which may have Sequences in it.
  std::vector<JsonAt> parts(const JsonAt& sequence, const char* key, int depth) const {
    if (depth >= 8) sequence.refuse("a sequence that is not within 8 others");
    return sequence[key].elements();
  }

  void read_normalizer(const JsonAt& at, int depth) {
    const std::string& type = at["type"].one_of({"NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Sequence"});
    if (type == "Sequence") {
      for (const JsonAt& part : parts(at, "normalizers", depth)) read_normalizer(part, depth + 1);
    } else if (type == "Prepend") {
      spec_.normalizer.emplace_back(Prepend{at["prepend"].text()});
    } else if (type == "Replace") {
      spec_.normalizer.emplace_back(replacement(at));
    } else {
      const bool decomposed = type.ends_with('D'), compatible = type.starts_with("NFK");
      spec_.normalizer.emplace_back(UnicodeForm{compatible   ? decomposed ? UnicodeForm::nfkd : UnicodeForm::nfkc
                                                : decomposed ? UnicodeForm::nfd
                                                             : UnicodeForm::nfc});
    }
  }

  static Replace replacement(const JsonAt& at) {
    const JsonAt pattern = at["pattern"];
    if (!pattern.has("String")) pattern.refuse("a String: patterns are not replaced");
    return {pattern["String"].some_text(), at["content"].text()};
  }

  void read_pre_tokenizer(const JsonAt& at, int depth) {
    const std::string& type = at["type"].one_of({"ByteLevel", "Digits", "Metaspace", "Sequence", "Split"});
    if (byte_level_) at["type"].refuse("in front of ByteLevel");
    if (type == "Sequence") {
      for (const JsonAt& part : parts(at, "pretokenizers", depth)) read_pre_tokenizer(part, depth + 1);
    } else if (type == "Digits") {
      const bool each = at.flag("individual_digits", false);
      spec_.cuts.emplace_back(
          Cut{.pattern = R"(\p{N})", .behavior = each ? CutBehavior::isolated : CutBehavior::contiguous});
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      if (at.flag("add_prefix_space", true)) spec_.cuts.emplace_back(PrefixSpace{});
      if (at.flag("use_regex", true)) spec_.cuts.emplace_back(Cut{.pattern = std::string(gpt2_pattern)});
    } else if (type == "Metaspace") {
      spec_.cuts.emplace_back(
          Metaspace{.replacement = replacement_of(at), .prepended = scheme_of(at), .split = at.flag("split", true)});
    } else {
      read_split(at);
    }
  }

  void read_split(const JsonAt& at) {
    const JsonAt pattern = at["pattern"];
    const bool literal = pattern.has("String");
    const std::string& behavior =
        at["behavior"].one_of({"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"});
    spec_.cuts.emplace_back(Cut{.pattern = pattern[literal ? "String" : "Regex"].some_text(),
                                .literal = literal,
                                .behavior = behavior == "Removed"              ? CutBehavior::removed
                                            : behavior == "Isolated"           ? CutBehavior::isolated
                                            : behavior == "MergedWithPrevious" ? CutBehavior::merged_with_previous
                                            : behavior == "MergedWithNext"     ? CutBehavior::merged_with_next
                                                                               : CutBehavior::contiguous,
                                .invert = at.flag("invert", false)});
  }

  static std::string replacement_of(const JsonAt& metaspace) {
    return metaspace.has("replacement") ? metaspace["replacement"].some_text() : Metaspace().replacement;
  }
  static Metaspace::Scheme scheme_of(const JsonAt& metaspace) {
    if (!metaspace.flag("add_prefix_space", true)) return Metaspace::never;  // of older files
    if (!metaspace.has("prepend_scheme")) return Metaspace::always;
    const std::string& scheme = metaspace["prepend_scheme"].one_of({"always", "first", "never"});
    return scheme == "always" ? Metaspace::always : scheme == "first" ? Metaspace::first : Metaspace::never;
  }

  void read_post_processor(const JsonAt& at, int depth) {
    const std::string& type = at["type"].one_of({"ByteLevel", "Sequence", "TemplateProcessing"});
    if (type == "Sequence")
      for (const JsonAt& part : parts(at, "processors", depth)) read_post_processor(part, depth + 1);
    if (type != "TemplateProcessing") return;  // ByteLevel concerns offsets, which Tessera does not report
    bool after = false;
    for (const JsonAt& piece : at["single"].elements()) {
      if (piece.has("Sequence")) {
        if (after || piece["Sequence"]["id"].text() != "A") piece.refuse("one sequence A");
        after = true;
        continue;
      }
      for (const JsonAt& id : at["special_tokens"][piece["SpecialToken"]["id"].text()]["ids"].elements())
        (after ? spec_.suffix : spec_.prefix).push_back(id.integer());
    }
    if (!after) at["single"].refuse("a template with the sequence A");
  }

  void read_decoder(const JsonAt& at, int depth) {
    const std::string& type =
        at["type"].one_of({"ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace", "Sequence", "Strip"});
    if (type == "Sequence") {
      for (const JsonAt& part : parts(at, "decoders", depth)) read_decoder(part, depth + 1);
      return;
    }
    if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Strip") {
      read_strip(at);
    } else if (fused_) {
      at["type"].refuse("in front of what joins the tokens; only Strip may follow");
    } else if (type == "ByteLevel") {
      spec_.decoder.emplace_back(ByteLevelText{});
      decodes_bytes_ = fused_ = true;
    } else if (type == "ByteFallback") {
      spec_.decoder.emplace_back(ByteFallback{});
    } else if (type == "Replace") {
      spec_.decoder.emplace_back(replacement(at));
    } else {
      spec_.decoder.emplace_back(
          MetaspaceText{.replacement = replacement_of(at), .prepended = scheme_of(at) != Metaspace::never});
    }
  }

  void read_strip(const JsonAt& at) {
    const auto start = static_cast<std::uint32_t>(at["start"].integer());
    const auto stop = static_cast<std::uint32_t>(at["stop"].integer());
    if (!fused_) {
      spec_.decoder.emplace_back(StripToken{at["content"].some_text(), start, stop});
    } else {
      if (stop > 0) at["stop"].refuse("0: the end of a text that is being generated is unknown");
      if (spec_.stripped_count > 0) at["type"].refuse("there once after the tokens are joined");
      spec_.stripped = at["content"].some_text(), spec_.stripped_count = start;
    }
  }

  /// Whether tokens are spelled in the byte alphabet, pre_tokenizer and decoder say separately.
  void check_byte_level() {
    if (byte_level_ != decodes_bytes_)
      fail_at(file_, byte_level_ ? "pre_tokenizer has ByteLevel, and decoder must have it, too"
                                 : "decoder has ByteLevel, and pre_tokenizer must have it, too");
    spec_.model = byte_level_ ? TokenModel::byte_level : TokenModel::characters;
  }

  const path& file_;
  Document document_;
  JsonAt root_;
  TokenizerSpec spec_;
  bool byte_level_ = false, decodes_bytes_ = false, fused_ = false;
};

}  // namespace

TokenizerSpec read_tokenizer_json(const path& file) { return Reader(file).spec(); }

}  // namespace tessera::internal
