#include <deque>
#include <map>
#include <mutex>

#include "tensors/run_plan.hpp"
#include "tessera/tensors/compile.hpp"

namespace tessera::internal {
struct LazyFunction::State {
  // The plan for arguments of one layout; what was captured stays.
  struct Version {
    std::shared_ptr<const TensorPlan> plan;
    Given captured;  // with places for the arguments first
  };
  Body body;
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const Version>> versions;
  std::deque<std::vector<std::int64_t>> order;  // in which they were made

  explicit State(Body given) : body(std::move(given)) {}

  std::shared_ptr<const Version> version(std::span<const LazyRef> arguments) {
    std::vector<std::int64_t> layout;
    const Device* device = nullptr;
    for (const LazyRef& argument : arguments) {
      if (argument->op != TensorOp::input) continue;
      const auto extents = argument->tensor.extents(), strides = argument->tensor.strides();
      layout.insert(layout.end(), extents.begin(), extents.end());
      layout.insert(layout.end(), strides.begin(), strides.end());
      if (device && !(*device == *argument->device))
        throw Error("arguments of a compiled function on two devices, " + device->name() + " and " +
                    argument->device->name());
      device = &*argument->device;
    }
    std::vector<std::int64_t> key = layout;
    if (device)
      for (char c : device->name()) key.push_back(c);
    {
      const std::lock_guard lock(mutex);
      if (const auto found = versions.find(key); found != versions.end()) return found->second;
    }
    // Without the lock: the body may call this function, and others may call it meanwhile.
    auto made = std::make_shared<Version>();
    const TensorProgram program = canonical(body(arguments), made->captured, false, arguments);
    if (!made->captured.device) throw Error("a compiled function of numbers alone has no device; give it a tensor");
    made->plan = plan_of(program, *made->captured.device);
    // The arguments of later calls take the place of these, which may then be freed.
    std::size_t input = 0;
    for (const LazyRef& argument : arguments)
      if (argument->op == TensorOp::input) made->captured.inputs[input++] = {};
    const std::lock_guard lock(mutex);
    constexpr std::size_t most = 256;
    if (order.size() >= most) versions.erase(order.front()), order.pop_front();
    if (versions.emplace(key, made).second) order.push_back(std::move(key));
    return made;
  }
  // The tensors and numbers of a call: its arguments take the place of those of the first one.
  static Given given(const Version& version, std::span<const LazyRef> arguments) {
    Given given = version.captured;
    std::size_t input = 0, scalar = 0;
    for (const LazyRef& argument : arguments) {
      if (argument->op == TensorOp::input)
        given.inputs[input++] = argument->tensor;
      else
        given.scalars[scalar++] = argument->number;
    }
    return given;
  }
};

LazyFunction::LazyFunction(Body body) : state_(std::make_shared<State>(std::move(body))) {}

std::vector<detail::AnyTensor> LazyFunction::run(std::span<const LazyRef> arguments, const Stream* stream) const {
  Trace::refuse_launch("of a tensor program");
  const auto version = state_->version(arguments);
  const Given given = State::given(*version, arguments);
  auto results = version->plan->new_results(*given.device);
  launch_plan(*version->plan, given, results, stream ? *stream : given.device->stream());
  return results;
}

LazySequence LazyFunction::sequence(std::span<const LazyRef> arguments) const {
  Trace::refuse_launch("of a tensor program");
  const auto version = state_->version(arguments);
  return sequence_of(*version->plan, State::given(*version, arguments));
}

std::string LazyFunction::describe(std::span<const LazyRef> arguments) const {
  Trace::refuse_launch("of a tensor program");
  return state_->version(arguments)->plan->describe();
}

}  // namespace tessera::internal
