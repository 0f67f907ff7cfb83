#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "graph/in_json.hpp"
#include "tessera/codegen/remark.hpp"

namespace tessera::internal {

std::string_view name(Remark::Status status) {
  switch (status) {
    case Remark::Status::passed:
      return "passed";
    case Remark::Status::missed:
      return "missed";
    case Remark::Status::analysis:
      return "analysis";
  }
  return "";
}

std::string to_string(const Remark& remark) {
  const std::string place = remark.file.empty() ? "" : fmt::format("{}:{}: ", remark.file, remark.line);
  return fmt::format("{}{} {}: {}", place, name(remark.status), remark.kind, remark.message);
}

std::string to_string(std::span<const Remark> remarks) {
  std::string text;
  for (const Remark& remark : remarks) text += to_string(remark) + '\n';
  return text;
}

std::string to_json(std::span<const Remark> remarks) {
  std::string text = "[";
  for (const Remark& remark : remarks)
    fmt::format_to(std::back_inserter(text),
                   "{}\n  {{\"file\": {}, \"line\": {}, \"status\": \"{}\", \"kind\": {}, \"message\": {}}}",
                   text == "[" ? "" : ",", in_json(remark.file), remark.line, name(remark.status), in_json(remark.kind),
                   in_json(remark.message));
  return text + (remarks.empty() ? "]\n" : "\n]\n");
}

}  // namespace tessera::internal
