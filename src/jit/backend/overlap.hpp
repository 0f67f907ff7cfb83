// Do two tensors share memory?
#pragma once
#include <cstdint>
#include <optional>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Do the addresses of all elements exist? Not if strides lead below 0 or beyond 2^64, where addresses begin anew. What
/// follows is for tensors of which they do.
bool is_addressable(const Parameter& parameter, const Argument& argument);

/// The first and the last byte of an addressable tensor, or none of one without elements. What lies between may be
/// others'.
struct AddressRange {
  std::uintptr_t first, last;
  bool operator==(const AddressRange&) const = default;
};
std::optional<AddressRange> addresses(const Parameter& parameter, const Argument& argument);

/// Exact for tensors laid out alike, as parts of one larger tensor are; else two tensors overlap if the ranges of
/// addresses from their first to their last byte do. A tensor without elements overlaps nothing.
bool overlap(const Parameter& a_parameter, const Argument& a, const Parameter& b_parameter, const Argument& b);

/// May two positions of one tensor share an address? Not if its strides are nested, as those of any part of a dense
/// tensor are, in any order of the axes.
bool overlaps_itself(const Parameter& parameter, const Argument& argument);

}  // namespace tessera::internal
