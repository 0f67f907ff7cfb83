#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "tessera/codegen/remark.hpp"

namespace tessera::internal {
namespace {

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

/// A JSON string (RFC 8259, "Strings"). A file name may contain any bytes.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

}  // namespace

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
                   text == "[" ? "" : ",", quoted(remark.file), remark.line, name(remark.status), quoted(remark.kind),
                   quoted(remark.message));
  return text + (remarks.empty() ? "]\n" : "\n]\n");
}

}  // namespace tessera::internal
