// Typed kernels: made from a lambda, launched with tensors and numbers that the compiler checks.
#pragma once
#include <cmath>
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
// An Optional parameter takes a tensor, std::nullopt, or a std::optional of a tensor.
template <class A>
struct TensorIn {
  using type = A;
};
template <class T, int R>
struct TensorIn<std::optional<Tensor<T, R>>> {
  using type = Tensor<T, R>;
};
template <class A>
constexpr bool has_tensor(const A& value) {
  if constexpr (std::is_same_v<A, std::nullopt_t>)
    return false;
  else if constexpr (IsTensor<A>::value)
    return true;
  else
    return value.has_value();
}
template <class A>
inline constexpr bool may_be_absent =
    std::is_same_v<A, std::nullopt_t> || !std::is_same_v<A, typename TensorIn<A>::type>;
template <class A>
const auto& tensor_in(const A& value) {
  if constexpr (IsTensor<A>::value)
    return value;
  else
    return *value;
}

// Reports what is wrong with an argument, at most one thing; the compiler's output shows which one, counted from 1.
template <std::size_t argument, class P, class A>
constexpr bool check_argument() {
  if constexpr (P::parameter.access == Access::scalar) {
    constexpr bool number = is_integer<A> || std::is_floating_point_v<A>;
    static_assert(number,
                  "tessera: a Scalar parameter takes a number; which argument: see `argument = N` above");
    static_assert(!number || std::is_floating_point_v<typename P::type> || std::is_integral_v<A>,
                  "tessera: an integer Scalar takes an integer; convert the number first; which argument: see "
                  "`argument = N` above");
    return number;
  } else if constexpr (P::parameter.optional && std::is_same_v<A, std::nullopt_t>) {
    return true;
  } else if constexpr (P::parameter.optional && may_be_absent<A>) {
    return check_argument<argument, P, typename TensorIn<A>::type>();
  } else {
    static_assert(P::parameter.optional || !may_be_absent<A>,
                  "tessera: only an Optional parameter may be left out; which argument: see `argument = N` above");
    static_assert(IsTensor<A>::value || may_be_absent<A>,
                  "tessera: an In, Out or InOut parameter takes a Tensor; which argument: see `argument = N` above");
    if constexpr (IsTensor<A>::value) {
      static_assert(std::is_same_v<typename A::type, typename P::type>,
                    "tessera: the tensor's element type is not the parameter's; which argument: see `argument = N` "
                    "above");
      static_assert(A::rank == P::rank,
                    "tessera: the tensor's rank is not the parameter's; which argument: see `argument = N` "
                    "above");
    }
    return IsTensor<A>::value;
  }
}

[[noreturn]] inline void refuse_number(const std::string& kernel, std::size_t argument, ElementType type,
                                       const std::string& value) {
  throw Error("launch of kernel '" + kernel + "' refused: argument " + std::to_string(argument) + ": a Scalar<" +
              std::string(name(type)) + "> is given " + value + ", which is out of its range");
}

template <std::size_t number, class P, class A>
Argument argument_for(const std::string& kernel, const A& value) {
  Argument argument;
  if constexpr (!check_argument<number, P, A>()) {
  } else if constexpr (P::parameter.access != Access::scalar) {
    if constexpr (!std::is_same_v<A, std::nullopt_t>)
      if (has_tensor(value)) argument = tensor_in(value).argument();
  } else if constexpr (std::is_floating_point_v<typename P::type>) {
    using T = typename P::type;
    argument.scalar = cell_of(static_cast<T>(value));
    if (std::isinf(static_cast<T>(value)) && !std::isinf(static_cast<long double>(value)))
      refuse_number(kernel, number, element_type<T>, text_of(value));
  } else {
    using T = typename P::type;
    if (!std::in_range<T>(value)) refuse_number(kernel, number, element_type<T>, text_of(value));
    argument.scalar = cell_of(static_cast<T>(value));
  }
  return argument;
}

[[noreturn]] inline void refuse_device(const std::string& kernel, std::size_t position, const Device& device,
                                       const Stream& stream) {
  throw Error("launch of kernel '" + kernel + "' refused: argument " + std::to_string(position + 1) +
              " is a tensor of " + device.name() + ", and the stream is of " + stream.device_name());
}

// Kernels can only access memory of the stream's device. A tensor without memory has no device.
template <class A>
void check_device(const std::string& kernel, std::size_t position, const A& value, const Stream& stream) {
  if constexpr (may_be_absent<A> && !std::is_same_v<A, std::nullopt_t>) {
    if (value) check_device(kernel, position, *value, stream);
  } else if constexpr (IsTensor<A>::value) {
    if (!value.has_device())
      throw Error("launch of kernel '" + kernel + "' refused: argument " + std::to_string(position + 1) +
                  " is a tensor without memory; make one with Device::tensor");
    if (value.data() && !value.device().has(stream)) refuse_device(kernel, position, value.device(), stream);
  }
}

/// The arguments of a launch of the kernel on the stream, made from these values.
template <class... P, class... A>
std::array<Argument, sizeof...(A)> arguments_for(const Stream& stream, const Kernel<P...>& kernel, const A&... values) {
  static_assert(sizeof...(P) == sizeof...(A),
                "tessera: a launch needs as many arguments as the kernel has parameters");
  if constexpr (sizeof...(P) == sizeof...(A)) {
    Trace::refuse_launch(kernel.name());
    const auto arguments = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<Argument, sizeof...(A)>{argument_for<I + 1, P>(kernel.name(), values)...};
    }
    (std::index_sequence_for<A...>());
    std::size_t position = 0;
    (check_device(kernel.name(), position++, values, stream), ...);
    return arguments;
  } else {
    return {};
  }
}
}  // namespace detail

/// Makes a kernel from a function of In, Out, InOut and Scalar parameters: it runs once, immediately, and its ops are
/// recorded.
template <class F>
auto kernel(std::string name, const F& function, Location location = Location::current()) {
  return decltype(detail::kernel_type(detail::parameters_of<F>()))(trace_kernel(std::move(name), function, location));
}

/// Makes a raw CUDA kernel that is launched like any other: its arguments are checked, it is compiled at its first
/// launch, cached and dumped. `source` defines extern "C" __global__ void NAME, where NAME is the kernel's name. Its
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

/// Runs a kernel over its grid. Wrong types or a wrong number of arguments do not compile. The kernel's requirements
/// are checked here; a violation throws Error. Asynchronous where the device is; the arguments' memory may be freed
/// immediately. An Optional parameter takes a tensor, std::nullopt or a std::optional of a tensor.
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
