#include "codegen/lower/sm90/promoted_sums.hpp"

#include <algorithm>

namespace tessera::internal::lowering {

std::vector<PromotedSums::Part> PromotedSums::parts_of_stage() const {
  const WarpSpecialization& how = pipelines_.how;
  std::vector<Part> parts;
  for (int first_k = 0; first_k < pipelines_.matmul(how.matmuls[0].id).k; first_k += most_fp8_products)
    for (std::size_t matmul = 0; matmul < how.matmuls.size(); ++matmul)
      for (int first = 0; const int columns : how.promoted_parts) {
        parts.push_back({matmul, first, columns, first_k});
        first += columns;
      }
  return parts;
}

Sweep PromotedSums::sweep_of(const Part& part) const {
  const Shape shape{pipelines_.matmul(pipelines_.how.matmuls[0].id).m, part.columns};
  Sweep sweep{.shape = shape,
              .layout = wgmma_accumulator_layout(shape, pipelines_.how.groups, pipelines_.how.row_order)};
  sweep.origin[1] = part.first_column;
  return sweep;
}

void PromotedSums::declare() {
  parts_ = parts_of_stage();
  for (std::size_t set = 0; set < 2; ++set) {
    const ValueId all = steps_.values.add_part(pipelines_.how.matmuls[0].id, sweep_of(parts_[set]));
    const StorageId storage = steps_.plan.values[all].storage;
    steps_.plan.storages[storage].changes = true;
    push(DeclareAccumulator{.value = all, .zeroed = true});
    for (std::size_t i = set; i < parts_.size(); i += 2) {
      const Sweep part = sweep_of(parts_[i]);
      parts_[i].sums = steps_.plan.values.add({storage, part.shape, part.layout, part.origin});
    }
  }
}

// All wgmma of the stage before end before the first of this one: ptxas does not let their sums be read while others
// are in flight across the end of an iteration (C7514).
void PromotedSums::multiply(const std::vector<PendingWgmma>& matmuls, const std::function<void()>& release) {
  open_ = {.accumulators = matmuls.back().wgmma.out, .sums = parts_.back().sums};
  std::map<Id, ValueId> left;
  for (const Part& part : parts_) {
    const bool is_first = &part == &parts_.front(), is_next_piece = is_first || part.first_k != (&part - 1)->first_k;
    if (is_next_piece)
      left = fragments_.take(steps_, part.first_k, matmuls[0].wgmma.b_state, [&] { push(WgmmaWait{0}); });
    Wgmma wgmma = matmuls[part.matmul].wgmma;
    wgmma.left = left.at(matmuls[part.matmul].left);
    const PromoteSums next{.accumulators = wgmma.out, .sums = part.sums};
    wgmma.out = part.sums;
    wgmma.n = part.columns;
    wgmma.first_k = part.first_k;
    wgmma.k = most_fp8_products;
    wgmma.overwrites = true;
    wgmma.accumulators = next.accumulators;
    push(WgmmaFence{});
    push(wgmma);
    push(WgmmaCommit{});
    push(RegisterFence{part.sums});
    is_first ? release() : push(WgmmaWait{1});
    promote(std::exchange(open_, next));
  }
}

void PromotedSums::promote(const PromoteSums& sums) const {
  push(RegisterFence{sums.sums});
  push(sums);
}

}  // namespace tessera::internal::lowering
