// Shapes that cases are made for: of the tiles, and of the tensors that they cover.
#pragma once
#include "opcheck/case.hpp"

namespace tessera::internal::opcheck {

struct Setting {
  Shape tile;
  std::vector<std::int64_t> extents;  ///< a block for each tile that it takes to cover them
  Layout layout = Layout::dense;

  /// "[5,33] of [13,40], padded".
  std::string name() const;
};

/// To test: aligned, odd, with extents of 1, over edges, in each layout. To measure: one that is large.
std::vector<Setting> settings(Purpose purpose);

std::string text(Layout layout);
/// "[13,40]".
std::string text(const std::vector<std::int64_t>& extents);

}  // namespace tessera::internal::opcheck
