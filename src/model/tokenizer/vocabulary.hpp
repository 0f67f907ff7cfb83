// Texts of tokens and their ids, both ways.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tessera::internal {

/// Each text has one id. Ids may be in any order, and two texts may have one id: the Tokenizer refuses that.
class Vocabulary {
 public:
  void reserve(std::size_t count) { ids_.reserve(count); }
  /// False, and nothing is added, if the text has an id already.
  bool add(std::string text, std::int32_t id) { return ids_.try_emplace(std::move(text), id).second; }
  std::optional<std::int32_t> find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  std::size_t size() const { return ids_.size(); }
  /// Pairs of text and id, in no order.
  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }

 private:
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
};

}  // namespace tessera::internal
