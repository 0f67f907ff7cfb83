// Everything decided about a kernel, as plain data. Emission only spells it.
//
// A plan consists of phases, a phase of roles, and a role is warps that run a tree of steps (steps.hpp). Steps refer by
// id to entries of the plan's tables: storage and values, loops, buffers, scratch memory, pipelines, tensor maps. Ids
// identify them; names are made when a plan is printed (names.hpp).
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "codegen/plan/ids.hpp"
#include "codegen/plan/steps.hpp"
#include "codegen/plan/words.hpp"
#include "codegen/target/kernel_parameter.hpp"
#include "codegen/target/stamps.hpp"
#include "codegen/target/target.hpp"
#include "codegen/target/variant.hpp"
#include "tessera/codegen/remark.hpp"

namespace tessera::internal::codegen {

/// Where the threads that hold a value keep its elements.
enum class StorageClass : std::uint8_t {
  variable,   ///< one element per thread, the same in all threads or one of its own
  registers,  ///< an array indexed by constants only, which the compiler puts into registers
  shared,     ///< too many for registers: each thread has its own part of shared memory
  workspace,  ///< the same in global memory
};

/// Numbers that a thread knows without a step that computes them.
struct ScalarParameter {
  int argument = 0;
};
struct ExtentParameter {
  int argument = 0, axis = 0;
};
struct BlockIndex {
  int axis = 0;  ///< among the grid axes of all phases
};
struct Counter {
  LoopId loop;
};
using Known = std::variant<std::monostate, ScalarParameter, ExtentParameter, BlockIndex, Counter>;

/// Memory or registers that hold elements. Two values with one storage are the same elements under two shapes.
struct Storage {
  Label label;
  ElementType type{};
  StorageClass storage_class = StorageClass::registers;
  int registers = 1;        ///< elements of a thread, in registers or in memory
  std::int64_t offset = 0;  ///< shared, workspace: bytes
  int vector = 1;           ///< shared, workspace: elements of a thread that are contiguous
  bool changes = false;     ///< more than one step writes it
  bool inlined = false;     ///< its only use is the condition of the next step, whose text has its expression
  int packed = 1;           ///< elements in a register: 16-bit pairs or four bytes, which only wgmma reads
  Known known = {};         ///< no step computes it
};

/// Elements of a storage as a tile.
struct Value {
  StorageId storage;
  Shape shape;
  Layout layout;
  Origin origin = {};  ///< where a part of a tile begins in it
};

struct LoopInfo {
  Label counter;
};

/// How a tile is stored in a buffer. Elements of a row are contiguous. Both forms permute 16-byte chunks from row to
/// row, so that eight rows of a column are in different banks.
enum class SharedForm : std::uint8_t {
  chunks,  ///< one row after another: for ldmatrix and for loads by threads
  panels,  ///< columns cut into panels of 128 bytes, each with all rows: the 128-byte swizzle of TMA and wgmma
           ///< (PTX ISA, "Shared Memory Matrix Layout")
};

/// A tile in shared memory (or the workspace).
struct Buffer {
  Label label;
  ElementType type{};  ///< of the stored elements
  int rows = 0, columns = 0;
  int stages = 1;
  std::int64_t offset = 0;
  bool in_workspace = false;
  SharedForm form = SharedForm::chunks;
  bool odd = false;  ///< an odd number of chunks per row, none permuted; a padding chunk follows the columns if needed
  int consumer_groups = 1;  ///< each consumer group of the role that uses it has its own copy
  int chunks() const { return columns * info(type).bytes / 16 | (odd ? 1 : 0); }
  /// The swizzle permutes chunks within groups of this many, from row to row (swizzled() of the prelude).
  int permuted() const { return std::min(chunks() & -chunks(), 8); }
  std::int64_t stage_bytes() const { return std::int64_t(rows) * chunks() * 16; }
  std::int64_t consumer_group_bytes() const { return stage_bytes() * stages; }
  std::int64_t bytes() const { return consumer_group_bytes() * consumer_groups; }
  int alignment() const { return form == SharedForm::panels ? 1024 : 128; }
  int panel_columns() const { return 128 / info(type).bytes; }  ///< panels
  static constexpr int panel_row_bytes() { return 128; }
  std::int64_t panel_bytes() const { return std::int64_t{rows} * panel_row_bytes(); }
  /// Bytes from the start of the stage to an element.
  std::int64_t offset_of(int row, int column) const;
};

/// Elements of k that one wgmma multiplies: 32 bytes of each operand.
constexpr int wgmma_depth(ElementType type) { return 32 / info(type).bytes; }
/// The most products of fp8 that wgmma adds up before their sum is added to f32 accumulators (promoted): the tensor
/// cores of sm_90 keep 14 bits of it (DeepSeek-V3 Technical Report, section 3.3.2).
constexpr int most_fp8_products = 128;

/// The descriptor by which wgmma reads a matrix in shared memory (PTX ISA, "Matrix Descriptor Format"), in units of
/// 16 bytes.
struct MatrixDescriptor {
  int leading = 0;  ///< between neighboring panels, if rows run along m or n
  int stride = 64;  ///< between groups of eight rows
  int k_step = 0;   ///< between the k-steps of consecutive instructions
};
/// The descriptor of an operand whose rows run along k (k_major), or along m or n.
MatrixDescriptor descriptor_of(const Buffer& buffer, bool k_major);

/// Plain row-major scratch memory for exchanges between threads.
struct Scratch {
  ElementType type{};
  std::int64_t bytes = 0, offset = 0;
  bool in_workspace = false;
};

/// A buffer whose panels get no more rows than the tensor has along an axis.
struct ClippedRows {
  BufferId buffer;
  int argument = 0, axis = 0;
  bool operator==(const ClippedRows&) const = default;
};

/// Stages that one role fills and others read, in turn. Each stage has two mbarriers in shared memory: full, once the
/// expected bytes and all writers have arrived, and empty, once all readers have released the stage.
struct Pipeline {
  Label label;
  std::vector<BufferId> buffers;
  int stages = 1;
  int full_arrivals = 1, empty_arrivals = 1;
  std::int64_t bytes = 0;  ///< of a stage, that TMA loads if it loads all rows
  std::vector<ClippedRows> clipped = {};
  int cluster = 1;          ///< CTAs of a cluster that fill and release its stages together: some loads are multicast
  bool of_slice = false;    ///< a stage may reach past the end of a view: then its rows past the end are zeroed
  std::int64_t offset = 0;  ///< of the mbarriers: `stages` full ones, then the empty ones
  std::int64_t barrier_bytes() const { return 16 * std::int64_t{stages}; }
};

/// A role's position in a pipeline: the stage, and the parity of its phase. It persists across grid tiles.
struct PipelineState {
  Label label;
  PipelineId pipeline;
};

/// A TMA descriptor of a tensor: a kernel parameter that the launch encodes.
struct TensorMap {
  Label label;
  TmaTensor tensor;
  bool store = false;

  /// A box consists of rows along the tensor's contiguous axis, in the order of all other axes.
  std::int64_t rows() const {
    std::int64_t rows = 1;
    for (std::size_t i = 1; i < tensor.box.size(); ++i) rows *= tensor.box[i];
    return rows;
  }
  /// Bytes of one box, whose elements have the tensor's type.
  std::int64_t box_bytes(ElementType type) const { return rows() * tensor.box[0] * info(type).bytes; }
};

/// Which grid tiles a CTA processes.
struct Schedule {
  enum class Kind : std::uint8_t {
    grid,        ///< one tile per CTA
    persistent,  ///< one tile after another, by as many CTAs as fit on the GPU
    tiles,       ///< the same, by a TileLoop of each role
  };
  Kind kind = Kind::grid;
  /// tiles: cluster: the CTAs of a cluster share each tile; stream_k: each CTA runs a range of the k-iterations of all
  /// tiles.
  SplitK split_k = SplitK::none;
  /// tiles: from the last tile of the first axis to its first; every second wave of CTAs runs in the other direction.
  bool snake_order = false;
  /// tiles: CTAs of a cluster, each with its own one of as many neighboring tiles along the first axis. They multicast
  /// tiles of operands to each other. 1: none.
  int multicast = 1;
  int l2_group = 0;      ///< tiles of all axes but the first that run together along it, for reuse in L2; 0: all
  int raster_group = 0;  ///< tiles along the first axis that run together, for reuse in L2; 0: in order
};

/// Warps of a CTA that run the same steps. Each of several consumer groups runs them for grid tiles of its own, which
/// the groups take in turn.
struct Role {
  std::string name;
  int first_warp = 0, warps = 4;  ///< of a consumer group
  Body body = {};
  int registers = 0;  ///< of a thread, where the role sets them
  int consumer_groups = 1;
  int stamp_row = -1;    ///< of the first consumer group's log, among those of the CTA; -1: it logs nothing
  int stamp_thread = 0;  ///< which logs
  int barrier = 0;  ///< the first named barrier; one for each consumer group's threads; 0: all threads of the CTA meet
  int threads() const { return warps * 32; }
  int end_warp() const { return first_warp + warps * consumer_groups; }
};

/// One grid. Its roles run at the same time.
struct Phase {
  Body prologue;  ///< run by all threads, before the roles begin
  std::vector<Role> roles;
  Schedule schedule;
  int first_axis = 0, axes = 0;  ///< of the grid, among those of all phases
  /// The launch decides which tiles run together, by how many there are and how many run at the same time
  /// (codegen/schedule/raster_order.hpp).
  bool l2_groups_of_launch() const { return schedule.snake_order && axes > 1; }
  /// A launch has clusters of CTAs.
  bool in_clusters() const { return schedule.split_k == SplitK::cluster || schedule.multicast > 1; }
};

/// How complete a plan is, and so which rules the verifier can check.
enum class Progress : std::uint8_t {
  lowered,       ///< steps
  placed,        ///< memory has offsets
  synchronized,  ///< barriers have been placed
  complete,      ///< the kernel's parameters are known
};

struct Plan {
  Progress progress = Progress::lowered;
  std::string kernel;
  std::string author;  ///< the kernel's name in the author's source
  Location location;
  Target target;
  Variant variant;
  bool debug = false;
  /// A device function that computes a grid tile of one launch of a persistent kernel (codegen/persistent_source.hpp).
  /// It waits for the previous launch at a grid barrier, and its threads may be the first of a larger CTA.
  bool in_sequence = false;
  std::vector<Parameter> tensors;
  std::vector<TileReach> reaches;  ///< of the tensors' tiles: a launch with 32-bit offsets depends on them
  std::vector<KernelParameter> parameters;
  std::vector<CustomFunction> functions;
  int blocks = 1;  ///< minimum CTAs on a multiprocessor at a time: bounds the registers of a thread
  std::int64_t shared_bytes = 0, workspace_bytes = 0;
  int named_barriers = 0;  ///< allocated: 1 to this number; 0 is the barrier of all threads
  Table<Storage> storages;
  Table<Value> values;
  Table<LoopInfo> loops;
  Table<Buffer> buffers;
  Table<Scratch> scratch;
  Table<Pipeline> pipelines;
  Table<PipelineState> states;
  Table<TensorMap> tensor_maps;
  std::vector<Phase> phases;
  StampTable stamps = {};           ///< what the stamps of a stamped variant mean
  std::vector<std::string> search;  ///< the schedules that were tried, in order, with reasons; the last one was taken
  std::vector<Remark> remarks;      ///< the reasons for the decisions, in their order
  AuthorWords words = {};           ///< for dumps; none if no source was asked for

  int threads() const;
  /// The first of `count` named barriers of the CTA, which are nobody else's.
  int allocate_named_barriers(int count);
  bool persistent() const;
  bool in_pipeline(BufferId id) const;
  bool shared_by_grid() const;  ///< a phase uses stream-K
  bool tells_host() const;      ///< some step reports to the host
  bool logs_stamps() const { return !stamps.rows.empty(); }
  bool learns_of_others() const;    ///< some step acquires data that other CTAs have written
  bool waits_for_previous() const;  ///< a launch may begin before the one before it has ended
  /// Tensors that a launch may read before earlier launches have ended, if none of those writes them. Ascending.
  std::vector<int> prefetched_before_wait() const;
  const Storage& storage(ValueId id) const { return storages[values[id].storage]; }
  Storage& storage(ValueId id) { return storages[values[id].storage]; }
  bool is_in_registers(ValueId id) const;
};

/// A text about a plan, and for each of its lines the step that it spells; null if it spells none.
struct StepLines {
  std::string text;
  std::vector<const Step*> steps;
};

/// Decisions as lines of text, which a generated kernel has at its top.
std::string to_string(const Plan& plan);
/// All steps of a plan, as an indented tree.
std::string tree_text(const Plan& plan);
/// Both, with the search for the schedule in between: what TESSERA_DUMP=plan prints.
std::string dump_text(const Plan& plan);
/// The same, with the step of each line.
StepLines dump_lines(const Plan& plan);

}  // namespace tessera::internal::codegen
