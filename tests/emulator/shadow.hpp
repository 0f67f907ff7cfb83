// What is known of each place in memory: whether it holds anything, who read and wrote it last.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/history.hpp"

namespace tessera::internal::emulator {

/// Who may do what with a part of memory.
struct Owner {
  std::string name;          ///< "shared memory", "argument 2 (Out<f32, 1>)"
  const char* base;          ///< where its offset 0 is
  bool initialised = false;  ///< before the launch
  bool writable = true;
  bool early = false;  ///< no launch before writes it: it may be read before those have ended
};

/// The history of a place in memory.
struct Cell {
  History reads, writes;
};

/// A contiguous part of memory, with a cell for every granule: as many bytes as the smallest access so far.
class Shadow {
 public:
  Shadow(const char* begin, std::size_t bytes, std::vector<Owner> owners);

  const char* begin() const { return begin_; }
  const char* end() const { return begin_ + bytes_; }
  const std::vector<Owner>& owners() const { return owners_; }

  /// Gives `bytes` at `offset` to one of the owners, or to nobody. At first all is the first one's.
  static constexpr std::size_t nobody = 0xff;
  void give(std::size_t offset, std::size_t bytes, std::size_t owner);

  /// Calls visit(owner, cell) for every granule of [address, address + bytes); null owner: nobody's.
  template <class Visit>
  void visit(const char* address, std::size_t bytes, Visit&& visit) {
    const auto offset = static_cast<std::size_t>(address - begin_);
    refine(offset | bytes);
    for (std::size_t i = offset / granule_; i < (offset + bytes) / granule_; ++i) {
      const std::uint8_t owner = owner_[i];
      visit(owner == nobody ? nullptr : &owners_[owner], cells_[i]);
    }
  }

 private:
  /// Makes the granule divide `multiple`.
  void refine(std::size_t multiple);

  const char* begin_;
  std::size_t bytes_, granule_;
  std::vector<Owner> owners_;
  std::vector<std::uint8_t> owner_;
  std::vector<Cell> cells_;
};

}  // namespace tessera::internal::emulator
