// The fuzzer itself: the programs that it makes and prints, shrinking, and detection.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>
#include <ranges>
#include <set>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/prelude/prelude.hpp"
#include "cpu/program.hpp"
#include "fuzz/memory.hpp"
#include "fuzz/program.hpp"
#include "fuzz/trial.hpp"
#include "graph/views.hpp"
#include "jit/options/shared_library.hpp"
#include "reference/reference.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/plan_steps.hpp"
#include "support/support.hpp"

namespace test_fuzz {

using namespace tessera::internal;
using fuzz::Body;
using fuzz::Failure;
using fuzz::Program;
using fuzz::Statement;
using fuzz::Trial;

namespace {

/// How deep loops and branches of a kind are nested.
int depth_of(const Body& body, Statement::Kind kind) {
  int depth = 0;
  for (const Statement& s : body) depth = std::max(depth, depth_of(s.body, kind) + (s.kind == kind));
  return depth;
}

/// Lines of the kernel as it is printed, including its braces.
std::ptrdiff_t lines_of(const Program& program) {
  const std::string text = fuzz::print_kernel(program);
  return std::count(text.begin(), text.end(), '\n') + 1;
}

/// Is an InOut read by the same CTA after it was written?
bool reads_what_it_wrote(const Graph& graph) {
  std::set<int> written;
  for (const auto& region : schedule(graph)) {
    for (const Id id : region) {
      const Node& node = graph[id];
      const int view = view_operand(node.op);
      if (view < 0 || !node.ordered) continue;
      const int parameter = view_parameter(graph, node.in[static_cast<std::size_t>(view)]);
      if (node.op == Op::store || node.op == Op::scatter) written.insert(parameter);
      if ((node.op == Op::load || node.op == Op::gather) && written.contains(parameter)) return true;
    }
  }
  return false;
}

using Seen = std::set<std::string>;

constexpr std::string_view access_names[] = {"In", "Out", "InOut"};
constexpr std::int64_t oversize = 128 * 256;  // elements: more than an expression's threads have registers for

/// The source of the rows of a gather or scatter.
std::string_view kind_of_rows(const Graph& graph, Id rows) {
  while (graph[rows].op == Op::reshape) rows = graph[rows].in[0];
  switch (graph[rows].op) {
    case Op::iota:
      return "iota";
    case Op::constant:
      return "constant";
    case Op::broadcast:
      return "broadcast";
    case Op::load:
    case Op::gather:
      return "loaded";
    default:
      return is_elementwise(graph[rows].op) ? "computed" : "other";
  }
}

/// Tiles too large for registers, gathers within an expression and scatters of one, by the kind of their rows;
/// accumulators of a few rows that their loop reads elsewhere.
void see_nodes(const Graph& graph, Seen& seen) {
  std::vector<std::vector<Id>> users(graph.nodes.size());
  const auto regions = schedule(graph);
  for (const auto& region : regions)
    for (const Id id : region)
      for (const Id in : graph[id].in) users[in].push_back(id);
  for (const auto& region : regions) {
    for (const Id id : region) {
      const Node& node = graph[id];
      const std::string large = node.shape.size() >= oversize ? "oversized " : "";
      const auto computes = [&](Id user) { return is_elementwise(graph[user].op); };
      if (node.op == Op::gather && std::ranges::any_of(users[id], computes))
        seen.insert(fmt::format("{}gather by {} rows in an expression", large, kind_of_rows(graph, node.in[1])));
      if (node.op == Op::scatter && is_elementwise(graph[node.in[0]].op))
        seen.insert(fmt::format("{}scatter of an expression by {} rows", large, kind_of_rows(graph, node.in[2])));
      if (!large.empty()) seen.insert(large + std::string(name(node.op)));
      if (node.op != Op::mma || node.shape[0] > 8 || graph.regions[node.region].kind != RegionKind::loop) continue;
      const Node& sum = graph[node.in[2]];
      const auto& yields = graph.regions[node.region].yields;
      if (sum.op != Op::argument || sum.attr[0] == 0 || yields[static_cast<std::size_t>(sum.attr[0]) - 1] != id)
        continue;
      seen.insert("a sum of few rows");
      if (users[node.in[2]].size() > 1) seen.insert("a sum of few rows that its loop reads before it adds");
      if (!users[id].empty()) seen.insert("a sum of few rows that its loop reads after it has added");
    }
  }
}

/// Strides other than a dense tensor's.
void see_layout(const Parameter& parameter, const fuzz::Given& given, Seen& seen) {
  if (given.strides.empty() || std::ranges::count(given.extents, 0)) return;
  const std::int64_t bytes = info(parameter.type).bytes;
  std::int64_t reach = 0;
  for (std::size_t axis = 0; axis < given.extents.size(); ++axis) {
    const std::int64_t extent = given.extents[axis], stride = given.strides[axis];
    reach += (extent - 1) * std::abs(stride);
    if (extent > 1 && stride < 0)
      seen.insert(fmt::format("{} reversed", access_names[static_cast<std::size_t>(parameter.access)]));
    if (extent > 1 && stride == 0) seen.insert("an axis repeated");
    if (stride != 1 || extent % 16 != 0 || given.offset * bytes % 16 != 0) continue;
    for (std::size_t other = 0; other < given.extents.size(); ++other)
      if (given.extents[other] > 1 && given.strides[other] * bytes % 16 != 0)
        seen.insert(fmt::format("rows of {} that are not aligned as the first is", name(parameter.type)));
  }
  if (reach >= std::int64_t{1} << 31)
    seen.insert(fmt::format("{} beyond 2^31", access_names[static_cast<std::size_t>(parameter.access)]));
}

/// Tiles whose elements are 2^31 or more apart, along the tensor's rows or by the steps of views.
void see_far_tiles(const Graph& graph, std::span<const Argument> arguments, Seen& seen) {
  for (const auto& region : schedule(graph))
    for (const Id id : region) {
      const Node& node = graph[id];
      if (node.op != Op::load && node.op != Op::store) continue;
      const Id view = node.in[static_cast<std::size_t>(view_operand(node.op))];
      const Argument& argument = arguments[static_cast<std::size_t>(view_parameter(graph, view))];
      const std::vector<ViewAxis> axes = view_axes(graph, view);
      for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t apart = (node.shape[static_cast<int>(i)] - 1) * std::abs(axes[i].step());
        const std::int64_t stride = std::abs(argument.stride[static_cast<std::size_t>(axes[i].axes.back())]);
        if (apart > 0 && stride > 0 && apart >= (std::int64_t{1} << 31) / stride)
          seen.insert(fmt::format("{} of a tile 2^31 long by {}", name(node.op), stride > 1 ? "rows" : "steps"));
      }
    }
}

/// Effects in loops and in nested loops; and tensors to which a tile is appended repeatedly, each computed from the one
/// before it.
void see_effects(const Body& body, int loops, Seen& seen) {
  std::map<fuzz::Name, int> rounds;  // of each view: twice those of a load and a store, plus one after a load
  for (const Statement& s : body) {
    if (s.kind == Statement::Kind::apply && is_effect(s.op) && info(s.op).role < OpRole::claim && loops > 0)
      seen.insert(loops == 1 ? "an effect in a loop" : "an effect in a loop in a loop");
    if (s.kind == Statement::Kind::apply && s.op == Op::load) rounds[s.from[0]] |= 1;
    if (s.kind == Statement::Kind::apply && s.op == Op::store && (rounds[s.from[1]] & 1) && ++rounds[s.from[1]] >= 6)
      seen.insert("three tiles appended");
    see_effects(s.body, loops + (s.kind == Statement::Kind::loop), seen);
  }
}

/// Before all tensors.
std::byte& first_byte(const fuzz::Memory& memory) {
  const fuzz::Buffer& buffer = memory.buffers()[0];
  return buffer[buffer.parts()[0].first];
}

Trial trial_of(const Program& program) { return Trial(fuzz::trace(program), program.given, program.seed); }

}  // namespace

TEST_CASE("a seed always gives the same program", "[fuzz]") {
  for (const std::uint64_t seed : {1, 2, 3, 100}) {
    const Program program = fuzz::generate(seed);
    CHECK(fuzz::print_test(program, "") == fuzz::print_test(fuzz::generate(seed), ""));
    CHECK(fuzz::print_test(program, "") != fuzz::print_test(fuzz::generate(seed + 1), ""));
    CHECK(to_string(fuzz::trace(program)) == to_string(fuzz::trace(fuzz::generate(seed))));
  }
}

TEST_CASE("random programs cover the whole language", "[fuzz]") {
  constexpr std::uint64_t programs = sanitized ? 80 : 1300;
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const Program program = fuzz::generate(seed);
    const Graph graph = fuzz::trace(program);
    Seen here;
    see_nodes(graph, here);
    see_effects(program.body, 0, here);
    for (const auto& region : schedule(graph)) {
      for (const Id id : region) {
        const Node& node = graph[id];
        here.insert(fmt::format("op {}", name(node.op)));
        here.insert(fmt::format("type {}", name(node.type)));
        if (node.op == Op::mma) here.insert(fmt::format("mma of {}", name(graph[node.in[0]].type)));
        if (node.op == Op::cast) here.insert(fmt::format("cast {} {}", name(graph[node.in[0]].type), name(node.type)));
      }
    }
    for (std::size_t i = 0; i < program.given.size(); ++i) {
      const Parameter& parameter = program.parameters[i];
      const fuzz::Given& given = program.given[i];
      if (parameter.access == Access::scalar) continue;
      here.insert(fmt::format("rank {}", parameter.rank));
      here.insert(fmt::format("{} of {}", static_cast<int>(parameter.access), name(parameter.type)));
      if (std::ranges::count(given.extents, 0)) here.insert("a tensor of no elements");
      if (std::ranges::count(given.extents, 1)) here.insert("an extent of 1");
      if (!given.strides.empty()) here.insert("strides");
      if (given.offset) here.insert("an offset");
      see_layout(parameter, given, here);
    }
    fuzz::Memory memory(graph.parameters, program.given, program.seed);
    std::vector<std::int64_t> grid;
    bool refused = memory.overlaps();
    try {
      if (!refused) grid = reference::grid(graph, memory.arguments());
    } catch (const Error&) {  // a requirement does not hold
      refused = true;
    }
    if (refused) here.insert("a refused launch");
    see_far_tiles(graph, memory.arguments(), here);
    if (std::ranges::count(grid, 0)) here.insert("a grid of no blocks");
    if (grid.size() == 3) here.insert("a grid of three axes");
    if (depth_of(program.body, Statement::Kind::loop) > 1) here.insert("a loop in a loop");
    if (depth_of(program.body, Statement::Kind::branch) > 1) here.insert("an if in an if");
    if (reads_what_it_wrote(graph)) here.insert("an InOut read after it was written");
    for (const std::string& what : here) ++seen[what];
  }
  CHECK(!seen.empty());
  if (sanitized) return;  // so few do not cover everything
  std::vector<std::string> wanted = {"a tensor of no elements",
                                     "an extent of 1",
                                     "strides",
                                     "an offset",
                                     "a refused launch",
                                     "a grid of no blocks",
                                     "a grid of three axes",
                                     "a loop in a loop",
                                     "an if in an if",
                                     "an InOut read after it was written",
                                     "rank 1",
                                     "rank 2",
                                     "rank 3",
                                     "a sum of few rows",
                                     "a sum of few rows that its loop reads before it adds",
                                     "a sum of few rows that its loop reads after it has added",
                                     "an axis repeated",
                                     "an effect in a loop",
                                     "an effect in a loop in a loop",
                                     "three tiles appended",
                                     "load of a tile 2^31 long by rows",
                                     "load of a tile 2^31 long by steps",
                                     "store of a tile 2^31 long by rows",
                                     "store of a tile 2^31 long by steps"};
  for (const std::string large : {"", "oversized "}) {
    for (const char* rows : {"iota", "constant", "broadcast", "loaded", "computed"}) {
      wanted.push_back(fmt::format("{}gather by {} rows in an expression", large, rows));
      wanted.push_back(fmt::format("{}scatter of an expression by {} rows", large, rows));
    }
  }
  for (const Op op : {Op::load, Op::gather, Op::store, Op::scatter, Op::atomic_add, Op::select, Op::broadcast})
    wanted.push_back(fmt::format("oversized {}", name(op)));
  for (const std::string_view access : access_names) {
    wanted.push_back(fmt::format("{} reversed", access));
    wanted.push_back(fmt::format("{} beyond 2^31", access));
  }
#define UNARY(name, ...) wanted.push_back("op " #name);
#define BINARY(name, ...) wanted.push_back("op " #name);
#define TERNARY(name, ...) wanted.push_back("op " #name);
#define REDUCTION(name, ...) wanted.push_back("op " #name);
#define SCAN(name, ...) wanted.push_back("op " #name);
#define STRUCTURAL(name, ...) wanted.push_back("op " #name);
#include "tessera/graph/ops.def"
  std::vector<ElementType> types;
#define TYPE(name, ...) types.push_back(ElementType::name);
#include "tessera/graph/types.def"
  for (const ElementType type : types) {
    wanted.push_back(fmt::format("type {}", name(type)));
    if (info(type).multiplies) wanted.push_back(fmt::format("mma of {}", name(type)));
    for (const ElementType to : types)
      if (to != type) wanted.push_back(fmt::format("cast {} {}", name(type), name(to)));
    for (int access = 0; access < 3 && info(type).stored; ++access)
      wanted.push_back(fmt::format("{} of {}", access, name(type)));
    if (info(type).stored) wanted.push_back(fmt::format("rows of {} that are not aligned as the first is", name(type)));
  }
  for (const std::string& what : wanted) {
    INFO(what);
    CHECK(seen[what] > 0);
  }
}

/// Where two matmuls share one operand, transposed in the second: whether it is the left one of the first, and of the
/// second.
std::set<std::pair<bool, bool>> transposed_operands(const Graph& graph) {
  std::set<std::pair<bool, bool>> found;
  for (const Node& first : graph.nodes)
    for (const Node& then : graph.nodes) {
      if (first.op != Op::mma || then.op != Op::mma) continue;
      for (const std::size_t a : {0, 1})
        for (const std::size_t b : {0, 1}) {
          const Node& transposed = graph.nodes[static_cast<std::size_t>(then.in[b])];
          if (transposed.op == Op::permute && transposed.in[0] == first.in[a]) found.insert({a == 0, b == 0});
        }
    }
  return found;
}

TEST_CASE("random matmuls are warp-specialized in every way, or are not for many reasons", "[fuzz]") {
  constexpr std::uint64_t programs = sanitized ? 300 : 3000;
  std::uint64_t with_roles = 0;
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const Program program = fuzz::generate(seed);
    const Graph graph = run_passes(fuzz::trace(program));
    if (std::ranges::none_of(graph.nodes, [](const Node& node) { return node.op == Op::mma; })) continue;
    fuzz::Memory memory(graph.parameters, program.given, seed);
    codegen::Plan plan = codegen::make_plan(graph, classify(graph, memory.arguments()), Arch::sm_90a, {});
    for (const std::string& note : notes(plan)) ++seen[note];
    if (plan.phases[0].roles.size() == 1) continue;
    ++with_roles;
    const codegen::Role& consumer = plan.phases[0].roles[1];
    ++seen[fmt::format("teams {}, warps {}", consumer.consumer_groups, consumer.warps)];
    const bool boxes = std::ranges::any_of(plan.tensor_maps, &codegen::TensorMap::store);
    ++seen[boxes ? "stored by boxes" : "stored otherwise"];
    for (const codegen::TensorMap& map : plan.tensor_maps)
      if (map.tensor.axes[2] >= 0) ++seen["more than two axes"];
    for (const StepPlace& place : places_of<codegen::StoreShared>(plan)) {
      const auto& stage = place.step().action.get<codegen::StoreShared>();
      if (!stage.state) continue;
      ++seen["written to a pipeline by threads"];
      ++seen[stage.sweep.reads[0].run > 1 ? "neighbours are written" : "no neighbours are written"];
    }
    for (const StepPlace& place : places_of<codegen::LoadFragment>(plan))
      ++seen[place.step().action.get<codegen::LoadFragment>().transposed ? "computed of rows along m"
                                                                         : "computed of rows along k"];
    std::set<codegen::ValueId> sums;
    for (const StepPlace& place : places_of<codegen::Wgmma>(plan)) {
      const auto& product = place.step().action.get<codegen::Wgmma>();
      if (product.first_k > 0) continue;
      ++seen[fmt::format("{}{}", name(product.type),
                         product.left && product.type == ElementType::tf32 ? " from registers" : "")];
      ++seen[product.left ? "left from registers" : product.a_k_major ? "left along k" : "left along m"];
      ++seen[product.b_k_major ? "right along k" : "right along n"];
      ++seen[product.overwrites_first ? "from nothing" : "from a tile"];
      sums.insert(product.out);
    }
    if (sums.size() == 1) continue;
    for (const auto& [left_first, left_then] : transposed_operands(graph))
      ++seen[fmt::format("{} in one product, transposed {} in another", left_first ? "left" : "right",
                         left_then ? "left" : "right")];
  }
  CHECK(with_roles > 0);
  if (sanitized) return;  // so few do not cover everything
  CHECK(with_roles >= programs / 50);
  for (const char* what : {"teams 2, warps 4",
                           "teams 1, warps 8",
                           "stored by boxes",
                           "stored otherwise",
                           "more than two axes",
                           "f16",
                           "bf16",
                           "tf32",
                           "tf32 from registers",
                           "left along k",
                           "left along m",
                           "left from registers",
                           "computed of rows along k",
                           "computed of rows along m",
                           "right along k",
                           "right along n",
                           "left in one product, transposed left in another",
                           "left in one product, transposed right in another",
                           "right in one product, transposed left in another",
                           "right in one product, transposed right in another",
                           "from nothing",
                           "from a tile",
                           "crosses warps",
                           "written to a pipeline by threads",
                           "neighbours are written",
                           "no neighbours are written",
                           " in memory",
                           "depend on computed values",
                           "the loop does more",
                           "carries more",
                           "is not in a loop",
                           "several matmuls"}) {
    INFO(what);
    CHECK(std::ranges::any_of(seen, [&](const auto& entry) { return entry.first.find(what) != std::string::npos; }));
  }
}

// Without the double overload, a function for any integer type would be chosen, and truncate differently.
TEST_CASE("random programs that compute in f64 have the functions for it", "[fuzz]") {
  int programs = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Program program = fuzz::generate(seed);
    const Graph graph = run_passes(fuzz::trace(program));
    if (std::ranges::none_of(graph.nodes, [](const Node& node) { return node.type == ElementType::f64; })) continue;
    fuzz::Memory memory(graph.parameters, program.given, seed);
    const std::string text = tessera::internal::generate(graph, classify(graph, memory.arguments()), Arch::sm_90a).text;
    ++programs;
    for (const PreludeItem& item : prelude_items()) {
      const std::string_view head = item.text.substr(0, item.text.find('{'));
      if (head.find("(double ") == head.npos || text.find(fmt::format(" {}(", item.name)) == text.npos) continue;
      INFO("seed " << seed << ": " << item.text);
      CHECK(text.find(item.text) != text.npos);
    }
  }
  CHECK(programs > 50);
}

TEST_CASE("random programs use a name for each thread index that they declare", "[fuzz]") {
  const auto names = [](std::string_view text, std::string_view name) {
    const auto continues = [&](std::size_t at) {
      return at < text.size() && (text[at] == '_' || std::isalnum(text[at]));
    };
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
      if (!continues(at - 1) && !continues(at + name.size())) return true;
    return false;
  };
  int declared = 0;
  for (std::uint64_t seed = 1; seed <= (sanitized ? 40 : 120); ++seed) {
    const Program program = fuzz::generate(seed);
    const Graph graph = run_passes(fuzz::trace(program));
    fuzz::Memory memory(graph.parameters, program.given, seed);
    const std::string text = tessera::internal::generate(graph, classify(graph, memory.arguments()), Arch::sm_90a).text;
    // Until the next role's declaration of the name.
    constexpr std::string_view head = "\n  const int ";
    for (std::size_t at = text.find(head); at != text.npos; at = text.find(head, at + 1)) {
      const std::string_view rest = std::string_view(text).substr(at + head.size());
      const std::string_view name = rest.substr(0, rest.find(' '));
      if (name != "lane" && name != "warp" && (name.size() < 2 || name[0] != 't' || !std::isdigit(name[1]))) continue;
      const std::string_view behind = rest.substr(name.size());
      ++declared;
      INFO("seed " << seed << ": " << name);
      CHECK(names(behind.substr(0, behind.find(fmt::format("const int {} = ", name))), name));
    }
  }
  CHECK(declared > 100);
}

TEST_CASE("a printed program is equivalent to the program", "[fuzz]") {
  const TempDir folder;
  constexpr std::uint64_t programs = 5;
  std::string text = "#include <tessera/tessera.hpp>\nusing namespace tessera;\n";
  for (std::uint64_t seed = 1; seed <= programs; ++seed)
    text += fmt::format(
        "extern \"C\" void graph_{0}(std::string* text) {{ *text = to_string(internal::trace_kernel(\"fuzz_{0}\", {1})); }}\n",
        seed, fuzz::print_kernel(fuzz::generate(seed)));
  write_text(folder / "printed.cpp", text);
  const std::string command = fmt::format(
      "cd '{}' && g++ -std=c++20 -O0 -Wall -Wextra -Werror -fPIC -shared -I '{}/include' printed.cpp -o printed.so 2>log",
      folder.path().native(), TESSERA_SOURCE_DIR);
  if (std::system(command.c_str()) != 0) FAIL(read_text(folder / "log").substr(0, 2000));
  const SharedLibrary library =
      SharedLibrary::open("the printed kernels", std::array{(folder / "printed.so").string()});
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    std::string graph;
    library.symbol<void (*)(std::string*)>(fmt::format("graph_{}", seed).c_str())(&graph);
    CHECK(graph == to_string(fuzz::trace(fuzz::generate(seed))));
  }
}

TEST_CASE("a failing program is shrunk", "[fuzz]") {
  // The planted fault: a floor_div whose divisor depends on a loop's counter.
  const auto fails = [](const Program& program) {
    const Graph graph = fuzz::trace(program);
    std::vector<bool> follows(graph.nodes.size());
    bool found = false;
    for (const auto& region : schedule(graph)) {
      for (const Id id : region) {
        const Node& node = graph[id];
        follows[id] = node.op == Op::argument && node.position() == 0;
        for (const Id in : node.in) follows[id] = follows[id] || follows[in];
        found |= node.op == Op::floor_div && follows[node.in[1]];
      }
    }
    return found;
  };
  int shrunk = 0;
  for (std::uint64_t seed = 1; seed < 30000 && shrunk < 3; ++seed) {
    const Program program = fuzz::generate(seed);
    if (!fails(program)) continue;
    ++shrunk;
    const Program small = fuzz::shrink(program, fails, [] { return true; });
    INFO("seed " << seed << "\n" << fuzz::print_kernel(small));
    CHECK(fails(small));
    CHECK(lines_of(small) <= 10);
    CHECK(fuzz::print_kernel(fuzz::shrink(program, fails, [] { return true; })) == fuzz::print_kernel(small));
  }
  CHECK(shrunk == 3);
}

TEST_CASE("a wrong executor is detected", "[fuzz]") {
  // An executor that omits the last changed byte; one that writes out of bounds; one that fails.
  int wrong = 0, changed = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Program program = fuzz::generate(seed);
    const Trial trial = trial_of(program);
    if (trial.is_refused()) continue;
    const auto run = [&](fuzz::Memory& memory) { cpu::Program(trial.graph()).run(memory.arguments(), trial.grid()); };
    CHECK_FALSE(trial.check("right", [&](fuzz::Memory& memory) { return run(memory), std::optional<Failure>(); }));
    const auto forgetful = trial.check("wrong", [&](fuzz::Memory& memory) -> std::optional<Failure> {
      const auto before = memory.buffers();
      run(memory);
      for (std::size_t b = 0; b < before.size(); ++b)
        for (const auto& [first, end] : before[b].parts() | std::views::reverse)
          for (std::size_t i = end; i-- > first;)
            if (before[b][i] != memory.buffers()[b][i]) {
              ++changed;
              memory.buffers()[b][i] ^= std::byte{0x40};
              return {};
            }
      return {};
    });
    wrong += forgetful.has_value();
    const auto astray = trial.check("astray", [&](fuzz::Memory& memory) -> std::optional<Failure> {
      run(memory);
      first_byte(memory) ^= std::byte{1};
      return {};
    });
    REQUIRE(astray);
    CHECK(astray->kind == "astray: stray write");
    const auto failing = trial.check("failing", [&](fuzz::Memory&) -> std::optional<Failure> { throw Error("no 7"); });
    REQUIRE(failing);
    CHECK(failing->kind == "failing: no ");
  }
  CHECK(changed > 20);
  CHECK(wrong * 10 > changed * 9);
}

TEST_CASE("a launch is rejected before anything is written", "[fuzz]") {
  std::uint64_t seed = 1;
  while (!trial_of(fuzz::generate(seed)).is_refused()) ++seed;
  const auto refusal = [&](std::byte change) {
    return trial_of(fuzz::generate(seed)).check("test", [&](fuzz::Memory& memory) -> std::optional<Failure> {
      first_byte(memory) ^= change;
      throw Error("refused");
    });
  };
  CHECK_FALSE(refusal(std::byte{0}));
  const auto late = refusal(std::byte{1});
  REQUIRE(late);
  CHECK(late->kind == "test: refused too late");
}

TEST_CASE("random programs agree with the reference, which knows most of their results", "[fuzz]") {
  const std::uint64_t programs = 200 / std::min<std::size_t>(test_share(1), 4);
  std::size_t elements = 0, unknown = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const Program program = fuzz::generate(seed);
    const Trial trial = trial_of(program);
    for (const auto& tensor : trial.expected()) {
      elements += tensor.elements.size();
      unknown += static_cast<std::size_t>(std::ranges::count_if(
          tensor.elements, [](const auto& e) { return std::isinf(e.low) && std::isinf(e.high); }));
    }
    for (const auto& failure : {trial.check_on(Device::cpu()), trial.check_without_passes()}) {
      INFO(fuzz::print_kernel(program));
      if (failure) FAIL_CHECK("seed " << seed << ": " << failure->kind << "\n" << failure->text);
    }
  }
  CAPTURE(unknown, elements);
  CHECK(unknown * 20 < elements);
}

}  // namespace test_fuzz
