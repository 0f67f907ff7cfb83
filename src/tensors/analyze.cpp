#include "tessera/tensors/analyze.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "jit/launch/matmul_tiles.hpp"
#include "tessera/jit/copy_tensor.hpp"
#include "tessera/tensors/run.hpp"

namespace tessera::internal {
namespace {

constexpr Location nowhere{"<analyze>", 1, 0};

LazyRef reduced(Op op, LazyRef x) {
  for (int axis = x->extents.rank(); axis-- > 0;) x = lazy_reduce(op, x, axis, nowhere);
  return x;
}
LazyRef op(Op op, std::vector<LazyRef> in) { return lazy_elementwise(op, std::move(in), nowhere); }
LazyRef counted(LazyRef condition) {
  return reduced(Op::sum, lazy_cast(ElementType::i64, std::move(condition), true, nowhere));
}

// The only element of each result, as a double.
std::vector<double> numbers(const std::vector<LazyRef>& values) {
  std::vector<double> numbers;
  for (const detail::AnyTensor& result : run_lazy(values)) {
    std::array<std::byte, 8> bytes{};
    detail::copy_out(bytes.data(), 1, result);
    Cell cell;
    std::memcpy(static_cast<void*>(&cell), bytes.data(), sizeof bytes);
    with_host(host_type(result.type),
              [&](auto held) { numbers.push_back(static_cast<double>(value_in<decltype(held)>(cell))); });
  }
  return numbers;
}

void measure(TensorAnalysis& a, const detail::AnyTensor& tensor) {
  const bool is_real = info(a.type).kind == ElementKind::real, is_pred = a.type == ElementType::pred;
  ElementType computing = computing_type(a.type);
  if (!is_real && !info(computing).computes) computing = ElementType::i32;
  const LazyRef x = lazy_cast(computing, lazy_input(tensor, nowhere), true, nowhere);
  const LazyRef zero = lazy_literal(computing, 0, nowhere);
  std::vector<LazyRef> wanted{counted(op(Op::equal, {x, zero}))};
  if (is_real) {
    const LazyRef finite = op(Op::isfinite, {x});
    const auto where = [&](const LazyRef& condition, const LazyRef& y, double other) {
      return lazy_select(condition, y, lazy_literal(computing, other, nowhere), nowhere);
    };
    constexpr double inf = std::numeric_limits<double>::infinity();
    wanted.push_back(reduced(Op::min, where(finite, x, inf)));
    wanted.push_back(reduced(Op::max, where(finite, x, -inf)));
    wanted.push_back(
        reduced(Op::min, where(op(Op::logical_and, {finite, op(Op::not_equal, {x, zero})}), op(Op::abs, {x}), inf)));
    wanted.push_back(counted(op(Op::isnan, {x})));
    wanted.push_back(counted(op(Op::isinf, {x})));
    wanted.push_back(counted(op(Op::logical_and, {finite, op(Op::not_equal, {x, op(Op::floor, {x})})})));
  } else if (!is_pred) {
    wanted.push_back(reduced(Op::min, x)), wanted.push_back(reduced(Op::max, x));
  }
  const std::vector<double> found = numbers(wanted);
  const auto finite = [&](std::size_t i) { return i < found.size() && std::isfinite(found[i]) ? found[i] : 0.0; };
  const auto count = [&](std::size_t i) { return i < found.size() ? static_cast<std::int64_t>(found[i]) : 0; };
  a.zeros = count(0);
  a.lowest = finite(1), a.highest = finite(2), a.smallest = finite(3);
  a.nans = count(4), a.infinities = count(5), a.fractions = count(6);
}

std::string share(std::int64_t part, std::int64_t all) {
  return fmt::format("{} of {} ({:.3g} %)", part, all,
                     100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(all, 1)));
}

// The bits of a number's fraction, with the leading one.
int digits_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return 53;
    case ElementType::f32:
      return 24;
    case ElementType::f16:
      return 11;
    case ElementType::f8e5m2:
      return 3;
    case ElementType::f8e4m3:
      return 4;
    default:
      return 8;
  }
}

// The narrowest type that holds all elements exactly, or their range.
void advise_type(TensorAnalysis& a) {
  const double largest = std::max(std::abs(a.lowest), std::abs(a.highest));
  const bool is_real = info(a.type).kind == ElementKind::real;
  if (a.type == ElementType::pred || a.elements == 0) return;
  if (a.nans == 0 && a.infinities == 0 && a.fractions == 0) {
    for (const ElementType type :
         {ElementType::i8, ElementType::u8, ElementType::i16, ElementType::u16, ElementType::i32}) {
      if (info(type).bytes >= info(a.type).bytes) break;
      if (a.lowest < static_cast<double>(lowest(type)) || a.highest > static_cast<double>(highest(type))) continue;
      a.advice.push_back(fmt::format("{} holds all elements exactly: they are whole numbers from {} to {}.", name(type),
                                     a.lowest, a.highest));
      return;
    }
  }
  if (!is_real) return;
  struct Format {
    ElementType type;
    double largest, smallest;  // the smallest normal number
    int digits;
  };
  constexpr Format formats[] = {{ElementType::f8e4m3, 448, 0.015625, 4},
                                {ElementType::f16, 65504, 6.103515625e-5, 11},
                                {ElementType::bf16, 3.3895314e38, 1.17549435e-38, 8}};
  for (const Format& format : formats) {
    if (info(format.type).bytes >= info(a.type).bytes) continue;
    if (largest > format.largest || (a.smallest > 0 && a.smallest < format.smallest)) continue;
    if (a.infinities > 0 && is_fp8(format.type)) continue;
    a.advice.push_back(fmt::format(
        "{} holds the range of the elements, from {:.3g} to {:.3g} in magnitude, with {} bits of each; {} has {}.",
        name(format.type), a.smallest, largest, format.digits, name(a.type), digits_of(a.type)));
    if (!is_fp8(format.type)) return;
  }
}

void advise_memory(TensorAnalysis& a) {
  const int bytes = info(a.type).bytes;
  if (a.contiguous_axis < 0 && a.elements > 1)
    a.advice.push_back("No axis is contiguous: each element is read by itself; copy it with dense().");
  else if (a.alignment < 16 && a.elements > 1)
    a.advice.push_back(
        fmt::format("Rows or the address are aligned to {} bytes: kernels read {} at a time instead of 16, and not by "
                    "TMA; pad rows to a multiple of {} elements.",
                    a.alignment, a.alignment, 16 / std::gcd(16, bytes)));
  if (!a.dense && a.contiguous_axis >= 0)
    a.advice.push_back(
        "It is not dense: reshape() copies it where axes with a gap meet, and its axes are merged in no kernel.");
}

}  // namespace

TensorAnalysis analyze_tensor(const detail::AnyTensor& tensor) {
  if (!tensor.device) throw Error("analyze: a tensor without memory; make one with Device::tensor");
  TensorAnalysis a;
  a.type = tensor.type;
  a.extents.assign(tensor.extents().begin(), tensor.extents().end());
  a.strides.assign(tensor.strides().begin(), tensor.strides().end());
  a.elements = tensor.size(), a.dense = tensor.is_dense();
  std::int64_t bytes = reinterpret_cast<std::intptr_t>(tensor.place.data);
  for (int axis = tensor.rank; axis-- > 0;) {
    const auto at = static_cast<std::size_t>(axis);
    if (a.extents[at] <= 1) continue;
    if (a.strides[at] == 1 && a.contiguous_axis < 0)
      a.contiguous_axis = axis;
    else
      bytes = std::gcd(bytes, a.strides[at] * info(a.type).bytes);
  }
  a.alignment = static_cast<int>(std::gcd(bytes, std::int64_t{16}));
  if (a.elements > 0) measure(a, tensor);
  if (a.nans > 0)
    a.advice.push_back(
        fmt::format("NaN: {}. max and min ignore them, all else passes them on.", share(a.nans, a.elements)));
  if (a.infinities > 0)
    a.advice.push_back(
        fmt::format("Infinities: {}. Infinity minus infinity, and times 0, is NaN.", share(a.infinities, a.elements)));
  if (a.zeros * 10 > a.elements * 9)
    a.advice.push_back(fmt::format("Zeros: {}. Products do not skip zeros; gather the others if they are in few rows.",
                                   share(a.zeros, a.elements)));
  advise_type(a);
  advise_memory(a);
  return a;
}

MatmulAnalysis analyze_matmul(const detail::AnyTensor& x, const detail::AnyTensor& w) {
  if (x.rank != 2 || w.rank != 2 || x.extents()[1] != w.extents()[0] || x.type != w.type)
    throw Error(fmt::format("analyze: {} times {}: a product takes [m,k] and [k,n] of one type", x.text(), w.text()));
  if (!x.device || !w.device || !(*x.device == *w.device))
    throw Error("analyze: the operands of a product are on one device; copy one with Tensor::to");
  MatmulAnalysis a;
  a.x = analyze_tensor(x), a.w = analyze_tensor(w);
  const MatmulShape shape{
      .m = x.extents()[0], .n = w.extents()[1], .k = x.extents()[1], .nk = a.w.contiguous_axis == 0};
  const MatmulTarget target = matmul_target(*x.device);
  a.tiles = choose(MatmulFamily::plain, shape, x.type, target);
  const auto tiles = [](std::int64_t extent, int tile) { return (extent + tile - 1) / tile; };
  const std::int64_t all = tiles(shape.m, a.tiles.m) * tiles(shape.n, a.tiles.n),
                     at_once = std::max(target.multiprocessors, 1);
  a.advice.push_back(fmt::format("Tiles of {}x{}, {} of k at a time: {} tiles for {} {}, {:.2f} waves.", a.tiles.m,
                                 a.tiles.n, a.tiles.k, all, at_once, target.gpu ? "multiprocessors" : "threads",
                                 static_cast<double>(all) / static_cast<double>(at_once)));
  if (!target.gpu) return a;
  if (all >= at_once)
    a.advice.push_back("k is not split unless the last wave is mostly empty: there are enough tiles.");
  else
    a.advice.push_back(
        fmt::format("k is split over the CTAs of a cluster, or by stream-K, where the cost model says so: {} "
                    "multiprocessors have no tile.",
                    at_once - all));
  if (!has_wgmma(x.type))
    a.advice.push_back(
        fmt::format("Products of {} do not use tensor cores; MatmulPrecision::tf32 does, with 11 bits of each factor.",
                    name(x.type)));
  if (info(x.type).bytes == 1 && !shape.nk)
    a.advice.push_back(
        "wgmma reads 8-bit operands along k: w stored as [n,k], passed as w.transposed(), is read as it is; [k,n] goes "
        "through registers.");
  if (a.x.alignment < 16 || a.w.alignment < 16)
    a.advice.push_back(
        "An operand that is not aligned to 16 bytes is not read by TMA, and the product does not use wgmma.");
  return a;
}

std::string to_string(const TensorAnalysis& a) {
  std::string text =
      fmt::format("{} [{}], strides [{}], {}aligned to {} bytes\n", name(a.type), fmt::join(a.extents, ","),
                  fmt::join(a.strides, ","), a.dense ? "dense, " : "", a.alignment);
  if (a.elements > 0)
    text += fmt::format("{} elements from {:.6g} to {:.6g}, zeros {:.3g} %\n", a.elements, a.lowest, a.highest,
                        100.0 * static_cast<double>(a.zeros) / static_cast<double>(a.elements));
  for (const std::string& sentence : a.advice) text += fmt::format("- {}\n", sentence);
  return text;
}
std::string to_string(const MatmulAnalysis& a) {
  std::string text = "x: " + to_string(a.x) + "w: " + to_string(a.w);
  for (const std::string& sentence : a.advice) text += fmt::format("- {}\n", sentence);
  return text;
}

}  // namespace tessera::internal
