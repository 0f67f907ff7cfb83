#include "common/matmuls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/computed.hpp"
#include "common/grouped.hpp"
#include "common/scaled_products.hpp"
#include "common/tier.hpp"
#include "common/typed.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/kernels.hpp"

namespace tessera::internal::bench {
namespace {

/// For integers, the result keeps all bits of the accumulators; for fp8 it is bf16.
template <class T>
using Result = std::conditional_t<std::same_as<T, i8>, i32, std::conditional_t<std::same_as<T, f8e4m3>, bf16, T>>;
template <class T>
using Sums = std::conditional_t<std::same_as<T, i8>, i32, f32>;

/// y [m,n] = x [m,k] w, operands converted to M; w is [k,n], or [n,k] if `nk`.
template <Element T, Element M>
auto gemm_kernel(MatmulTiles tiles, bool nk) {
  return kernel("gemm", [=](In<T, 2> x, In<T, 2> w, Out<Result<T>, 2> y) {
    require(x.extent(1) == w.extent(nk ? 1 : 0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const auto right = nk ? w.permute({1, 0}) : w.permute({0, 1});
    Var acc = zeros<Sums<T>>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(cast<M>(load(x, {m, k}, {tiles.m, tiles.k})), cast<M>(load(right, {k, n}, {tiles.k, tiles.n})), acc);
    store(y, {m, n}, cast<Result<T>>(acc));
  });
}

constexpr std::string_view without_wgmma_group = "t1", chosen_group = "chosen", tiles_group = "tiles";

/// How CTAs share k in a launch; "" on a CPU.
std::string launch_of(const MatmulShape& e, const MatmulTiles& tiles, const Device& device) {
  const MatmulTarget target = matmul_target(device);
  if (!target.has_wgmma()) return {};
  const CostModel model(*target.machine, target.multiprocessors);
  const SplitKLaunch launch = model.split_k(at_launch(matmul_work({tiles.m, tiles.n, tiles.k}, e.m, e.n, e.k, e.nk)),
                                            target.split_k, target.multicast);
  if (launch.split_k == SplitK::none) return launch.multicast ? "multicast" : "none";
  return fmt::format("{} {} {}", launch.split_k == SplitK::cluster ? "cluster" : "stream_k", launch.blocks,
                     launch.lockstep_rows);
}

/// Which row, besides its types.
struct Setup {
  MatmulShape shape;
  std::string group = {}, form = {};
  std::optional<MatmulTiles> tiles = {};  ///< without it choose() chooses
};

/// x times w, and an epilogue: `make_call` returns, for tiles on a device, the function that launches the kernel on x,
/// w and y; `finish` maps an element of the matmul in a column to the result.
template <Element T, class M>
Row matmul(std::string op, MatmulFamily family, const Setup& setup, auto make_call, auto finish) {
  const auto real = [](auto value) { return static_cast<double>(value); };
  const MatmulShape e = setup.shape;
  const bool warp_specialize = setup.group != without_wgmma_group;
  Row row{.op = std::move(op),
          .type = type_name<M>,
          .form = setup.form,
          .group = setup.group,
          .shape = {e.m, e.n, e.k},
          .resource = resource_of<M>,
          .work = 2 * real(e.m) * real(e.n) * real(e.k),
          .bytes = sizeof(T) * real(e.m * e.k + e.k * e.n) + sizeof(Result<T>) * real(e.m * e.n),
          .allowed = allowed<M>,
          .tiled = setup.group != chosen_group && setup.group != tiles_group};
  const auto tiles_on = [=](const Device& device) {
    MatmulTarget target = matmul_target(device);
    if (target.gpu && !warp_specialize) target.gpu = Target::of(*device.info().arch, false);
    return choose(family, e, element_type<M>, target);
  };
  // The alternatives of a row share its operands.
  using Operands = std::pair<Sets<T, 2>, Sets<T, 2>>;
  const auto shared = std::make_shared<std::weak_ptr<const Operands>>();
  const auto make = [=](const Device& any, const Turns& turns, MatmulTiles tiles) {
    const Device device = warp_specialize ? any : without_wgmma(any);
    // Standard deviations; none of a million numbers is six times as large.
    constexpr float of_bytes = std::same_as<T, i8> ? 20 : 1;
    const Normal left(1, of_bytes), right(2, sizeof(T) == 1 ? of_bytes : static_cast<float>(1 / std::sqrt(real(e.k))));
    std::shared_ptr<const Operands> inputs = shared->lock();
    if (!inputs) {
      const std::array<std::int64_t, 2> of_w = e.nk ? std::array{e.n, e.k} : std::array{e.k, e.n};
      inputs = std::make_shared<const Operands>(operands<T, 2>(device, turns, {e.m, e.k}, left),
                                                operands<T, 2>(device, turns, of_w, right));
      *shared = inputs;
    }
    const auto y = results<Result<T>, 2>(device, turns, {e.m, e.n});
    const auto reference = [=](std::int64_t index) {
      double sum = 0;
      for (std::int64_t k = 0; k < e.k; ++k)
        sum += real(static_cast<float>(T(left[index / e.n * e.k + k]))) *
               static_cast<float>(T(right[e.nk ? index % e.n * e.k + k : k * e.n + index % e.n]));
      return finish(sum, index / e.n, index % e.n);
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, call = make_call(tiles, device)](const Stream& stream, int i) {
      call(stream, inputs->first[i], inputs->second[i], y[i]);
        },
        [=] { return error_of(y.back(), reference); });
  };
  row.make = [=, tiles = setup.tiles](const Device& device, const Turns& turns) {
    return make(device, turns, tiles ? *tiles : tiles_on(device));
  };
  if (setup.group == chosen_group || setup.group == tiles_group)
    row.alternatives = [=](const Device& device) {
      std::vector<Alternative> others;
      for (const MatmulTiles& tiles : wgmma_tiles())
        if (setup.group == tiles_group || tiles != tiles_on(device))
          others.push_back({fmt::format("{}x{}x{}", tiles.m, tiles.n, tiles.k),
                            [=](const Device& on, const Turns& turns) { return make(on, turns, tiles); },
                            launch_of(e, tiles, device)});
      return others;
    };
  return row;
}

template <Element T, Element M>
Row gemm(Setup setup) {
  const bool nk = setup.shape.nk;
  if (nk) setup.form = "nk";
  return matmul<T, M>(
      "gemm", MatmulFamily::plain, setup,
      [nk](const MatmulTiles& tiles, const Device&) {
    return [kernel = gemm_kernel<T, M>(tiles, nk)](const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, y);
    };
      },
      [](double sum, std::int64_t, std::int64_t) { return sum; });
}

/// fp8 with scales.
Row scaled_mm(Setup setup) {
  setup.shape.nk = true;
  const bool by_row = setup.form.starts_with("row");
  const std::int64_t m = setup.shape.m, n = setup.shape.n;
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(setup.shape.k)));
  return matmul<f8e4m3, f8e4m3>(
      "scaled_mm", MatmulFamily::plain, setup,
      [=](const MatmulTiles& tiles, const Device& device) {
    const auto scales = [&](std::int64_t rows, std::int64_t columns, std::size_t seed) {
      return tensor_of<f32, 2>(device, {rows, columns}, Normal(seed, scale));
    };
    return [kernel = kernels::scaled_mm(tiles, by_row), scale_x = scales(by_row ? m : 1, 1, 3),
            scale_w = scales(1, by_row ? n : 1, 4)](const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, scale_x, scale_w, y);
    };
      },
      [=](double sum, std::int64_t row, std::int64_t column) {
    return sum * Normal(3, scale)[by_row ? row : 0] * Normal(4, scale)[by_row ? column : 0];
  });
}

/// The first half of a transformer's MLP, by the model's own kernel.
Row linear_gelu(const Setup& setup) {
  const Normal normal(3);
  const std::int64_t n = setup.shape.n;
  return matmul<bf16, bf16>(
      "linear_gelu", MatmulFamily::activated, setup,
      [=](const MatmulTiles& tiles, const Device& device) {
    return [kernel = kernels::linear_gelu<bf16, bf16>(tiles), bias = tensor_of<f32, 1>(device, {n}, normal)](
               const Stream& stream, const auto& x, const auto& w, const auto& y) {
      launch(stream, kernel, x, w, bias, y);
    };
      },
      [=](double sum, std::int64_t, std::int64_t column) { return gelu(sum + normal[column]); });
}

}  // namespace

std::vector<MatmulShape> random_shapes(std::uint64_t seed, std::size_t count, int least, int most, double operations) {
  std::mt19937_64 generator(seed);
  const auto extent = [&] {
    const double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    return std::llround(least * std::pow(static_cast<double>(most) / least, unit) / 8) * 8;
  };
  std::vector<MatmulShape> shapes;
  while (shapes.size() < count) {
    const std::int64_t m = extent(), n = extent(), k = extent();
    const auto same = [&](const MatmulShape& shape) { return shape.m == m && shape.n == n && shape.k == k; };
    if (2.0 * static_cast<double>(m * n) * static_cast<double>(k) <= operations && std::ranges::none_of(shapes, same))
      shapes.push_back({m, n, k});
  }
  return shapes;
}

std::vector<Row> matmul_rows(const RowSettings& settings) {
  std::vector<Row> rows;
  const auto bf16_gemm = [&](const MatmulShape& shape, std::string group = "") {
    rows.push_back(gemm<bf16, bf16>({shape, std::move(group), "", settings.tiles}));
  };
  const bool small = settings.small;
  const MatmulShape tiny{64, 48, 32};
  const std::vector<MatmulShape> table =
      small ? std::vector{tiny} : std::vector<MatmulShape>{{4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 2304, 768},
                                                           {8192, 768, 768},   {8192, 3072, 768},  {8192, 768, 3072},
                                                           {8192, 50304, 768}, {1024, 3072, 768},  {16384, 6400, 1600}};
  for (const bool nk : {false, true})
    for (const MatmulShape& shape : table) bf16_gemm({shape.m, shape.n, shape.k, nk});
  for (const std::int64_t extent : small ? std::vector<std::int64_t>{48} : std::vector<std::int64_t>{4096, 8192})
    rows.push_back(gemm<f16, f16>({{extent, extent, extent}, "", "", settings.tiles}));
  rows.push_back(gemm<f32, tf32>({small ? tiny : MatmulShape{4096, 4096, 4096}, "", "", settings.tiles}));
  for (const MatmulShape& shape : table)
    rows.push_back(gemm<f32, tf32>({{shape.m, shape.n, shape.k, true}, "", "", settings.tiles}));
  for (const std::int64_t extent : small ? std::vector<std::int64_t>{32} : std::vector<std::int64_t>{2048, 4096})
    rows.push_back(gemm<f32, f32>({{extent, extent, extent}, "", "", settings.tiles}));
  for (const char* peer : {"", "eager", "lt"})
    rows.push_back(linear_gelu({small ? tiny : MatmulShape{8192, 3072, 768}, "", peer, settings.tiles}));
  for (const auto& make : {linear_cast, linear_norm})
    rows.push_back(make(small ? tiny : MatmulShape{8192, 3072, 768}, settings.tiles));
  for (const bool nk : {false, true})
    for (const MatmulShape& shape :
         small ? std::vector{tiny} : std::vector<MatmulShape>{{4096, 4096, 4096}, {8192, 3072, 768}})
      rows.push_back(linear_i8({shape.m, shape.n, shape.k, nk}, settings.tiles));
  for (const MatmulShape& shape :
       small ? std::vector{tiny} : std::vector<MatmulShape>{{4096, 4096, 4096}, {8192, 3072, 768}})
    rows.push_back(linear_i4(shape, settings.tiles));
  rows.push_back(
      grouped_mm(small ? MatmulShape{36 * 128, 40, 32} : MatmulShape{36 * 256, 3072, 768}, 8, settings.tiles));

  const std::vector<MatmulShape> matrices =  // by their columns and rows
      small ? std::vector{tiny}
            : std::vector<MatmulShape>{{0, 2304, 768}, {0, 3072, 768}, {0, 768, 3072}, {0, 6400, 1600}};
  for (const std::int64_t m : {16, 32, 64})
    for (const MatmulShape& w : matrices) bf16_gemm({m, w.n, w.k}, "smallm");
  const std::vector<MatmulShape> unaligned =  // rows of odd multiples of 16 bytes in the right operand
      small ? std::vector{MatmulShape{64, 40, 32}}
            : std::vector<MatmulShape>{{4096, 4392, 4096},  {8192, 1352, 768},  {4096, 3464, 2048}, {2048, 8664, 4096},
                                       {8192, 1512, 1024},  {2048, 1512, 2048}, {4096, 1352, 4096}, {1024, 4392, 4096},
                                       {16384, 6408, 1608}, {8192, 3464, 3464}, {4096, 8664, 1600}, {2048, 4392, 8192}};
  for (const MatmulShape& shape : unaligned) bf16_gemm(shape, "unaligned");
  const std::vector<MatmulShape> random =
      small ? random_shapes(settings.seed, 4, 16, 96) : random_shapes(settings.seed, 60, 16, 16384);
  for (const MatmulShape& shape : random) bf16_gemm(shape, "sweep");
  for (const MatmulShape& shape :
       small ? std::vector{tiny} : std::vector<MatmulShape>{{4096, 4096, 4096}, {8192, 3072, 768}})
    bf16_gemm(shape, std::string(without_wgmma_group));
  for (const bool nk : {false, true})
    for (const std::int64_t extent : small ? std::vector<std::int64_t>{48} : std::vector<std::int64_t>{4096, 8192})
      rows.push_back(gemm<i8, i8>({{extent, extent, extent, nk}, "bytes", "", settings.tiles}));
  for (const char* form : {"tensor", "row", "tensor_fast", "row_fast"})
    for (const MatmulShape& shape :
         small ? std::vector{tiny}
               : std::vector<MatmulShape>{{4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 768, 3072}})
      rows.push_back(scaled_mm({shape, "bytes", form, settings.tiles}));
  std::vector<MatmulShape> several = table;
  several.insert(several.end(), random.begin(), random.begin() + 3);
  for (const MatmulShape& shape : several) rows.push_back(gemm<bf16, bf16>({shape, std::string(chosen_group)}));
  for (const MatmulShape& shape :
       small ? random_shapes(settings.seed, 2, 16, 96) : random_shapes(settings.seed, 200, 32, 16384, 2e11))
    rows.push_back(gemm<bf16, bf16>({shape, std::string(tiles_group)}));
  return rows;
}

}  // namespace tessera::internal::bench
