// Do two tensors share memory?
#pragma once
#include <cstdint>
#include <optional>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Does every element have a valid address? Not if strides lead below 0 or beyond 2^64, where addresses wrap around.
/// The functions below expect addressable tensors.
bool is_addressable(const Parameter& parameter, const Argument& argument);

/// The first and the last byte of an addressable tensor; nullopt for a tensor without elements. Bytes in between may
/// belong to others.
struct AddressRange {
  std::uintptr_t first, last;
  bool operator==(const AddressRange&) const = default;
};
std::optional<AddressRange> addresses(const Parameter& parameter, const Argument& argument);

/// Exact for tensors with equal strides, such as parts of one larger tensor. Otherwise two tensors count as overlapping
/// if their address ranges do, from first byte to last. A tensor without elements overlaps nothing.
bool overlap(const Parameter& a_parameter, const Argument& a, const Parameter& b_parameter, const Argument& b);

/// Can two positions of one tensor share an address? No if its strides are nested, as those of any part of a dense
/// tensor are, in any order of the axes.
bool overlaps_itself(const Parameter& parameter, const Argument& argument);

}  // namespace tessera::internal
