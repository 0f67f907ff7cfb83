#include "codegen/passes/plan/loads_early.hpp"

#include <algorithm>
#include <set>

#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {
namespace {

constexpr int most_registers = 128;         // of loads that are moved, in one body
constexpr int most_registers_of_rows = 32;  // without matmuls: other tiles need registers, too

class Mover {
 public:
  explicit Mover(Plan& plan) : plan_(plan) {}

  void run() {
    if (plan_.phases.size() > 1 || plan_.phases[0].roles.size() > 1 || plan_.learns_of_others()) return;
    bool has_matmul = false, latency_bound = false;
    PlanWalk walk(plan_);
    walk.each([&](const Role&, const Step& step, int, const auto&) {
      const Mma* const mma = step.action.as<Mma>();
      has_matmul |= mma != nullptr;
      if (!mma || !mma->matmul.is_latency_bound()) return;
      latency_bound = true;
      weights_.insert(mma->matmul.b.buffer);
    });
    Body& body = plan_.phases[0].roles[0].body;
    if (latency_bound) {
      move_fetches(body);
      move(body, most_registers);
    } else if (!has_matmul) {
      move(body, most_registers_of_rows);
    }
  }

 private:
  void move(Body& body, int most) {
    for (Step& step : body) each_body(step, [&](Body& inner) { move(inner, most); });
    std::size_t reported = 0;  // behind the last message to the host: a check may guard the loads that follow it
    int registers = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i].action.is<HostReport>()) reported = i + 1;
      if (!may_move(body[i])) continue;
      std::size_t to = std::max(reported, known_at(body, i));
      while (to < i && may_move(body[to])) ++to;
      if (to == i) continue;
      registers += registers_of(*body[i].action.as<Load>());
      if (registers > most) return;
      std::rotate(body.begin() + static_cast<std::ptrdiff_t>(to), body.begin() + static_cast<std::ptrdiff_t>(i),
                  body.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }

  // Copies of weights to shared memory, as far as half of it. Their wait stays behind.
  void move_fetches(Body& body) {
    std::size_t to = 0;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i].action.is<HostReport>()) return;
      const Fetch* const fetch = body[i].action.as<Fetch>();
      const bool committed = i + 1 < body.size() && body[i + 1].action.is<CpAsyncCommit>();
      if (!fetch || !committed || known_at(body, i) > to || !std::ranges::all_of(fetch->tiles, [&](const auto& tile) {
            return weights_.contains(tile.buffer) && !tile.access.member && is_input(tile.access.parameter);
          }))
        continue;
      for (const Fetch::Tile& tile : fetch->tiles) bytes += plan_.buffers[tile.buffer].bytes();
      if (2 * bytes > plan_.target.shared_bytes) return;
      const auto at = [&](std::size_t index) { return body.begin() + static_cast<std::ptrdiff_t>(index); };
      std::rotate(at(to), at(i), at(i + 2));
      to += 2;
    }
  }
  bool is_input(int parameter) const { return plan_.tensors[static_cast<std::size_t>(parameter)].access == Access::in; }

  bool may_move(const Step& step) const {
    const Load* const load = step.action.as<Load>();
    if (!load || load->access.member) return false;
    if (!is_input(load->access.parameter)) return false;
    return plan_.is_in_registers(load->out) && !plan_.storage(load->out).changes;
  }

  // The place behind the steps that make what the step needs.
  std::size_t known_at(const Body& body, std::size_t of) const {
    std::size_t known = 0;
    const std::vector<ValueId> needed = operands(body[of]);
    for (std::size_t i = 0; i < of; ++i)
      if (std::ranges::any_of(needed, [&](ValueId id) { return makes(body[i], plan_.values[id].storage); }))
        known = i + 1;
    return known;
  }
  bool makes(const Step& step, StorageId storage) const {
    const auto is = [&](ValueId id) { return plan_.values[id].storage == storage; };
    bool any = std::ranges::any_of(results(step), is);
    each_body(step, [&](const Body& inner) {
      any |= std::ranges::any_of(inner, [&](const Step& step) { return makes(step, storage); });
    });
    return any;
  }

  // Elements are converted where they are used.
  int registers_of(const Load& load) const {
    const int bytes = info(plan_.tensors[static_cast<std::size_t>(load.access.parameter)].type).bytes;
    return (plan_.storage(load.out).registers * bytes + 3) / 4;
  }

  Plan& plan_;
  std::set<BufferId> weights_;  // right operands of latency-bound matmuls
};

}  // namespace

void issue_loads_early(Plan& plan) { Mover(plan).run(); }

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::loads_early(lowering::Planning& planning) {
  codegen::issue_loads_early(planning.plan);
  return true;
}
