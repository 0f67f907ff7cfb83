#include "codegen/passes/plan/remarks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "codegen/passes/plan/hint_notes.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"
#include "codegen/plan/matmul_text.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/remarks.hpp"
#include "graph/host_ops.hpp"

namespace tessera::internal::lowering {
namespace {

namespace kind = remark_kind;
using Status = Remark::Status;

constexpr int widest = 16;  // bytes of an access

class Remarker {
 public:
  Remarker(const GraphAnalysis& analysis, Plan& plan) : analysis_(analysis), plan_(plan) {}

  void run() {
    launch();
    std::vector<Tile> tiles;
    PlanWalk walk(plan_);
    walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
      at_ = &step;
      visit_kind([&](const auto& action) { of(action); }, step.action);
      accesses(step);
      for (ValueId id : results(step)) outside_of_registers(role, id, tiles);
    });
    std::ranges::stable_sort(tiles, std::greater(), &Tile::bytes);
    for (const Tile& tile : tiles)
      add_remark(plan_, tile.location, Status::missed, kind::registers,
                 "a tile is too large for registers and takes {} bytes of {} per CTA; smaller tiles are faster",
                 tile.bytes,
                 tile.storage_class == StorageClass::shared ? "shared memory" : "workspace in global memory");
  }

 private:
  struct Tile {
    std::int64_t bytes;
    StorageClass storage_class;
    Location location;
  };

  // Once for each statement: the first or last iteration of a loop may have steps of its own.
  template <class... Args>
  void remark(Status status, std::string_view kind, fmt::format_string<Args...> format, Args&&... args) {
    remark_at(at_->location, status, kind, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void remark_at(const Location& at, Status status, std::string_view kind, fmt::format_string<Args...> format,
                 Args&&... args) {
    std::string message = fmt::format(format, std::forward<Args>(args)...);
    if (said_.insert({at.file ? at.file : "", at.line, kind, message}).second)
      add_remark(plan_, at, status, kind, "{}", message);
  }

  void launch() {
    add_remark(plan_, plan_.location, Status::analysis, kind::launch,
               "{} threads, {} bytes of shared memory and {} bytes of workspace per CTA; at least {} CTA{} per "
               "multiprocessor",
               plan_.threads(), plan_.shared_bytes, plan_.workspace_bytes, plan_.blocks, plan_.blocks == 1 ? "" : "s");
  }

  // --- matmuls

  static std::string matmul(int m, int n, int k, ElementType type) {
    return fmt::format("[{},{}] x [{},{}] of {}", m, k, k, n, name(type));
  }
  void of(const Wgmma& wgmma) {
    if (wgmma.first_k > 0 || plan_.values[wgmma.out].origin[1] > 0) return;
    const bool promotes = is_fp8(wgmma.type);
    const Buffer& b = plan_.buffers[wgmma.b];  // all of it, if some of its columns are multiplied at a time
    remark(Status::passed, kind::wgmma, "{}{}{}",
           promotes ? matmul(wgmma.m, b.rows, b.columns, wgmma.type) : matmul(wgmma.m, wgmma.n, wgmma.k, wgmma.type),
           wgmma.left ? ", the left operand from registers" : "",
           promotes ? fmt::format(", sums of {} products promoted to f32", most_fp8_products) : "");
  }
  void of(const Mma& mma) {
    const Matmul& of = mma.matmul;
    const std::string text = matmul(of.m, of.n, of.k, of.type);
    if (of.kind == MatmulKind::mma_sync) {
      const bool newer = plan_.target.arch.number() >= 90 && plan_.target.tier == Target::Tier::mma_sync;
      remark(Status::passed, kind::mma_sync, "{}, {}{}", text, warps_text(of),
             newer ? "; wgmma needs sm_90a, and TESSERA_TENSOR_CORES other than mma_sync" : "");
    } else if (of.kind == MatmulKind::gemv) {
      remark(Status::analysis, kind::fma, "{}, by multiply-adds in registers (gemv): so few rows are memory-bound",
             text);
    } else if (has_matrix_units(of.type)) {
      remark(Status::missed, kind::mma_sync, "{}, by SIMT multiply-adds, as an operand is not in shared memory", text);
    } else {
      remark(Status::missed, kind::mma_sync,
             "{}, by SIMT multiply-adds: tensor cores take f16, bf16, tf32, i8 and u8; operands may be cast to these",
             text);
    }
  }
  void of(const SplitKRange&) {
    remark(Status::passed, kind::split_k, "{} divides the k-iterations of each tile",
           plan_.shared_by_grid() ? "the grid (stream-K)" : "a cluster");
  }

  // --- copies to shared memory and back

  void of(const TmaLoad& load) {
    const TensorMap& map = plan_.tensor_maps[load.map];
    remark_at(location_of(analysis_, plan_.buffers[load.buffer].label), Status::passed, kind::tma,
              "parameter {} is loaded in boxes of [{}]", number(map.tensor.argument), box(map));
    in_shared(load.buffer);
  }
  void of(const TmaStore& store) {
    const TensorMap& map = plan_.tensor_maps[store.map];
    remark(Status::passed, kind::tma, "parameter {} is stored in boxes of [{}]", number(map.tensor.argument), box(map));
    in_shared(store.buffer);
  }
  static std::string box(const TensorMap& map) {
    const auto rank = std::ranges::find(map.tensor.axes, std::int8_t{-1}) - map.tensor.axes.begin();
    return fmt::format("{}", fmt::join(map.tensor.box.begin(), map.tensor.box.begin() + rank, ","));
  }
  void of(const Fetch& fetch) {
    for (const Fetch::Tile& tile : fetch.tiles) {
      const int bytes = width(tile.access), parameter = number(tile.access.parameter);
      if (tile.copy == Fetch::Copy::async && bytes == widest)
        remark(Status::passed, kind::cp_async, "parameter {} is copied, {} bytes at a time", parameter, bytes);
      else if (tile.copy == Fetch::Copy::async)
        remark(Status::missed, kind::cp_async, "parameter {} is copied, {} bytes at a time and not {}, as {}",
               parameter, bytes, widest, why_narrow(tile.access));
      else
        remark(Status::missed, kind::cp_async, "parameter {} is copied through registers, {} bytes at a time, as {}",
               parameter, bytes,
               plan_.buffers[tile.buffer].in_workspace ? "its tile is in the workspace" : why_narrow(tile.access));
      in_shared(tile.buffer);
    }
  }
  void of(const StoreShared& stage) {
    if (stage.state && !stage.sweep.reads.empty()) {
      const TileAccess& read = stage.sweep.reads[0];
      remark(Status::missed, kind::tma, "parameter {} is copied by threads, as {}", number(read.parameter),
             why_not_tma(read));
    }
    in_shared(stage.buffer);
  }
  std::string why_not_tma(const TileAccess& access) const {
    if (access.member) return "there is no tensor map for a list";
    if (plan_.variant.tensors[static_cast<std::size_t>(access.parameter)].tma_addressable)
      return "TMA cannot address the view of the tile";
    if (const std::string why = why_unaligned(access); !why.empty()) return why;
    return "TMA needs at most five axes, a contiguous axis, extents of 1 or more and positive strides";
  }
  void in_shared(BufferId id) {
    const Buffer& buffer = plan_.buffers[id];
    if (!buffer.in_workspace)
      remark_at(location_of(analysis_, buffer.label), Status::analysis, kind::shared,
                "[{},{}] of {} takes {} bytes of shared memory{}", buffer.rows, buffer.columns, name(buffer.type),
                buffer.bytes(), buffer.stages > 1 ? fmt::format(", in {} stages", buffer.stages) : "");
  }

  // --- accesses by threads

  void accesses(const Step& step) {
    visit_kind([&]<class Kind>(const Kind& action) {
      if constexpr (std::same_as<Kind, StoreShared>) {
        if (action.state) return;  // of(StoreShared) has remarked on them
      }
      if constexpr (requires { action.sweep.reads; })
        for (const TileAccess& read : action.sweep.reads) access(action.sweep, read, "read");
      if constexpr (std::same_as<Kind, Load>) access(action.sweep, action.access, "read");
      if constexpr (OneOf<Kind, Store, Atomic>) access(action.sweep, action.access, "written");
    }, step.action);
  }
  void access(const Sweep& sweep, const TileAccess& access, std::string_view what) {
    if (sweep.shape.size() == 1) return;
    const Store* const store = at_->action.as<Store>();  // by quads: eight 16-bit elements
    const int bytes = store && store->by_quads ? widest : width(access), parameter = number(access.parameter);
    if (bytes == widest)
      remark(Status::passed, kind::vector, "parameter {} is {} by accesses of {} bytes", parameter, what, bytes);
    else
      remark(Status::missed, kind::vector, "parameter {} is {} by accesses of {} bytes and not {}, as {}", parameter,
             what, bytes, widest, why_narrow(access));
  }
  int number(int parameter) const { return argument_number(plan_.tensors, static_cast<std::size_t>(parameter)); }
  int width(const TileAccess& access) const { return access.vector * bytes_of(access); }
  int bytes_of(const TileAccess& access) const {
    return info(plan_.tensors[static_cast<std::size_t>(access.parameter)].type).bytes;
  }
  // The rules are in GraphAnalysis::vector_of().
  std::string why_narrow(const TileAccess& access) const {
    if (access.by_elements()) return "each element has an address of its own";
    if (at_->action.is<Atomic>()) return "atomics change one element at a time";
    const TensorClass& tensor = plan_.variant.tensors[static_cast<std::size_t>(access.parameter)];
    if (tensor.contiguous_axis < 0 && access.member) return "the list's tensors have no contiguous axis in common";
    if (tensor.contiguous_axis < 0) return "the tensor has no contiguous axis";
    if (access.fast < 0) return "the tile does not extend along the tensor's contiguous axis";
    const TileAccess::Axis& axis = access.axes[static_cast<std::size_t>(access.fast)];
    if (!axis.slices.empty()) return "a slice along the contiguous axis may begin anywhere";
    if (!axis.viewed.windows.empty()) return "windows along the contiguous axis begin at any element";
    if (std::string why = why_unaligned(access); !why.empty()) return why;
    const int bytes = axis.extent * bytes_of(access);
    if (bytes % widest != 0) return fmt::format("the tile has {} bytes of a row, not a multiple of {}", bytes, widest);
    return "its layout gives a thread no more consecutive elements";
  }
  std::string why_unaligned(const TileAccess& access) const {
    const TensorClass& tensor = plan_.variant.tensors[static_cast<std::size_t>(access.parameter)];
    if (tensor.alignment < widest)
      return fmt::format("its address and strides are only multiples of {} bytes", static_cast<int>(tensor.alignment));
    if (tensor.row_alignment < widest)
      return fmt::format("its rows are only a multiple of {} bytes", static_cast<int>(tensor.row_alignment));
    return {};
  }

  // --- exchanges between threads

  void of(const LoadScratch& get) { exchanges(get.scratch); }
  void of(const GatherScratch& gather) { exchanges(gather.scratch); }
  void exchanges(ScratchId id) {
    const Scratch& scratch = plan_.scratch[id];
    remark(Status::missed, kind::exchange, "'{}' moves {} bytes between threads, through {}", op(), scratch.bytes,
           scratch.in_workspace ? "the workspace in global memory" : "shared memory");
  }
  void of(const Reduce& reduce) { crosses_warps(!reduce.across.empty()); }
  void of(const Argmax& argmax) { crosses_warps(!argmax.across.empty()); }
  void of(const LaneReduce& replicas) { crosses_warps(!replicas.across.empty()); }
  void of(const WriteScanTotals&) { crosses_warps(true); }
  void crosses_warps(bool crosses) {
    if (crosses) remark(Status::analysis, kind::exchange, "'{}' crosses warps, through shared memory", op());
  }
  std::string_view op() const { return at_->node == no_id ? "?" : name(analysis_.graph[at_->node].op); }

  void outside_of_registers(const Role& role, ValueId id, std::vector<Tile>& tiles) {
    const Storage& storage = plan_.storage(id);
    if (storage.storage_class != StorageClass::shared && storage.storage_class != StorageClass::workspace) return;
    if (!outside_.insert(plan_.values[id].storage).second) return;
    tiles.push_back({std::int64_t{storage.registers} * role.threads() * host_bytes(host_type(storage.type)),
                     storage.storage_class, at_->location});
  }

  // No other step has a remark.
  template <class Kind>
  void of(const Kind&) {}

  const GraphAnalysis& analysis_;
  Plan& plan_;
  const Step* at_ = nullptr;
  std::set<std::tuple<std::string_view, unsigned, std::string_view, std::string>> said_;
  std::set<StorageId> outside_;
};

}  // namespace

Location location_of(const GraphAnalysis& analysis, const Label& label) {
  const auto node = std::ranges::find(analysis.number, label.number);
  return label.number < 0 || node == analysis.number.end()
             ? analysis.graph.location
             : analysis[static_cast<Id>(node - analysis.number.begin())].location;
}

void remark_steps(const GraphAnalysis& analysis, Plan& plan) { Remarker(analysis, plan).run(); }

}  // namespace tessera::internal::lowering

bool tessera::internal::plan_pass::remarks(lowering::Planning& planning) {
  lowering::note_hints(planning.analysis, planning.plan);
  lowering::remark_steps(planning.analysis, planning.plan);
  return true;
}
