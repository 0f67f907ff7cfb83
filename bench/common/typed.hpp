// Common to rows of an element type: names, limits, and sets of operands.
#pragma once
#include "common/captured.hpp"
#include "common/operands.hpp"

namespace tessera::internal::bench {

template <class T>
constexpr const char* type_name = std::same_as<T, f32>      ? "f32"
                                  : std::same_as<T, tf32>   ? "tf32"
                                  : std::same_as<T, f16>    ? "f16"
                                  : std::same_as<T, i8>     ? "i8"
                                  : std::same_as<T, f8e4m3> ? "f8e4m3"
                                                            : "bf16";
template <class T>
constexpr Resource resource_of = std::same_as<T, f32>               ? Resource::f32
                                 : std::same_as<T, tf32>            ? Resource::tf32
                                 : std::same_as<T, f16>             ? Resource::f16
                                 : info(element_type<T>).bytes == 1 ? Resource::eight_bits
                                                                    : Resource::bf16;
/// The largest error of a result in T, in units of its root mean square: elements of up to four times that are rounded
/// to T, as the operands were.
template <class T>
constexpr double allowed = std::same_as<T, f32>    ? 1e-5
                           : std::same_as<T, tf32> ? 2.5e-3
                           : std::same_as<T, f16>  ? 5e-3
                           : std::same_as<T, i8>   ? 0
                                                   : 2e-2;

/// GELU by tanh, in f64.
inline double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

/// The tensors of set i.
template <class T, int R>
using Sets = std::vector<Tensor<T, R>>;

template <class T, int R>
Sets<T, R> operands(const Device& device, const Turns& turns, const std::array<std::int64_t, R>& extents,
                    const Normal& normal) {
  Sets<T, R> sets;
  for (int set = 0; set < turns.sets; ++set) sets.push_back(tensor_of<T, R>(device, extents, normal));
  return sets;
}
template <class T, int R>
Sets<T, R> results(const Device& device, const Turns& turns, const std::array<std::int64_t, R>& extents) {
  Sets<T, R> sets;
  for (int set = 0; set < turns.sets; ++set) sets.push_back(poisoned<T, R>(device, extents));
  return sets;
}

}  // namespace tessera::internal::bench
