// Methods of Lazy as functions, of Lazy and of Tensor. (One template of both would be ambiguous with functions of
// tiles.)
#pragma once
#include "tessera/tensors/lazy.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

template <class T, int R, std::size_t N>
auto reshape(const Lazy<T, R>& x, const std::int64_t (&extents)[N], Location location = Location::current()) {
  return x.reshape(extents, location);
}
template <class T, int R, std::size_t N>
auto reshape(const Tensor<T, R>& x, const std::int64_t (&extents)[N], Location location = Location::current()) {
  return Lazy<T, R>(x, location).reshape(extents, location);
}
template <class T, int R, std::size_t N>
auto permute(const Lazy<T, R>& x, const int (&order)[N], Location location = Location::current()) {
  return x.permute(order, location);
}
template <class T, int R, std::size_t N>
auto permute(const Tensor<T, R>& x, const int (&order)[N], Location location = Location::current()) {
  return Lazy<T, R>(x, location).permute(order, location);
}
template <class T, int R>
auto transpose(const Lazy<T, R>& x, Location location = Location::current()) {
  return x.transpose(location);
}
template <class T, int R>
auto transpose(const Tensor<T, R>& x, Location location = Location::current()) {
  return Lazy<T, R>(x, location).transpose(location);
}
template <class T, int R, std::size_t N>
auto broadcast(const Lazy<T, R>& x, const std::int64_t (&extents)[N], Location location = Location::current()) {
  return x.broadcast(extents, location);
}
template <class T, int R, std::size_t N>
auto broadcast(const Tensor<T, R>& x, const std::int64_t (&extents)[N], Location location = Location::current()) {
  return Lazy<T, R>(x, location).broadcast(extents, location);
}
template <class T, int R>
auto squeeze(const Lazy<T, R>& x, int axis, Location location = Location::current()) {
  return x.squeeze(axis, location);
}
template <class T, int R>
auto squeeze(const Tensor<T, R>& x, int axis, Location location = Location::current()) {
  return Lazy<T, R>(x, location).squeeze(axis, location);
}
template <class T, int R>
auto expand_dims(const Lazy<T, R>& x, int axis, Location location = Location::current()) {
  return x.expand_dims(axis, location);
}
template <class T, int R>
auto expand_dims(const Tensor<T, R>& x, int axis, Location location = Location::current()) {
  return Lazy<T, R>(x, location).expand_dims(axis, location);
}
template <class T, int R>
auto flip(const Lazy<T, R>& x, int axis, Location location = Location::current()) {
  return x.flip(axis, location);
}
template <class T, int R>
auto flip(const Tensor<T, R>& x, int axis, Location location = Location::current()) {
  return Lazy<T, R>(x, location).flip(axis, location);
}
template <class T, int R>
auto argmax(const Lazy<T, R>& x, int axis, Location location = Location::current()) {
  return x.argmax(axis, location);
}
template <class T, int R>
auto argmax(const Tensor<T, R>& x, int axis, Location location = Location::current()) {
  return Lazy<T, R>(x, location).argmax(axis, location);
}
template <class T, int R>
auto argmin(const Lazy<T, R>& x, int axis, Location location = Location::current()) {
  return x.argmin(axis, location);
}
template <class T, int R>
auto argmin(const Tensor<T, R>& x, int axis, Location location = Location::current()) {
  return Lazy<T, R>(x, location).argmin(axis, location);
}
template <class T, int R>
auto slice(const Lazy<T, R>& x, int axis, std::int64_t start, std::int64_t extent, std::int64_t step = 1,
           Location location = Location::current()) {
  return x.slice(axis, start, extent, step, location);
}
template <class T, int R>
auto slice(const Tensor<T, R>& x, int axis, std::int64_t start, std::int64_t extent, std::int64_t step = 1,
           Location location = Location::current()) {
  return Lazy<T, R>(x, location).slice(axis, start, extent, step, location);
}
template <class T, int R>
auto sort(const Lazy<T, R>& x, int axis, SortOptions options = {}, Location location = Location::current()) {
  return x.sort(axis, options, location);
}
template <class T, int R>
auto sort(const Tensor<T, R>& x, int axis, SortOptions options = {}, Location location = Location::current()) {
  return Lazy<T, R>(x, location).sort(axis, options, location);
}
template <class T, int R>
auto argsort(const Lazy<T, R>& x, int axis, SortOptions options = {}, Location location = Location::current()) {
  return x.argsort(axis, options, location);
}
template <class T, int R>
auto argsort(const Tensor<T, R>& x, int axis, SortOptions options = {}, Location location = Location::current()) {
  return Lazy<T, R>(x, location).argsort(axis, options, location);
}
template <class T, int R>
auto top_k(const Lazy<T, R>& x, std::int64_t k, int axis, TopKOptions options = {},
           Location location = Location::current()) {
  return x.top_k(k, axis, options, location);
}
template <class T, int R>
auto top_k(const Tensor<T, R>& x, std::int64_t k, int axis, TopKOptions options = {},
           Location location = Location::current()) {
  return Lazy<T, R>(x, location).top_k(k, axis, options, location);
}
template <Stored U, class T, int R>
Lazy<U, R> cast(const Lazy<T, R>& x, Location location = Location::current()) {
  return x.template cast<U>(location);
}
template <Stored U, class T, int R>
Lazy<U, R> cast(const Tensor<T, R>& x, Location location = Location::current()) {
  return Lazy<T, R>(x, location).template cast<U>(location);
}

#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define SCAN(name, ...)                                                      \
  template <class T, int R>                                                  \
  Lazy<T, R> name(const Tensor<T, R>& a, int axis, ScanOptions options = {}, \
                  Location location = Location::current()) {                 \
    return Lazy<T, R>(a, location).name(axis, options, location);            \
  }
#include "tessera/graph/ops.def"

}  // namespace internal
}  // namespace tessera
