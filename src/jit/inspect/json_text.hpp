// JSON, member after member and element after element.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/in_json.hpp"

namespace tessera::internal {

class JsonObject {
 public:
  void raw(std::string_view name, std::string_view json) {
    ((text_ += text_.empty() ? "" : ",") += in_json(name) + ":") += json;
  }
  void text(std::string_view name, std::string_view text) { raw(name, in_json(text)); }
  void number(std::string_view name, std::int64_t number) { raw(name, std::to_string(number)); }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

/// An array of what each(element) makes of the elements.
std::string json_array(const auto& elements, const auto& each) {
  std::string text = "[";
  for (const auto& element : elements) {
    if (text.size() > 1) text += ',';
    text += each(element);
  }
  return text + "]";
}
inline std::string json_array(const std::vector<std::string>& texts) {
  return json_array(texts, [](const std::string& text) { return in_json(text); });
}
inline std::string json_array(const std::vector<int>& numbers) {
  return json_array(numbers, [](int number) { return std::to_string(number); });
}

}  // namespace tessera::internal
