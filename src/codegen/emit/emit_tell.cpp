#include "codegen/emit/emit_steps.hpp"
#include "graph/host_ops.hpp"

namespace tessera::internal::codegen {
namespace {

// Index of the grid tile in row-major order, whatever the order in which the tiles run.
IndexExpression number_of_block(Writer& w, const HostReport& tell) {
  IndexExpression number = 0;
  for (std::size_t axis = 0; axis < tell.block.size(); ++axis) {
    const IndexExpression extent = w.grid(static_cast<int>(axis));
    const IndexExpression index = cast_i64(scalar(w, tell.block[axis]));
    number = axis == 0 ? index : number * extent + index;
  }
  return number;
}

}  // namespace

// A check's condition is uniform across threads, and so is the record of a print.
void emit(Writer& w, const HostReport& tell) {
  const IndexExpression block = number_of_block(w, tell);
  if (tell.unless) {
    w.line("if (!({})) fail_check(reports, {}, {});", scalar(w, *tell.unless), tell.text, block);
    return;
  }
  w.uses.thread = true;
  w.open("if (thread == 0) {{");
  std::int64_t words = 0;
  for (const HostReport::Tile& tile : tell.values)
    words += tile.elements * host_bytes(host_type(w.plan.scratch[tile.scratch].type)) / 4;
  w.line("u32* const record = new_record(reports, {}, {}, {});", tell.text, block, words);
  std::int64_t at = 0;
  for (const HostReport::Tile& tile : tell.values) {
    const ElementType type = w.plan.scratch[tile.scratch].type;
    w.line("if (record) record_elements(record + {}, {}, {});", at, w.scratch(tile.scratch, type), tile.elements);
    at += tile.elements * host_bytes(host_type(type)) / 4;
  }
  w.close();
}

}  // namespace tessera::internal::codegen
