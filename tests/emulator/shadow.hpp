// The state of each location in memory: whether it is initialized, and its last accesses.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/history.hpp"

namespace tessera::internal::emulator {

/// A part of memory, and which accesses to it are allowed.
struct Owner {
  std::string name;          ///< "shared memory", "argument 2 (Out<f32, 1>)"
  const char* base;          ///< address of its offset 0
  bool initialized = false;  ///< before the launch
  bool writable = true;
  bool early = false;  ///< no preceding launch writes it: it may be read before the PDL wait
};

/// The history of a location in memory.
struct Cell {
  History reads, writes;
};

/// The shadow of a contiguous part of memory. Pages that have been accessed have a cell for every granule, whose size
/// is the smallest access to the page so far. Other pages take no memory.
class Shadow {
 public:
  /// A byte range that belongs to one of the owners. Bytes in no range have no owner.
  struct Range {
    std::size_t begin, end, owner;
  };
  /// The first owner has all bytes.
  Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners);
  /// Ranges are in ascending order and disjoint.
  Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners, std::vector<Range> ranges);

  /// The maximum size of the cells of one shadow; initially the size of the machine's memory.
  static std::size_t most_bytes;

  const char* begin() const { return begin_; }
  const char* end() const { return begin_ + bytes_; }
  const std::vector<Owner>& owners() const { return owners_; }

  /// Calls visit(owner, cell) for every granule of [address, address + bytes); the owner is null if there is none.
  /// Throws std::bad_alloc if the cells would take more than most_bytes.
  template <class Visit>
  void visit(const char* address, std::size_t bytes, Visit&& visit) {
    for (auto offset = static_cast<std::size_t>(address - begin_); bytes > 0;) {
      const std::size_t within = offset % page_bytes, here = std::min(bytes, page_bytes - within);
      Page& page = this->page(offset / page_bytes);
      refine(page, within | here);
      for (std::size_t i = within / page.granule; i < (within + here) / page.granule; ++i) {
        const std::uint8_t owner = page.owners[i];
        visit(owner == nobody ? nullptr : &owners_[owner], page.cells[i]);
      }
      offset += here, bytes -= here;
    }
  }

 private:
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::uint8_t nobody = 0xff;
  struct Page {
    std::size_t granule = 0;
    std::vector<std::uint8_t> owners{};
    std::vector<Cell> cells{};
  };

  Page& page(std::size_t index) {
    if (!pages_[index]) pages_[index] = new_page(index);
    return *pages_[index];
  }
  std::unique_ptr<Page> new_page(std::size_t index);
  /// Makes the page's granule divide `multiple`.
  void refine(Page& page, std::size_t multiple);
  void count(std::size_t cells);

  const char* begin_;
  std::size_t bytes_;
  std::vector<Owner> owners_;
  std::vector<Range> ranges_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t cells_ = 0;  ///< of all pages
};

}  // namespace tessera::internal::emulator
