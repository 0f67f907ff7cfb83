// Raw CUDA kernels: CUDA C++ behind typed parameters, with a launch computed from extents.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/dsl/control.hpp"
#include "tessera/graph/cuda_text.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// CUDA C++ text and the source location of its first line, which the compiler's errors refer to.
struct CudaSource {
  std::string text;
  Location location;
  CudaSource(const char* source, Location at = Location::current()) : text(source), location(at) {}
  CudaSource(std::string source, Location at = Location::current()) : text(std::move(source)), location(at) {}
};

/// The launch of a raw CUDA kernel: integers, or Indices computed from extents and scalars. Designated initializers
/// must have this order: .blocks, .threads, .shared_bytes, .numbers.
struct CudaLaunch {
  std::vector<GridExtent> blocks;              ///< along x, y and z: one to three
  std::vector<GridExtent> threads;             ///< of a CTA, along x, y and z: one to three; at most 1024 in all
  std::optional<GridExtent> shared_bytes = {};  ///< bytes of dynamic shared memory
  std::vector<GridExtent> numbers = {};        ///< ints that the function takes after its pointers and scalars
};

namespace detail {

template <class C, class R, class... P>
constexpr auto launch_parameters(R (C::*)(P...) const) {
  constexpr bool launches = std::is_same_v<R, CudaLaunch>;
  static_assert(launches, "tessera: the function of a cuda_kernel must return a CudaLaunch: {.blocks = .., .threads = "
                          "..}");
  constexpr bool parameters = ((is_parameter<std::remove_cvref_t<P>> && !is_list<std::remove_cvref_t<P>>) && ...);
  static_assert(parameters, "tessera: a cuda_kernel's parameters are In, Out, InOut and Scalar");
  return std::conditional_t<launches && check_values<P...>() && parameters, Parameters<std::remove_cvref_t<P>...>,
                            Parameters<void>>();
}
template <class F>
constexpr auto launch_parameters_of() {
  if constexpr (requires { launch_parameters(&F::operator()); }) {
    return launch_parameters(&F::operator());
  } else {
    static_assert(!std::is_same_v<F, F>,
                  "tessera: the launch of a cuda_kernel must be a non-mutable lambda without auto parameters");
    return Parameters<void>();
  }
}

/// An argument in the form in which a C++ function takes it.
template <class P>
auto host_argument(const Argument& argument) {
  using T = typename P::type;
  if constexpr (P::parameter.access == Access::scalar)
    return value_in<T>(argument.scalar);
  else if constexpr (P::parameter.access == Access::in)
    return static_cast<const T*>(argument.data);
  else
    return static_cast<T*>(argument.data);
}

/// Calls a function with the arguments and the numbers of a launch.
template <std::size_t numbers, class... P, class H>
CudaText::Host host_function(const H& function) {
  return [function](std::span<const Argument> arguments, std::span<const std::int64_t> given) {
    [&]<std::size_t... I, std::size_t... N>(std::index_sequence<I...>, std::index_sequence<N...>) {
      function(host_argument<P>(arguments[I])..., static_cast<int>(given[N])...);
    }
    (std::index_sequence_for<P...>(), std::make_index_sequence<numbers>());
  };
}
template <class C, class R, class... A>
constexpr std::size_t count_operands(R (C::*)(A...) const) {
  return sizeof...(A);
}

template <class F, class... P>
Graph trace_cuda(std::string name, CudaSource source, const F& function, CudaText::Host host,
                 std::optional<std::size_t> host_numbers, Parameters<P...>, Location location) {
  Trace trace(std::move(name), graph_parameters_of<P...>(), location);
  const CudaLaunch launch = call_with_parameters<P...>(trace, function, location);
  const auto handles = [](const std::vector<GridExtent>& extents) {
    std::vector<Handle> values;
    for (const GridExtent& extent : extents) values.push_back(extent.value());
    return values;
  };
  trace.cuda({std::move(source.text), source.location, std::move(host)}, handles(launch.blocks), handles(launch.threads),
             launch.shared_bytes ? launch.shared_bytes->value() : Handle(), handles(launch.numbers), host_numbers,
             location);
  return trace.finish();
}
template <class F>
Graph trace_cuda(std::string, CudaSource, const F&, CudaText::Host, std::optional<std::size_t>, Parameters<void>,
                 Location) {
  return {};
}

template <class H, class... P>
std::pair<CudaText::Host, std::size_t> host_of(const H& host, Parameters<P...>) {
  constexpr std::size_t operands = count_operands(&H::operator());
  static_assert(operands >= sizeof...(P),
                "tessera: the host function of a cuda_kernel takes the kernel's arguments: a pointer for each tensor, "
                "a number for each Scalar, then an int for each of the launch's numbers");
  if constexpr (operands >= sizeof...(P))
    return {host_function<operands - sizeof...(P), P...>(host), operands - sizeof...(P)};
  else
    return {};
}
template <class H>
std::pair<CudaText::Host, std::size_t> host_of(const H&, Parameters<void>) {
  return {};
}

}  // namespace detail
}  // namespace internal
}  // namespace tessera
