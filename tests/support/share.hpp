// How much tests do: of kernels that each cost a compilation, and under sanitizers.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string_view>

/// Whether sanitizers look on, which see in a few rounds of the same code what there is to see in many.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// One of so many, the same one each time: TESSERA_TEST_SHARE, which is `usual` where it is not set. All of them, 1,
/// with TESSERA_TEST_ALL.
inline std::size_t test_share(std::size_t usual) {
  const auto text = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  if (!text("TESSERA_TEST_ALL").empty()) return 1;
  const std::string_view share = text("TESSERA_TEST_SHARE");
  return share.empty() ? usual : static_cast<std::size_t>(std::max(1, std::atoi(share.data())));
}

/// Is what this text names one of them?
inline bool in_share(std::string_view text, std::size_t share) {
  return std::hash<std::string_view>()(text) % share == 0;
}
