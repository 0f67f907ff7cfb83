// Reports of a running kernel to the host: failed checks and printed text. The text is the same on every executor.
//
// The CPU executor reports immediately. Generated kernels write to a mailbox of 32-bit words, which the host reads when
// they have ended.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The text of a print, split at its values: one more piece than there are values. Throws Mismatch for braces that are
/// neither {} nor doubled.
std::vector<std::string> print_pieces(std::string_view format);

/// A value to print: for rank 0 a number, else nested rows as in [[1, 2], [3, 4]].
struct PrintedTile {
  ElementType type{};
  Shape shape;
  std::vector<Cell> elements;  ///< row-major
};

/// The 32-bit words of a mailbox. The header is followed by records, one for each print of a grid tile: the length in
/// words, the number of the print's text, the block index (two words), then the elements of each value.
namespace board {
inline constexpr std::size_t failed = 0;  ///< not 0: a check failed
inline constexpr std::size_t text = 1;    ///< its text
inline constexpr std::size_t block = 2;   ///< its block index, two words
inline constexpr std::size_t used = 4;    ///< words that the records needed, two words
inline constexpr std::size_t lost = 6;    ///< not 0: some records did not fit
inline constexpr std::size_t header = 16;
inline constexpr std::size_t record_header = 4;
inline constexpr std::size_t room = 1 << 18;  ///< words for records
}  // namespace board

class Reports {
 public:
  Reports() = default;
  explicit Reports(const Graph& graph);

  /// Does the kernel report nothing?
  bool empty() const { return sources_.empty(); }
  bool prints() const { return prints_; }
  /// Words of a mailbox, which must be 0 initially.
  std::size_t words() const { return board::header + (prints_ ? board::room : 0); }

  /// The error text of a failed check; and the text of a print, one line.
  std::string failed(std::size_t text, std::int64_t block) const;
  std::string printed(std::size_t text, std::span<const PrintedTile> values) const;

  struct Told {
    std::string printed;  ///< ordered by block index
    std::string failed;   ///< empty: none
  };
  /// Reads and clears a mailbox. Nothing may write to it meanwhile.
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
