#include "emulator/shadow.hpp"

#include <algorithm>
#include <utility>

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t largest_access = 16;

std::size_t lowest_bit(std::size_t x) { return x & -x; }

/// Every element `times` times.
template <class T>
std::vector<T> repeated(const std::vector<T>& elements, std::size_t times) {
  std::vector<T> result;
  result.reserve(elements.size() * times);
  for (const T& element : elements) result.insert(result.end(), times, element);
  return result;
}

}  // namespace

Shadow::Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners)
    : begin_(begin),
      bytes_(bytes),
      granule_(lowest_bit(bytes | largest_access)),
      owners_(std::move(owners)),
      owner_(bytes / granule_),
      cells_(bytes / granule_) {}

void Shadow::give(std::size_t offset, std::size_t bytes, std::size_t owner) {
  refine(offset | bytes);
  std::fill_n(owner_.begin() + static_cast<std::ptrdiff_t>(offset / granule_), bytes / granule_,
              static_cast<std::uint8_t>(owner));
}

void Shadow::refine(std::size_t multiple) {
  const std::size_t granule = lowest_bit(multiple | granule_);
  if (granule == granule_) return;
  owner_ = repeated(owner_, granule_ / granule);
  cells_ = repeated(cells_, granule_ / granule);
  granule_ = granule;
}

}  // namespace tessera::internal::emulator
