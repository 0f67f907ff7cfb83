// Architectures of NVIDIA GPUs, and what a kernel may use on each.
#pragma once
#include <string>
#include <string_view>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// An architecture: sm_80, or sm_90a with the instructions that only this one has. One newer than parse() knows is made
/// of its numbers.
struct Arch {
  int major = 0, minor = 0;
  char suffix = 0;  ///< 'a' or none

  /// "sm_90a". Throws Error with the choices for what there is not, and for what is older than sm_80, which kernels
  /// need.
  static Arch parse(std::string_view text);
  std::string name() const;                          ///< "sm_90a"
  int number() const { return major * 10 + minor; }  ///< 90, as NVRTC counts
  /// Bytes of shared memory that one block may have (CUDA C++ Programming Guide, compute capabilities).
  int shared_bytes() const;
  bool operator==(const Arch&) const = default;

  static const Arch sm_80, sm_90a;
};
inline constexpr Arch Arch::sm_80{8, 0, 0};
inline constexpr Arch Arch::sm_90a{9, 0, 'a'};

}  // namespace internal
}  // namespace tessera
