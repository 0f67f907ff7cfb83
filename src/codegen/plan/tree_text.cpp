// Steps of a plan as lines, an indented tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/tables_text.hpp"
#include "graph/in_literal.hpp"

namespace tessera::internal::codegen {
namespace {

void tree(const Plan& plan, const Body& steps, int depth, StepLines& lines) {
  const auto indented = [&](int by, std::string_view line, const Step* of = nullptr) {
    lines.text.append(static_cast<std::size_t>(by) * 2, ' ').append(line) += '\n';
    lines.steps.push_back(of);
  };
  for (const Step& step : steps) {
    std::string line = step_text(plan, step);
    if (step.location.file && *step.location.file && !step.action.is<Barrier>()) {
      const std::string file = in_literal(step.location.file);
      line += fmt::format("   // {}:{}", file.substr(file.find_last_of('/') + 1), step.location.line);
    }
    indented(depth, line, &step);
    if (const Loop* loop = step.action.as<Loop>(); loop && loop->stages > 1) {
      indented(depth, "  arrive:");
      tree(plan, loop->arrive, depth + 2, lines);
      indented(depth, "  ahead:");
      tree(plan, loop->ahead, depth + 2, lines);
      indented(depth, "  issued:");
      tree(plan, loop->issued, depth + 2, lines);
      indented(depth, "  body:");
      tree(plan, loop->body, depth + 2, lines);
    } else {
      each_body(step, [&](const Body& inner) { tree(plan, inner, depth + 1, lines); });
    }
  }
}

StepLines tree_lines(const Plan& plan) {
  StepLines lines;
  for (const Phase& phase : plan.phases) {
    tree(plan, phase.prologue, 0, lines);
    for (const Role& role : phase.roles) {
      if (plan.phases.size() > 1 || phase.roles.size() > 1) {
        lines.text += role_text(role) + '\n';
        lines.steps.push_back(nullptr);
      }
      tree(plan, role.body, 0, lines);
    }
  }
  return lines;
}

}  // namespace

std::string tree_text(const Plan& plan) { return tree_lines(plan).text; }

StepLines dump_lines(const Plan& plan) {
  StepLines lines = tree_lines(plan);
  const std::string head =
      fmt::format("{}{}{}\n", to_string(plan), fmt::join(plan.search, "\n"), plan.search.empty() ? "" : "\n");
  lines.steps.insert(lines.steps.begin(), static_cast<std::size_t>(std::ranges::count(head, '\n')), nullptr);
  lines.text.insert(0, head);
  return lines;
}

std::string dump_text(const Plan& plan) { return dump_lines(plan).text; }

}  // namespace tessera::internal::codegen
