// The capabilities of a terminal.
#pragma once
#include <string>
#include <string_view>

namespace tessera::internal {

/// Is a stream, 1 or 2, a terminal that can overwrite its output (TERM is neither empty nor dumb)?
bool is_terminal(int stream);
/// Does it have colors, too, and NO_COLOR (no-color.org) is not set?
bool has_colors(int stream);

/// Colors text, if there are colors.
class Paint {
 public:
  explicit Paint(bool colors) : colors_(colors) {}

  std::string title(std::string_view text) const { return in("1;36", text); }
  std::string good(std::string_view text) const { return in("32", text); }
  std::string bad(std::string_view text) const { return in("1;31", text); }
  std::string number(std::string_view text) const { return in("33", text); }
  std::string aside(std::string_view text) const { return in("2", text); }
  std::string progress(std::string_view text) const { return in("36", text); }

 private:
  std::string in(std::string_view color, std::string_view text) const;
  bool colors_;
};

}  // namespace tessera::internal
