#include "emulator/shadow.hpp"

#include <unistd.h>

#include <new>
#include <utility>

namespace tessera::internal::emulator {
namespace {

constexpr std::size_t largest_access = 16;

std::size_t lowest_bit(std::size_t x) { return x & -x; }

/// Repeats each element `times` times.
template <class T>
std::vector<T> repeated(const std::vector<T>& elements, std::size_t times) {
  std::vector<T> result;
  result.reserve(elements.size() * times);
  for (const T& element : elements) result.insert(result.end(), times, element);
  return result;
}

}  // namespace

// The system would grant more than that, too, and then kill the process.
std::size_t Shadow::most_bytes =
    static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

Shadow::Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners)
    : Shadow(begin, bytes, std::move(owners), {{0, bytes, 0}}) {}

Shadow::Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners, std::vector<Range> ranges)
    : begin_(begin),
      bytes_(bytes),
      owners_(std::move(owners)),
      ranges_(std::move(ranges)),
      pages_((bytes + page_bytes - 1) / page_bytes) {}

std::unique_ptr<Shadow::Page> Shadow::new_page(std::size_t index) {
  const std::size_t begin = index * page_bytes, end = begin + page_bytes;
  const auto first = std::ranges::partition_point(ranges_, [&](const Range& range) { return range.end <= begin; });
  auto last = first;
  std::size_t edges = largest_access;
  for (; last != ranges_.end() && last->begin < end; ++last)
    edges |= std::max(last->begin, begin) | std::min(last->end, end);
  auto page = std::make_unique<Page>();
  page->granule = lowest_bit(edges);
  count(page_bytes / page->granule);
  page->owners.assign(page_bytes / page->granule, nobody);
  page->cells.resize(page_bytes / page->granule);
  for (auto range = first; range != last; ++range) {
    const std::size_t from = std::max(range->begin, begin) - begin, to = std::min(range->end, end) - begin;
    std::fill_n(page->owners.begin() + static_cast<std::ptrdiff_t>(from / page->granule),
                (to - from) / page->granule, static_cast<std::uint8_t>(range->owner));
  }
  return page;
}

void Shadow::refine(Page& page, std::size_t multiple) {
  const std::size_t granule = lowest_bit(multiple | page.granule);
  if (granule == page.granule) return;
  count(page_bytes / granule - page_bytes / page.granule);
  page.owners = repeated(page.owners, page.granule / granule);
  page.cells = repeated(page.cells, page.granule / granule);
  page.granule = granule;
}

void Shadow::count(std::size_t cells) {
  if ((cells_ + cells) * sizeof(Cell) > most_bytes) throw std::bad_alloc();
  cells_ += cells;
}

}  // namespace tessera::internal::emulator
