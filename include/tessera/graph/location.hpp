// The source location of a statement.
#pragma once

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// std::source_location, which Clang before 16 lacks with libstdc++. `file` is a string literal.
struct Location {
  const char* file = "";
  unsigned line = 0;
  unsigned order = 0;  ///< of a node: later ones have larger numbers; of a Var: its number among those of the line
  static constexpr Location current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line, 0};
  }
};

}  // namespace internal
}  // namespace tessera
