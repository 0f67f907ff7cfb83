// What a compiled kernel is kept under: a digest of all that it depends on.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "jit/compile/sha256.hpp"

namespace tessera::internal {

/// Changes when the meaning of a key or the layout of an entry does; older entries are then never found.
inline constexpr std::uint32_t cache_schema = 1;

/// What makes one compiled kernel differ from another. No names and no paths: equal text is equal code.
struct KeyFields {
  std::string_view compiler;           ///< Nvrtc::build()
  std::string_view architecture;       ///< Nvrtc::Target::name(), so that cubin and PTX differ
  std::span<const std::string> flags;  ///< Nvrtc::options(), in order
  std::string_view source;             ///< of one kernel
  bool line_info = false;              ///< the code then depends on comments and `#line` too
};

/// SHA-256 of the fields.
struct CacheKey {
  Digest bytes{};

  explicit CacheKey(const KeyFields& fields);
  std::string hex() const;
  auto operator<=>(const CacheKey&) const = default;
};

/// CUDA C++ without comments and line directives (`#line 3 "f"`, `# 3 "f"`), continued lines joined, runs of blanks as
/// one, no empty lines: texts of equal meaning become equal. String, character and raw string literals stay as they
/// are.
std::string strip_comments(std::string_view source);

}  // namespace tessera::internal
