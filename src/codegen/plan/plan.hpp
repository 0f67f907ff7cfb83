// Everything decided about a kernel, as plain data: what is left for emission is spelling.
//
// A plan is phases, a phase is roles, and a role is warps that run a tree of steps (steps.hpp). What steps name stands
// in tables: storage and values, loops, buffers, scratch memory, pipelines, tensor maps. Their ids are what they are;
// names are made when a plan is printed (names.hpp).
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "codegen/plan/ids.hpp"
#include "codegen/plan/steps.hpp"
#include "codegen/target/kernel_parameter.hpp"
#include "codegen/target/target.hpp"
#include "codegen/target/variant.hpp"
#include "tessera/codegen/remark.hpp"

namespace tessera::internal::codegen {

/// Where the elements of a value are kept by the threads that hold them.
enum class StorageClass : std::uint8_t {
  variable,   ///< one element a thread, the same in all of them or one of its own
  registers,  ///< an array that the compiler puts into registers, indexed by constants only
  shared,     ///< too many for registers: a part of shared memory of each thread's own
  workspace,  ///< the same in global memory
};

/// What a thread knows without a step that computes it.
struct ScalarParameter {
  int argument = 0;
};
struct ExtentParameter {
  int argument = 0, axis = 0;
};
struct BlockIndex {
  int axis = 0;  ///< of all grid axes of the plan
};
struct Counter {
  LoopId loop;
};
using Known = std::variant<std::monostate, ScalarParameter, ExtentParameter, BlockIndex, Counter>;

/// Memory or registers that hold elements. Two values of one storage are the same elements under two shapes.
struct Storage {
  Label label;
  ElementType type{};
  StorageClass storage_class = StorageClass::registers;
  int registers = 1;        ///< of a thread: elements, wherever they are kept
  std::int64_t offset = 0;  ///< shared, workspace: bytes
  int vector = 1;           ///< shared, workspace: elements of a thread side by side
  bool changes = false;     ///< more than one step writes it
  bool pairs = false;       ///< two elements of 16 bits in a register: what wgmma takes, and nothing else
  Known known = {};         ///< no step computes it
};

/// Elements of a storage as a tile.
struct Value {
  StorageId storage;
  Shape shape;
  Layout layout;
  Origin origin = {};  ///< of a part of a tile
};

struct LoopInfo {
  Label counter;
};

/// How a tile lies in a buffer. Elements of a row are neighbours; both forms permute chunks of 16 bytes from row to
/// row, so that eight rows of a column are in different banks.
enum class SharedForm : std::uint8_t {
  chunks,  ///< rows from end to end: what ldmatrix and the threads read
  panels,  ///< columns cut into panels of 128 bytes, each with all rows: what the copy engine and wgmma know as the
           ///< swizzle of 128 bytes (PTX ISA, "Shared Memory Matrix Layout")
};

/// A tile in shared memory (or the workspace).
struct Buffer {
  Label label;
  ElementType type{};  ///< as stored
  int rows = 0, columns = 0;
  int stages = 1;
  std::int64_t offset = 0;
  bool in_workspace = false;
  SharedForm form = SharedForm::chunks;
  bool odd = false;  ///< rows of an odd number of chunks, of which none is permuted: one behind the columns if need be
  int consumer_groups = 1;  ///< each team of the role that uses it has its own
  int chunks() const { return columns * info(type).bytes / 16 | (odd ? 1 : 0); }
  /// Chunks are permuted among so many, from row to row, as swizzled() of the prelude has it.
  int permuted() const { return std::min(chunks() & -chunks(), 8); }
  std::int64_t stage_bytes() const { return std::int64_t(rows) * chunks() * 16; }
  std::int64_t consumer_group_bytes() const { return stage_bytes() * stages; }
  std::int64_t bytes() const { return consumer_group_bytes() * consumer_groups; }
  int alignment() const { return form == SharedForm::panels ? 1024 : 128; }
  int panel_columns() const { return 128 / info(type).bytes; }  ///< panels
  std::int64_t panel_bytes() const { return std::int64_t(rows) * 128; }
  /// Bytes from the stage's first to an element.
  std::int64_t offset_of(int row, int column) const;
};

/// What one wgmma multiplies of k: 32 bytes of each operand.
constexpr int wgmma_depth(ElementType type) { return 32 / info(type).bytes; }

/// A matrix in shared memory as wgmma is told of it (PTX ISA, "Matrix Descriptor Format"): in units of 16 bytes.
struct MatrixDescriptor {
  int leading = 0;  ///< between panels of neighbours, where rows run along k
  int stride = 64;  ///< between groups of eight rows
  int k_step = 0;   ///< to what the next instruction multiplies of k
};
/// Of an operand whose rows run along m or n (k_major), or along k.
MatrixDescriptor descriptor_of(const Buffer& buffer, bool k_major);

/// Plain row-major scratch memory: for exchanges between threads.
struct Scratch {
  ElementType type{};
  std::int64_t bytes = 0, offset = 0;
  bool in_workspace = false;
};

/// A buffer whose panels get no more rows than a tensor has, along an axis of it.
struct ClippedRows {
  BufferId buffer;
  int argument = 0, axis = 0;
  bool operator==(const ClippedRows&) const = default;
};

/// Stages that one role fills and others read, in turn. Two barriers in shared memory for each say which: full, once
/// the bytes expected and all writers have arrived, and empty, once all readers have released it.
struct Pipeline {
  Label label;
  std::vector<BufferId> buffers;
  int stages = 1;
  int full_arrivals = 1, empty_arrivals = 1;
  std::int64_t bytes = 0;  ///< of a stage, that the copy engine brings, if it brings all rows
  std::vector<ClippedRows> clipped = {};
  bool of_slice = false;    ///< what a stage has may reach over the end of a view: then rows are cleared
  std::int64_t offset = 0;  ///< of the barriers: `stages` full ones, then the empty ones
  std::int64_t barrier_bytes() const { return 16 * std::int64_t{stages}; }
};

/// Where a role is in a pipeline: the stage, and the parity of its phase. It lives across tiles.
struct PipelineState {
  Label label;
  PipelineId pipeline;
};

/// A tensor as the copy engine knows it: a parameter of the kernel that the launch encodes.
struct TensorMap {
  Label label;
  TmaTensor tensor;
  bool store = false;

  /// Of one box, of elements of the tensor's type.
  std::int64_t box_bytes(ElementType type) const {
    std::int64_t bytes = info(type).bytes;
    for (int extent : tensor.box) bytes *= extent;
    return bytes;
  }
};

/// Which blocks of the grid a block of threads takes.
struct Schedule {
  enum class Kind : std::uint8_t {
    grid,        ///< its own
    persistent,  ///< one after another, as many blocks of threads as fit the GPU
    tiles,       ///< the same, by a TileLoop of each role
  };
  Kind kind = Kind::grid;
  /// tiles: cluster: those of the launch's size do; grid: all blocks of threads walk through a part of all rounds.
  SplitK split_k = SplitK::none;
  /// tiles: from the last block of the first axis to its first, each second round of the blocks at work the other way.
  bool snake_order = false;
  int l2_group = 0;  ///< blocks of all axes but the first that run together along it, so that they meet in L2; 0: all
  int raster_group = 0;  ///< blocks along the first axis that run together, so that they meet in L2; 0: in order
};

/// Warps of a block that run the same steps. Of several teams of warps each runs them for blocks of the grid of its
/// own, in turn.
struct Role {
  std::string name;
  int first_warp = 0, warps = 4;  ///< of a team
  Body body = {};
  int registers = 0;  ///< of a thread, where the role sets them
  int consumer_groups = 1;
  int barrier = 0;  ///< of the hardware's, the first at which a team's threads meet; 0: all threads of the block do
  int threads() const { return warps * 32; }
  int end_warp() const { return first_warp + warps * consumer_groups; }
};

/// One grid of blocks. Its roles run at the same time.
struct Phase {
  Body prologue;  ///< all threads, before they have roles
  std::vector<Role> roles;
  Schedule schedule;
  int first_axis = 0, axes = 0;  ///< of the grid, among those of all phases
  /// Which blocks run together depends on how many there are, and how many run at the same time
  /// (codegen/schedule/raster_order.hpp).
  bool l2_groups_of_launch() const { return schedule.snake_order && axes > 1; }
};

/// How far a plan is: what a verifier may ask of it.
enum class Progress : std::uint8_t {
  lowered,       ///< steps
  placed,        ///< memory has offsets
  synchronized,  ///< barriers stand where they must
  complete,      ///< the kernel's parameters are known
};

struct Plan {
  Progress progress = Progress::lowered;
  std::string kernel;
  std::string author;  ///< the kernel's name as the author gave it
  Location location;
  Target target;
  Variant variant;
  bool debug = false;
  std::vector<Parameter> tensors;
  std::vector<TileReach> reaches;  ///< of the tensors' tiles: a launch is narrow where they are near
  std::vector<KernelParameter> parameters;
  std::vector<CustomFunction> functions;
  int blocks = 1;  ///< at least so many on a multiprocessor at a time: bounds the registers of a thread
  std::int64_t shared_bytes = 0, workspace_bytes = 0;
  Table<Storage> storages;
  Table<Value> values;
  Table<LoopInfo> loops;
  Table<Buffer> buffers;
  Table<Scratch> scratch;
  Table<Pipeline> pipelines;
  Table<PipelineState> states;
  Table<TensorMap> tensor_maps;
  std::vector<Phase> phases;
  std::vector<Remark> remarks;  ///< why it is as it is, in the order of decisions

  int threads() const;
  bool persistent() const;
  bool in_pipeline(BufferId id) const;
  bool shared_by_grid() const;      ///< rounds, by all blocks of threads of a phase
  bool tells_host() const;          ///< some step does
  bool learns_of_others() const;    ///< some step acquires what other blocks have written, which is then read
  bool waits_for_previous() const;  ///< a launch may begin before the one before it has ended
  /// Tensors of which a launch may bring some before those before it have ended, if none of them writes it. Ascending.
  std::vector<int> prefetched_before_wait() const;
  const Storage& storage(ValueId id) const { return storages[values[id].storage]; }
  Storage& storage(ValueId id) { return storages[values[id].storage]; }
};

/// Decisions as lines of text, those that the top of a kernel shows.
std::string to_string(const Plan& plan);
/// All steps of a plan, as an indented tree.
std::string tree_text(const Plan& plan);

}  // namespace tessera::internal::codegen
