#include "common/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace tessera::internal {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool is_terminal(int stream) {
  const std::string_view terminal = variable("TERM");
  return ::isatty(stream) && !terminal.empty() && terminal != "dumb";
}

bool has_colors(int stream) { return is_terminal(stream) && variable("NO_COLOR").empty(); }

std::string Paint::in(std::string_view color, std::string_view text) const {
  return colors_ ? fmt::format("\x1b[{}m{}\x1b[0m", color, text) : std::string(text);
}

}  // namespace tessera::internal
