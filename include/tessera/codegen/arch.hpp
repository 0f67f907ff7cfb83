// Architectures of NVIDIA GPUs, and the features that a kernel may use on each.
#pragma once
#include <string>
#include <string_view>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// An architecture: sm_80, or sm_90a with its architecture-specific instructions. An architecture newer than parse()
/// knows is described by its numbers.
struct Arch {
  int major = 0, minor = 0;
  char suffix = 0;  ///< 'a' or none

  /// Parses "sm_90a". Throws Error that lists the choices for an unknown name, and for architectures older than sm_80,
  /// which kernels need.
  static Arch parse(std::string_view text);
  std::string name() const;                          ///< "sm_90a"
  int number() const { return major * 10 + minor; }  ///< 90, as NVRTC counts
  /// The maximum shared memory of a CTA, in bytes (CUDA C++ Programming Guide, compute capabilities).
  int shared_bytes() const;
  bool operator==(const Arch&) const = default;

  static const Arch sm_80, sm_90a;
};
inline constexpr Arch Arch::sm_80{8, 0, 0};
inline constexpr Arch Arch::sm_90a{9, 0, 'a'};

}  // namespace internal
}  // namespace tessera
