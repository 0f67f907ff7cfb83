#include "common/memory_rows.hpp"

#include <cmath>
#include <numeric>

#include "common/memory_kernels.hpp"
#include "common/typed.hpp"
#include "tessera/jit/choose.hpp"

namespace tessera::internal::bench {
namespace {

constexpr double epsilon = 1e-5;

/// The op and the shape, besides the type.
struct MemorySetup {
  std::vector<std::int64_t> shape;
  std::string group = {}, form = {};
};

template <std::size_t R>
std::int64_t size_of(const std::array<std::int64_t, R>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// y, of U, from x, of T. `make_call` returns, for a device, the function that launches the kernels on x and y;
/// `reference(at, i)` is element i of y, where `at(i)` is that of x.
template <Element T, Element U, std::size_t RX, std::size_t RY>
Row of_memory(std::string op, const MemorySetup& setup, std::array<std::int64_t, RX> of_x,
              std::array<std::int64_t, RY> of_y, auto make_call, auto reference) {
  const double bytes = static_cast<double>(sizeof(T)) * static_cast<double>(size_of(of_x)) +
                       static_cast<double>(sizeof(U)) * static_cast<double>(size_of(of_y));
  Row row{.op = std::move(op),
          .type = type_name<T>,
          .form = setup.form,
          .group = setup.group,
          .shape = setup.shape,
          .work = bytes,
          .bytes = bytes,
          .allowed = allowed<U>};
  row.make = [=](const Device& device, const Turns& turns) {
    const Normal normal(1);
    const auto x = operands<T, static_cast<int>(RX)>(device, turns, of_x, normal);
    const auto y = results<U, static_cast<int>(RY)>(device, turns, of_y);
    const auto at = [=](std::int64_t i) { return static_cast<double>(static_cast<float>(T(normal[i]))); };
    return std::make_unique<Captured>(device, turns, [=, call = make_call(device)](const Stream& stream, int i) {
      call(stream, x[i], y[i]);
    }, [=] { return error_of(y.back(), [&](std::int64_t i) { return reference(at, i); }); });
  };
  return row;
}

/// Returns the function that launches a kernel on x and y.
auto launching(auto kernel) {
  return [=](const Stream& stream, const auto& x, const auto& y) { launch(stream, kernel, x, y); };
}

/// y = f(x), elementwise.
template <Element T>
Row pointwise(std::string op, const MemorySetup& setup, auto make_kernel, double (*f)(double)) {
  std::int64_t size = 1;
  for (const std::int64_t extent : setup.shape) size *= extent;
  return of_memory<T, T>(std::move(op), setup, std::array{size}, std::array{size}, [=](const Device&) {
    return launching(make_kernel());
  }, [=](const auto& at, std::int64_t i) { return f(at(i)); });
}

/// A row of y from the same row of x: `reference(at, row, column)`.
template <Element T>
Row row_wise(std::string op, const MemorySetup& setup, auto make_call, auto reference) {
  const std::array extents{setup.shape[0], setup.shape[1]};
  return of_memory<T, T>(std::move(op), setup, extents, extents, [=](const Device& device) {
    return make_call(device);
  }, [=, width = extents[1]](const auto& at, std::int64_t i) {
    return reference([&](std::int64_t column) { return at(i / width * width + column); }, i % width);
  });
}

/// For numbers of T in their memory representation.
template <Element T>
auto rounded(const Normal& normal) {
  return [=](std::int64_t i) { return static_cast<double>(static_cast<float>(T(normal[i]))); };
}

double sum_of(std::int64_t count, const auto& at) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += at(i);
  return sum;
}

template <Element T>
Row layer_norm(const MemorySetup& setup) {
  const Normal weights(2), biases(3);
  const std::int64_t width = setup.shape[1];
  return row_wise<T>("layer_norm", setup, [=](const Device& device) {
    return
        [=, weight = tensor_of<T, 1>(device, {width}, weights), bias = tensor_of<T, 1>(device, {width}, biases),
         kernel = layer_norm_kernel<T>(static_cast<int>(width))](const Stream& stream, const auto& x, const auto& y) {
      launch(stream, kernel, x, weight, bias, y, epsilon);
    };
  }, [=](const auto& at, std::int64_t column) {
    const double mean = sum_of(width, at) / static_cast<double>(width);
    const double variance =
        sum_of(width, [&](std::int64_t i) { return (at(i) - mean) * (at(i) - mean); }) / static_cast<double>(width);
    return (at(column) - mean) / std::sqrt(variance + epsilon) * rounded<T>(weights)(column) +
           rounded<T>(biases)(column);
  });
}

template <Element T>
Row rms_norm(const MemorySetup& setup) {
  const Normal weights(2);
  const std::int64_t width = setup.shape[1];
  return row_wise<T>("rms_norm", setup, [=](const Device& device) {
    return
        [=, weight = tensor_of<T, 1>(device, {width}, weights), kernel = rms_norm_kernel<T>(static_cast<int>(width))](
            const Stream& stream, const auto& x, const auto& y) { launch(stream, kernel, x, weight, y, epsilon); };
  }, [=](const auto& at, std::int64_t column) {
    const double square = sum_of(width, [&](std::int64_t i) { return at(i) * at(i); }) / static_cast<double>(width);
    return at(column) / std::sqrt(square + epsilon) * rounded<T>(weights)(column);
  });
}

template <Element T>
Row softmax(const MemorySetup& setup) {
  const std::int64_t width = setup.shape[1];
  return row_wise<T>("softmax", setup, [=](const Device&) {
    return launching(softmax_kernel<T>(static_cast<int>(width)));
  }, [=](const auto& at, std::int64_t column) {
    return std::exp(at(column)) / sum_of(width, [&](std::int64_t i) { return std::exp(at(i)); });
  });
}

Row running_sums(const MemorySetup& setup) {
  return row_wise<f32>("cumsum", setup, [=](const Device&) {
    return launching(cumsum_kernel(static_cast<int>(setup.shape[1])));
  }, [](const auto& at, std::int64_t column) { return sum_of(column + 1, at); });
}

/// The loss of each row of logits.
template <Element T>
Row cross_entropy(const MemorySetup& setup) {
  const auto target = [](std::int64_t row, std::int64_t vocab) { return row * 7919 % vocab; };
  const std::int64_t rows = setup.shape[0], vocab = setup.shape[1];
  return of_memory<T, f32>("cross_entropy", setup, std::array{rows, vocab}, std::array{rows},
                           [=](const Device& device) {
    const Tensor<i32, 1> targets(device, {rows});
    std::vector<i32> values;
    for (std::int64_t row = 0; row < rows; ++row) values.push_back(static_cast<i32>(target(row, vocab)));
    targets.copy_from(values);
    return [=, kernel = cross_entropy_kernel<T>(static_cast<int>(vocab))](const Stream& stream, const auto& x,
                                                                          const auto& y) {
      constexpr std::int64_t width = 16 / sizeof(T);
      launch(stream, kernel, x.reshaped(std::array{rows * vocab / width, width}), targets, y);
    };
  }, [=](const auto& at, std::int64_t row) {
    const auto logit = [&](std::int64_t i) { return at(row * vocab + i); };
    return std::log(sum_of(vocab, [&](std::int64_t i) { return std::exp(logit(i)); })) - logit(target(row, vocab));
  });
}

template <Element T>
Row transposed(const MemorySetup& setup) {
  const std::int64_t rows = setup.shape[0], columns = setup.shape[1];
  return of_memory<T, T>("transpose", setup, std::array{rows, columns}, std::array{columns, rows}, [=](const Device&) {
    return launching(transpose_kernel<T>());
  }, [=](const auto& at, std::int64_t i) { return at(i % rows * columns + i / rows); });
}

/// The sum of all elements: first of parts, then of their sums.
Row total(const MemorySetup& setup) {
  const std::int64_t size = setup.shape[0], parts = std::clamp<std::int64_t>(size / (16 * elements_per_round), 1, 4096);
  return of_memory<f32, f32>("sum", setup, std::array{size}, std::array{std::int64_t{1}}, [=](const Device& device) {
    return [=, sums = Tensor<f32, 1>(device, {parts}), kernel = sum_kernel()](const Stream& stream, const auto& x,
                                                                              const auto& y) {
      launch(stream, kernel, x, sums);
      launch(stream, kernel, sums, y);
    };
  }, [=, sum = std::make_shared<std::optional<double>>()](const auto& at, std::int64_t) {
    if (!*sum) *sum = sum_of(size, at);
    return **sum;
  });
}

/// A row times a matrix, which is [n,k] or [k,n].
Row gemv(MemorySetup setup, bool nk) {
  const std::int64_t n = setup.shape[0], k = setup.shape[1];
  if (!nk) setup.form = "kn";
  const Normal of_x(2, static_cast<float>(1 / std::sqrt(static_cast<double>(k))));
  return of_memory<bf16, bf16>("gemv", setup, nk ? std::array{n, k} : std::array{k, n}, std::array{std::int64_t{1}, n},
                               [=](const Device& device) {
    const MatmulTiles tiles = choose<bf16>(MatmulFamily::plain, {1, n, k, nk}, device);
    return [=, x = tensor_of<bf16, 2>(device, {1, k}, of_x), kernel = gemv_kernel<bf16>(tiles, nk)](
               const Stream& stream, const auto& w, const auto& y) { launch(stream, kernel, x, w, y); };
  }, [=](const auto& at, std::int64_t column) {
    return sum_of(k, [&](std::int64_t i) { return rounded<bf16>(of_x)(i) * at(nk ? column * k + i : i * n + column); });
  });
}

}  // namespace

std::vector<Row> memory_rows(bool small) {
  const auto of = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> when_small, std::string group = "") {
    return MemorySetup{small ? std::move(when_small) : std::move(shape), std::move(group)};
  };
  const auto identity = [](double x) { return x; };
  const MemorySetup headline = of({32 * 512 * 768}, {5000});
  std::vector<Row> rows{pointwise<f32>("copy", of({1 << 27}, {5000}), copy_kernel<f32>, identity),
                        pointwise<f32>("gelu", headline, gelu_kernel<f32>, gelu),
                        pointwise<f32>("gelu", {headline.shape, "", "cupy"}, gelu_kernel<f32>, gelu),
                        layer_norm<f32>(of({65536, 1600}, {7, 160})), layer_norm<bf16>(of({65536, 1600}, {7, 160}))};

  const auto in_group = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> when_small) {
    return of(std::move(shape), std::move(when_small), "rows");
  };
  std::vector<std::vector<std::int64_t>> shapes{{16384, 768}, {65536, 1600}, {32768, 4096}};
  if (small) shapes.resize(1);
  const auto add_types = [&]<Element T>(T) {
    for (const auto& shape : shapes) {
      const MemorySetup setup = in_group(shape, {7, 160});
      rows.push_back(layer_norm<T>(setup));
      rows.push_back(rms_norm<T>(setup));
      rows.push_back(softmax<T>(setup));
      rows.push_back(pointwise<T>("gelu", setup, gelu_kernel<T>, gelu));
    }
    rows.push_back(cross_entropy<T>(in_group({4096, 50257}, {8, 5003})));
  };
  add_types(f32());
  add_types(bf16());
  rows.push_back(transposed<bf16>(in_group({8192, 8192}, {70, 200})));
  rows.push_back(transposed<f32>(in_group({8192, 8192}, {70, 200})));
  rows.push_back(total(in_group({1 << 28}, {200'000})));
  rows.push_back(running_sums(in_group({32768, 4096}, {7, 160})));
  rows.push_back(gemv(in_group({50304, 768}, {786, 96}), true));
  for (const bool nk : {true, false}) rows.push_back(gemv(in_group({3072, 768}, {48, 96}), nk));
  return rows;
}

}  // namespace tessera::internal::bench
