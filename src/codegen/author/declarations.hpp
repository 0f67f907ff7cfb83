// The names that C++ text of an author declares, for a kernel's values and parameters. The reader is strict: what it
// does not recognize has no name.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal::author {

struct Declaration {
  enum class Kind : std::uint8_t {
    value,       ///< Tile, Index or auto
    variable,    ///< Var
    assignment,  ///< to a Var
    counter,     ///< for (Index i : ...)
    binding,     ///< a name of auto [i, j] = ...; all of a declaration are neighbors
  };
  Kind kind{};
  std::string name;
  unsigned first = 0, last = 0;  ///< lines, from 1, of what computes it; of a counter: of the loop's head
  bool operator==(const Declaration&) const = default;
};

/// The parameters of the lambda in a call of kernel(...).
struct KernelLambda {
  unsigned first = 0, last = 0;  ///< lines, from the call's first one to that of the parameters' end
  std::vector<std::string> parameters;
  bool operator==(const KernelLambda&) const = default;
};

struct Declarations {
  std::vector<Declaration> names;  ///< in the order of the text
  std::vector<KernelLambda> kernels;
};

/// Reads a whole file. Preprocessor directives, comments and literals declare nothing, nor do names that macros make.
Declarations declarations_in(std::string_view text);

}  // namespace tessera::internal::author
