#include "codegen/prelude/identifier.hpp"

#include <algorithm>
#include <iterator>

#include "codegen/prelude/prelude.hpp"

namespace tessera {
namespace {

// Words of C++, and what generated kernels call their own.
constexpr std::string_view words[] = {
    "alignas",     "alignof",   "and",        "and_eq",      "asm",       "auto",         "bitand",
    "bitor",       "bool",      "break",      "case",        "catch",     "char",         "char8_t",
    "char16_t",    "char32_t",  "class",      "compl",       "concept",   "const",        "consteval",
    "constexpr",   "constinit", "const_cast", "continue",    "co_await",  "co_return",    "co_yield",
    "decltype",    "default",   "delete",     "do",          "double",    "dynamic_cast", "else",
    "enum",        "explicit",  "export",     "extern",      "false",     "float",        "for",
    "friend",      "goto",      "if",         "inline",      "int",       "long",         "mutable",
    "namespace",   "new",       "noexcept",   "not",         "not_eq",    "nullptr",      "operator",
    "or",          "or_eq",     "private",    "protected",   "public",    "register",     "reinterpret_cast",
    "requires",    "return",    "short",      "signed",      "sizeof",    "static",       "static_assert",
    "static_cast", "struct",    "switch",     "template",    "this",      "thread_local", "throw",
    "true",        "try",       "typedef",    "typeid",      "typename",  "union",        "unsigned",
    "using",       "virtual",   "void",       "volatile",    "wchar_t",   "while",        "xor",
    "xor_eq",      "block",     "blocks",     "lane",        "main",      "memory",       "place",
    "shared",      "thread",    "warp",       "first_block", "workspace", "all_workspace"};

// Types, variables and macros that NVRTC has without an include; the last five before 12.4, which cannot leave out the
// declarations of the runtime.
constexpr std::string_view declared[] = {
    "NULL",          "blockDim",      "blockIdx",   "clock_t",   "dim3",   "gridDim",
    "ptrdiff_t",     "size_t",        "std",        "threadIdx", "va_arg", "va_copy",
    "va_end",        "va_list",       "va_start",   "warpSize",  "CUuuid", "libraryPropertyType",
    "MAJOR_VERSION", "MINOR_VERSION", "PATCH_LEVEL"};

// Words that ptxas takes for its own, as an entry's name too; the last ends it by a segmentation fault (CUDA 13.0).
constexpr std::string_view ptx_words[] = {"WARP_SZ", "function_name", "inlined_at", "A7"};

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

// Names that C++ leaves to the compiler, and the beginnings of CUDA's own.
bool is_reserved(std::string_view name) {
  const bool upper = name.size() > 1 && name[1] >= 'A' && name[1] <= 'Z';
  return name.starts_with("__") || (name.starts_with('_') && upper) || name.starts_with("cuda") ||
         name.starts_with("CUDA") || name.starts_with("CU_") || name.starts_with("NV_");
}

bool is_taken(std::string_view name) {
  const bool form = name.ends_with('f') || name.ends_with('l');
  const auto items = prelude_items();
  return is_one_of(name, words) || is_one_of(name, declared) || is_one_of(name, ptx_words) ||
         is_one_of(name, functions) || (form && is_one_of(name.substr(0, name.size() - 1), functions)) ||
         is_reserved(name) ||
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
