// The properties of ops in ops.def; and that only the places that CONTRIBUTING.md and a list here name refer to an op
// by name.
#include <filesystem>
#include <map>
#include <set>

#include "support/catch.hpp"
#include "support/patterns.hpp"
#include "support/support.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"

namespace test_ops_table {

using namespace tessera::internal;

namespace {

constexpr Op structural_ops[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(name, ...) Op::name,
#include "tessera/graph/ops.def"
};

using Names = std::set<std::string>;

/// The structural ops that a file names.
Names named_in(const std::filesystem::path& file) {
  Names all, found;
  for (Op structural : structural_ops) all.insert(std::string(name(structural)));
  for (const Match& op : matches(read_text(file), R"(\bOp::(\w+))"))
    if (all.contains(op[1])) found.insert(op[1]);
  return found;
}

}  // namespace

TEST_CASE("ops.def lists an op's operands and attributes", "[graph]") {
  static_assert(view_operand(Op::load) == 0 && view_operand(Op::scatter) == 1 && view_operand(Op::add) == -1);
  static_assert(repeated_operand(Op::concat) == 1 && repeated_operand(Op::gather) == 2);
  static_assert(by_elements(Op::scatter_elements) && !by_elements(Op::scatter) &&
                repeated_operand(Op::gather_elements) == 1);
  static_assert(repeated_operand(Op::mma) == -1 && repeated_operand(Op::constant) == -1);
  static_assert(operand_kind(Op::gather, 1) == OperandKind::rows && operand_kind(Op::gather, 4) == OperandKind::index);
  static_assert(operand_kind(Op::loop, 0) == OperandKind::index && operand_kind(Op::loop, 3) == OperandKind::value);
  static_assert(is_view(Op::slice) && !is_view(Op::extent) && is_read(Op::gather) && !is_read(Op::extent));
  static_assert(is_write(Op::store) && !is_write(Op::load));
  static_assert(is_atomic(Op::atomic_or_elements) && !is_atomic(Op::scatter_elements) && is_effect(Op::atomic_max));
  static_assert(has_value(Op::atomic_add) && has_value(Op::load) && !has_value(Op::store) && !has_value(Op::tensor));
  static_assert(view_operand(Op::atomic_exchange) == 1 && view_operand(Op::atomic_compare_exchange_elements) == 2);
  static_assert(at_position(Op::atomic_min_elements) == Op::atomic_min && at_position(Op::load) == Op::load);
  static_assert(on_elements(Op::atomic_min) == Op::atomic_min_elements && by_elements(Op::atomic_min_elements));
  static_assert(accepts(Op::atomic_and, ElementType::u64) && !accepts(Op::atomic_and, ElementType::f32));
  static_assert(accepts(Op::atomic_max_elements, ElementType::f32) && !accepts(Op::atomic_add, ElementType::bf16));
  static_assert(is_effect(Op::require) && is_effect(Op::loop) && !is_effect(Op::result) && !is_effect(Op::load));
  static_assert(has_region(Op::branch) && !has_region(Op::require));
  static_assert(is_elementwise(Op::fma) && is_elementwise(Op::select) && !is_elementwise(Op::sum));
  for (Op op : structural_ops) {
    INFO(name(op));
    const OperandKinds& in = info(op).in;
    for (std::size_t i = 0; i + 1 < in.count; ++i)
      CHECK(in.kind[i] < OperandKind::values);  // only the last is repeated
    CHECK((is_read(op) || is_write(op)) == (view_operand(op) >= 0 && repeated_operand(op) >= 0));
  }
}

TEST_CASE("an attribute can only be read from ops that have it", "[graph]") {
  Node node;
  node.op = Op::sum;
  node.attr = {2};
  CHECK(node.axis() == 2);
  CHECK_THROWS_AS(node.position(), InternalError);
  CHECK_THROWS_AS(node.body(), InternalError);
  CHECK_THROWS_AS(node.permutation(), InternalError);
  node.op = Op::cumsum;
  node.attr = {1, 3};
  CHECK(node.axis() == 1);
  CHECK(node.scan_options() == ScanOptions{true, true});
  node.op = Op::argsort;
  node.attr = {2, 1};
  CHECK(node.axis() == 2);
  CHECK(node.sort_options() == SortOptions{.descending = true});
  CHECK_THROWS_AS(node.scan_options(), InternalError);
  node.op = Op::result;
  node.attr = {2};
  CHECK(node.position() == 2);
  CHECK_THROWS_AS(node.axis(), InternalError);
  node.op = Op::permute;
  node.attr = {1, 0};
  CHECK(std::vector(node.permutation().begin(), node.permutation().end()) == std::vector<std::int64_t>{1, 0});
  node.op = Op::constant;
  node.type = ElementType::f32;
  Cell cell;
  cell.f32 = -0.5f;
  node.attr = {encode(node.type, cell)};
  CHECK(node.number().f32 == -0.5f);
  node.attr.clear();
  CHECK_THROWS_AS(node.bits(), InternalError);
}

TEST_CASE("a structural op is a shape rule, a function and a case in each executor", "[graph]") {
  namespace fs = std::filesystem;
  const fs::path root = TESSERA_SOURCE_DIR;
  // Files in which every op may have a case, and their names in CONTRIBUTING.md.
  const std::map<std::string, std::string> homes = {
      {"src/graph/infer.cpp", "infer.cpp"},
      {"include/tessera/dsl/expr.hpp", "include/tessera/dsl"},
      {"include/tessera/dsl/tile.hpp", "include/tessera/dsl"},
      {"include/tessera/dsl/parts.hpp", "include/tessera/dsl"},
      {"include/tessera/dsl/reductions.hpp", "include/tessera/dsl"},
      {"src/dsl/combine.cpp", "include/tessera/dsl"},
      {"include/tessera/dsl/sort.hpp", "include/tessera/dsl"},
      {"include/tessera/dsl/view.hpp", "include/tessera/dsl"},
      {"include/tessera/dsl/atomics.hpp", "include/tessera/dsl"},
      {"include/tessera/dsl/control.hpp", "include/tessera/dsl"},
      {"src/dsl/trace.cpp", "include/tessera/dsl"},
      {"src/cpu/program.cpp", "src/cpu/program.cpp"},
      {"src/codegen/lower/graph_lowering.cpp", "src/codegen/lower/graph_lowering.cpp"},
      {"tests/reference/interpreter.cpp", "tests/reference"},
  };
  // Other files that name some ops, and why: those that build graphs, that build expressions (broadcast, cast, select),
  // that lower an op to steps, and that optimize particular ops.
  const std::map<std::string, Names> others = {
      {"src/codegen/schedule/split_k.cpp", {"block", "load", "loop", "mma"}},
      {"src/codegen/emit/emit_atomic.cpp", {"atomic_max", "atomic_min"}},
      {"include/tessera/dsl/index_tiles.hpp", {"broadcast", "inverse_permutation", "take_along_axis"}},
      {"src/codegen/emit/emit.cpp", {"broadcast", "take_along_axis"}},
      {"src/codegen/emit/emit_compute.cpp", {"broadcast"}},
      {"src/codegen/emit/emit_sort.cpp", {"histogram"}},
      {"src/codegen/emit/emit_expressions.cpp", {"bitcast", "broadcast", "cast", "custom", "extent", "select"}},
      {"src/codegen/raw_cuda.cpp", {"constant"}},
      {"src/codegen/record_lowering.cpp", {"argument", "block", "cast", "constant", "loop", "mma", "repeat", "result"}},
      {"src/jit/profile/work.cpp", {"loop", "mma"}},
      {"src/codegen/lower/sm90/tma_boxes.cpp", {"block", "constant"}},
      {"src/codegen/schedule/fused_matmul.cpp", {"branch", "constant", "mma"}},
      {"src/codegen/author/author_words.cpp",
       {"argument", "block", "constant", "member", "reshape", "result", "scalar", "tensor"}},
      {"src/codegen/analysis/computed_operands.cpp", {"broadcast", "cast", "constant", "iota", "load", "reshape"}},
      {"src/codegen/analysis/graph_analysis.cpp", {"block", "constant", "extent", "member", "mma", "scalar"}},
      {"src/codegen/schedule/layouts.cpp",
       {"argmax", "argument", "broadcast", "extract", "gather", "gather_elements", "permute", "reshape", "result",
        "scatter", "take_along_axis"}},
      {"src/codegen/lower/sm90/fused_matmul_consumer.cpp", {"broadcast", "cast", "constant", "mma", "select"}},
      {"src/codegen/lower/sm90/consumer.cpp", {"mma"}},
      {"src/codegen/lower/sm90/consumer.hpp", {"mma"}},
      {"src/codegen/lower/store_by_parts.cpp", {"load", "store"}},
      {"src/codegen/schedule/warp_specialized.cpp", {"block", "load", "reshape"}},
      {"src/codegen/lower/lower_exchange.cpp", {"broadcast", "check", "concat", "permute", "reshape"}},
      {"src/codegen/lower/lower_scratch.cpp", {"broadcast"}},
      {"src/codegen/lower/lower_sort.cpp", {"broadcast", "histogram"}},
      {"src/codegen/lower/lower_fetch.cpp", {"extent", "load"}},
      {"src/codegen/lower/lower_fuse.cpp",
       {"broadcast", "cast", "constant", "iota", "load", "mma", "permute", "reshape", "take_along_axis"}},
      {"src/codegen/lower/lower_memory.cpp", {"constant", "gather", "scatter", "store"}},
      {"src/codegen/lower/lower_matmul.cpp", {"argument", "broadcast"}},
      {"src/codegen/lower/sm90/producer.cpp", {"broadcast", "cast"}},
      {"src/codegen/lower/lower_steps.cpp",
       {"broadcast", "cast", "constant", "custom", "extent", "gather", "iota", "load", "tensor"}},
      {"src/codegen/analysis/graph_analysis.hpp", {"argument"}},
      {"src/codegen/lower/masks.cpp", {"broadcast", "cast", "constant", "iota"}},
      {"src/codegen/schedule/matmul_plan.cpp", {"mma"}},
      {"src/codegen/schedule/partial_sums.cpp", {"argument"}},
      {"src/codegen/analysis/ranges.cpp",
       {"block", "broadcast", "cast", "constant", "extent", "iota", "permute", "reshape", "select"}},
      {"src/codegen/analysis/operand_source.cpp", {"cast", "load", "permute", "reshape"}},
      {"src/codegen/schedule/gemm.cpp",
       {"argmax", "argument", "block", "broadcast", "concat", "constant", "extract", "iota", "load", "loop", "mma",
        "permute", "repeat", "require", "store", "take_along_axis"}},
      {"src/codegen/schedule/split_matmuls.cpp", {"argument", "block", "constant", "load", "loop", "mma"}},
      {"src/codegen/analysis/transposed_access.cpp", {"permute"}},
      {"src/codegen/schedule/wgmma_tiles.cpp", {"argument", "broadcast", "constant", "permute"}},
      {"src/codegen/passes/plan/fold_scalars.cpp", {"bitcast", "broadcast", "cast", "custom", "extent", "select"}},
      {"src/codegen/passes/graph/dce.cpp", {"argument", "branch", "loop", "repeat", "result"}},
      {"src/codegen/passes/graph/constant_fold.cpp",
       {"bitcast", "broadcast", "cast", "constant", "custom", "extract", "permute", "reshape", "select"}},
      {"src/codegen/passes/graph/hoist_reshapes.cpp", {"broadcast", "reshape", "store"}},
      {"src/codegen/passes/plan/lower.cpp", {"reshape"}},
      {"src/codegen/forms/widen_fp8.cpp", {"cast", "mma"}},
      {"src/codegen/forms/swap_operands.cpp",
       {"broadcast", "cast", "concat", "iota", "mma", "permute", "reshape", "select"}},
      {"src/codegen/passes/graph/unbatch_mma.cpp", {"concat", "extract", "mma", "reshape"}},
      {"src/codegen/plan/effects.cpp", {"atomic_compare_exchange", "atomic_exchange"}},
      {"src/codegen/plan/plan_text.cpp", {"bitcast", "broadcast", "cast", "custom", "extent", "histogram"}},
      {"src/codegen/plan/exchange_steps.hpp", {"histogram"}},
      {"src/codegen/plan/sweep.hpp", {"broadcast"}},
      {"src/codegen/plan/verify/verify_contents.cpp", {"broadcast"}},
      {"src/codegen/plan/verify/verify_ids.cpp", {"extent"}},
      {"src/codegen/plan/verify/verify_values.cpp",
       {"argmax", "atomic_compare_exchange", "bitcast", "broadcast", "cast", "custom", "extent", "select"}},
      {"src/cpu/strip.cpp", {"select"}},
      {"src/cpu/tape.cpp",
       {"argument", "bitcast", "block", "branch", "broadcast", "cast", "constant", "custom", "extract", "iota", "load",
        "mma", "permute", "repeat", "reshape", "result", "select"}},
      {"src/dsl/cuda_kernel.cpp", {"require"}},
      {"include/tessera/dsl/trace.hpp", {"custom"}},
      {"src/graph/builder.cpp", {"argument", "branch", "constant", "extent", "loop", "repeat", "result"}},
      {"src/graph/evaluate.cpp", {"bitcast", "cast", "constant", "extent", "member", "scalar", "select"}},
      {"src/graph/graph.cpp",
       {"constant", "custom", "extent", "flatten_view", "member", "permute_view", "scalar", "slice", "tensor",
        "unfold_view"}},
      {"src/graph/reports.cpp", {"print"}},
      {"src/graph/rewrite.cpp", {"argument", "branch", "loop", "repeat", "result"}},
      {"src/graph/schedule.cpp", {"argument", "result"}},
      {"src/graph/verify.cpp",
       {"argument", "branch", "extent", "loop", "member", "print", "repeat", "result", "scalar"}},
      {"src/graph/views.cpp", {"flatten_view", "permute_view", "slice", "unfold_view"}},
      {"src/jit/tensor/copy_tensor.cpp", {"block", "broadcast", "cast", "extent", "load", "scalar", "store", "tensor"}},
      {"src/jit/launch/executable.cpp", {"require"}},
      {"src/jit/launch/specialize.cpp", {"block", "extent", "load", "store", "tensor"}},
      {"src/tensors/kernel_writer.cpp",
       {"argmax", "argsort", "broadcast", "cast", "constant", "extent", "gather", "iota", "load", "permute", "reshape",
        "scalar", "select", "sort", "store", "tensor"}},
      {"src/tensors/product_writer.cpp", {"extent", "iota", "mma", "permute", "select"}},
      {"tests/reference/memory.cpp",
       {"atomic_add", "atomic_and", "atomic_compare_exchange", "atomic_exchange", "atomic_max", "atomic_min",
        "atomic_or", "atomic_xor"}},
  };
  const std::string page = read_text(root / "CONTRIBUTING.md");
  const std::size_t begin = page.find("**An op**");
  REQUIRE(begin != page.npos);
  const std::string said = page.substr(begin, page.find("\n\n", begin) - begin);
  for (const auto& [file, name] : homes) {
    INFO(file);
    CHECK(said.find('`' + name + '`') != said.npos);
    CHECK_FALSE(named_in(root / file).empty());
  }
  std::map<std::string, Names> found;
  for (const char* folder : {"include", "src", "tests/reference"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string file = entry.path().lexically_relative(root).string();
      if (!entry.is_regular_file() || homes.contains(file)) continue;
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      if (Names ops = named_in(entry.path()); !ops.empty()) found.emplace(file, std::move(ops));
    }
  for (const auto& [file, ops] : found) {
    INFO(file << " names other ops than are listed here");
    const auto known = others.find(file);
    CHECK(ops == (known == others.end() ? Names() : known->second));
  }
  for (const auto& [file, ops] : others) {
    INFO(file << " names none");
    CHECK(found.contains(file));
  }
}

}  // namespace test_ops_table
