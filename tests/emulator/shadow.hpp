// What is known of each place in memory: whether it holds anything, who read and wrote it last.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/history.hpp"

namespace tessera::internal::emulator {

/// Who may do what with a part of memory.
struct Owner {
  std::string name;          ///< "shared memory", "argument 2 (Out<f32, 1>)"
  const char* base;          ///< where its offset 0 is
  bool initialized = false;  ///< before the launch
  bool writable = true;
  bool early = false;  ///< no launch before writes it: it may be read before those have ended
};

/// The history of a place in memory.
struct Cell {
  History reads, writes;
};

/// A contiguous part of memory. What has been accessed has a cell for every granule: as many bytes as the
/// smallest access to its page so far. What has not takes no memory.
class Shadow {
 public:
  /// Bytes of one of the owners. The rest is nobody's.
  struct Range {
    std::size_t begin, end, owner;
  };
  /// All is the first owner's.
  Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners);
  /// Ranges in rising order, apart from each other.
  Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners, std::vector<Range> ranges);

  /// The most memory that the cells of one may take: at first, as much as the machine has.
  static std::size_t most_bytes;

  const char* begin() const { return begin_; }
  const char* end() const { return begin_ + bytes_; }
  const std::vector<Owner>& owners() const { return owners_; }

  /// Calls visit(owner, cell) for every granule of [address, address + bytes); null owner: nobody's. Throws
  /// std::bad_alloc where the cells would take more than most_bytes.
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
