// Places the nodes of a graph in layers, for a drawing.
#pragma once
#include <cstddef>
#include <vector>

#include "codegen/lowering_record.hpp"

namespace tessera::internal {

/// The operations on tiles and tensors, each below its operands, in pixels. Scalars and indices are left out.
struct GraphDrawing {
  static constexpr int box_width = 150, box_height = 30;
  struct Box {
    int node = 0;  ///< its number in the record
    int x = 0, y = 0;
  };
  struct Wire {
    std::size_t from = 0, to = 0;  ///< boxes
  };
  int width = 0, height = 0;
  std::vector<Box> boxes;
  std::vector<Wire> wires;
};

GraphDrawing draw_graph(const LoweringRecord& record);

}  // namespace tessera::internal
