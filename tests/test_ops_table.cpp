// What ops.def says of an op, and that no more places than it says know one by name.
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "catch.hpp"
#include "graph/error.hpp"
#include "graph/graph.hpp"
#include "support.hpp"

using namespace tessera;

namespace {

constexpr Op structural_ops[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(name, ...) Op::name,
#include "graph/ops.def"
};

using Names = std::set<std::string>;

/// The structural ops that a file names.
Names named_in(const std::filesystem::path& file) {
  static const std::regex op(R"(\bOp::(\w+))");
  Names all, found;
  for (Op structural : structural_ops) all.insert(std::string(name(structural)));
  const std::string text = read_text(file);
  for (std::sregex_iterator it(text.begin(), text.end(), op), end; it != end; ++it)
    if (all.contains((*it)[1])) found.insert((*it)[1]);
  return found;
}

}  // namespace

TEST_CASE("ops.def says what operands and attributes an op has", "[graph]") {
  static_assert(view_operand(Op::load) == 0 && view_operand(Op::scatter) == 1 && view_operand(Op::add) == -1);
  static_assert(repeated_operand(Op::concat) == 1 && repeated_operand(Op::gather) == 2);
  static_assert(repeated_operand(Op::mma) == -1 && repeated_operand(Op::constant) == -1);
  static_assert(operand_kind(Op::gather, 1) == OperandKind::rows && operand_kind(Op::gather, 4) == OperandKind::index);
  static_assert(operand_kind(Op::loop, 0) == OperandKind::index && operand_kind(Op::loop, 3) == OperandKind::value);
  static_assert(is_view(Op::slice) && !is_view(Op::extent) && is_read(Op::gather) && !is_read(Op::extent));
  static_assert(is_write(Op::store) && is_write(Op::atomic_add) && !is_write(Op::load));
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

TEST_CASE("an attribute is asked of the ops that have it", "[graph]") {
  Node node;
  node.op = Op::sum;
  node.attr = {2};
  CHECK(node.axis() == 2);
  CHECK_THROWS_AS(node.position(), InternalError);
  CHECK_THROWS_AS(node.body(), InternalError);
  CHECK_THROWS_AS(node.permutation(), InternalError);
  node.op = Op::result;
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
  // Where every op may have its case.
  const Names homes = {"src/graph/infer.cpp",
                       "src/dsl/expr.hpp",
                       "src/dsl/tile.hpp",
                       "src/dsl/view.hpp",
                       "src/dsl/control.hpp",
                       "src/dsl/trace.cpp",
                       "src/cpu/program.cpp",
                       "src/codegen/lower/lower.cpp",
                       "tests/reference/interpreter.cpp"};
  // What else knows some: those that a graph itself is made of, and those that it gains by to know.
  const std::map<std::string, Names> others = {
      {"src/graph/builder.cpp",
       {"argument", "branch", "constant", "extent", "loop", "permute_view", "result", "slice", "tensor"}},
      {"src/graph/evaluate.cpp", {"cast", "constant", "extent", "scalar", "select"}},
      {"src/graph/graph.cpp", {"constant", "extent", "permute_view", "scalar", "slice", "tensor"}},
      {"src/graph/rewrite.cpp", {"argument", "branch", "loop", "result"}},
      {"src/graph/verify.cpp", {"argument", "branch", "extent", "loop", "result", "scalar", "tensor"}},
      {"src/cpu/strip.cpp", {"select"}},
      {"src/cpu/tape.cpp",
       {"argument", "block", "broadcast", "cast", "constant", "iota", "load", "loop", "mma", "permute", "reshape",
        "result", "select"}},
      {"src/codegen/passes/eliminate_dead.cpp", {"argument", "loop", "result"}},
      {"src/codegen/lower/facts.cpp",
       {"argument", "atomic_add", "block", "constant", "extent", "permute_view", "scalar", "scatter", "tensor"}},
      {"src/codegen/passes/fold.cpp", {"broadcast", "cast", "constant", "permute", "reshape", "select"}},
      {"src/codegen/lower/layouts.cpp",
       {"argmax", "argument", "broadcast", "cumsum", "gather", "loop", "permute", "reshape", "result", "scatter"}},
      {"src/codegen/lower/products.cpp", {"argument", "mma"}},
      {"src/codegen/lower/source.cpp", {"cast", "load", "permute", "reshape"}},
      {"src/codegen/lower/split_products.cpp", {"argument", "block", "constant", "load", "loop", "mma"}},
      {"src/codegen/passes/eliminate_common.cpp", {}},
      {"src/codegen/passes/passes.cpp", {}},
  };
  std::vector<fs::path> files;
  for (const char* folder : {"src/graph", "src/dsl", "src/cpu", "tests/reference"})
    for (const auto& entry : fs::directory_iterator(fs::path(TESSERA_SOURCE_DIR) / folder))
      files.push_back(fs::path(folder) / entry.path().filename());
  for (const auto& [file, names] : others)
    if (file.starts_with("src/codegen/")) files.emplace_back(file);
  for (const fs::path& file : files) {
    if (file.extension() != ".cpp" && file.extension() != ".hpp") continue;
    if (homes.contains(file.string())) continue;
    const auto known = others.find(file.string());
    for (const std::string& op : named_in(fs::path(TESSERA_SOURCE_DIR) / file)) {
      INFO(file << " knows " << op);
      CHECK((known != others.end() && known->second.contains(op)));
    }
  }
}
