// The memory in which a stamped launch logs what its roles do.
#pragma once
#include <cstdint>

#include "codegen/target/stamps.hpp"
#include "jit/cuda/driver.hpp"
#include "jit/profile/inside.hpp"

namespace tessera::internal {

class CudaStream;

/// Logs of the CTAs of one launch, all 0 before it.
class StampLog {
 public:
  /// A launch with too many CTAs gets no room, and logs nothing.
  StampLog(CudaStream& stream, const StampTable& table, std::int64_t ctas);
  ~StampLog();
  StampLog(const StampLog&) = delete;
  StampLog& operator=(const StampLog&) = delete;

  cuda::CUdeviceptr address() const { return address_; }
  std::uint32_t room() const { return room_; }
  /// Waits for the launch, and gives what it logged to the profile.
  void read(profile::StampedLaunch launch) const;

 private:
  CudaStream& stream_;
  std::int64_t rows_;
  std::uint32_t room_;
  cuda::CUdeviceptr address_ = 0;
};

}  // namespace tessera::internal
