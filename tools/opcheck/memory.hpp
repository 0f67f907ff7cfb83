// The tensors of a case in memory, on the host and on a device.
#pragma once
#include <memory>

#include "opcheck/case.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal::opcheck {

/// In the host's memory, filled.
class HostTensors {
 public:
  explicit HostTensors(const Case& of);

  std::span<const Argument> arguments() const { return arguments_; }
  /// The bytes of a parameter's tensor, with some before and after it; empty for a scalar.
  std::span<std::byte> memory(std::size_t parameter) const;

  /// Where memory changed that a launch must not write: around a tensor, between its elements, or in an In. Empty if
  /// nowhere.
  std::string damage() const;

 private:
  const Case& case_;
  std::vector<Argument> arguments_;
  std::vector<std::shared_ptr<void>> memory_;  // by parameter
  std::vector<std::vector<std::byte>> before_;
};

/// A copy of it on a device.
class DeviceTensors {
 public:
  DeviceTensors(const Device& device, const HostTensors& host);
  std::span<const Argument> arguments() const { return arguments_; }
  /// After all earlier work of the device.
  void copy_back(const HostTensors& host) const;

 private:
  Device device_;
  std::vector<Argument> arguments_;
  std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace tessera::internal::opcheck
