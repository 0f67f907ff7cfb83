// The key of a compiled kernel in the cache: a digest of everything that the code depends on.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "jit/compile/sha256.hpp"

namespace tessera::internal {

/// Changes with the meaning of a key or the layout of an entry; older entries are then never found.
inline constexpr std::uint32_t cache_schema = 1;

/// Everything that distinguishes one compiled kernel from another. Names and paths do not count: equal text is equal
/// code.
struct KeyFields {
  std::string_view compiler;           ///< Nvrtc::build()
  std::string_view architecture;       ///< Nvrtc::Target::name(), which differs for cubin and PTX
  std::span<const std::string> flags;  ///< Nvrtc::options(), in order
  std::string_view source;             ///< the text of one kernel
  bool line_info = false;              ///< if true, the code depends on comments and `#line`, too
};

/// SHA-256 of the fields.
struct CacheKey {
  Digest bytes{};

  explicit CacheKey(const KeyFields& fields);
  std::string hex() const;
  auto operator<=>(const CacheKey&) const = default;
};

/// CUDA C++ without comments, line directives (`#line 3 "f"`, `# 3 "f"`) and empty lines, with continued lines joined
/// and white space collapsed: texts of equal meaning become equal. String, character and raw string literals are
/// unchanged.
std::string strip_comments(std::string_view source);

}  // namespace tessera::internal
