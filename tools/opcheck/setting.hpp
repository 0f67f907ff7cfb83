// Shapes of cases: of the tiles, and of the tensors that they cover.
#pragma once
#include "opcheck/case.hpp"

namespace tessera::internal::opcheck {

struct Setting {
  Shape tile;
  std::vector<std::int64_t> extents;  ///< one CTA for each tile that is needed to cover them
  Layout layout = Layout::dense;

  /// "[5,33] of [13,40], padded".
  std::string name() const;
};

/// To test: aligned, odd, with extents of 1, across edges, in each layout. To measure: a large one.
std::vector<Setting> settings(Purpose purpose);

std::string text(Layout layout);
/// "[13,40]".
std::string text(const std::vector<std::int64_t>& extents);

}  // namespace tessera::internal::opcheck
