#include <fmt/format.h>

#include "common/captured.hpp"
#include "common/decode.hpp"
#include "common/join.hpp"
#include "common/operands.hpp"
#include "model/kernels.hpp"
#include "model/tiles.hpp"

namespace tessera::bench {
namespace {

constexpr int elements_per_block = 4096;  // of kernels that go through memory once

auto copy_kernel() {
  return kernel("copy", [](In<f32, 1> x, Out<f32, 1> y) {
    Index block = blocks(cdiv(x.extent(0), elements_per_block));
    store(y, {block}, load(x, {block}, {elements_per_block}));
  });
}

auto gelu_kernel() {
  return kernel("gelu", [](In<f32, 1> x, Out<f32, 1> y) {
    Index block = blocks(cdiv(x.extent(0), elements_per_block));
    store(y, {block}, kernels::gelu(load(x, {block}, {elements_per_block})));
  });
}

template <Element T>
auto layer_norm_kernel(int width) {
  return kernel("layer_norm", [=](In<T, 2> x, In<T, 1> weight, In<T, 1> bias, Out<T, 2> y, Scalar<f32> epsilon) {
    Index row = blocks(x.extent(0));
    Tile in = cast<f32>(load(x, {row, 0}, {1, width}));
    Tile centered = in - sum(in, 1) / width;
    Tile rstd = rsqrt(sum(centered * centered, 1) / width + epsilon);
    Tile scale = cast<f32>(load(weight, {0}, {width})), shift = cast<f32>(load(bias, {0}, {width}));
    store(y, {row, 0}, cast<T>(centered * rstd * scale + shift));
  });
}

/// y [m,n] = x [m,k] w, the factors rounded to M; w is [k,n], or [n,k] if `nk`.
template <Element T, Element M>
auto gemm_kernel(kernels::ProductTiles tiles, bool nk) {
  return kernel("gemm", [=](In<T, 2> x, In<T, 2> w, Out<T, 2> y) {
    require(x.extent(1) == w.extent(nk ? 1 : 0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const auto right = nk ? w.permute({1, 0}) : w.permute({0, 1});
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(cast<M>(load(x, {m, k}, {tiles.m, tiles.k})), cast<M>(load(right, {k, n}, {tiles.k, tiles.n})), acc);
    store(y, {m, n}, cast<T>(acc));
  });
}

template <class T>
constexpr const char* type_name = std::same_as<T, f32>    ? "f32"
                                  : std::same_as<T, tf32> ? "tf32"
                                                          : "bf16";
template <class T>
constexpr Resource resource_of = std::same_as<T, f32>    ? Resource::f32
                                 : std::same_as<T, tf32> ? Resource::tf32
                                                         : Resource::bf16;
/// The largest error of a result in T, in units of its root mean square: elements of up to four times that are rounded
/// to T, and factors were before.
template <class T>
constexpr double allowed = std::same_as<T, f32>    ? 1e-5
                           : std::same_as<T, tf32> ? 2.5e-3
                                                   : 2e-2;

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

/// What the model's rules for tiles go by.
TileTarget tile_target(const Device& device, ElementType operands, std::int64_t width, int head_width = 64) {
  return {.gpu = device.info().arch.has_value(),
          .operands = operands,
          .width = static_cast<int>(width),
          .head_width = head_width,
          .multiprocessors = device.info().arch == Arch::sm_90a ? device.info().multiprocessors : 0};
}

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

/// y = f(x), element by element.
Row pointwise(std::string op, std::int64_t size, auto make_kernel, double (*reference)(double)) {
  const double bytes = 8.0 * static_cast<double>(size);
  Row row{.op = std::move(op), .type = "f32", .shape = {size}, .work = bytes, .bytes = bytes, .allowed = allowed<f32>};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1);
    const auto x = operands<f32, 1>(device, turns, {size}, normal);
    const auto y = results<f32, 1>(device, turns, {size});
    return std::make_unique<Captured>(
        device, turns, [=, kernel = make_kernel()](const Stream& stream, int i) { launch(stream, kernel, x[i], y[i]); },
        [=] { return error_of(y.back(), [&](std::int64_t i) { return reference(normal[i]); }); });
  };
  return row;
}

template <Element T>
Row layer_norm(std::int64_t height, int width) {
  const double bytes = 2.0 * sizeof(T) * static_cast<double>(height) * width, epsilon = 1e-5;
  Row row{.op = "layer_norm",
          .type = type_name<T>,
          .shape = {height, width},
          .work = bytes,
          .bytes = bytes,
          .allowed = allowed<T>};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1), scale(2), shift(3);
    const auto x = operands<T, 2>(device, turns, {height, width}, normal);
    const auto weight = tensor_of<T, 1>(device, {width}, scale), bias = tensor_of<T, 1>(device, {width}, shift);
    const auto y = results<T, 2>(device, turns, {height, width});
    const auto reference = [=](std::int64_t index) {
      const auto at = [&](std::int64_t i) { return static_cast<float>(T(normal[index / width * width + i])); };
      double mean = 0, variance = 0;
      for (int i = 0; i < width; ++i) mean += at(i) / static_cast<double>(width);
      for (int i = 0; i < width; ++i) variance += (at(i) - mean) * (at(i) - mean) / width;
      const std::int64_t i = index % width;
      return (at(i) - mean) / std::sqrt(variance + epsilon) * static_cast<float>(T(scale[i])) +
             static_cast<float>(T(shift[i]));
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = layer_norm_kernel<T>(width)](const Stream& stream, int i) {
      launch(stream, kernel, x[i], weight, bias, y[i], epsilon);
        },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

/// Extents of a product.
using Extents = ProductExtents;

/// x [m,k] times w [k,n], or [n,k] if `nk`, and what comes behind: `make_call` gives, for tiles on a device, what
/// launches the kernel on x, w and y; `finish` is what becomes of the element of the product in a column.
template <Element T, class M>
Row product(std::string op, Extents e, bool nk, auto make_call, auto finish) {
  const auto real = [](auto value) { return static_cast<double>(value); };
  Row row{.op = std::move(op),
          .type = type_name<M>,
          .form = nk ? "nk" : "",
          .shape = {e.m, e.n, e.k},
          .resource = resource_of<M>,
          .work = 2 * real(e.m) * real(e.n) * real(e.k),
          .bytes = sizeof(T) * real(e.m * e.k + e.k * e.n + e.m * e.n),
          .allowed = allowed<M>};
  row.make = [=](const Device& device, const Turns& turns) {
    const TileTarget target = tile_target(device, element_type<M>, e.k);
    kernels::ProductTiles tiles = choose(target, e);
    if (const char* forced = std::getenv("TESSERA_BENCH_TILES"))
      std::sscanf(forced, "%d,%d,%d", &tiles.m, &tiles.n, &tiles.k);
    const Normal left(1), right(2, static_cast<float>(1 / std::sqrt(real(e.k))));
    const auto x = operands<T, 2>(device, turns, {e.m, e.k}, left),
               w = operands<T, 2>(device, turns, nk ? std::array{e.n, e.k} : std::array{e.k, e.n}, right);
    const auto y = results<T, 2>(device, turns, {e.m, e.n});
    const auto reference = [=](std::int64_t index) {
      double sum = 0;
      for (std::int64_t k = 0; k < e.k; ++k)
        sum += real(static_cast<float>(T(left[index / e.n * e.k + k]))) *
               static_cast<float>(T(right[nk ? index % e.n * e.k + k : k * e.n + index % e.n]));
      return finish(sum, index % e.n);
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, call = make_call(tiles, device)](const Stream& stream, int i) { call(stream, x[i], w[i], y[i]); },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

template <Element T, Element M>
Row gemm(Extents e, bool nk = false) {
  return product<T, M>(
      "gemm", e, nk,
      [nk](const kernels::ProductTiles& tiles, const Device&) {
    return [kernel = gemm_kernel<T, M>(tiles, nk)](const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, y);
    };
      },
      [](double sum, std::int64_t) { return sum; });
}

/// The first half of a transformer's MLP, by the model's own kernel.
Row linear_gelu(Extents e) {
  const Normal normal(3);
  return product<bf16, bf16>(
      "linear_gelu", e, false,
      [=](const kernels::ProductTiles& tiles, const Device& device) {
    return [kernel = kernels::linear_gelu<bf16, bf16>(tiles), bias = tensor_of<f32, 1>(device, {e.n}, normal)](
               const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, bias, y);
    };
      },
      [=](double sum, std::int64_t column) { return gelu(sum + normal[column]); });
}

/// Causal attention over a whole prompt, by the model's own kernel: queries, keys and values lie as GPT-2 has them.
Row attention(std::int64_t batch, std::int64_t positions, int heads, int head_width) {
  const std::int64_t width = std::int64_t{heads} * head_width;
  const double scale = 1 / std::sqrt(head_width), scores = static_cast<double>(batch * positions * positions) / 2;
  Row row{.op = "attention",
          .type = "bf16",
          .shape = {batch, positions, heads, head_width},
          .resource = Resource::bf16,
          .work = 4 * scores * static_cast<double>(width),
          .bytes = 2.0 * 4 * static_cast<double>(batch * positions * width),
          .allowed = allowed<bf16>};
  row.make = [=](const Device& device, const Turns& turns) {
    const AttentionTiles tiles = attention_tiles(tile_target(device, ElementType::bf16, width, head_width));
    const Normal queries(1), keys(2), values(3);  // the keys and values beside the queries are not read
    const auto qkv = operands<bf16, 3>(device, turns, {batch, positions, 3 * width}, queries);
    const auto k = operands<bf16, 3>(device, turns, {batch, positions, width}, keys);
    const auto v = operands<bf16, 3>(device, turns, {batch, positions, width}, values);
    const auto y = results<bf16, 3>(device, turns, {batch, positions, width});
    const Tensor<i32, 1> past(device, {batch}), count(device, {batch});
    past.copy_from(std::vector<i32>(batch, 0));
    count.copy_from(std::vector<i32>(batch, static_cast<i32>(positions)));
    const auto reference = [=](std::int64_t index) {
      const std::int64_t column = index % width, head = column / head_width * head_width;
      const std::int64_t row = index / width, first = row / positions * positions;
      const auto at = [](const Normal& normal, std::int64_t i) { return static_cast<float>(bf16(normal[i])); };
      double norm = 0, sum = 0;
      for (std::int64_t position = first; position <= row; ++position) {
        double score = 0;
        for (int i = 0; i < head_width; ++i)
          score += static_cast<double>(at(queries, row * 3 * width + head + i)) * at(keys, position * width + head + i);
        const double p = std::exp(score * scale);
        norm += p, sum += p * at(values, position * width + column);
      }
      return sum / norm;
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = kernels::attention<bf16>(heads, head_width, tiles.queries, tiles.keys)](
            const Stream& stream, int i) { launch(stream, kernel, qkv[i], k[i], v[i], past, count, y[i], scale); },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

}  // namespace

std::string Row::name() const {
  return fmt::format("{}-{}-{}{}{}", op, type, join(shape, "x"), form.empty() ? "" : "-", form);
}

std::vector<Row> rows(bool small) {
  const auto identity = [](double x) { return x; };
  if (small)
    return {pointwise("copy", 5000, copy_kernel, identity),
            pointwise("gelu", 5000, gelu_kernel, gelu),
            layer_norm<f32>(7, 160),
            layer_norm<bf16>(7, 160),
            gemm<bf16, bf16>({64, 48, 32}),
            gemm<f32, tf32>({64, 48, 32}),
            gemm<f32, f32>({64, 48, 32}),
            linear_gelu({64, 48, 32}),
            attention(2, 70, 2, 16),
            decode(preset("nano"), Compute::bf16, 8)};
  return {pointwise("copy", std::int64_t{1} << 27, copy_kernel, identity),
          pointwise("gelu", 32 * 512 * 768, gelu_kernel, gelu),
          layer_norm<f32>(65536, 1600),
          layer_norm<bf16>(65536, 1600),
          gemm<bf16, bf16>({4096, 4096, 4096}),
          gemm<bf16, bf16>({8192, 8192, 8192}),
          gemm<bf16, bf16>({8192, 2304, 768}),
          gemm<bf16, bf16>({8192, 768, 768}),
          gemm<bf16, bf16>({8192, 3072, 768}),
          gemm<bf16, bf16>({8192, 768, 3072}),
          gemm<bf16, bf16>({8192, 50304, 768}),
          gemm<bf16, bf16>({1024, 3072, 768}),
          gemm<bf16, bf16>({16384, 6400, 1600}),
          gemm<bf16, bf16>({4096, 4096, 4096}, true),
          gemm<bf16, bf16>({8192, 8192, 8192}, true),
          gemm<bf16, bf16>({8192, 2304, 768}, true),
          gemm<bf16, bf16>({8192, 768, 768}, true),
          gemm<bf16, bf16>({8192, 3072, 768}, true),
          gemm<bf16, bf16>({8192, 768, 3072}, true),
          gemm<bf16, bf16>({8192, 50304, 768}, true),
          gemm<bf16, bf16>({1024, 3072, 768}, true),
          gemm<bf16, bf16>({16384, 6400, 1600}, true),
          gemm<f32, tf32>({4096, 4096, 4096}),
          gemm<f32, f32>({2048, 2048, 2048}),
          linear_gelu({8192, 3072, 768}),
          attention(8, 1024, 12, 64),
          attention(2, 4096, 12, 64),
          decode(preset("gpt2"), Compute::bf16, 256)};
}

}  // namespace tessera::bench
