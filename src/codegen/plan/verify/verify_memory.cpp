// Offsets, and overlap of memory that is live at the same time.
#include <algorithm>

#include "codegen/plan/verify/verify.hpp"
#include "graph/host_ops.hpp"

namespace tessera::internal::codegen {
namespace {

struct PlacedPiece {
  std::string name;
  bool in_workspace;
  std::int64_t first, last;
  Interval in_use;
};

class Memory {
 public:
  explicit Memory(Diagnostics& diagnostics)
      : diagnostics_(diagnostics),
        plan_(diagnostics.plan),
        buffers_(plan_.buffers.size()),
        scratch_(plan_.scratch.size()),
        values_(plan_.storages.size()) {}

  void run() {
    PlanWalk walk(plan_);
    const int positions =
        walk.each([&](const Role& role, const Step& step, int at, const std::vector<const Interval*>& around) {
      diagnostics_.about(&step);
      for (const Effect& effect : effects(plan_, role, step)) {
        if (effect.space == Effect::Space::buffer) buffers_.touch(effect.index, at, around);
        if (effect.space == Effect::Space::scratch) scratch_.touch(effect.index, at, around);
      }
      for (ValueId id : operands(step)) values_.touch(plan_.values[id].storage.index, at, around);
      for (ValueId id : results(step)) values_.touch(plan_.values[id].storage.index, at, around);
      room(role, step);
    });
    diagnostics_.about(nullptr);
    for (int i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& buffer = plan_.buffers[BufferId{i}];
      add(name_of(plan_, BufferId{i}), buffer.in_workspace, buffer.offset, buffer.bytes(), buffer.alignment(),
          buffers_.of(i));
    }
    for (int i = 0; i < plan_.scratch.size(); ++i) {
      const Scratch& scratch = plan_.scratch[ScratchId{i}];
      add(fmt::format("scratch{}", i), scratch.in_workspace, scratch.offset, scratch.bytes, 16, scratch_.of(i));
    }
    for (int i = 0; i < plan_.storages.size(); ++i) {
      const Storage& storage = plan_.storages[StorageId{i}];
      if (storage.storage_class != StorageClass::shared && storage.storage_class != StorageClass::workspace) continue;
      // Each thread keeps its part for the whole kernel.
      const Interval in_use = values_.of(i).last < 0 ? Interval{} : Interval{0, positions};
      add(name_of(plan_, StorageId{i}), storage.storage_class == StorageClass::workspace, storage.offset,
          std::int64_t{storage.registers} * plan_.threads() * host_bytes(host_type(storage.type)), 16, in_use);
    }
    for (int i = 0; i < plan_.pipelines.size(); ++i) {
      const Pipeline& pipeline = plan_.pipelines[PipelineId{i}];
      add("mbarriers of " + name_of(plan_, PipelineId{i}), false, pipeline.offset, pipeline.barrier_bytes(), 8,
          Interval{0, positions});
    }
    // In order of the start of their live intervals, each against those that are still live.
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const PlacedPiece& a, const PlacedPiece& b) { return a.in_use.first < b.in_use.first; });
    std::vector<const PlacedPiece*> in_use;
    for (const PlacedPiece& a : pieces_) {
      std::erase_if(in_use, [&](const PlacedPiece* b) { return b->in_use.last < a.in_use.first; });
      for (const PlacedPiece* b : in_use)
        diagnostics_.require(a.in_workspace != b->in_workspace || a.first >= b->last || b->first >= a.last,
                             "{} and {} overlap while both are live, at {} and {}", a.name, b->name, a.first, b->first);
      in_use.push_back(&a);
    }
    diagnostics_.require(plan_.workspace_bytes % 128 == 0,
                         "CTAs have {} bytes of workspace each, which is not a multiple of 128", plan_.workspace_bytes);
    diagnostics_.require(plan_.shared_bytes <= plan_.target.shared_bytes, "{} bytes of shared memory, but {} has {}",
                         plan_.shared_bytes, plan_.target.arch.name(), plan_.target.shared_bytes);
  }

 private:
  void add(std::string name, bool in_workspace, std::int64_t offset, std::int64_t bytes, int alignment,
           Interval in_use) {
    if (in_use.last < 0) return;
    diagnostics_.require(offset >= 0 && offset % alignment == 0, "{} begins at {}, not at a multiple of {}", name,
                         offset, alignment);
    const std::int64_t end = in_workspace ? plan_.workspace_bytes : plan_.shared_bytes;
    diagnostics_.require(offset + bytes <= end, "{} ends at {}, but there are {} bytes", name, offset + bytes, end);
    pieces_.push_back({std::move(name), in_workspace, offset, offset + bytes, in_use});
  }

  // Do the accesses of a step to scratch memory stay inside it?
  void room(const Role& role, const Step& step) {
    visit_kind(Overloaded{
                   []<class T>(const T&) {
      static_assert(!requires(T s) { s.scratch; }, "does an access of this kind stay inside its scratch memory?");
    },
                   [&]<OneOf<StorePartial, ReducePartials> T>(const T& s) {
      inside(s.scratch, std::int64_t{plan_.storage(s.sums).registers} * role.threads());
    },
                   [&]<OneOf<Reduce, Argmax, LaneReduce> T>(const T& s) {
      for (const Step& inner : s.across) room(role, inner);
    },
                   [&](const CrossWarpReduce& s) {
      for (const Step& inner : s.per_chunk) room(role, inner);
    },
                   [&](const StoreWarpPartials& s) {
      inside(s.scratch, std::int64_t{s.chunk} * role.threads() * (s.best ? 2 : 1));
    },
                   [&](const ReduceWarpPartials& s) {
      inside(s.scratch, std::int64_t{s.chunk} * role.threads() * (s.best ? 2 : 1));
    },
                   [&](const StoreScratch& s) {
      inside(s.scratch, s.base + last(s.strides, s.sweep.shape));
      diagnostics_.require(s.base >= 0, "it begins at {}", s.base);
      apart(s.strides, s.sweep.shape);
    },
                   [&]<OneOf<WriteScanTotals, AddScanPrefix> T>(const T& s) {
      const Layout& layout = plan_.values[s.out].layout;
      if (s.axis < layout.rank() && line_of(layout, s.axis))
        inside(s.scratch, totals_of(layout, s.axis, role.threads()));
    },
                   [&](const Merge& s) {
      inside(s.from, last(s.from_strides, s.sweep.shape));
      apart(s.from_strides, s.sweep.shape);
      Shape first = s.sweep.shape;
      if (s.axis < first.rank()) first[s.axis] = s.extent;
      for (const ScratchId to : {s.to, s.to_at})
        if (to) inside(to, last(s.to_strides, first));
      apart(s.to_strides, first);
    },
                   [&](const HistogramUpdate& s) {
      Shape counts = s.sweep.shape;
      if (s.axis < counts.rank()) counts[s.axis] = s.bins;
      inside(s.scratch, last(s.strides, counts) * s.copies);
      apart(s.strides, counts);
    },
                   [&](const HistogramReduce& s) {
      inside(s.scratch, last(s.strides, s.sweep.shape) * s.copies);
      apart(s.strides, s.sweep.shape);
    },
                   [&](const HostReport& s) {
      for (const HostReport::Tile& tile : s.values) inside(tile.scratch, tile.elements);
    },
                   [&](const LoadScratch& s) {
      Shape all = s.sweep.shape;
      diagnostics_.require(s.picked.empty() || static_cast<int>(s.picked.size()) == all.rank(),
                           "it picks along {} of {} axes", s.picked.size(), all.rank());
      for (std::size_t axis = 0; axis < std::min<std::size_t>(s.picked.size(), max_rank); ++axis)
        all[static_cast<int>(axis)] = s.picked[axis].extent;
      inside(s.scratch, last(s.strides, all));
      apart(s.strides, all);
    },
                   [&](const GatherScratch& s) {
      Shape all = s.sweep.shape;
      diagnostics_.require(s.axis < all.rank(), "it gathers along axis {} of {}", s.axis, to_string(all));
      if (s.axis < all.rank()) all[s.axis] = s.extent;
      inside(s.scratch, last(s.strides, all));
      apart(s.strides, all);
    },
                   [&](const Mma& s) {
      for (const MatmulOperand* o : {&s.matmul.a, &s.matmul.b})
        diagnostics_.require(s.matmul.kind != MatmulKind::mma_sync || !o->buffer ||
                                 plan_.progress < Progress::synchronized || !plan_.buffers[o->buffer].in_workspace,
                             "tensor cores read shared memory only");
    },
               },
               step.action);
  }
  static std::int64_t last(const Strides& strides, const Shape& shape) {
    std::int64_t last = 1;
    for (int axis = 0; axis < shape.rank(); ++axis) last += (shape[axis] - 1) * strides[static_cast<std::size_t>(axis)];
    return last;
  }
  // Each element must have its own address.
  void apart(const Strides& strides, const Shape& shape) {
    std::vector<std::pair<std::int64_t, int>> axes;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] > 1) axes.emplace_back(strides[static_cast<std::size_t>(axis)], shape[axis]);
    std::sort(axes.begin(), axes.end());
    std::int64_t reach = 1;
    for (const auto& [stride, extent] : axes) {
      diagnostics_.require(stride >= reach, "elements {} apart overlap others", stride);
      reach += stride * (extent - 1);
    }
  }
  void inside(ScratchId id, std::int64_t elements) {
    const Scratch& scratch = plan_.scratch[id];
    diagnostics_.require(elements * host_bytes(host_type(scratch.type)) <= scratch.bytes,
                         "{} elements in {} bytes of scratch memory", elements, scratch.bytes);
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  Intervals buffers_, scratch_, values_;
  std::vector<PlacedPiece> pieces_;
};

}  // namespace

void check_memory(Diagnostics& diagnostics) { Memory(diagnostics).run(); }

}  // namespace tessera::internal::codegen
