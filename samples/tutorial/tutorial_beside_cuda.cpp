// The kernels of docs/tutorial/compare.md, each beside one in plain CUDA C++. On a GPU both run and are compared. On
// the CPU and in the emulator a plain loop stands for the CUDA kernel.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

// [gelu]
auto gelu_of_tiles() {
  return kernel("gelu_of_tiles", [](In<f32, 1> x, Out<f32, 1> y) {
    same_extents(x, y);
    Index i = blocks(cdiv(x.extent(0), 1024));
    store(y, {i}, gelu_tanh(load(x, {i}, {1024})));
  });
}
// [/gelu]

const CudaSource gelu_text = R"(
// [gelu_cuda]
__device__ float gelu(float x) { return x / (1 + expf(-1.5957691f * (x + 0.044715f * x * x * x))); }

extern "C" __global__ void gelu_of_threads(const float* x, float* y, int count) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < count) {  // 16 bytes, which takes 16-byte alignment of x and y
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    *reinterpret_cast<float4*>(y + i) = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
  } else {
    for (int j = i; j < count; ++j) y[j] = gelu(x[j]);
  }
}
// [/gelu_cuda]
)";

auto gelu_of_threads() {
  const auto host = [](const float* x, float* y, int count) {
    for (int i = 0; i < count; ++i) {
      const double v = x[i];
      y[i] = static_cast<float>(v / (1 + std::exp(-1.5957691216057308 * (v + 0.044715 * v * v * v))));
    }
  };
  const auto launch = [](In<f32, 1> x, Out<f32, 1>) {
    return CudaLaunch{.blocks = {cdiv(x.extent(0), 1024)}, .threads = {256}, .numbers = {x.extent(0)}};
  };
  return cuda_kernel("gelu_of_threads", gelu_text, launch, host);
}

// [layer_norm]
auto layer_norm_of_tiles(int cols) {
  return kernel("layer_norm_of_tiles",
                [=](In<f32, 2> x, In<f32, 1> weight, In<f32, 1> bias, Out<f32, 2> y, Scalar<f32> eps) {
    require(x.extent(1) == cols, "rows as wide as the kernel was made for");
    require((weight.extent(0) == cols) & (bias.extent(0) == cols), "a weight and a bias for each column");
    same_extents(x, y);
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, cols});
    Tile xc = xs - sum(xs, 1) / cols;
    Tile rstd = rsqrt(sum(xc * xc, 1) / cols + eps);
    store(y, {row, 0}, xc * rstd * load(weight, {0}, {cols}) + load(bias, {0}, {cols}));
  });
}
// [/layer_norm]

const CudaSource layer_norm_text = R"(
// [layer_norm_cuda]
__device__ float block_sum(float x, float* partial) {
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffff, x, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0;
  for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffff, x, lane);
  __syncthreads();  // partial is written again
  return x;
}

extern "C" __global__ void layer_norm_of_threads(const float* x, const float* weight, const float* bias, float* y,
                                                 float eps, int cols) {
  extern __shared__ float row[];
  __shared__ float partial[32];
  x += static_cast<size_t>(blockIdx.x) * cols, y += static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += row[i] = x[i];
  const float mean = block_sum(sum, partial) / cols;
  float squares = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
  const float rstd = rsqrtf(block_sum(squares, partial) / cols + eps);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] = (row[i] - mean) * rstd * weight[i] + bias[i];
}
// [/layer_norm_cuda]
)";

auto layer_norm_of_threads(int rows) {
  const auto host = [rows](const float* x, const float* weight, const float* bias, float* y, float eps, int cols) {
    for (int row = 0; row < rows; ++row, x += cols, y += cols) {
      double mean = 0, variance = 0;
      for (int i = 0; i < cols; ++i) mean += x[i] / static_cast<double>(cols);
      for (int i = 0; i < cols; ++i) variance += (x[i] - mean) * (x[i] - mean) / cols;
      const double rstd = 1 / std::sqrt(variance + eps);
      for (int i = 0; i < cols; ++i) y[i] = static_cast<float>((x[i] - mean) * rstd * weight[i] + bias[i]);
    }
  };
  const auto launch = [](In<f32, 2> x, In<f32, 1>, In<f32, 1>, Out<f32, 2>, Scalar<f32>) {
    const Index cols = x.extent(1);
    return CudaLaunch{.blocks = {x.extent(0)}, .threads = {256}, .shared_bytes = cols * 4, .numbers = {cols}};
  };
  return cuda_kernel("layer_norm_of_threads", layer_norm_text, launch, host);
}

// [linear]
template <Element T>
auto linear_of_tiles(int bm, int bn, int bk) {
  return kernel("linear_of_tiles", [=](In<T, 2> x, In<T, 2> w, In<f32, 1> bias, Out<T, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    require((y.extent(0) == x.extent(0)) & (y.extent(1) == w.extent(1)),
            "a row of y for each of x, a column for each of w");
    require(bias.extent(0) == w.extent(1), "a bias for each column");
    auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
    Var acc = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(x.extent(1), bk))) acc = mma(load(x, {m, k}, {bm, bk}), load(w, {k, n}, {bk, bn}), acc);
    store(y, {m, n}, cast<T>(acc + load(bias, {n}, {bn})));
  });
}
// [/linear]

const CudaSource linear_text = R"(
// [linear_cuda]
extern "C" __global__ void linear_of_threads(const float* x, const float* w, const float* bias, float* y, int m, int n, int k) {
  __shared__ float xs[16][66], ws[16][64];  // 66: a warp writes to 32 banks
  const int row = blockIdx.y * 64, col = blockIdx.x * 64, thread = threadIdx.y * 16 + threadIdx.x;
  float acc[4][4] = {};
  for (int at = 0; at < k; at += 16) {
    for (int i = thread; i < 64 * 16; i += 256) {
      const int r = row + i / 16, c = at + i % 16;
      xs[i % 16][i / 16] = r < m && c < k ? x[static_cast<size_t>(r) * k + c] : 0;
    }
    for (int i = thread; i < 16 * 64; i += 256) {
      const int r = at + i / 64, c = col + i % 64;
      ws[i / 64][i % 64] = r < k && c < n ? w[static_cast<size_t>(r) * n + c] : 0;
    }
    __syncthreads();
    for (int step = 0; step < 16; ++step)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += xs[step][threadIdx.y + 16 * i] * ws[step][threadIdx.x + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = row + threadIdx.y + 16 * i, c = col + threadIdx.x + 16 * j;
      if (r < m && c < n) y[static_cast<size_t>(r) * n + c] = acc[i][j] + bias[c];
    }
}
// [/linear_cuda]
)";

auto linear_of_threads() {
  const auto host = [](const float* x, const float* w, const float* bias, float* y, int m, int n, int k) {
    for (int row = 0; row < m; ++row)
      for (int col = 0; col < n; ++col) {
        double sum = bias[col];
        for (int i = 0; i < k; ++i) sum += static_cast<double>(x[row * k + i]) * w[i * n + col];
        y[row * n + col] = static_cast<float>(sum);
      }
  };
  const auto launch = [](In<f32, 2> x, In<f32, 2> w, In<f32, 1>, Out<f32, 2> y) {
    return CudaLaunch{.blocks = {cdiv(y.extent(1), 64), cdiv(y.extent(0), 64)},
                      .threads = {16, 16},
                      .numbers = {x.extent(0), w.extent(1), x.extent(1)}};
  };
  return cuda_kernel("linear_of_threads", linear_text, launch, host);
}

std::vector<f32> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<f32> normal;
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = normal(generator);
  return values;
}

bool agree(const char* name, const std::vector<f32>& tiles, const std::vector<f32>& threads, double allowed) {
  double worst = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const double error = std::abs(static_cast<double>(tiles[i]) - threads[i]) / std::max(1.0f, std::abs(threads[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  std::printf("tutorial_beside_cuda: %s: max difference %.1e (allowed %.0e)\n", name, worst, allowed);
  return worst <= allowed;
}

int main(int argc, char** argv) {
  const auto remarks = [] {
    std::string text;
    const auto add = [&](const std::vector<Remark>& remarks) {
      for (const Remark& remark : remarks) text += to_string(remark) + "\n";
    };
    add(gelu_of_tiles().remarks(Arch::sm_90a));
    add(layer_norm_of_tiles(768).remarks(Arch::sm_90a));
    add(linear_of_tiles<bf16>(128, 128, 64).remarks(Arch::sm_90a));
    return text;
  };
  return run_lesson(argc, argv, "tutorial_beside_cuda", remarks, [] {
    const Device device = Device::best();
    const Stream stream = device.stream();
    const auto one = [&](std::int64_t count, unsigned seed) {
      return device.tensor<f32>({count}, random_values(count, seed));
    };
    const auto two = [&](std::int64_t rows, std::int64_t cols, unsigned seed) {
      return device.tensor<f32>({rows, cols}, random_values(rows * cols, seed));
    };
    bool ok = true;
    {
      const auto x = one(5003, 1), tiles = device.tensor<f32>({5003}), threads = device.tensor<f32>({5003});
      launch(stream, gelu_of_tiles(), x, tiles);
      launch(stream, gelu_of_threads(), x, threads);
      ok &= agree("gelu", tiles.to_vector(), threads.to_vector(), 2e-6);
    }
    {
      const int rows = 9, cols = 770;
      const auto x = two(rows, cols, 1), tiles = two(rows, cols, 2), threads = two(rows, cols, 3);
      const auto weight = one(cols, 4), bias = one(cols, 5);
      launch(stream, layer_norm_of_tiles(cols), x, weight, bias, tiles, 1e-5);
      launch(stream, layer_norm_of_threads(rows), x, weight, bias, threads, 1e-5);
      ok &= agree("layer norm", tiles.to_vector(), threads.to_vector(), 5e-6);
    }
    {
      const int m = 70, n = 130, k = 100;
      const auto x = two(m, k, 1), w = two(k, n, 2), tiles = two(m, n, 3), threads = two(m, n, 4);
      const auto bias = one(n, 5);
      launch(stream, linear_of_tiles<f32>(64, 64, 32), x, w, bias, tiles);
      launch(stream, linear_of_threads(), x, w, bias, threads);
      ok &= agree("linear", tiles.to_vector(), threads.to_vector(), 2e-5);  // two sums of 100 products of size 1
    }
    return ok;
  });
}
