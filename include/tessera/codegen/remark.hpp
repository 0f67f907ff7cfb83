// Optimization remarks: how a kernel's statements were compiled, and why not better.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// One decision about a kernel, at the author's line that it concerns.
struct Remark {
  enum class Status : std::uint8_t {
    passed,    ///< done
    missed,    ///< not done, and why
    analysis,  ///< a fact
  };
  std::string file;  ///< as the compiler names it; empty: not about a statement
  unsigned line = 0;
  Status status{};
  std::string kind;  ///< "wgmma", "tma", "vector", ...: docs/speed.md lists them
  std::string message;
  bool operator==(const Remark&) const = default;
};

/// "passed", "missed", "analysis".
std::string_view name(Remark::Status status);
/// "attention.cpp:31: missed wgmma: the loop's trip count depends on computed values".
std::string to_string(const Remark& remark);
/// One line for each.
std::string to_string(std::span<const Remark> remarks);
/// An array of objects with the members "file", "line", "status", "kind" and "message".
std::string to_json(std::span<const Remark> remarks);

}  // namespace internal
}  // namespace tessera
