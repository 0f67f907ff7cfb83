// Fast Fourier transform of each row: Stockham's radix-2 algorithm, which needs no bit reversal. A complex number is a
// pair of tiles. The C++ loop is unrolled while the kernel is traced: its log2(n) iterations, each on tiles of another
// shape, become one kernel.
#include <cmath>
#include <complex>
#include <numbers>

#include "gallery/gallery.hpp"

namespace gallery {

auto fft(int n) {
  return kernel("fft", [=](In<f32, 2> real, In<f32, 2> imaginary, Out<f32, 2> real_out, Out<f32, 2> imaginary_out) {
    require(real.extent(1) == n, "rows as long as the kernel was made for");
    same_extents(real, imaginary, real_out, imaginary_out);
    Index row = blocks(real.extent(0));
    Var re = load(real, {row, 0}, {1, n}), im = load(imaginary, {row, 0}, {1, n});
    for (int half = n / 2, run = 1; half >= 1; half /= 2, run *= 2) {
      auto [a_re, b_re] = split<2>(reshape(re, {half * 2, run}), 0);
      auto [a_im, b_im] = split<2>(reshape(im, {half * 2, run}), 0);
      Tile angle = cast<f32>(iota({half, 1}, 0)) * (-std::numbers::pi / half);
      Tile c = cos(angle), s = sin(angle), d_re = a_re - b_re, d_im = a_im - b_im;
      re = reshape(concat(1, a_re + b_re, d_re * c - d_im * s), {1, n});
      im = reshape(concat(1, a_im + b_im, d_re * s + d_im * c), {1, n});
    }
    store(real_out, {row, 0}, re);
    store(imaginary_out, {row, 0}, im);
  });
}

const Example fft_example("fft", 2e-5, [](const Device& device) {
  const int rows = 3, n = 128;
  const auto re = normal_values(rows * n, 1), im = normal_values(rows * n, 2);
  const auto out_re = device.tensor<f32>({rows, n}), out_im = device.tensor<f32>({rows, n});
  launch(device.stream(), fft(n), tensor_of(device, {rows, n}, re), tensor_of(device, {rows, n}, im), out_re, out_im);

  std::vector<double> expected_re, expected_im;
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < n; ++k) {
      std::complex<double> sum;
      for (int i = 0; i < n; ++i)
        sum += std::complex<double>(re[row * n + i], im[row * n + i]) *
               std::polar(1., -2 * std::numbers::pi * (i * k % n) / n);
      expected_re.push_back(sum.real()), expected_im.push_back(sum.imag());
    }
  return std::max(largest_error(out_re, expected_re), largest_error(out_im, expected_im));
});

}  // namespace gallery
