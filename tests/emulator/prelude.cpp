#include "emulator/prelude.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string_view>

#include "codegen/prelude/prelude.hpp"
#include "emulator/texts.hpp"
#include "support/support.hpp"

namespace tessera::internal::emulator {
namespace {

std::string name_of(const std::string& item) {
  static const std::regex declaration(R"(__device__ inline [^(]*?(\w+)\()");
  std::smatch match;
  if (!std::regex_search(item, match, declaration)) throw InternalError("no function in the emulated item\n" + item);
  return match[1];
}

}  // namespace

std::vector<EmulatedItem> emulated_items() {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(texts_folder() / "prelude")) {
    files.insert(entry.path());
  }
  std::vector<EmulatedItem> items;
  for (const auto& file : files) {
    const std::string text = read_text(file);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find("\n\n", begin), text.size());
      std::string item = text.substr(begin, end - begin);
      items.push_back({.name = name_of(item), .text = item});
      begin = end + 2;
    }
  }
  return items;
}

std::string emulated_prelude() {
  const std::vector<EmulatedItem> items = emulated_items();
  std::set<std::string_view> done;
  std::string text;
  for (const PreludeItem& item : prelude_items()) {
    if (!item.device) {
      text.append(item.text) += "\n\n";
    } else if (done.insert(item.name).second) {
      for (const EmulatedItem& body : items) {
        if (body.name == item.name) text += body.text + "\n\n";
      }
    }
  }
  return text;
}

}  // namespace tessera::internal::emulator
