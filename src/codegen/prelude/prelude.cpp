#include "codegen/prelude/prelude.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/prelude/tokens.hpp"
#include "codegen/prelude/wgmma.hpp"
#include "tessera/graph/element.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

using Names = std::unordered_set<std::string_view>;

struct File {
  std::string_view name, text;
};
constexpr File embedded[] = {
#include "prelude_files.inc"
};

std::vector<File> files() {
  static const auto& wgmma = *new std::string(wgmma_items());
  std::vector<File> files(std::begin(embedded), std::end(embedded));
  files.push_back({"device/wgmma_mma_async", wgmma});
  return files;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Removes the text up to and including `end`, or all of it.
void skip_past(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  text.remove_prefix(at == text.npos ? text.size() : at + end.size());
}

bool is_double(std::string_view number) {
  if (number.starts_with("0x")) return false;  // an integer: reals are not written so
  return number.find_first_of(".eE") != number.npos && number.back() != 'f';
}

/// Adds the identifiers of C++ text outside of comments and strings, and "double" if it has a double literal.
void add_identifiers(std::string_view text, Names& names) {
  Tokens tokens(text);
  while (const std::optional<Token> token = tokens.next()) {
    if (token->kind == Token::Kind::word) names.insert(token->text);
    if (token->kind == Token::Kind::number && is_double(token->text)) names.insert("double");
  }
}

/// The word at the end of `text`.
std::string_view last_word(std::string_view text) {
  const auto begin = std::find_if_not(text.rbegin(), text.rend(), is_word).base();
  return text.substr(static_cast<std::size_t>(begin - text.begin()));
}

/// The item without its comment and its line `template <...>`.
std::string_view declaration(std::string_view item) {
  while (item.starts_with("//")) skip_past(item, "\n");
  if (item.starts_with("template <")) skip_past(item, ">\n");
  return item;
}

bool is_type(const PreludeItem& item) { return !declaration(item.text).starts_with("__device__ "); }

/// The name that an item declares; empty if the item does not have the form that prelude.hpp describes.
std::string_view name_of(std::string_view item) {
  if (!item.starts_with("// ")) return {};
  const std::string_view text = declaration(item);
  if (text.starts_with("using ") && text.ends_with(';')) return last_word(text.substr(0, text.find(" = ")));
  if (text.starts_with("struct ") && text.ends_with("};")) return last_word(text.substr(0, text.find(" {")));
  if (!text.starts_with("__device__ inline ") || !text.ends_with('}')) return {};
  std::string_view head = text.substr(0, text.find('('));  // `float name` or, for a specialization, `f16 name<f16>`
  if (head.ends_with('>')) head = head.substr(0, head.rfind('<'));
  return last_word(head);
}

std::vector<PreludeItem> parse_files() {
  std::vector<PreludeItem> items;
  for (const File& file : files()) {
    std::string_view rest = file.text;
    while (!rest.empty()) {
      std::string_view item = rest.substr(0, rest.find("\n\n"));
      skip_past(rest, "\n\n");
      if (rest.empty() && item.ends_with('\n')) item.remove_suffix(1);  // the file's last newline
      const std::string_view name = name_of(item);
      if (name.empty()) {
        throw InternalError("prelude/" + std::string(file.name) + ": an item is a comment and one declaration, not\n" +
                            std::string(item));
      }
      items.push_back({file.name, name, item, file.name.starts_with("device/")});
    }
  }
  return items;
}

/// Sorts items after those that they use.
class Order {
 public:
  explicit Order(std::vector<PreludeItem> items) : items_(std::move(items)), state_(items_.size(), State::waiting) {
    std::stable_partition(items_.begin(), items_.end(), is_type);
    for (std::size_t i = 0; i < items_.size(); ++i) place(i);
  }
  std::vector<PreludeItem> result() && { return std::move(sorted_); }

 private:
  enum class State { waiting, under_way, placed };

  void place(std::size_t i) {
    if (state_[i] == State::placed) return;
    const PreludeItem& item = items_[i];
    if (state_[i] == State::under_way) {
      throw InternalError("prelude/" + std::string(item.file) + ": " + std::string(item.name) +
                          " is part of a cycle of uses");
    }
    state_[i] = State::under_way;
    Names names;
    add_identifiers(item.text, names);
    for (std::size_t j = 0; j < items_.size(); ++j) {
      if (items_[j].name != item.name && names.contains(items_[j].name)) place(j);
    }
    state_[i] = State::placed;
    sorted_.push_back(item);
  }

  std::vector<PreludeItem> items_, sorted_;
  std::vector<State> state_;
};

/// Storage types, which no op computes with, and double. A kernel that uses one names the type; for double it may
/// instead have a literal or call a function that returns one.
std::vector<std::string_view> types_to_name() {
  std::vector<std::string_view> types = {"double"};
  for (const ElementInfo& type : detail::element_table)
    if (type.stored && !type.computes) types.push_back(type.name);
  return types;
}

/// Returns true if the item is an overload for such a type that is not in `names`, and so is never called.
bool is_for_others(const PreludeItem& item, const Names& names) {
  const auto same_name = [&](const PreludeItem& other) { return other.name == item.name; };
  if (std::ranges::count_if(prelude_items(), same_name) == 1) return false;
  const std::string_view text = declaration(item.text);
  Names head;
  add_identifiers(text.substr(0, text.find('{')), head);
  static const auto& types = *new std::vector<std::string_view>(types_to_name());
  return std::ranges::any_of(types,
                             [&](std::string_view type) { return head.contains(type) && !names.contains(type); });
}

/// The items that a text with these names uses. Adds the names that the items use.
std::vector<bool> items_used(Names& names) {
  const std::span<const PreludeItem> items = prelude_items();
  std::vector<bool> used(items.size());
  for (std::size_t i = items.size(); i-- > 0;) {  // an item's dependencies precede it
    used[i] = names.contains(items[i].name) && !is_for_others(items[i], names);
    if (used[i]) add_identifiers(items[i].text, names);
  }
  return used;
}

}  // namespace

std::span<const PreludeItem> prelude_items() {
  static const auto& items = *new std::vector<PreludeItem>(Order(parse_files()).result());
  return items;
}

std::string prelude_for(std::string_view kernel_text) {
  const std::span<const PreludeItem> items = prelude_items();
  Names names;
  add_identifiers(kernel_text, names);
  Names all = names;
  std::vector<bool> used = items_used(all);
  // A call of a function that returns a double does not name the type: cast_f64(i).
  if (all.contains("double") && names.insert("double").second) used = items_used(names);
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!used[i]) continue;
    if (!text.empty()) text += "\n";
    text.append(items[i].text) += "\n";
  }
  return text;
}

}  // namespace tessera::internal
