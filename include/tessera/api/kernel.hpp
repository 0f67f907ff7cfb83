// Typed kernels: made from a lambda, launched with tensors and numbers that the compiler checks.
#pragma once
#include <cmath>
#include <ranges>
#include <utility>

#include "tessera/api/tensor.hpp"
#include "tessera/dsl/control.hpp"
#include "tessera/dsl/cuda_kernel.hpp"
#include "tessera/dsl/custom.hpp"
#include "tessera/jit/executable.hpp"
#include "tessera/jit/source.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A kernel with parameters P, in order: Kernel<In<f32, 2>, Out<f32, 2>, Scalar<f32>>. It is a handle: traced once,
/// launched from any thread; copies are the same kernel. A default-constructed one, such as a member that is assigned
/// later, is false, and any use of it throws Error.
template <class... P>
class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(Graph graph) : executable_(std::make_shared<Executable>(std::move(graph))) {}
  /// Has it been assigned a kernel?
  explicit operator bool() const { return executable_ != nullptr; }
  const std::string& name() const { return executable().name(); }
  /// The graph of tile ops, as traced.
  const Graph& graph() const { return executable().traced(); }
  /// Optimization remarks by file and line: how each statement runs on a GPU of this architecture, for dense, aligned
  /// tensors, and why not faster. Needs neither NVRTC nor a GPU.
  std::vector<Remark> remarks(Arch arch) const { return kernel_remarks(executable().graph(), arch); }
  /// Threads, registers, memory, instructions. Compiles the kernel or takes it from the cache. Without NVRTC, the
  /// fields that only NVRTC knows are empty. Throws Error if the kernel does not compile.
  KernelInfo info(Arch arch) const { return kernel_info(executable().graph(), arch); }
  const Executable& executable() const { return *shared_executable(); }
  const std::shared_ptr<const Executable>& shared_executable() const {
    if (!executable_) throw Error("an empty Kernel is used; assign a kernel to it: k = kernel(...)");
    return executable_;
  }

 private:
  std::shared_ptr<const Executable> executable_;
};

namespace detail {
template <class... P>
Kernel<P...> kernel_type(Parameters<P...>);

template <class T>
struct IsTensor : std::false_type {};
template <class T, int R>
struct IsTensor<Tensor<T, R>> : std::true_type {};

// The tensors that an argument gives: of a tensor, of an optional one (none, if it is empty), or of a list.
template <class T, int R>
std::span<const Tensor<T, R>> tensors_in(const Tensor<T, R>& tensor) {
  return {&tensor, 1};
}
template <class T, int R>
std::span<const Tensor<T, R>> tensors_in(const std::optional<Tensor<T, R>>& tensor) {
  return {tensor ? &*tensor : nullptr, tensor ? std::size_t{1} : 0};
}
inline std::span<const Tensor<f32, 1>> tensors_in(std::nullopt_t) { return {}; }
template <std::ranges::contiguous_range Tensors>
  requires IsTensor<std::ranges::range_value_t<Tensors>>::value
auto tensors_in(const Tensors& tensors) {
  return std::span<const std::ranges::range_value_t<Tensors>>(tensors);
}
template <class A>
concept GivesTensors = requires(const A& value) { tensors_in(value); };
template <GivesTensors A>
using TensorIn = typename decltype(tensors_in(std::declval<const A&>()))::value_type;
template <class A>
inline constexpr bool gives_list = std::ranges::range<A> && GivesTensors<A>;
template <class A>
inline constexpr bool may_be_absent = GivesTensors<A> && !IsTensor<A>::value && !gives_list<A>;

// Is the tensor of the type and rank of a view?
template <std::size_t argument, class View, class T>
constexpr bool check_tensor() {
  static_assert(std::is_same_v<typename T::type, typename View::type>,
                "tessera: the tensor's element type is not the parameter's; which argument: see `argument = N` "
                "above");
  static_assert(T::rank == View::rank,
                "tessera: the tensor's rank is not the parameter's; which argument: see `argument = N` "
                "above");
  return true;
}

// Reports what is wrong with an argument, at most one thing; the compiler's output shows which one, counted from 1.
template <std::size_t argument, class P, class A>
constexpr bool check_argument() {
  if constexpr (is_list<P>) {
    static_assert(
        gives_list<A>,
        "tessera: a List parameter takes a std::vector of tensors, or another contiguous range of them; which "
        "argument: see `argument = N` above");
    if constexpr (gives_list<A>) return check_tensor<argument, typename P::Tensor, TensorIn<A>>();
    return false;
  } else if constexpr (P::parameter.access == Access::scalar) {
    constexpr bool number = is_integer<A> || std::is_floating_point_v<A>;
    static_assert(number,
                  "tessera: a Scalar parameter takes a number; which argument: see `argument = N` above");
    static_assert(!number || std::is_floating_point_v<typename P::type> || std::is_integral_v<A>,
                  "tessera: an integer Scalar takes an integer; convert the number first; which argument: see "
                  "`argument = N` above");
    return number;
  } else {
    static_assert(P::parameter.optional || !may_be_absent<A>,
                  "tessera: only an Optional parameter may be left out; which argument: see `argument = N` above");
    static_assert(IsTensor<A>::value || may_be_absent<A>,
                  "tessera: an In, Out or InOut parameter takes a Tensor; which argument: see `argument = N` above");
    if constexpr (IsTensor<A>::value ||
                  (P::parameter.optional && may_be_absent<A> && !std::is_same_v<A, std::nullopt_t>))
      check_tensor<argument, P, TensorIn<A>>();
    return GivesTensors<A>;
  }
}

[[noreturn]] inline void refuse_number(const std::string& kernel, std::size_t argument, ElementType type,
                                       const std::string& value) {
  throw launch_refused(kernel, "argument " + std::to_string(argument) + ": a Scalar<" + std::string(name(type)) +
                                   "> is given " + value + ", which is out of its range");
}

template <class P, class N>
Cell cell_for(const std::string& kernel, std::size_t number, const N& value) {
  using T = typename P::type;
  const bool fits = [&] {
    if constexpr (std::is_floating_point_v<T>)
      return !std::isinf(static_cast<T>(value)) || std::isinf(static_cast<long double>(value));
    else
      return std::in_range<T>(value);
  }();
  if (!fits) refuse_number(kernel, number, element_type<T>, text_of(value));
  return cell_of(static_cast<T>(value));
}

/// Writes the arguments of the graph that a value stands for.
template <std::size_t number, class P, class A>
void put_arguments(const std::string& kernel, const A& value, std::span<Argument> to) {
  if constexpr (!check_argument<number, P, A>()) {
  } else if constexpr (GivesTensors<A>) {
    const auto tensors = tensors_in(value);
    if constexpr (is_list<P>) {
      constexpr auto most = static_cast<std::size_t>(P::tensors);
      if (tensors.size() > most)
        throw launch_refused(kernel, "argument " + std::to_string(number) + " has " + std::to_string(tensors.size()) +
                                         " tensors, and the List takes up to " + std::to_string(most));
      to[most].scalar = cell_of(static_cast<i32>(tensors.size()));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) to[i] = tensors[i].argument();
  } else {
    to[0].scalar = cell_for<P>(kernel, number, value);
  }
}

[[noreturn]] inline void refuse_device(const std::string& kernel, std::size_t position, const Device& device,
                                       const Stream& stream) {
  throw launch_refused(kernel, "argument " + std::to_string(position + 1) + " is a tensor of " + device.name() +
                                   ", and the stream is of " + stream.device_name());
}

// Kernels can only access memory of the stream's device. A tensor without memory has no device.
template <class A>
void check_device(const std::string& kernel, std::size_t position, const A& value, const Stream& stream) {
  if constexpr (GivesTensors<A>)
    for (const auto& tensor : tensors_in(value)) {
      if (!tensor.has_device())
        throw launch_refused(kernel, "argument " + std::to_string(position + 1) +
                                         " is a tensor without memory; make one with Device::tensor");
      if (tensor.data() && !tensor.device().has(stream)) refuse_device(kernel, position, tensor.device(), stream);
    }
}

/// The arguments of a launch of the kernel on the stream, made from these values.
template <class... P, class... A>
auto arguments_for(const Stream& stream, const Kernel<P...>& kernel, const A&... values) {
  static_assert(sizeof...(P) == sizeof...(A),
                "tessera: a launch needs as many arguments as the kernel has parameters");
  std::array<Argument, (count_parameters<P>() + ... + 0)> arguments{};
  if constexpr (sizeof...(P) == sizeof...(A)) {
    Trace::refuse_launch(kernel.name());
    std::span<Argument> rest(arguments);
    const auto put = [&]<std::size_t number, class Of>(const auto& value) {
      put_arguments<number, Of>(kernel.name(), value, rest);
      rest = rest.subspan(count_parameters<Of>());
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (put.template operator()<I + 1, P>(values), ...);
    }(std::index_sequence_for<A...>());
    std::size_t position = 0;
    (check_device(kernel.name(), position++, values, stream), ...);
  }
  return arguments;
}
}  // namespace detail

/// Makes a kernel from a function of In, Out, InOut, Optional, List and Scalar parameters: it runs once, immediately,
/// and its ops are recorded.
template <class F>
auto kernel(std::string name, const F& function, Location location = Location::current()) {
  return decltype(detail::kernel_type(detail::parameters_of<F>()))(trace_kernel(std::move(name), function, location));
}

/// Makes a raw CUDA kernel that is launched like any other: its arguments are checked, it is compiled at its first
/// launch, cached and dumped. `source` defines `extern "C" __global__ void NAME`, where NAME is the kernel's name. Its
/// parameters are a pointer for each tensor (const T* for an In) and a number for each Scalar, in order, then an int
/// for each of the launch's numbers; f16 and bf16 are 16-bit there, like unsigned short. Tensors must be dense.
/// `launch` is a lambda with In, Out, InOut and Scalar parameters that returns the CudaLaunch, and may state
/// preconditions with require(...):
///
///     const auto axpy = cuda_kernel("axpy", text, [](In<f32, 1> x, InOut<f32, 1> y, Scalar<f32> a) {
///       return CudaLaunch{.blocks = {cdiv(x.extent(0), 256)}, .threads = {256}, .numbers = {x.extent(0)}};
///     });
///
/// It runs on GPUs. `host`, a function with the parameters of NAME, does the same as the launch on the CPU and in the
/// emulator. Compiler errors refer to the lines of `source`.
template <class F>
auto cuda_kernel(std::string name, CudaSource source, const F& launch, Location location = Location::current()) {
  constexpr auto parameters = detail::launch_parameters_of<F>();
  return decltype(detail::kernel_type(parameters))(
      detail::trace_cuda(std::move(name), std::move(source), launch, {}, {}, parameters, location));
}
template <class F, class H>
auto cuda_kernel(std::string name, CudaSource source, const F& launch, const H& host,
                 Location location = Location::current()) {
  constexpr auto parameters = detail::launch_parameters_of<F>();
  auto [function, numbers] = detail::host_of(host, parameters);
  return decltype(detail::kernel_type(parameters))(detail::trace_cuda(
      std::move(name), std::move(source), launch, std::move(function), numbers, parameters, location));
}

/// The CUDA C++ generated for a kernel, for dense, aligned tensors.
template <class... P>
std::string cuda_source(const Kernel<P...>& kernel, Arch arch) {
  return cuda_source(kernel.executable().graph(), arch);
}
/// The plan of a kernel: layouts, stages, instructions.
template <class... P>
std::string plan_text(const Kernel<P...>& kernel, Arch arch) {
  return plan_text(kernel.executable().graph(), arch);
}

/// Does what the first such launch would do once, and runs nothing: checks it, generates, compiles or takes from the
/// cache, and loads the kernel's code. Throws Error as the launch would. Later launches on the device find the code, if
/// their arguments are of the same layout class (docs/host.md). For several kernels at a time: Sequence::warm_up.
template <class... P, class... A>
void warm_up(const Stream& stream, const Kernel<P...>& kernel, const A&... values) {
  const auto arguments = detail::arguments_for(stream, kernel, values...);
  const Executable& executable = kernel.executable();
  executable.code(stream, arguments, executable.prepare(arguments)).make();
}

/// Runs a kernel over its grid. Wrong types or a wrong number of arguments do not compile. The kernel's requirements
/// are checked here; a violation throws Error. Asynchronous where the device is; the arguments' memory may be freed
/// immediately. An Optional parameter takes a tensor, std::nullopt or a std::optional of a tensor; a List parameter a
/// std::vector of tensors, or another contiguous range of them.
///
/// One tensor may be both an In and an Out argument, so that the kernel runs in place, if each block writes exactly the
/// tile that it reads there, after it has read it; otherwise an Out shares no memory with other arguments.
template <class... P, class... A>
void launch(const Stream& stream, const Kernel<P...>& kernel, const A&... values) {
  kernel.executable().launch(stream, detail::arguments_for(stream, kernel, values...));
}
template <class... P, class... A>
void launch(const Kernel<P...>&, const A&...) {
  static_assert(sizeof...(P) > sizeof...(P),
                "tessera: a launch takes its stream first: launch(device.stream(), kernel, ...)");
}
template <std::same_as<Device> D, class... P, class... A>
void launch(const D&, const Kernel<P...>&, const A&...) {
  static_assert(!std::same_as<D, D>, "tessera: a kernel is launched on a stream: launch(device.stream(), kernel, ...)");
}

}  // namespace internal
}  // namespace tessera
