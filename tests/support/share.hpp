// How many cases tests run: for kernels that each cost a compilation, and under sanitizers.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string_view>

/// Is this a build with sanitizers? They detect in a few iterations of the same code all that they would in many.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// One of this many, the same one each time: TESSERA_TEST_SHARE, or `usual` if that is not set. With TESSERA_TEST_ALL
/// it is 1, for all of them.
inline std::size_t test_share(std::size_t usual) {
  const auto text = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  if (!text("TESSERA_TEST_ALL").empty()) return 1;
  const std::string_view share = text("TESSERA_TEST_SHARE");
  return share.empty() ? usual : static_cast<std::size_t>(std::max(1, std::atoi(share.data())));
}

/// Is the case with this name in the share?
inline bool in_share(std::string_view text, std::size_t share) {
  return std::hash<std::string_view>()(text) % share == 0;
}
