// Emits a plan as CUDA C++. Nothing is decided here: each line spells a step of the plan or something that a step
// names.
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "codegen/emit/emit.hpp"
#include "codegen/emit/emit_head.hpp"
#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"
#include "graph/in_literal.hpp"

namespace tessera::internal::codegen {
namespace {

// --- steps

std::string_view name_of(Store::Kind kind) {
  switch (kind) {
    case Store::Kind::store:
      return "store";
    case Store::Kind::scatter:
      return "scatter";
  }
  return "";
}

// The name of the op that the author called.
std::string_view scan_name(Op reduction) {
  for (const OpInfo& op : detail::table::ops)
    if (op.group == OpGroup::scan && reduction_of(static_cast<Op>(&op - detail::table::ops)) == reduction)
      return op.name;
  return name(reduction);
}

// The ops that the author wrote: those of the expression, then the step's own. Empty for steps that only follow from
// others.
std::string ops_of(const Step& step) {
  const auto ops = [](const Expression& expression, std::string_view own) {
    std::vector<std::string_view> ops;
    for (const Term& term : expression.terms)
      if (term.op != Op::broadcast && (ops.empty() || ops.back() != name(term.op))) ops.push_back(name(term.op));
    if (!own.empty()) ops.push_back(own);
    if (ops.empty()) ops.push_back("copy");
    return fmt::format("{}", fmt::join(ops, ", "));
  };
  // clang-format off
  const Overloaded own{
      [&](const Compute& s) { return ops(s.sweep.expression, ""); },
      [&](const Load& s) { return ops(s.sweep.expression, "load"); },
      [&](const Store& s) { return ops(s.sweep.expression, name_of(s.kind)); },
      [&](const Atomic& s) { return ops(s.sweep.expression, name(s.op)); },
      [&](const Reduce& s) { return ops(s.sweep.expression, name(s.op)); },
      [&](const Argmax& s) { return ops(s.sweep.expression, "argmax"); },
      [&](const LaneReduce&) { return ops({}, name(Op::sum)); },
      [&](const StoreScratch& s) { return ops(s.sweep.expression, "move"); },
      [&](const Scan& s) { return ops(s.sweep.expression, scan_name(s.by.op)); },
      [&](const AddScanPrefix& s) { return ops({}, scan_name(s.by.op)); },
      [&](const LoadScratch& s) { return ops(s.sweep.expression, "move"); },
      [&](const GatherScratch& s) { return ops(s.sweep.expression, name(Op::take_along_axis)); },
      [&](const Sort& s) { return ops(s.sweep.expression, "sort"); },
      [&](const Merge& s) { return ops(s.sweep.expression, "sort"); },
      [&](const HistogramUpdate& s) { return ops(s.sweep.expression, name(s.op)); },
      [&](const HistogramReduce&) { return ops({}, "histogram"); },
      [&](const StoreShared& s) { return ops(s.sweep.expression, "stage"); },
      [&](const LoadFragment&) { return ops({}, "load"); },
      [&](const ZeroFill&) { return ops({}, ""); },
      [&](const Fetch&) { return ops({}, "fetch"); },
      [&](const Mma&) { return ops({}, "mma"); },
      [&](const Loop&) { return ops({}, "range"); },
      [&](const Branch&) { return ops({}, "if_"); },
      [&](const HostReport& s) { return ops({}, s.unless ? "check" : "print"); },
      [](const auto&) { return std::string(); },
  };
  // clang-format on
  return visit_kind(own, step.action);
}

// Writes a comment and a line directive for the ops that the author wrote in one place.
void comment(Writer& w, const Step& step) {
  const std::string ops = ops_of(step);
  if (ops.empty() || !step.location.file || !*step.location.file) return;
  const std::string file = in_literal(step.location.file);
  std::string directive = fmt::format("#line {} \"{}\"", step.location.line, file);
  auto& last = w.last_comment;
  if (directive == last.directive && ops == last.ops && w.depth == last.depth) return;
  const std::size_t slash = file.find_last_of('/');
  w.line("// {}: {}", slash == file.npos ? file : file.substr(slash + 1), ops);
  if (directive != last.directive) w.text += directive + '\n';
  last.directive = std::move(directive);
  last.ops = ops;
  last.depth = w.depth;
}

void emit_step(Writer& w, const Step& step) {
  const Step* const around = std::exchange(w.step, &step);
  w.author_line = step.location.line;
  comment(w, step);
  visit_kind([&]<class Kind>(const Kind& kind) {
    if constexpr (OfRoles<Kind>)
      emit_role_step(w, step.action);
    else
      emit(w, kind);
  }, step.action);
  w.step = around;
}

// --- a role

bool is_persistent(const Phase& phase) { return phase.schedule.kind == Schedule::Kind::persistent; }
bool has_tile_loops(const Phase& phase) { return phase.schedule.kind == Schedule::Kind::tiles; }

// The number of grid tiles of the phase.
std::string blocks_name(const Writer& w) {
  const auto phase = static_cast<int>(&w.phase - w.plan.phases.data());
  return name_of(w.plan, {KernelParameter::Kind::blocks, phase, 0});
}

// Pipelines and buffers of a text.
struct SharedObjects {
  std::set<PipelineId> pipelines;
  std::set<BufferId> buffers;
};

void declarations(Writer& w, const SharedObjects& objects) {
  for (const PipelineId id : objects.pipelines) {
    const std::string name = name_of(w.plan, id);
    const Pipeline& pipeline = w.plan.pipelines[id];
    w.line("u64 *const {0}_full = reinterpret_cast<u64*>({1}), *const {0}_empty = {0}_full + {2};", name,
           place_in(false, pipeline.offset, name), pipeline.stages);
  }
  for (const BufferId id : objects.buffers) {
    const Buffer& buffer = w.plan.buffers[id];
    IndexExpression place = place_in(buffer.in_workspace, buffer.offset, name_of(w.plan, id));
    if (buffer.consumer_groups > 1)
      place = place + IndexExpression::variable("team") * buffer.stages * stage_bytes(w.plan, id);
    w.line("char* const {} = {};", name_of(w.plan, id), place);
  }
}

// Declares the thread indices of a role and the plan's objects that the body uses, but for those declared `around`.
void declarations(Writer& w, const Writer& body, const SharedObjects& around) {
  // The text may not use every term that was requested, because conditions and offsets were folded.
  std::vector<std::string> terms;
  for (const ThreadTerm& term : body.terms)
    if (names(body.text, term.name))
      terms.push_back(fmt::format("const int {} = {};", term.name, digits(term.digits, w.lane(), w.warp())));
  const auto named = [&](std::string_view name) {
    return names(body.text, name) ||
           std::ranges::any_of(terms, [&](const std::string& term) { return names(term, name); });
  };
  // Index of a thread or warp within its consumer group, from its `index` in the CTA.
  const auto of_consumer_group = [&](const char* index, int first, int count) {
    const IndexExpression in_role = IndexExpression::call(index, {}) - first;
    return w.role.consumer_groups == 1 ? in_role : (first % count ? in_role : IndexExpression::call(index, {})) % count;
  };
  if (w.role.consumer_groups > 1)
    w.line("const int team = {};", (IndexExpression::call("warp_index", {}) - w.role.first_warp) / w.role.warps);
  if (body.uses.thread)
    w.line("const int thread = {};", of_consumer_group("thread_index", w.role.first_warp * 32, w.role.threads()));
  if (body.uses.lane && named("lane")) w.line("const int lane = lane_index();");
  if (body.uses.warp && named("warp"))
    w.line("const int warp = {};", of_consumer_group("warp_index", w.role.first_warp, w.role.warps));
  if (body.uses.stamps) {
    IndexExpression row = w.role.stamp_row;
    if (w.role.consumer_groups > 1) row = row + IndexExpression::variable("team", w.role.consumer_groups);
    w.line("u64* const stamp_row = stamps + (static_cast<u64>(block_index()) * {} + {}) * stamp_room;",
           w.plan.stamps.rows.size(), row);
    w.line("u32 stamped = 0;");
  }
  for (const int parameter : body.uses.kept) {
    const Parameter& tensor = w.tensor(parameter);
    IndexExpression bytes = info(tensor.type).bytes;
    for (int axis = tensor.rank; axis-- > 0;) bytes = cast_i64(w.extent(parameter, axis)) * bytes;
    w.line("const u64 {}_priority = priority_of_read({});", tensor_name(w.plan, parameter), bytes);
  }
  for (const std::string& term : terms) w.line("{}", term);
  std::set<std::string> known;  // several storages may have the same name and place
  for (StorageId id : body.storages) {
    const Storage& storage = w.plan.storages[id];
    if (storage.storage_class != StorageClass::shared && storage.storage_class != StorageClass::workspace) continue;
    const std::string name = name_of(w.plan, id);
    std::string text =
        fmt::format("{0}* const {1} = reinterpret_cast<{0}*>({2}) + {3};", register_type(storage.type), name,
                    place_in(storage.storage_class == StorageClass::workspace, storage.offset, name),
                    IndexExpression::variable("thread") * storage.vector);
    if (known.insert(text).second) w.line("{}", text);
  }
  std::string states;
  for (PipelineStateId id : body.states)
    states += fmt::format("{} {} = {{0, 0}}", states.empty() ? "PipelineState" : ",", name_of(w.plan, id));
  if (!states.empty()) w.line("{};", states);
  SharedObjects own{body.pipelines, body.buffers};
  std::erase_if(own.pipelines, [&](PipelineId id) { return around.pipelines.contains(id); });
  std::erase_if(own.buffers, [&](BufferId id) { return around.buffers.contains(id); });
  declarations(w, own);
}

// Computes the indices of `block` in the phase's grid. The last axis varies fastest; or the first two axes are
// rasterized in groups, inside of the other axes.
void block_indices(Writer& w, const Writer& body) {
  const Plan& plan = w.plan;
  const Phase& phase = w.phase;
  std::set<int> wanted;
  for (StorageId id : body.storages)
    if (const auto* known = std::get_if<BlockIndex>(&plan.storages[id].known)) wanted.insert(known->axis);
  if (phase.schedule.multicast > 1) wanted.insert(phase.first_axis);  // IfInGrid
  // The CTAs of a cluster that multicasts have neighboring tiles along the first axis.
  const int together = phase.schedule.multicast;
  const auto grid = [&](int axis) {
    return axis == 0 && together > 1 ? (w.grid(0) + (together - 1)) / together : w.grid(axis);
  };
  const auto index = [&](int axis, IndexExpression value) {
    if (!wanted.contains(phase.first_axis + axis)) return;
    if (axis == 0 && together > 1) value = value * together + IndexExpression::call("cluster_rank", {});
    w.line("const int block{} = {};", phase.first_axis + axis, value);
  };
  const auto in_time = [&](const IndexExpression& first) {
    return phase.schedule.snake_order ? grid(0) - 1 - first : first;
  };
  const bool l2_groups = phase.schedule.l2_group > 0 || phase.l2_groups_of_launch();
  const int grouped = phase.schedule.raster_group ? 2 : l2_groups ? 1 : 0;
  IndexExpression rest = IndexExpression::variable("block");
  if (phase.schedule.raster_group) {
    const IndexExpression plane =
        IndexExpression::call(fmt::format("static_cast<{}>", block_type(plan)), {grid(0)}) * grid(1);
    w.line("const GridPlace place = grouped({}, {}, {}, {});", phase.axes > 2 ? rest % plane : rest, grid(0), grid(1),
           phase.schedule.raster_group / together);
    index(0, IndexExpression::variable("place.row"));
    index(1, IndexExpression::variable("place.column"));
    rest = rest / plane;
  } else if (l2_groups) {
    IndexExpression others = grid(1);
    for (int axis = 2; axis < phase.axes; ++axis) others = others * grid(axis);
    w.line("const GridPlace place = grouped({}, {}, {}, {});", rest, others, grid(0),
           phase.schedule.l2_group > 0 ? std::to_string(phase.schedule.l2_group) : "section");
    index(0, in_time(IndexExpression::variable("place.column")));
    rest = IndexExpression::variable("place.row");
  }
  for (int axis = phase.axes; axis-- > grouped;) {
    const IndexExpression value =
        IndexExpression::call("static_cast<int>", {axis > grouped ? rest % grid(axis) : rest});
    index(axis, axis == 0 ? in_time(value) : value);
    rest = rest / grid(axis);
  }
}

// Index and number of CTAs, or of clusters.
std::pair<IndexExpression, IndexExpression> own_number(const Writer& w) {
  const bool clusters = w.phase.in_clusters();
  return {IndexExpression::call(clusters ? "cluster_index" : "block_index", {}),
          IndexExpression::call(clusters ? "clusters" : "grid_size", {})};
}

// Loop over the grid tiles of this CTA, the first of which has its index.
void open_blocks(Writer& w, IndexExpression first, int step) {
  const std::string blocks = blocks_name(w);
  if (w.phase.schedule.snake_order) {
    w.open("for ({0} wave = 0; wave < {1}; wave += grid_size()) {{", block_type(w.plan), blocks);
    w.line("if (snake_order(wave) >= {}) break;", blocks);
    w.line("const {} block = snake_order(wave);", block_type(w.plan));
    return;
  }
  const auto [own, size] = own_number(w);
  w.open("for ({} block = {}; block < {}; block += {}) {{", block_type(w.plan), own + size * first, blocks,
         size * step);
}

void block_place(Writer& w, const Writer& body) {
  if (has_tile_loops(w.phase)) return;
  if (is_persistent(w.phase))
    open_blocks(w, 0, 1);
  else
    w.line("const {} block = {};", block_type(w.plan), w.plan.in_sequence ? "tile" : "block_index()");
  block_indices(w, body);
}

// The text of a role, and what it uses.
Writer role_body(const Plan& plan, const Phase& phase, const Role& role, const Body& steps, int depth) {
  Writer body(plan, phase, role, depth);
  emit(body, steps);
  return body;
}

std::string role_text(const Writer& body, const SharedObjects& around, int depth) {
  Writer w(body.plan, body.phase, body.role, depth);
  declarations(w, body, around);
  block_place(w, body);
  w.text += body.text;
  if (is_persistent(body.phase)) w.close();
  return std::move(w.text);
}

// Objects that several of the roles use, at the same place.
SharedObjects common(std::span<const Writer> bodies) {
  SharedObjects seen, common;
  for (const Writer& body : bodies) {
    for (const PipelineId id : body.pipelines)
      if (!seen.pipelines.insert(id).second) common.pipelines.insert(id);
    for (const BufferId id : body.buffers)
      if (!seen.buffers.insert(id).second && body.plan.buffers[id].consumer_groups == 1) common.buffers.insert(id);
  }
  return common;
}

IndexExpression is_of_role(const Role& role) {
  const IndexExpression warp = IndexExpression::variable("warp_of_block");
  const IndexExpression from = role.first_warp ? warp >= role.first_warp : IndexExpression::always();
  return both(from, warp < role.end_warp());
}

}  // namespace

void emit(Writer& w, const Body& body) {
  for (const Step& step : body) emit_step(w, step);
}

// Declares the grid indices that `inside` uses before it.
template <class Inside>
static void emit_of_block(Writer& w, const Inside& inside) {
  std::string before = std::exchange(w.text, {});
  inside();
  std::string body = std::exchange(w.text, std::move(before));
  block_indices(w, w);
  w.text += body;
}

void emit(Writer& w, const TileLoop& loop) {
  if (loop.k_iterations) {
    const std::string k_iterations = scalar(w, *loop.k_iterations).text();
    w.open(
        "for (WorkRange span = first_span({0}, {1}, lockstep_rows); span.k_iterations > 0; next_span(span, {0}, {1}, "
        "lockstep_rows)) {{",
        blocks_name(w), k_iterations);
    w.line("const u32 block = span.block;");
  } else {
    IndexExpression first = loop.first;
    if (w.role.consumer_groups > 1) first = first + IndexExpression::variable("team");
    open_blocks(w, first, loop.step);
  }
  emit_of_block(w, [&] { emit(w, loop.body); });
  w.close();
}

// A launch has at most as many CTAs as grid tiles, or as many clusters as the loop over them has.
void emit(Writer& w, const PrefetchBeforeWait& bring) {
  w.uses.thread = true;
  w.line("int brought = 0;");
  w.open("if (may_prefetch && thread == 0) {{");
  w.line("const {} block = {};", block_type(w.plan), own_number(w).first);
  emit_of_block(w, [&] {
    for (const Step& step : bring.body) {
      const Loop* const loop = step.action.as<Loop>();
      if (!loop) {
        emit_step(w, step);
        continue;
      }
      w.line("brought = {};", IndexExpression::call("minimum", {scalar(w, loop->count), bring.most}));
      w.open("for (int {0} = 0; {0} < brought; ++{0}) {{", name_of(w.plan, loop->loop));
      emit(w, loop->body);
      w.close();
    }
  });
  w.close();
}

StepLines emit_lines(const Plan& plan) {
  // Each role is emitted before the declarations above it, which depend on what it uses.
  const bool phases = plan.phases.size() > 1;
  std::string text;
  bool uses_shared = false;
  const auto line = [&](int depth, std::string_view line) {
    text.append(static_cast<std::size_t>(depth) * 2, ' ').append(line) += '\n';
  };
  for (const Phase& phase : plan.phases) {
    const int depth = phases ? 2 : 1;
    if (phases) line(1, "{");
    const Role& first = phase.roles[0];
    const bool alone = first.first_warp == 0 && first.end_warp() * 32 == plan.threads();
    const Role all{.name = "all", .warps = plan.threads() / 32, .body = {}};
    std::vector<Writer> bodies;
    if (!phase.prologue.empty()) bodies.push_back(role_body(plan, phase, all, phase.prologue, depth + 1));
    for (const Role& role : phase.roles)
      bodies.push_back(
          role_body(plan, phase, role, role.body, depth + (alone ? 0 : 1) + (is_persistent(phase) ? 1 : 0)));
    for (const Writer& body : bodies) uses_shared |= body.uses.shared;
    const SharedObjects around = common(bodies);
    Writer w(plan, phase, all, depth);
    declarations(w, around);
    text += w.text;
    auto body = bodies.begin();
    if (!phase.prologue.empty()) {
      Writer own(plan, phase, all, depth + 1);
      declarations(own, *body, around);
      line(depth, "{");
      text += own.text + body->text;
      line(depth, "}");
      ++body;
    }
    if (alone) {
      text += role_text(*body, around, depth);
    } else {
      line(depth, "const int warp_of_block = warp_index();");
      for (const Role& role : phase.roles) {
        line(depth, fmt::format("{}if ({}) {{", &role == &first ? "" : "} else ", is_of_role(role)));
        line(depth + 1,
             fmt::format("// role {}: warps {} to {}{}", role.name, role.first_warp, role.end_warp() - 1,
                         role.consumer_groups > 1 ? fmt::format(", {} consumer groups", role.consumer_groups) : ""));
        text += role_text(*body++, around, depth + 1);
      }
      line(depth, "}");
    }
    if (phases) line(1, "}");
  }
  const std::string body = std::exchange(text, {});
  if (!plan.in_sequence)
    for (const std::string& function : functions_of(plan)) line(0, function);
  text += plan.in_sequence ? head_in_sequence(plan, body) : head_of_kernel(plan);
  const bool panels = std::any_of(plan.buffers.begin(), plan.buffers.end(),
                                  [](const Buffer& buffer) { return buffer.form == SharedForm::panels; });
  if (uses_shared) line(1, fmt::format("char* const shared = {}();", panels ? "panel_memory" : "shared_memory"));
  if (uses_shared) text += shared_offsets(plan, body);
  if (plan.workspace_bytes)
    line(1, fmt::format("char* const workspace = all_workspace + block_index() * {}ll;", plan.workspace_bytes));
  return step_lines(text + body + "}\n");
}

std::string emit(const Plan& plan) { return emit_lines(plan).text; }

}  // namespace tessera::internal::codegen
