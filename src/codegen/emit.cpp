// emit: a plan, spelled as CUDA C++. What is decided here changes no result: how far loops are unrolled, and names.
#include <fmt/ranges.h>

#include "codegen/emit_products.hpp"

namespace tessera {
namespace {

// The ops that a step computes, in order.
std::string what(const Step& step) {
  std::vector<std::string_view> ops;
  for (const Term& term : step.expression.terms)
    if (term.op != Op::broadcast && (ops.empty() || ops.back() != name(term.op))) ops.push_back(name(term.op));
  constexpr std::string_view kinds[] = {"", "load", "store",  "scatter", "atomic_add", "", "argmax",
                                        "", "move", "cumsum", "move",    "stage",      "", "fetch",
                                        "", "mma",  "",       "range",   "if_"};
  std::string_view kind = kinds[static_cast<int>(step.kind)];
  if (step.kind == Step::Kind::reduce || step.kind == Step::Kind::replicas) kind = name(step.op);
  if (!kind.empty()) ops.push_back(kind);
  if (ops.empty()) ops.push_back("copy");
  return fmt::format("{}", fmt::join(ops, ", "));
}

class Emitter final : ProductEmitter {
 public:
  explicit Emitter(const Plan& plan) : ProductEmitter(plan) {}

  std::string run() {
    depth_ = plan_.persistent ? 2 : 1;
    for (const Step& step : plan_.steps) emit(step);
    std::string body = std::move(text_);
    depth_ = 0;
    header();
    text_ += body;
    depth_ = 0;
    if (plan_.persistent) line("  }}");
    line("}}");
    return std::move(text_);
  }

 private:
  void header() {
    using Kind = KernelParameter::Kind;
    std::vector<std::string> parameters;
    std::string current;
    for (const KernelParameter& p : plan_.parameters) {
      switch (p.kind) {
        case Kind::pointer: {
          const bool in = tensor(p.argument).access == Access::in;
          current = fmt::format("{}{}* __restrict__ {}", in ? "const " : "", memory_type(tensor(p.argument).type),
                                tensor_name(p.argument));
          break;
        }
        case Kind::extent:
          current = fmt::format("int {}_extent{}", tensor_name(p.argument), p.axis);
          break;
        case Kind::stride:
          current = fmt::format("{} {}_stride{}", plan_.variant.wide ? "i64" : "int", tensor_name(p.argument), p.axis);
          break;
        case Kind::scalar:
          current = fmt::format("{} scalar{}", register_type(tensor(p.argument).type), p.argument);
          break;
        case Kind::grid:
          current = fmt::format("int grid{}", p.axis);
          break;
        case Kind::blocks:
          current = fmt::format("{} blocks", block_type());
          break;
        case Kind::first_block:
          current = "i64 first_block";
          break;
        case Kind::workspace:
          current = "char* all_workspace";
          break;
      }
      parameters.push_back(current);
    }
    line("extern \"C\" __global__ void __launch_bounds__({}, {}) {}(", plan_.threads(), plan_.blocks, plan_.kernel);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      line("    {}{}", parameters[i], i + 1 < parameters.size() ? "," : ") {");
    depth_ = 1;
    if (uses("shared")) line("char* const shared = shared_memory();");
    if (plan_.workspace_bytes)
      line("char* const workspace = all_workspace + block_index() * {}ll;", plan_.workspace_bytes);
    if (uses("thread")) line("const int thread = thread_index();");
    if (uses("lane")) line("const int lane = lane_index();");
    if (uses("warp")) line("const int warp = warp_index();");
    for (const ThreadTerm& term : terms_) {
      std::vector<std::string> parts;
      for (const auto& [factor, scale] : term.digits) {
        std::string text = factor.place == Place::lane ? "lane" : "warp";
        const int all = factor.place == Place::lane ? 32 : plan_.warps;
        if (factor.unit != 1) text += fmt::format(" / {}", factor.unit);
        if (factor.unit * factor.size != all) text += fmt::format(" % {}", factor.size);
        if (scale != 1) text += fmt::format(" * {}", scale);
        parts.push_back(std::move(text));
      }
      line("const int {} = {};", term.name, joined(parts, " + ", "0"));
    }
    std::set<std::string> pointers;
    for (const Value& v : plan_.values) {
      if (v.home != Home::shared && v.home != Home::workspace) continue;
      if (!mentioned_.contains(v.name) || !pointers.insert(v.name).second) continue;
      line("{0}* const {1} = reinterpret_cast<{0}*>({2} + {3}) + thread * {4};", register_type(v.type), v.name,
           v.home == Home::shared ? "shared" : "workspace", v.offset, v.vector);
    }
    for (const Buffer& buffer : plan_.buffers)
      if (mentioned_.contains(buffer.name))
        line("char* const {} = {} + {};", buffer.name, buffer.in_workspace ? "workspace" : "shared", buffer.offset);
    block_place();
  }
  bool uses(std::string_view what) const { return used_.contains(std::string(what)); }
  std::string_view block_type() const { return plan_.variant.wide ? "i64" : "u32"; }
  void block_place() {
    if (plan_.persistent) {
      line("for ({} block = block_index(); block < blocks; block += grid_size()) {{", block_type());
      depth_ = 2;
    } else {
      line("const {} block = {}block_index();", block_type(), plan_.variant.wide ? "first_block + " : "");
    }
    std::vector<int> axes;
    for (const KernelParameter& p : plan_.parameters)
      if (p.kind == KernelParameter::Kind::grid) axes.push_back(p.axis);
    const auto wanted = [&](int axis) { return mentioned_.contains(fmt::format("block{}", axis)); };
    // The last axis runs fastest; or the first two go in groups, inside of the others.
    const std::size_t grouped = plan_.raster ? 2 : 0;
    std::string rest = "block";
    if (grouped) {
      const std::string plane = fmt::format("(static_cast<{}>(grid0) * grid1)", block_type());
      line("const GridPlace place = grouped({}, grid0, grid1, {});", axes.size() > 2 ? "block % " + plane : "block",
           plan_.raster);
      if (wanted(0)) line("const int block0 = place.row;");
      if (wanted(1)) line("const int block1 = place.column;");
      rest = "block / " + plane;
    }
    for (std::size_t i = axes.size(); i-- > grouped;) {
      const std::string text = i > grouped ? fmt::format("{} % grid{}", rest, i) : rest;
      if (wanted(static_cast<int>(i))) line("const int block{} = static_cast<int>({});", i, text);
      rest += fmt::format(" / grid{}", i);
    }
  }

  void emit(const Step& step) {
    line_ = step.location.line;
    if (step.location.file && *step.location.file && step.kind != Step::Kind::barrier && step.kind != Step::Kind::wait)
      where(step);
    switch (step.kind) {
      case Step::Kind::compute:
        return compute(step);
      case Step::Kind::load:
        return load(step);
      case Step::Kind::store:
      case Step::Kind::scatter:
      case Step::Kind::atomic:
        return store(step);
      case Step::Kind::reduce:
        return reduce(step);
      case Step::Kind::argmax:
        return argmax(step);
      case Step::Kind::replicas:
        return replicas(step);
      case Step::Kind::put:
        return put(step);
      case Step::Kind::scan:
        return scan(step);
      case Step::Kind::get:
        return get(step);
      case Step::Kind::stage:
        return stage(step);
      case Step::Kind::clear:
        return clear(step);
      case Step::Kind::fetch:
        return fetch(step);
      case Step::Kind::wait:
        line("copy_async_commit();");
        line("copy_async_wait<0>();");
        return;
      case Step::Kind::product:
        return product(step);
      case Step::Kind::barrier:
        line("barrier();");
        return;
      case Step::Kind::loop:
        return loop(step);
      case Step::Kind::branch:
        open("if ({}) {{", scalar(step.count));
        for (const Step& inner : step.body) emit(inner);
        close();
        return;
    }
  }

  // One comment, and a line directive, for what the author wrote in one place.
  void where(const Step& step) {
    const std::string file(step.location.file);
    std::string text = fmt::format("#line {} \"{}\"", step.location.line, file);
    const std::string ops = what(step);
    if (text == last_place_ && ops == last_ops_ && depth_ == last_depth_) return;
    const std::size_t slash = file.find_last_of('/');
    line("// {}: {}", slash == file.npos ? file : file.substr(slash + 1), ops);
    if (text != last_place_) text_ += text + '\n';
    last_place_ = std::move(text);
    last_ops_ = ops;
    last_depth_ = depth_;
  }

  void loop(const Step& step) {
    const std::string count = scalar(step.count);
    if (step.ahead.empty()) {
      open("for (int {0} = 0; {0} < {1}; ++{0}) {{", step.counter, count);
    } else {
      const int ahead = step.stages - 1;
      const std::string fetching = "fetching_" + step.counter;
      line("// {} rounds are under way at a time.", step.stages);  // one loop, so that a fetch is compiled once
      open("for (int {0} = 0; {0} - {1} < {2}; ++{0}) {{", fetching, ahead, count);
      open("if ({} >= {}) {{", fetching, ahead);
      line("copy_async_wait<{}>();", step.stages - 2);
      line("barrier();");
      close();
      open("if ({} < {}) {{", fetching, count);
      line("const int {} = {};", step.counter, fetching);
      for (const Step& inner : step.ahead) emit(inner);
      close();
      line("copy_async_commit();");
      line("if ({} < {}) continue;", fetching, ahead);
      line("const int {} = {} - {};", step.counter, fetching, ahead);
    }
    for (const Step& inner : step.body) emit(inner);
    close();
    if (!step.ahead.empty()) line("copy_async_wait<0>();");
  }

  std::string last_place_, last_ops_;
  int last_depth_ = -1;
};

}  // namespace

std::string emit(const Plan& plan) { return Emitter(plan).run(); }

}  // namespace tessera
