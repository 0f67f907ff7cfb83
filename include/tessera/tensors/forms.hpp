// Methods of Lazy as functions, of Lazy and of Tensor.
#pragma once
#include "tessera/tensors/lazy.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
template <Lazily A>
auto as_lazy(const A& x, Location location) {
  using T = typename Traits<A>::type;
  return Lazy<T, Traits<A>::rank>(lazy_ref<T>(x, location));
}
}  // namespace detail

template <Lazily A, std::size_t N>
auto reshape(const A& x, const std::int64_t (&extents)[N], Location location = Location::current()) {
  return detail::as_lazy(x, location).reshape(extents, location);
}
template <Lazily A, std::size_t N>
auto permute(const A& x, const int (&order)[N], Location location = Location::current()) {
  return detail::as_lazy(x, location).permute(order, location);
}
template <Lazily A>
auto transpose(const A& x, Location location = Location::current()) {
  return detail::as_lazy(x, location).transpose(location);
}
template <Lazily A, std::size_t N>
auto broadcast(const A& x, const std::int64_t (&extents)[N], Location location = Location::current()) {
  return detail::as_lazy(x, location).broadcast(extents, location);
}
template <Lazily A>
auto squeeze(const A& x, int axis, Location location = Location::current()) {
  return detail::as_lazy(x, location).squeeze(axis, location);
}
template <Lazily A>
auto expand_dims(const A& x, int axis, Location location = Location::current()) {
  return detail::as_lazy(x, location).expand_dims(axis, location);
}
template <Lazily A>
auto flip(const A& x, int axis, Location location = Location::current()) {
  return detail::as_lazy(x, location).flip(axis, location);
}
template <Lazily A>
auto argmax(const A& x, int axis, Location location = Location::current()) {
  return detail::as_lazy(x, location).argmax(axis, location);
}
template <Lazily A>
auto argmin(const A& x, int axis, Location location = Location::current()) {
  return detail::as_lazy(x, location).argmin(axis, location);
}
template <Lazily A>
auto slice(const A& x, int axis, std::int64_t start, std::int64_t extent, std::int64_t step = 1,
           Location location = Location::current()) {
  return detail::as_lazy(x, location).slice(axis, start, extent, step, location);
}
template <Lazily A>
auto sort(const A& x, int axis, SortOptions options = {}, Location location = Location::current()) {
  return detail::as_lazy(x, location).sort(axis, options, location);
}
template <Lazily A>
auto argsort(const A& x, int axis, SortOptions options = {}, Location location = Location::current()) {
  return detail::as_lazy(x, location).argsort(axis, options, location);
}
template <Lazily A>
auto top_k(const A& x, std::int64_t k, int axis, TopKOptions options = {}, Location location = Location::current()) {
  return detail::as_lazy(x, location).top_k(k, axis, options, location);
}
template <Stored U, Lazily A>
auto cast(const A& x, Location location = Location::current()) {
  return detail::as_lazy(x, location).template cast<U>(location);
}

#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define SCAN(name, ...)                                                                                \
  template <Lazily A>                                                                                  \
  auto name(const A& x, int axis, ScanOptions options = {}, Location location = Location::current()) { \
    return detail::as_lazy(x, location).name(axis, options, location);                                 \
  }
#include "tessera/graph/ops.def"

}  // namespace internal
}  // namespace tessera
