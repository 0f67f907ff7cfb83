#include "codegen/author/author_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "codegen/author/declarations.hpp"
#include "codegen/plan/names.hpp"

namespace tessera::internal::author {
namespace {

using namespace codegen;
using lowering::GraphAnalysis;
using Kind = Declaration::Kind;

bool is_within(const Declaration& declaration, unsigned line) {
  return declaration.first <= line && line <= declaration.last;
}

/// Declarations that share lines: which of them computes a node, its line does not tell.
struct Group {
  unsigned first, last;
  std::vector<const Declaration*> names;
  std::vector<Id> values = {};  // nodes that were made there, and that nothing made there uses
};

struct Source {
  Declarations declarations;
  std::vector<Group> groups;
};

std::vector<Group> groups_of(const Declarations& declarations) {
  std::vector<Group> groups;
  for (const Declaration& one : declarations.names) {
    if (one.kind == Kind::counter || one.kind == Kind::binding) continue;
    if (groups.empty() || groups.back().last < one.first) groups.push_back({one.first, one.last, {}});
    groups.back().last = std::max(groups.back().last, one.last);
    groups.back().names.push_back(&one);
  }
  return groups;
}

std::vector<std::string> source_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Finds the names of a graph's nodes.
class Namer {
 public:
  Namer(const GraphAnalysis& analysis, const ReadSource& read)
      : analysis_(analysis), graph_(analysis.graph), read_(read), names_(graph_.nodes.size()) {}

  void run() {
    for (Id id = 0; id < names_.size(); ++id)
      if (analysis_.number[id] >= 0) look_at(id);
    for (auto& [file, source] : sources_)
      if (source) name_groups(*source);
    for (Id id = 0; id < names_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op == Op::reshape && !names_[id].empty() && names_[node.in[0]].empty() &&
          share_line(node, graph_[node.in[0]]))
        names_[node.in[0]] = names_[id];  // the same elements
    }
    parameters_ = parameters();
  }

  /// The name that the author declared for a value; "" if there is none.
  const std::string& declared(Id id) const { return names_[id]; }
  /// The name that describes a value best: its own, that of the tensor it comes from, or of its first operand that has
  /// one.
  std::string described(Id id, int depth = 8) const {
    const Node& node = graph_[id];
    if (!names_[id].empty()) return names_[id];
    if (node.op == Op::tensor || node.op == Op::scalar || node.op == Op::member) return parameter(node.parameter());
    if (has_region(node.op) || node.op == Op::result || node.op == Op::argument || depth == 0) return "";
    const bool accesses = is_read(node.op) || is_effect(node.op);
    if (accesses && view_operand(node.op) < static_cast<int>(node.in.size())) {
      const Id view = node.in[static_cast<std::size_t>(view_operand(node.op))];
      if (is_view(graph_[view].op)) return described(base_view(graph_, view), depth - 1);
    }
    for (const Id in : node.in)
      if (std::string name = described(in, depth - 1); !name.empty()) return name;
    return "";
  }
  /// The name of a kernel's parameter, of the graph's list; "" if it is unknown.
  std::string parameter(std::size_t number) const {
    const auto argument = static_cast<std::size_t>(argument_number(graph_.parameters, number) - 1);
    return argument < parameters_.size() ? parameters_[argument] : "";
  }
  /// The name of a block index; "" if there is none.
  std::string block(int axis) const {
    for (Id id = 0; id < names_.size(); ++id)
      if (graph_[id].op == Op::block && static_cast<int>(graph_[id].grid_axis()) == axis) return names_[id];
    return "";
  }

  std::map<std::string, std::vector<std::string>> take_lines() { return std::move(lines_); }

 private:
  static bool share_line(const Node& a, const Node& b) {
    return a.location.line == b.location.line && std::string_view(a.location.file) == b.location.file;
  }

  Source* source(const Location& location) {
    if (!*location.file) return nullptr;
    const auto [it, is_new] = sources_.try_emplace(location.file);
    if (is_new) {
      if (const std::optional<std::string> text = read_(location)) {
        Source& source = it->second.emplace();
        source.declarations = declarations_in(*text);
        source.groups = groups_of(source.declarations);
        lines_[location.file] = source_lines(*text);
      }
    }
    return it->second ? &*it->second : nullptr;
  }

  static Group* group(Source& source, unsigned line) {
    const auto found = std::ranges::find_if(
        source.groups, [&](const Group& group) { return group.first <= line && line <= group.last; });
    return found == source.groups.end() ? nullptr : &*found;
  }

  static std::vector<const Declaration*> at_line(const Source& source, Kind kind, unsigned line) {
    std::vector<const Declaration*> found;
    for (const Declaration& one : source.declarations.names)
      if (one.kind == kind && is_within(one, line)) found.push_back(&one);
    return found;
  }

  void look_at(Id id) {
    const Node& node = graph_[id];
    Source* const made = source(node.location);
    if (node.op == Op::argument || node.op == Op::result) {
      if (node.op == Op::argument && node.position() == 0) return made ? name_counter(id, *made) : void();
      const Source* const of_var = source(node.var);
      if (!of_var) return;
      const auto vars = at_line(*of_var, Kind::variable, node.var.line);
      if (!vars.empty()) names_[id] = vars[node.var.order % vars.size()]->name;
    } else if (node.op == Op::block) {
      if (made) name_block(id, *made);
    } else if (has_value(node.op) && !has_region(node.op) && node.op != Op::constant && node.op != Op::scalar) {
      Group* const here = made ? group(*made, node.location.line) : nullptr;
      if (here && !is_consumed(id, *here)) here->values.push_back(id);
    }
  }

  /// Does what the group's lines make use the value? Then it is not what they declare.
  bool is_consumed(Id id, const Group& group) const {
    if (std::ranges::find(graph_.grid, id) != graph_.grid.end()) return true;
    return std::ranges::any_of(analysis_.users[id], [&](Id user) {
      const Node& by = graph_[user];
      return (!has_region(by.op) || by.in[0] == id) && group.first <= by.location.line &&
             by.location.line <= group.last && std::string_view(by.location.file) == graph_[id].location.file;
    });
  }

  void name_block(Id id, const Source& source) {
    const Node& node = graph_[id];
    const auto bindings = at_line(source, Kind::binding, node.location.line);
    const auto values = at_line(source, Kind::value, node.location.line);
    if (bindings.size() == graph_.grid.size())
      names_[id] = bindings[node.grid_axis()]->name;
    else if (graph_.grid.size() == 1 && values.size() == 1)
      names_[id] = values[0]->name;
  }

  void name_counter(Id id, Source& source) {
    const unsigned line = graph_[id].location.line;
    const auto counters = at_line(source, Kind::counter, line);
    if (counters.size() != 1) return;
    // range(begin, end) computes the author's counter from the loop's.
    const auto next = [&](Id of) {
      const auto& users = analysis_.users[of];
      const auto found = std::ranges::find_if(users, [&](Id user) {
        return share_line(graph_[user], graph_[id]) && (graph_[user].op == Op::add || graph_[user].op == Op::mul);
      });
      return found == users.end() ? no_id : *found;
    };
    Id named = id;
    if (!group(source, line))
      while (next(named) != no_id) named = next(named);
    names_[named] = counters[0]->name;
  }

  void name_groups(Source& source) {
    for (Group& group : source.groups) {
      std::ranges::sort(group.values, {}, [&](Id id) { return graph_[id].location.order; });
      const bool one = group.names.size() == 1;  // for each time that the statement was traced
      if (!one && group.names.size() != group.values.size()) continue;
      for (std::size_t i = 0; i < group.values.size(); ++i)
        if (std::string& name = names_[group.values[i]]; name.empty()) name = group.names[one ? 0 : i]->name;
    }
  }

  std::vector<std::string> parameters() {
    const Source* const of = source(graph_.location);
    if (!of) return {};
    std::size_t count = 0;
    for (std::size_t i = 0; i < graph_.parameters.size(); i += argument_size(graph_.parameters, i)) ++count;
    const std::vector<std::string>* found = nullptr;
    for (const KernelLambda& kernel : of->declarations.kernels) {
      if (graph_.location.line < kernel.first || kernel.last < graph_.location.line) continue;
      if (found || kernel.parameters.size() != count) return {};
      found = &kernel.parameters;
    }
    return found ? *found : std::vector<std::string>();
  }

  const GraphAnalysis& analysis_;
  const Graph& graph_;
  const ReadSource& read_;
  std::map<std::string, std::optional<Source>, std::less<>> sources_;
  std::map<std::string, std::vector<std::string>> lines_;
  std::vector<std::string> names_;  // by node
  std::vector<std::string> parameters_;
};

// --- the names of a plan

/// Collects the labels of a plan, each once, in the order in which its text has them.
struct Labels : FieldVisitor {
  std::map<std::string, Label> by_name;
  void add(const Label& label) {
    if (label.number >= 0 && label.graph == 0) by_name.emplace(name_of(label), label);
  }
  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) add(read.label);
    for (const Term& term : sweep.expression.terms) add(term.label);
  }
  void access(const TileAccess& access, Use) { add(access.label); }
  void copy(const TileAccess& access) { add(access.label); }
  void steps(const Body& body) {
    for (const Step& step : body) {
      visit_kind([&](const auto& kind) { each_field(kind, *this); }, step.action);
      each_body(step, [&](const Body& inner) { steps(inner); });
    }
  }
};

std::map<std::string, Label> labels_of(const Plan& plan) {
  Labels labels;
  for (const Storage& storage : plan.storages)
    if (std::holds_alternative<std::monostate>(storage.known)) labels.add(storage.label);
  for (const LoopInfo& loop : plan.loops) labels.add(loop.counter);
  for (const Buffer& buffer : plan.buffers) labels.add(buffer.label);
  for (const Pipeline& pipeline : plan.pipelines) labels.add(pipeline.label);
  for (const PipelineState& state : plan.states) labels.add(state.label);
  for (const TensorMap& map : plan.tensor_maps) labels.add(map.label);
  for (const Phase& phase : plan.phases) {
    labels.steps(phase.prologue);
    for (const Role& role : phase.roles) labels.steps(role.body);
  }
  return std::move(labels.by_name);
}

}  // namespace

AuthorWords author_words(const GraphAnalysis& analysis, const Plan& plan, const ReadSource& read) {
  Namer namer(analysis, read);
  namer.run();
  AuthorWords words;
  for (std::size_t i = 0; i < plan.tensors.size() && i < analysis.graph.parameters.size(); ++i)
    if (std::string name = namer.parameter(i); !name.empty())
      words.names.push_back({tensor_name(plan, static_cast<int>(i)), std::move(name)});
  for (std::size_t axis = 0; axis < analysis.graph.grid.size(); ++axis)
    if (std::string name = namer.block(static_cast<int>(axis)); !name.empty())
      words.names.push_back({fmt::format("block{}", axis), std::move(name)});
  std::vector<Id> by_number(analysis.graph.nodes.size(), no_id);
  for (Id id = 0; id < by_number.size(); ++id)
    if (analysis.number[id] >= 0) by_number[static_cast<std::size_t>(analysis.number[id])] = id;
  // Carried values first: the author's name is that of the Var, and what is assigned to it comes after.
  std::vector<std::pair<int, AuthorWords::Name>> ranked;
  for (const auto& [canonical, label] : labels_of(plan)) {
    const Id id = by_number.at(static_cast<std::size_t>(label.number));
    const Node& node = analysis.graph[id];
    const bool counts = label.stem == "i";
    const bool itself = node.op == Op::argument ? counts || label.stem == "iteration" || label.stem == "carry"
                                                : label.stem == name(node.op);
    const std::string& declared = namer.declared(id);
    if (itself && !declared.empty())
      ranked.push_back({node.op == Op::argument && !counts ? 0 : 1, {canonical, declared + label.suffix}});
    else if (const std::string of = namer.described(id); !of.empty())
      ranked.push_back({2, {canonical, fmt::format("{}_{}{}", label.stem, of, label.suffix)}});
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& name) { return name.first; });
  for (auto& [rank, name] : ranked) words.names.push_back(std::move(name));
  words.lines = namer.take_lines();
  return words;
}

}  // namespace tessera::internal::author
