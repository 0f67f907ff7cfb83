#include "cpu/reduce.hpp"

#include "graph/host_ops.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::cpu {
namespace {

// Many partial results at once: this vectorizes, and a sum of n terms has the error of one of n / lanes terms.
template <Op op, class T>
T reduce_line(const T* in, std::int64_t stride, std::int64_t count) {
  using Host = math::Host<op>;
  constexpr int lanes = 32;
  T part[lanes];
  for (T& p : part) p = Host::template identity<T>();
  std::int64_t i = 0;
  if (stride == 1)
    for (; i + lanes <= count; i += lanes)
      for (int lane = 0; lane < lanes; ++lane) part[lane] = Host::apply(part[lane], in[i + lane]);
  for (int lane = 0; i < count; ++i, lane = (lane + 1) % lanes) part[lane] = Host::apply(part[lane], in[i * stride]);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) part[lane] = Host::apply(part[lane], part[lane + half]);
  return part[0];
}

// Along an axis that is not the innermost: combines whole rows at once.
template <Op op, class T>
void reduce_rows(const Lines& lines, T* out) {
  using Host = math::Host<op>;
  const int last = lines.shape.rank() - 1;
  const std::int64_t row = lines.shape[last];
  Lines outer = lines;
  outer.shape[last] = 1;
  each_line(outer, [&](std::int64_t offset, std::int64_t line) {
    T* result = out + line * row;
    std::fill_n(result, row, Host::template identity<T>());
    for (std::int64_t k = 0; k < lines.shape[lines.axis]; ++k) {
      const T* in = reinterpret_cast<const T*>(lines.data) + offset + k * lines.stride[at(lines.axis)];
      for (std::int64_t i = 0; i < row; ++i) result[i] = Host::apply(result[i], in[i]);
    }
  });
}

template <Op op, class T>
void reduce_as(const Lines& lines, char* out) {
  T* result = reinterpret_cast<T*>(out);
  const int last = lines.shape.rank() - 1;
  if (lines.axis != last && lines.shape[last] > 1 && lines.stride[at(last)] == 1)
    return reduce_rows<op, T>(lines, result);
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    result[line] = reduce_line<op, T>(reinterpret_cast<const T*>(lines.data) + offset, lines.stride[at(lines.axis)],
                                      lines.shape[lines.axis]);
  });
}

template <Op op>
void reduce_typed(ElementType type, const Lines& lines, char* out) {
  with_host(host_type(type), [&]<class T>(T) {
    if constexpr (math::takes<op, T>) reduce_as<op, T>(lines, out);
  });
}

template <class T>
void argmax_as(const Lines& lines, std::int32_t* out) {
  const std::int64_t count = lines.shape[lines.axis], stride = lines.stride[at(lines.axis)];
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    const T* in = reinterpret_cast<const T*>(lines.data) + offset;
    const T largest = reduce_line<Op::max, T>(in, stride, count);
    std::int64_t i = 0;
    while (i < count && in[i * stride] != largest) ++i;
    out[line] = i < count ? static_cast<std::int32_t>(i) : 0;  // all NaN: 0
  });
}

template <Op op, class T>
void scan_as(const Lines& lines, ScanOptions options, char* out) {
  using Host = math::Host<op>;
  std::int64_t inner = 1;
  for (int axis = lines.axis + 1; axis < lines.shape.rank(); ++axis) inner *= lines.shape[axis];
  const std::int64_t count = lines.shape[lines.axis], stride = lines.stride[at(lines.axis)];
  const std::int64_t first = options.reverse ? count - 1 : 0, step = options.reverse ? -1 : 1;
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    const T* in = reinterpret_cast<const T*>(lines.data) + offset;
    T* result = reinterpret_cast<T*>(out) + line / inner * inner * count + line % inner;
    T total = Host::template identity<T>();
    for (std::int64_t k = 0, i = first; k < count; ++k, i += step) {
      const T before = total;
      total = Host::apply(total, in[i * stride]);
      result[i * inner] = options.exclusive ? before : total;
    }
  });
}

template <Op op>
void scan_typed(ElementType type, const Lines& lines, ScanOptions options, char* out) {
  with_host(host_type(type), [&]<class T>(T) { scan_as<op, T>(lines, options, out); });
}

}  // namespace

void reduce(Op op, ElementType type, const Lines& lines, char* out) {
  switch (op) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define STRUCTURAL(...)
#define REDUCTION(name, ...) \
  case Op::name:             \
    return reduce_typed<Op::name>(type, lines, out);
#include "tessera/graph/ops.def"
    default:
      throw InternalError("not a reduction");
  }
}

void argmax(ElementType type, const Lines& lines, std::int32_t* out) {
  with_host(host_type(type), [&]<class T>(T) { argmax_as<T>(lines, out); });
}

void scan(Op op, ElementType type, const Lines& lines, ScanOptions options, char* out) {
  switch (op) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define SCAN(name, reduction, ...) \
  case Op::name:                   \
    return scan_typed<Op::reduction>(type, lines, options, out);
#include "tessera/graph/ops.def"
    default:
      throw InternalError("not a scan");
  }
}

}  // namespace tessera::internal::cpu
