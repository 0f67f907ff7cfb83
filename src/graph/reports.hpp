// What a kernel tells the host while it runs: checks that failed, and what it prints. One text on every executor.
//
// The CPU's tells it at once. Generated kernels write to a board of words, which the host reads when they have ended.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The text of a print, cut where its values stand: one piece more than there are values. Throws Mismatch for braces
/// that are neither {} nor written twice.
std::vector<std::string> print_pieces(std::string_view format);

/// A value that is printed: of rank 0 as a number, else as [[1, 2], [3, 4]].
struct PrintedTile {
  ElementType type{};
  Shape shape;
  std::vector<Cell> elements;  ///< row-major
};

/// The words of a board. Those behind the first are records, one behind the other, each of a print in a block: its
/// length in words, the print's text, the block's number (two words), then the elements of each value.
namespace board {
inline constexpr std::size_t failed = 0;  ///< not 0: a check failed
inline constexpr std::size_t text = 1;    ///< of the check
inline constexpr std::size_t block = 2;   ///< where it did, two words
inline constexpr std::size_t used = 4;    ///< words that records wanted, two words
inline constexpr std::size_t lost = 6;    ///< not 0: some had no room
inline constexpr std::size_t header = 16;
inline constexpr std::size_t record_header = 4;
inline constexpr std::size_t room = 1 << 18;  ///< words for records
}  // namespace board

class Reports {
 public:
  Reports() = default;
  explicit Reports(const Graph& graph);

  /// Does the kernel tell nothing?
  bool empty() const { return sources_.empty(); }
  bool prints() const { return prints_; }
  /// Words of a board; all 0 when it is new.
  std::size_t words() const { return board::header + (prints_ ? board::room : 0); }

  /// The text of a check that failed, and of a print, a line.
  std::string failed(std::size_t text, std::int64_t block) const;
  std::string printed(std::size_t text, std::span<const PrintedTile> values) const;

  struct Told {
    std::string printed;  ///< block by block
    std::string failed;   ///< empty: none
  };
  /// Reads a board, which is new again. Nothing writes to it meanwhile.
  Told take(std::span<std::uint32_t> board) const;

 private:
  struct Source {
    std::size_t text;
    Location location;
    std::string said;                      // of a check
    std::vector<std::string> pieces;       // of a print
    std::vector<PrintedTile> values = {};  // its values, without elements
  };
  const Source& source(std::size_t text) const;

  std::string kernel_;
  std::vector<Source> sources_;
  bool prints_ = false;
};

}  // namespace tessera::internal
