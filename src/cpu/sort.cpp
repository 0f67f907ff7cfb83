#include "cpu/sort.hpp"

#include <algorithm>
#include <vector>

namespace tessera::internal::cpu {
namespace {

template <class T>
struct Indexed {
  T value;
  std::int32_t index;
};

// Does a go before b in rising order? NaN is larger than any number, and equal to itself.
template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a != a || b != b) return a == a;
  return a < b;
}

// Where the elements of a line's result begin, which are `inner` apart.
struct ResultLines {
  std::int64_t inner = 1;
  int count;
  ResultLines(const Lines& lines, int count) : count(count) {
    for (int axis = lines.axis + 1; axis < lines.shape.rank(); ++axis) inner *= lines.shape[axis];
  }
  std::int64_t first(std::int64_t line) const { return line / inner * inner * count + line % inner; }
};

// Calls put(place in a dense result, element) for the first `kept` of each line in order.
template <class T, class Put>
void each_sorted(const Lines& lines, SortOptions options, int kept, const Put& put) {
  const std::int64_t count = lines.shape[lines.axis], stride = lines.stride[at(lines.axis)];
  const ResultLines result(lines, kept);
  std::vector<Indexed<T>> all(static_cast<std::size_t>(count));
  const auto goes_before = [&](const Indexed<T>& a, const Indexed<T>& b) {
    if (is_less(a.value, b.value)) return !options.descending;
    if (is_less(b.value, a.value)) return options.descending;
    return a.index < b.index;
  };
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    const T* in = reinterpret_cast<const T*>(lines.data) + offset;
    for (std::int64_t i = 0; i < count; ++i)
      all[static_cast<std::size_t>(i)] = {in[i * stride], static_cast<std::int32_t>(i)};
    if (kept < count)
      std::partial_sort(all.begin(), all.begin() + kept, all.end(), goes_before);
    else
      std::sort(all.begin(), all.end(), goes_before);
    for (int i = 0; i < kept; ++i) put(result.first(line) + i * result.inner, all[static_cast<std::size_t>(i)]);
  });
}

}  // namespace

void sort(ElementType type, const Lines& lines, SortOptions options, int kept, char* out) {
  with_host(host_type(type), [&]<class T>(T) {
    each_sorted<T>(lines, options, kept,
                   [&](std::int64_t to, const Indexed<T>& x) { reinterpret_cast<T*>(out)[to] = x.value; });
  });
}

void argsort(ElementType type, const Lines& lines, SortOptions options, int kept, std::int32_t* out) {
  with_host(host_type(type), [&]<class T>(T) {
    each_sorted<T>(lines, options, kept, [&](std::int64_t to, const Indexed<T>& x) { out[to] = x.index; });
  });
}

void histogram(const Lines& lines, int bins, std::int32_t* out) {
  const std::int64_t count = lines.shape[lines.axis], stride = lines.stride[at(lines.axis)];
  const ResultLines result(lines, bins);
  std::fill_n(out, lines.shape.size() / count * bins, 0);
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    const std::int32_t* in = reinterpret_cast<const std::int32_t*>(lines.data) + offset;
    std::int32_t* counts = out + result.first(line);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t bin = in[i * stride];
      if (bin >= 0 && bin < bins) ++counts[bin * result.inner];
    }
  });
}

}  // namespace tessera::internal::cpu
