// The arguments of a launch, generated from a few words: the same words give the same bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/mapping.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::fuzz {

/// The contents of a tensor before the launch.
enum class Fill : std::uint8_t {
  whole,    ///< small integers, in tensors of reals too
  real,     ///< reals in (-2, 2); integers in [-100, 100]
  wide,     ///< reals of either sign and many magnitudes, up to 64; integers of any bits, often the extremes
  special,  ///< as wide, with NaN, infinities, both zeros and subnormals among the reals
};
inline constexpr std::string_view fill_names[] = {"whole", "real", "wide", "special"};

/// The argument for one parameter, whose type and rank the kernel defines.
struct Given {
  std::vector<std::int64_t> extents = {};
  std::vector<std::int64_t> strides = {};  ///< in elements; empty: row-major
  std::int64_t offset = 0;                 ///< elements from an aligned address, or from the start of `shares`
  Fill fill = Fill::real;
  int shares = -1;    ///< the earlier argument whose memory it is in; -1: memory of its own
  double scalar = 0;  ///< for a Scalar
};

/// Row-major strides.
std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> extents);

/// Memory that is used in parts: the bytes between them are neither copied nor compared, and cost nothing.
class Buffer {
 public:
  struct Part {
    std::size_t first, end;  // bytes
  };
  /// Parts in order and disjoint; the last one's end is the buffer's.
  explicit Buffer(std::vector<Part> parts)
      : parts_(std::move(parts)), memory_(std::make_unique<emulator::Mapping>(size())) {}
  Buffer(const Buffer& other);
  Buffer(Buffer&&) noexcept = default;

  const std::vector<Part>& parts() const { return parts_; }
  std::size_t size() const { return parts_.back().end; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(memory_->data()); }
  std::byte& operator[](std::size_t at) const { return data()[at]; }
  bool operator==(const Buffer& other) const;

 private:
  std::vector<Part> parts_;
  std::unique_ptr<emulator::Mapping> memory_;
};

/// The memory of a launch's tensors, on the host. A copy is other memory with the same bytes.
class Memory {
 public:
  Memory(const std::vector<Parameter>& parameters, std::span<const Given> given, std::uint64_t seed);

  std::vector<Argument> arguments();
  /// The same with the tensors at other addresses, one for each of buffers().
  std::vector<Argument> arguments(std::span<std::byte* const> bases) const;
  const std::vector<Buffer>& buffers() const { return buffers_; }

  /// Does a writable element belong to two indices, of two tensors or of one? Then a launch is rejected.
  bool overlaps() const;
  /// The first byte that differs from `before` and belongs to no writable element, as text; or empty.
  std::string stray_write(const Memory& before) const;

 private:
  struct Place {
    std::size_t buffer = 0;
    std::int64_t first = 0;  // byte of element [0, 0, ...]
    Argument argument;
  };
  template <class Visit>
  void each_element(std::size_t argument, const Visit& visit) const;  // visit(its first byte in the buffer)
  bool is_written(std::size_t argument) const;
  std::vector<Buffer::Part> parts_of(std::size_t buffer) const;

  std::vector<Parameter> parameters_;
  std::vector<Place> places_;  // one per argument
  std::vector<Buffer> buffers_;
};

/// The largest magnitude of a fill, without NaN and infinities.
double largest(Fill fill, ElementType type);

}  // namespace tessera::internal::fuzz
