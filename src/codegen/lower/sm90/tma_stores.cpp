#include "codegen/lower/sm90/tma_stores.hpp"

#include <fmt/format.h>

#include "codegen/lower/sm90/tma_boxes.hpp"

namespace tessera::internal::lowering {

// A part of the result fills a buffer: a panel's columns of all rows. The warp groups share the rows of accumulators;
// where these are columns of the result, a part has a panel of each 128 bytes of all columns, and as many rows.
TmaStores::TmaStores(const MatmulPipelines& pipelines, GraphLowering& graph)
    : pipelines_(pipelines), steps_(graph.steps()) {
  const WarpSpecialization& how = pipelines.how;
  if (how.tma_stores.empty()) return;
  const Matmul& matmul = pipelines.matmul(how.matmuls[0].id);
  const int parameter = pipelines.analysis.access(how.tma_stores[0]).parameter;
  for (int i = 0; i < 2; ++i) {
    Buffer buffer{.label = {.stem = fmt::format("staged{}", i)},
                  .type = pipelines.analysis.graph.parameters[static_cast<std::size_t>(parameter)].type,
                  .rows = matmul.m,
                  .columns = matmul.m,
                  .form = SharedForm::panels,
                  .consumer_groups = how.consumer_groups};
    extent_ = buffer.panel_columns();
    if (how.transposed && matmul.n % extent_) extent_ /= 2;
    (how.transposed ? buffer.rows : buffer.columns) = extent_;
    parts_ = matmul.n / extent_;
    buffers_[i] = steps_.plan.buffers.add(std::move(buffer));
  }
}

bool TmaStores::store(Id id) const {
  const std::vector<Id>& stores = pipelines_.how.tma_stores;
  const auto found = std::ranges::find(stores, id);
  if (found == stores.end()) return false;
  const Id about = pipelines_.how.matmuls[0].id;
  const Buffer& buffer = steps_.plan.buffers[buffers_[0]];
  const TensorMapId map = tma_tensors_of(pipelines_.analysis, steps_.plan, id, rows_of(id), buffer, TmaUse::store);
  const int panels = buffer.columns / buffer.panel_columns(), panel_bytes = static_cast<int>(buffer.panel_bytes());
  const int before = static_cast<int>(found - stores.begin()) * parts_, all = static_cast<int>(stores.size()) * parts_;
  for (int part = 0; part < parts_; ++part) {
    const int number = before + part;
    const BufferId to = buffers_[number % 2];
    // With an odd number of parts, the first goes to the buffer that the last part of the tile before used.
    const int pending = number == 0 && all % 2 ? 0 : 1;
    // Its reads are in flight while it waits for the buffer.
    SweepBuilder builder(steps_, sweep_of(steps_.analysis, steps_.layouts, id), id);
    Sweep sweep = builder.part(axis_of(id), part * extent_, extent_).express(steps_.node(id).in[0]).take();
    leave_rounding_to_memory(sweep.expression);
    steps_.elect(about, steps_.threads, [&] { steps_.push(about, TmaStoreWait{pending}); });
    steps_.push(about, Barrier{});
    steps_.push(id, StoreShared{.buffer = to, .sweep = std::move(sweep)});
    steps_.push(about, ProxyFence{});
    steps_.push(about, Barrier{});
    steps_.elect(about, steps_.threads, [&] {
      for (int panel = 0; panel < panels; ++panel)
        steps_.push(about, TmaStore{map, to, panel * panel_bytes, place_of(id, part, panel, to)});
      steps_.push(about, TmaStoreCommit{});
    });
  }
  return true;
}

std::vector<TileCoordinate> TmaStores::place_of(Id store, int part, int panel, BufferId buffer) const {
  const bool by_rows = pipelines_.how.transposed;
  return place_of_panel(steps_, pipelines_.how.loop, store, rows_of(store), by_rows ? panel : part,
                        steps_.plan.buffers[buffer], by_rows ? part * extent_ : 0);
}

Axes TmaStores::rows_of(Id store) const {
  const Shape& shape = steps_.node(store).shape;
  return merged_axes(shape, matrix_shape(shape))->at(0);
}

void TmaStores::wait() const {
  const Id about = pipelines_.how.matmuls[0].id;
  if (parts_ > 0) steps_.elect(about, steps_.threads, [&] { steps_.push(about, TmaStoreWait{0}); });
}

}  // namespace tessera::internal::lowering
