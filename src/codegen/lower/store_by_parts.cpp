#include "codegen/lower/store_by_parts.hpp"

namespace tessera::internal::lowering {
namespace {

// Is a tile held as the accumulators, perhaps with their rows in several axes?
bool is_held_as(const Steps& steps, Id tile, Id accumulators) {
  const Shape& shape = steps.node(tile).shape;
  return shape.rank() >= 2 && matrix_shape(shape) == steps.node(accumulators).shape &&
         steps.layouts.of[tile].reshaped(shape, matrix_shape(shape)) == steps.layouts.of[accumulators];
}

// The number of tiles of the accumulators' shape that the store reads.
int reads_of(const Steps& steps, const RoleRules& rules, Id store) {
  int reads = 0;
  std::vector<Id> open{steps.node(store).in[0]};
  std::set<Id> seen;
  while (!open.empty()) {
    const Id at = open.back();
    open.pop_back();
    if (steps.values.of(at) || !seen.insert(at).second) continue;
    const Node& node = steps.node(at);
    reads += node.op == Op::load && rules.read_where_used.contains(at) && node.shape == steps.node(store).shape;
    if (is_elementwise(node.op)) open.insert(open.end(), node.in.begin(), node.in.end());
  }
  return reads;
}

int columns_of_part(int all, int registers) {
  constexpr int most = 32, block = 16;  // registers of a part's reads; its columns are a multiple of `block`
  int columns = all;
  for (int parts = 2; parts * block <= all && registers * columns > most * all; ++parts)
    if (all % (parts * block) == 0) columns = all / parts;
  return columns;
}

}  // namespace

// Reads do not move ahead of a store that may write where they read, and so each would wait for memory in turn. So all
// reads of a part come first.
bool store_by_parts(Steps& steps, const RoleRules& rules, Id store) {
  if (rules.accumulators == no_id || steps.node(store).op != Op::store ||
      !is_held_as(steps, steps.node(store).in[0], rules.accumulators))
    return false;
  const int reads = reads_of(steps, rules, store);
  if (reads == 0) return false;
  const Sweep whole = sweep_of(steps.analysis, steps.layouts, store);
  const int axis = whole.shape.rank() - 1, all = whole.shape[axis],
            columns = columns_of_part(all, reads * whole.layout.registers());
  for (int first = 0; first < all; first += columns) {
    SweepBuilder builder(steps, whole, store);
    Sweep sweep = builder.part(axis, first, columns).reading_first().express(steps.node(store).in[0]).take();
    leave_rounding_to_memory(sweep.expression);
    steps.push(store, Store{.kind = Store::Kind::store, .sweep = std::move(sweep), .access = steps.access_of(store)});
  }
  return true;
}

}  // namespace tessera::internal::lowering
