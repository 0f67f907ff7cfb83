#include "codegen/identifier.hpp"

#include <algorithm>
#include <iterator>

#include "codegen/prelude.hpp"

namespace tessera {
namespace {

// Words of C++, and what generated kernels call their own.
constexpr std::string_view words[] = {
    "alignas",   "alignof",   "and",       "asm",         "auto",      "bitand",       "bitor",   "bool",
    "break",     "case",      "catch",     "char",        "class",     "compl",        "concept", "const",
    "consteval", "constexpr", "constinit", "continue",    "decltype",  "default",      "delete",  "do",
    "double",    "else",      "enum",      "explicit",    "export",    "extern",       "false",   "float",
    "for",       "friend",    "goto",      "if",          "inline",    "int",          "long",    "mutable",
    "namespace", "new",       "noexcept",  "not",         "nullptr",   "operator",     "or",      "private",
    "protected", "public",    "register",  "requires",    "return",    "short",        "signed",  "sizeof",
    "static",    "struct",    "switch",    "template",    "this",      "throw",        "true",    "try",
    "typedef",   "typeid",    "typename",  "union",       "unsigned",  "using",        "virtual", "void",
    "volatile",  "while",     "xor",       "block",       "blocks",    "lane",         "main",    "place",
    "shared",    "thread",    "warp",      "first_block", "workspace", "all_workspace"};

// Functions that NVRTC declares without an include: of C's libraries, and CUDA's own (CUDA Math API). Those of reals
// have forms with an f or an l behind them.
constexpr std::string_view functions[] = {
    "abort",     "abs",         "acos",    "acosh",    "asin",     "asinh",         "assert",
    "atan",      "atan2",       "atanh",   "calloc",   "cbrt",     "ceil",          "clock",
    "clock64",   "copysign",    "cos",     "cosh",     "cospi",    "cyl_bessel_i0", "cyl_bessel_i1",
    "div",       "drem",        "erf",     "erfc",     "erfcinv",  "erfcx",         "erfinv",
    "exit",      "exp",         "exp10",   "exp2",     "expm1",    "fabs",          "fdim",
    "fdivide",   "finite",      "floor",   "fma",      "fmax",     "fmin",          "fmod",
    "free",      "frexp",       "gamma",   "hypot",    "ilogb",    "isfinite",      "isinf",
    "isnan",     "j0",          "j1",      "jn",       "labs",     "ldexp",         "lgamma",
    "llabs",     "llmax",       "llmin",   "llrint",   "llround",  "log",           "log10",
    "log1p",     "log2",        "logb",    "lrint",    "lround",   "malloc",        "max",
    "memcmp",    "memcpy",      "memmove", "memset",   "min",      "modf",          "nan",
    "nearbyint", "nextafter",   "norm",    "norm3d",   "norm4d",   "normcdf",       "normcdfinv",
    "pow",       "pow10",       "powi",    "printf",   "putchar",  "puts",          "rcbrt",
    "realloc",   "remainder",   "remquo",  "rhypot",   "rint",     "rnorm",         "rnorm3d",
    "rnorm4d",   "round",       "rsqrt",   "saturate", "scalb",    "scalbln",       "scalbn",
    "signbit",   "significand", "sin",     "sincos",   "sincospi", "sinh",          "sinpi",
    "sqrt",      "system",      "tan",     "tanh",     "tgamma",   "time",          "trap",
    "trunc",     "ullmax",      "ullmin",  "umax",     "umin",     "vprintf",       "y0",
    "y1",        "yn"};

bool is_one_of(std::string_view name, const auto& list) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_taken(std::string_view name) {
  const bool form = name.ends_with('f') || name.ends_with('l');
  const auto items = prelude_items();
  return is_one_of(name, words) || is_one_of(name, functions) ||
         (form && is_one_of(name.substr(0, name.size() - 1), functions)) || name.starts_with("__") ||
         std::any_of(items.begin(), items.end(), [&](const PreludeItem& item) { return item.name == name; });
}

}  // namespace

std::string kernel_identifier(std::string_view name) {
  std::string text;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    text += letter || (c >= '0' && c <= '9') ? c : '_';
  }
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) text.insert(0, "kernel_");
  return is_taken(text) ? text + "_kernel" : text;
}

}  // namespace tessera
