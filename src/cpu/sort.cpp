#include "cpu/sort.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/of_this_thread.hpp"
#include "tessera/graph/element.hpp"

namespace tessera::internal::cpu {
namespace {

// An element's sort key, as a number, and its index along the axis.
template <class K>
struct Entry {
  K key;
  std::int32_t index;
  bool operator<(const Entry& other) const { return key != other.key ? key < other.key : index < other.index; }
};

// Increases with the element; equal elements, including -0 and +0, have the same key. NaN is larger than any number.
template <class T>
auto key_of(T x) {
  using K = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr K sign = K{1} << (8 * sizeof(K) - 1);
  const K bits = std::bit_cast<K>(x);
  if constexpr (std::is_floating_point_v<T>)
    return x != x ? ~K{0} : x == 0 ? sign : bits & sign ? static_cast<K>(~bits) : bits | sign;
  else
    return std::is_signed_v<T> ? bits ^ sign : bits;
}

// The first element of each line of the result, whose elements are `inner` apart.
struct ResultLines {
  std::int64_t inner = 1;
  int count;
  ResultLines(const Lines& lines, int count) : count(count) {
    for (int axis = lines.axis + 1; axis < lines.shape.rank(); ++axis) inner *= lines.shape[axis];
  }
  std::int64_t first(std::int64_t line) const { return line / inner * inner * count + line % inner; }
};

// Sorts `count` elements digit by digit from the lowest (LSD radix sort), but only by digits in which keys differ:
// `varying` has those bits. first(i) is entry i; the entries come in the order of their indices, and each digit's pass
// is stable. The last pass calls last(place, entry).
// Functions are taken by value, so that the variables that they capture can stay in registers.
template <class K, class First, class Last>
void sort_by_digits(std::int64_t count, K varying, First first, Last last) {
  constexpr int bits = 8;
  constexpr K mask = (K{1} << bits) - 1;
  auto& buffers = of_this_thread<std::array<std::vector<Entry<K>>, 2>>();
  int buffer = 0;
  const auto pass = [=, &varying](auto from, auto to) {
    const int shift = std::countr_zero(varying);
    varying &= ~(mask << shift);
    std::int32_t begin[mask + 1] = {};
    for (std::int64_t i = 0; i < count; ++i) ++begin[from(i).key >> shift & mask];
    std::int32_t before = 0;
    for (std::int32_t& digit : begin) before += std::exchange(digit, before);
    for (std::int64_t i = 0; i < count; ++i) {
      const Entry<K> entry = from(i);
      to(begin[entry.key >> shift & mask]++, entry);
    }
  };
  // Only the last digit's pass writes results, and only the first one's reads elements.
  const auto is_last = [&] { return (varying & ~(mask << std::countr_zero(varying))) == 0; };
  const auto rest = [&](auto from) {
    Entry<K>* const to = buffers[buffer].data();
    if (is_last()) return pass(from, last);
    pass(from, [to](std::int32_t place, const Entry<K>& entry) { to[place] = entry; });
  };
  if (varying == 0) {
    for (std::int64_t i = 0; i < count; ++i) last(static_cast<std::int32_t>(i), first(i));
    return;
  }
  if (!is_last())
    for (std::vector<Entry<K>>& entries : buffers) entries.resize(static_cast<std::size_t>(count));
  rest(first);
  while (varying != 0) {
    const Entry<K>* const from = buffers[buffer].data();
    buffer = 1 - buffer;
    rest([from](std::int64_t i) { return from[i]; });
  }
}

// From this many elements on, counting digits pays off.
constexpr std::int64_t many = 128;

// Calls body(stride, inner), with compile-time constants where lines and results are contiguous.
template <class Body>
void with_strides(std::int64_t stride, std::int64_t inner, const Body& body) {
  using One = std::integral_constant<std::int64_t, 1>;
  if (stride == 1 && inner == 1) return body(One(), One());
  body(stride, inner);
}

// Sorts a line; the first `kept` elements in order go to `values` and `indices`.
template <class T, class Stride, class Inner>
void sort_line(const T* in, Stride stride, std::int64_t count, bool descending, int kept, T* values,
               std::int32_t* indices, Inner inner) {
  using K = decltype(key_of(T{}));
  auto& entries = of_this_thread<std::vector<Entry<K>>>();
  const K turned = descending ? ~K{0} : K{0};
  const auto entry = [in, stride, turned](std::int64_t i) {
    return Entry<K>{static_cast<K>(key_of(in[i * stride]) ^ turned), static_cast<std::int32_t>(i)};
  };
  const auto put = [=](std::int32_t place, const Entry<K>& entry) {
    if (place >= kept) return;
    if (values) values[place * inner] = in[entry.index * stride];
    if (indices) indices[place * inner] = entry.index;
  };
  if (count >= many && kept * 4 >= count) {
    K varying = 0;
    const K first = key_of(in[0]);
    for (std::int64_t i = 0; i < count; ++i) varying |= key_of(in[i * stride]) ^ first;
    return sort_by_digits<K>(count, varying, entry, put);
  }
  entries.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) entries[static_cast<std::size_t>(i)] = entry(i);
  if (kept * 4 < count)
    std::partial_sort(entries.begin(), entries.begin() + kept, entries.end());
  else
    std::sort(entries.begin(), entries.end());
  for (int i = 0; i < kept; ++i) put(i, entries[static_cast<std::size_t>(i)]);
}

template <class T>
void sort_as(const Lines& lines, SortOptions options, int kept, T* values, std::int32_t* indices) {
  const ResultLines result(lines, kept);
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    const std::int64_t to = result.first(line);
    with_strides(lines.stride[at(lines.axis)], result.inner, [&](auto stride, auto inner) {
      sort_line(reinterpret_cast<const T*>(lines.data) + offset, stride, lines.shape[lines.axis], options.descending,
                kept, values ? values + to : nullptr, indices ? indices + to : nullptr, inner);
    });
  });
}

}  // namespace

void sort(ElementType type, const Lines& lines, SortOptions options, int kept, char* values, std::int32_t* indices) {
  with_host(host_type(type),
            [&]<class T>(T) { sort_as<T>(lines, options, kept, reinterpret_cast<T*>(values), indices); });
}

namespace {

// For each number of each line that is 0, 1, ..., extent - 1: update(its element of the result, its position).
template <class Update>
void each_number(const Lines& lines, int extent, std::int32_t* out, Update update) {
  const std::int64_t count = lines.shape[lines.axis];
  const ResultLines result(lines, extent);
  each_line(lines, [&](std::int64_t offset, std::int64_t line) {
    const std::int32_t* const in = reinterpret_cast<const std::int32_t*>(lines.data) + offset;
    std::int32_t* const to = out + result.first(line);
    with_strides(lines.stride[at(lines.axis)], result.inner, [=](auto stride, auto inner) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t number = in[i * stride];
        if (number >= 0 && number < extent) update(to[number * inner], static_cast<std::int32_t>(i));
      }
    });
  });
}
// Elements of a result that has `extent` elements in place of each line.
std::int64_t elements(const Lines& lines, int extent) { return lines.shape.size() / lines.shape[lines.axis] * extent; }

}  // namespace

void histogram(const Lines& lines, int bins, std::int32_t* out) {
  std::fill_n(out, elements(lines, bins), 0);
  each_number(lines, bins, out, [](std::int32_t& count, std::int32_t) { ++count; });
}

void inverse_permutation(const Lines& lines, int extent, std::int32_t* out) {
  std::fill_n(out, elements(lines, extent), -1);
  each_number(lines, extent, out, [](std::int32_t& position, std::int32_t i) { position = i; });
}

}  // namespace tessera::internal::cpu
