// sync: a barrier ahead of each step that reads what other threads wrote, or writes what they may still read, unless
// one stands in between already.
#include <algorithm>

#include "codegen/effects.hpp"
#include "codegen/lowering.hpp"

namespace tessera::lowering {
namespace {

class Barriers {
 public:
  explicit Barriers(const Graph& graph, Plan& plan) : graph_(graph), plan_(plan) {}

  void run() {
    // Blocks that follow one another in the same threads are a loop, too.
    std::vector<Effect> state;
    body(plan_.steps, state);
    if (!plan_.persistent) return;
    state = forget_places(std::move(state));
    body(plan_.steps, state);
  }

 private:
  struct Range {
    int space;
    std::int64_t first, last;
  };
  Range range(const Effect& effect) const {
    const auto i = static_cast<std::size_t>(effect.index);
    switch (effect.space) {
      case Effect::Space::scratch: {
        const Scratch& scratch = plan_.scratch[i];
        return {scratch.in_workspace, scratch.offset, scratch.offset + scratch.bytes};
      }
      case Effect::Space::buffer: {
        const Buffer& buffer = plan_.buffers[i];
        return {buffer.in_workspace, buffer.offset, buffer.offset + buffer.bytes()};
      }
      case Effect::Space::tensor:
        return {2 + effect.index, 0, 1};
    }
    return {};
  }

  bool conflict(const Effect& a, const Effect& b) const {
    if (!a.write && !b.write) return false;
    if (a.atomic && b.atomic) return false;
    const Range x = range(a), y = range(b);
    if (x.space != y.space || x.first >= y.last || y.first >= x.last) return false;
    if (a.space == Effect::Space::tensor) return a.place.empty() || a.place != b.place;
    return true;
  }
  bool must_wait(const Effect& effect, const std::vector<Effect>& state) const {
    return std::any_of(state.begin(), state.end(), [&](const Effect& before) { return conflict(before, effect); });
  }

  bool fetched_ahead(const Effect& effect) const {
    return effect.space == Effect::Space::buffer && plan_.buffers[static_cast<std::size_t>(effect.index)].stages > 1;
  }
  // An In is not written, so nothing orders its reads.
  std::vector<Effect> ordered_effects(const Step& step) const {
    std::vector<Effect> result = effects(plan_, step);
    std::erase_if(result, [&](const Effect& effect) {
      return effect.space == Effect::Space::tensor &&
             graph_.parameters[static_cast<std::size_t>(effect.index)].access == Access::in;
    });
    return result;
  }

  static std::vector<Effect> forget_places(std::vector<Effect> state) {
    for (Effect& effect : state)
      if (effect.place.find('[', effect.place.find(';')) != std::string::npos) effect.place.clear();
    return state;
  }

  void body(std::vector<Step>& steps, std::vector<Effect>& state) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool barrier = steps[i].kind == Step::Kind::barrier;
      if (barrier) {
        state.clear();
        continue;
      }
      std::vector<Effect> now = ordered_effects(steps[i]);
      for (const Step& ahead : steps[i].ahead)
        for (Effect& effect : ordered_effects(ahead)) now.push_back(std::move(effect));
      bool wait = false;
      for (const Effect& effect : now) {
        // A loop that fetches ahead has a barrier at the top of each round.
        if (fetched_ahead(effect) && steps[i].kind != Step::Kind::loop) continue;
        const bool disjoint_puts = steps[i].kind == Step::Kind::put && i > 0 && steps[i - 1].kind == Step::Kind::put &&
                                   steps[i].scratch == steps[i - 1].scratch;
        wait |= !disjoint_puts && must_wait(effect, state);
      }
      if (wait) {
        Step step;
        step.kind = Step::Kind::barrier;
        step.location = steps[i].location;
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(i), std::move(step));
        state.clear();
        ++i;
      }
      Step& step = steps[i];
      if (has_barrier(step)) state.clear();
      for (Effect& effect : now) {
        if (has_barrier(step)) effect.write = false;  // what is left after its barrier are the reads
        state.push_back(std::move(effect));
      }
      if (step.kind == Step::Kind::loop) {
        std::vector<Effect> inside = state;
        for (int round = 0; round < 2; ++round) {
          if (!step.ahead.empty()) inside.clear();
          body(step.body, inside);
          inside = forget_places(std::move(inside));
          if (round == 0) inside.insert(inside.end(), state.begin(), state.end());
        }
        state.insert(state.end(), inside.begin(), inside.end());
      } else if (step.kind == Step::Kind::branch) {
        std::vector<Effect> inside = state;
        body(step.body, inside);
        state.insert(state.end(), inside.begin(), inside.end());
      }
    }
  }

  const Graph& graph_;
  Plan& plan_;
};

}  // namespace

void insert_barriers(const Graph& graph, Plan& plan) { Barriers(graph, plan).run(); }

}  // namespace tessera::lowering
