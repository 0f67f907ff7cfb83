#include "tessera/model/stop_text.hpp"

#include <algorithm>
#include <utility>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) throw Error("a stop text is empty; leave it out");
    if (find_invalid_utf8(stop)) throw Error("the stop text " + in_quotes(stop) + " is not UTF-8");
  }
}

std::string StopText::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  std::size_t start = held_.npos, end = held_.npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == held_.npos) continue;
    if (std::pair(at + stop.size(), at) < std::pair(end, start)) start = at, end = at + stop.size();
  }
  found_ = start != held_.npos;
  if (found_) return std::exchange(held_, {}).substr(0, start);

  std::size_t kept = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > kept; --size)
      if (held_.ends_with(std::string_view(stop).substr(0, size))) kept = size;
  }
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopText::finish() { return std::exchange(held_, {}); }

}  // namespace tessera::internal
