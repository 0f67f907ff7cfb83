#include "codegen/lower/sm90/tma_stores.hpp"

#include <fmt/format.h>

#include "codegen/lower/sm90/tma_boxes.hpp"

namespace tessera::internal::lowering {

TmaStores::TmaStores(const MatmulPipelines& pipelines, GraphLowering& graph)
    : pipelines_(pipelines), steps_(graph.steps()) {
  const WarpSpecialization& how = pipelines.how;
  if (how.tma_stores.empty()) return;
  const Matmul& matmul = pipelines.matmul(how.matmuls[0].id);
  const int parameter = pipelines.analysis.access(how.tma_stores[0]).parameter;
  for (int i = 0; i < 2; ++i) {
    Buffer buffer{.label = {.stem = fmt::format("out{}", i)},
                  .type = pipelines.analysis.graph.parameters[static_cast<std::size_t>(parameter)].type,
                  .rows = matmul.m,
                  .columns = 1,
                  .form = SharedForm::panels,
                  .consumer_groups = how.consumer_groups};
    buffer.columns = buffer.panel_columns();
    parts_ = matmul.n / buffer.columns;
    buffers_[i] = steps_.plan.buffers.add(std::move(buffer));
  }
}

bool TmaStores::store(Id id) const {
  const std::vector<Id>& stores = pipelines_.how.tma_stores;
  const auto found = std::ranges::find(stores, id);
  if (found == stores.end()) return false;
  const Id about = pipelines_.how.matmuls[0].id;
  const int columns = steps_.plan.buffers[buffers_[0]].columns;
  const TensorMapId map =
      tma_tensors_of(pipelines_.analysis, steps_.plan, id, 0, steps_.plan.buffers[buffers_[0]], TmaUse::store);
  const int before = static_cast<int>(found - stores.begin()) * parts_, all = static_cast<int>(stores.size()) * parts_;
  for (int part = 0; part < parts_; ++part) {
    const int number = before + part;
    const BufferId to = buffers_[number % 2];
    // With an odd number of parts, the first goes to the buffer that the last part of the tile before used.
    const int pending = number == 0 && all % 2 ? 0 : 1;
    // Its reads are in flight while it waits for the buffer.
    SweepBuilder builder(steps_, sweep_of(steps_.analysis, steps_.layouts, id), id);
    Sweep sweep = builder.part(1, part * columns, columns).express(steps_.node(id).in[0]).take();
    leave_rounding_to_memory(sweep.expression);
    steps_.elect(about, steps_.threads, [&] { steps_.push(about, TmaStoreWait{pending}); });
    steps_.push(about, Barrier{});
    steps_.push(id, StoreShared{.buffer = to, .sweep = std::move(sweep)});
    steps_.push(about, ProxyFence{});
    steps_.push(about, Barrier{});
    steps_.elect(about, steps_.threads, [&] {
      steps_.push(about,
                  TmaStore{map, to, place_of_panel(steps_, pipelines_.how.loop, id, part, steps_.plan.buffers[to])});
      steps_.push(about, TmaStoreCommit{});
    });
  }
  return true;
}

void TmaStores::wait() const {
  const Id about = pipelines_.how.matmuls[0].id;
  if (parts_ > 0) steps_.elect(about, steps_.threads, [&] { steps_.push(about, TmaStoreWait{0}); });
}

}  // namespace tessera::internal::lowering
