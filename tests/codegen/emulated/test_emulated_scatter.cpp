// Scatters of rows in vectors, and in pairs of accumulators that lanes exchange: in the emulator against the CPU.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "codegen/generate.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/emulated_device.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace test_emulated_scatter {

using namespace tessera::internal;

namespace {

std::string text_of(const auto& kernel, Arch arch) {
  const Graph& graph = kernel.executable().graph();
  return generate(graph, dense_variant(graph), arch).text;
}

template <Stored T>
std::vector<T> numbers(std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = T(static_cast<float>(i * 2654435761u >> 7 & 63));
  return values;
}

template <Stored T>
std::vector<float> floats(const std::vector<T>& values) {
  std::vector<float> made;
  for (const T& value : values) made.push_back(static_cast<float>(value));
  return made;
}

/// Rows of x, of which the first is scattered nowhere, the second twice with equal values, and one behind the end.
template <Stored T>
auto rows_to(int columns) {
  return kernel("rows_to", [=](In<T, 2> x, In<i32, 1> to, Out<T, 2> y) {
    Index n = blocks(cdiv(y.extent(1), columns));
    scatter(y, load(to, {0}, {8}), {n}, load(x, {0, n}, {8, columns}));
  });
}

template <Stored T>
void compare_rows(int columns, std::int64_t width) {
  INFO(name(element_type<T>) << " " << columns << " of " << width);
  std::vector<T> x = numbers<T>(8 * width);
  std::copy(x.begin() + width, x.begin() + 2 * width, x.begin() + 3 * width);
  const auto result = [&](const Device& device) {
    const Tensor<T, 2> in(device, {8, width}), y(device, {9, width});
    const Tensor<i32, 1> to(device, {8});
    in.copy_from(x), to.copy_from(std::vector<i32>{-1, 5, 0, 5, 8, 9, 3, 2});
    y.copy_from(std::vector<T>(static_cast<std::size_t>(9 * width), T(7)));
    launch(device.stream(), rows_to<T>(columns), in, to, y);
    return floats(y.to_vector());
  };
  CHECK(result(emulated_device()) == result(Device::cpu()));
}

/// A matmul whose rows are scattered, of one of two tensors.
auto product_to(int m, int n) {
  return kernel("product_to", [=](In<bf16, 2> x, In<bf16, 2> w, In<i32, 1> to, List<Out<bf16, 2>, 2> y) {
    auto [i, j] = blocks(cdiv(x.extent(0), m), 2 * cdiv(w.extent(1), n));
    Var acc = zeros<f32>({m, n});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {i, k}, {m, 64}), load(w, {k, j / 2}, {64, n}), acc);
    scatter(y[j % 2], load(to, {i}, {m}, -1), {j / 2}, cast<bf16>(acc));
  });
}

void compare_product(int m, int n, std::int64_t rows, std::int64_t columns) {
  INFO(m << " x " << n << " of " << rows << " x " << columns);
  std::vector<i32> to(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = i % 5 == 3 ? -1 : static_cast<i32>(to.size() - 1 - i);
  const auto result = [&](const Device& device) {
    const Tensor<bf16, 2> x(device, {rows, 128}), w(device, {128, columns}), y(device, {rows, columns}),
        z(device, {rows - 2, columns});
    const Tensor<i32, 1> at(device, {rows});
    x.copy_from(numbers<bf16>(x.size())), w.copy_from(numbers<bf16>(w.size())), at.copy_from(to);
    for (const auto& one : {y, z}) one.copy_from(std::vector<bf16>(static_cast<std::size_t>(one.size()), bf16(7)));
    launch(device.stream(), product_to(m, n), x, w, at, std::vector{y, z});
    return std::array{floats(y.to_vector()), floats(z.to_vector())};
  };
  CHECK(result(emulated_device()) == result(Device::cpu()));
}

}  // namespace

TEST_CASE("rows are scattered in vectors, and accumulators in rows of eight that lanes exchange", "[generate]") {
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != text.npos; };
  CHECK(has(text_of(rows_to<f32>(64), Arch::sm_80), "scatter_vector<4>"));
  CHECK(has(text_of(rows_to<bf16>(64), Arch::sm_80), "scatter_vector<8>"));
  CHECK(has(text_of(rows_to<u8>(64), Arch::sm_80), "scatter_vector<16>"));
  CHECK(has(text_of(rows_to<f32>(6), Arch::sm_80), "scatter_vector<2>"));
  CHECK(has(text_of(rows_to<f32>(3), Arch::sm_80), "scatter_element("));
  for (const Arch arch : {Arch(Arch::sm_80), Arch(Arch::sm_90a)})
    CHECK(has(text_of(product_to(64, 64), arch), "scatter_words<4>"));
}

TEST_CASE("scatters of vectors and of accumulators in the emulator", "[emulated]") {
  compare_rows<f32>(64, 64);
  compare_rows<f32>(6, 12);
  compare_rows<f32>(3, 9);
  compare_rows<bf16>(64, 96);  // columns that the last tile has too many
  compare_rows<bf16>(2, 4);
  compare_rows<bf16>(64, 61);  // rows that are not aligned
  compare_rows<u8>(32, 32);
  compare_rows<u8>(2, 6);
  compare_rows<i64>(4, 8);
  compare_product(64, 64, 70, 128);
  compare_product(64, 64, 70, 120);
  compare_product(64, 64, 70, 100);
  compare_product(16, 32, 20, 64);
}

}  // namespace test_emulated_scatter
