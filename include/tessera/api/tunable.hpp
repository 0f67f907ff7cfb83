// Kernels whose parameters are measured instead of guessed: launch(stream, tunable, arguments...) runs the fastest
// known.
#pragma once
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/api/kernel.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/tune.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A family of kernels with parameters P that compute the same, one for each configuration. A handle; any thread may
/// use it. See tunable().
template <class... P>
class Tunable {
 public:
  using Make = std::function<Kernel<P...>(const Config&)>;
  Tunable(Make make, std::vector<Config> configs)
      : state_(std::make_shared<State>(std::move(make), std::move(configs))) {
    if (state_->configs.empty()) throw Error("tunable(): there is no configuration; list one at least");
  }

  const std::vector<Config>& configs() const { return state_->configs; }
  /// The kernel of a configuration: traced once. Throws Error as tracing does.
  Kernel<P...> kernel(const Config& config) const {
    {
      const std::lock_guard lock(state_->mutex);
      if (const auto made = state_->made.find(config); made != state_->made.end()) return made->second;
    }
    Kernel<P...> made = state_->make(config);  // which may use this family
    const std::lock_guard lock(state_->mutex);
    return state_->made.try_emplace(config, std::move(made)).first->second;
  }

  /// The kernel that launch() takes for these arguments: of the configuration that a record names, else the first. If
  /// TESSERA_TUNE=search and there is no record, it is tuned now.
  template <class... A>
  Kernel<P...> best(const Stream& stream, const A&... values) const {
    const auto arguments = detail::arguments_for(stream, first(), values...);
    Grid grid;
    return accepting(device_of(values...), arguments, grid);
  }

  template <class... A>
  void launch(const Stream& stream, const A&... values) const {
    const auto arguments = detail::arguments_for(stream, first(), values...);
    Grid grid;
    accepting(device_of(values...), arguments, grid).executable().launch(stream, arguments, grid);
  }

  template <class... A>
  TuneReport tune(const Stream& stream, const TuneOptions& options, const A&... values) const {
    const auto arguments = detail::arguments_for(stream, first(), values...);
    return internal::tune(request(device_of(values...), arguments), options);
  }

 private:
  struct Best {
    Kernel<P...> kernel;
    std::uint64_t generation;  ///< of the records when it was looked up
    bool has_failed;           ///< its tuning has
  };
  struct State {
    State(Make m, std::vector<Config> c) : make(std::move(m)), configs(std::move(c)) {}
    const Make make;
    const std::vector<Config> configs;
    std::once_flag once;
    Kernel<P...> first;  ///< of the first configuration that traces
    std::mutex mutex;    ///< guards the maps
    std::map<Config, Kernel<P...>> made;
    std::map<std::vector<std::int64_t>, Best> best;  ///< by class of arguments, and device
  };

  Kernel<P...> first() const {
    std::call_once(state_->once, [this] {
      std::exception_ptr failure;
      for (const Config& config : state_->configs) try {
          state_->first = kernel(config);
          return;
        } catch (const std::exception&) {
          if (!failure) failure = std::current_exception();
        }
      std::rethrow_exception(failure);
    });
    return state_->first;
  }

  TuneRequest request(const Device& device, std::span<const Argument> arguments) const {
    return {.kernel = first().name(),
            .configs = state_->configs,
            .make = [self = *this](std::size_t i) { return self.kernel(self.configs()[i]).shared_executable(); },
            .device = device,
            .arguments = arguments};
  }

  /// The best kernel, and its grid; or the first that accepts the arguments, as one of their class may not suit all.
  Kernel<P...> accepting(const Device& device, std::span<const Argument> arguments, Grid& grid) const {
    const Kernel<P...> best = best_for(device, arguments);
    try {
      grid = best.executable().prepare(arguments);
      return best;
    } catch (const Error&) {
      for (const Config& config : state_->configs) try {
          const Kernel<P...> other = kernel(config);
          grid = other.executable().prepare(arguments);
          return other;
        } catch (const Error&) {  // the error of the best counts
        }
      throw;
    }
  }

  Kernel<P...> best_for(const Device& device, std::span<const Argument> arguments) const {
    std::vector<std::int64_t> key = tune_class(first().graph().parameters, arguments);
    key.push_back(device.info().ordinal.value_or(device == Device::cpu() ? -1 : -2));
    {
      const std::lock_guard lock(state_->mutex);
      if (const auto found = state_->best.find(key);
          found != state_->best.end() && (found->second.has_failed || found->second.generation == tune_generation()))
        return found->second.kernel;
    }
    const std::uint64_t generation = tune_generation();
    const BestConfig config = best_config(request(device, arguments));
    Kernel<P...> best = config.place ? kernel(state_->configs[*config.place]) : first();
    const std::lock_guard lock(state_->mutex);
    if (config.is_final) state_->best.insert_or_assign(std::move(key), Best{best, generation, config.has_failed});
    return best;
  }

  /// The device of the tensors, which is that of the stream.
  template <class... A>
  static Device device_of(const A&... values) {
    std::optional<Device> device;
    const auto look = [&]<class V>(const V& value) {
      if constexpr (detail::GivesTensors<V>)
        for (const auto& tensor : detail::tensors_in(value))
          if (tensor.has_device() && (!device || tensor.data())) device = tensor.device();
    };
    (look(values), ...);
    if (!device) throw Error("a tunable kernel is launched without a tensor, which would say on which device");
    return *device;
  }

  std::shared_ptr<State> state_;
};

namespace detail {
template <std::size_t>
using AnyInt = int;
/// Calls make(config[0], config[1], ...).
template <class F, std::size_t... I>
auto call_with(const F& make, const Config& config, std::index_sequence<I...>) {
  return make(config[I]...);
}
template <class F, std::size_t... I>
constexpr bool takes_ints(std::index_sequence<I...>) {
  return std::is_invocable_v<F, AnyInt<I>...>;
}
/// How many ints a function takes, up to 8.
template <class F, std::size_t n = 1>
constexpr std::size_t count_ints() {
  if constexpr (n > 8) {
    static_assert(n <= 8, "tessera: tunable() takes a function of 1 to 8 ints that returns a kernel");
    return 0;
  } else if constexpr (takes_ints<F>(std::make_index_sequence<n>())) {
    return n;
  } else {
    return count_ints<F, n + 1>();
  }
}
template <class... P, class F>
Tunable<P...> tunable_of(Kernel<P...> (*)(), F make, std::vector<Config> configs) {
  return Tunable<P...>(std::move(make), std::move(configs));
}
}  // namespace detail

/// A family of kernels: `make` is a function of ints that returns a kernel; `configs` lists their values, the default
/// first. Launches take the first until one is tuned. Throws Error if a configuration has another number of values.
///
///     Tunable gemm = tunable([](int m, int n, int k) { return linear_gelu(m, n, k); },
///                            {{128, 128, 64}, {64, 128, 64}, {128, 256, 64}});
///     tune(stream, gemm, x, w, bias, y);            // once: measures all, and records the fastest
///     launch(stream, gemm, x, w, bias, y);          // runs it, in this process and in later ones
template <class F>
auto tunable(F make, std::vector<Config> configs) {
  constexpr std::size_t count = detail::count_ints<F>();
  if constexpr (count > 0) {
    for (const Config& config : configs)
      if (config.size() != count)
        throw Error("tunable(): the function takes " + std::to_string(count) + " ints, and a configuration has " +
                    std::to_string(config.size()));
    auto call = [make](const Config& config) {
      return detail::call_with(make, config, std::make_index_sequence<count>());
    };
    using Made = decltype(call(Config()));
    return detail::tunable_of(static_cast<Made (*)()>(nullptr), std::move(call), std::move(configs));
  }
}

/// Measures the configurations of a family for such a launch, and records the fastest: later launches of the class take
/// it, also in other processes. Nothing is launched in this process, and the arguments stay as they are: a worker
/// process has copies of them, so that a kernel that hangs or fails does no harm. If there is a record, that is the
/// result, unless TuneOptions::again. Throws Error if no configuration runs, and if there is no worker.
template <class... P, class... A>
TuneReport tune(const Stream& stream, const Tunable<P...>& family, const TuneOptions& options, const A&... values) {
  return family.tune(stream, options, values...);
}
template <class... P, class... A>
requires(sizeof...(A) == sizeof...(P)) TuneReport
    tune(const Stream& stream, const Tunable<P...>& family, const A&... values) {
  return family.tune(stream, TuneOptions(), values...);
}

/// Launches the kernel of the fastest configuration that is known for such arguments.
template <class... P, class... A>
void launch(const Stream& stream, const Tunable<P...>& family, const A&... values) {
  family.launch(stream, values...);
}

}  // namespace internal
}  // namespace tessera
