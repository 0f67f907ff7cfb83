// Tensors of pred: bytes on the host, conditions in a kernel.
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_pred_tensors {

using namespace tessera::internal;

namespace {

const Device& device = test_device();
constexpr int rows = 9, columns = 45;

std::vector<pred> bits(const std::vector<std::uint8_t>& bytes) {
  std::vector<pred> result(bytes.size());
  std::memcpy(static_cast<void*>(result.data()), bytes.data(), bytes.size());
  return result;
}

}  // namespace

TEST_CASE("a kernel accesses tensors of pred", "[cpu]") {
  const auto k = kernel("masks", [](In<pred, 2> m, In<i32, 1> at, In<f32, 2> x, Out<f32, 2> y, Out<pred, 2> n,
                                    Out<pred, 2> g, InOut<pred, 2> s, Out<i32, 2> count) {
    Index i = blocks(cdiv(m.extent(0), 4));
    Tile mask = load(m, {i, 0}, {4, 64});
    Tile t = load(x, {i, 0}, {4, 64});
    store(y, {i, 0}, where(mask, t, -1));
    store(n, {i, 0}, (!mask) & (t > 3));
    store(count, {i, 0}, sum(cast<i32>(mask), 1));
    if_(i == 0, [&] {
      Tile rows_at = load(at, {0}, {4});
      store(g, {0, 0}, gather(m, rows_at, {0}, {64}, 1));
      Tile before = load(s, {0, 0}, {4, 64});
      scatter(s, rows_at, {0}, !before);
    });
  });
  std::vector<std::uint8_t> mask(rows * columns);
  std::vector<f32> x(rows * columns);
  for (int i = 0; i < rows * columns; ++i)
    mask[i] = static_cast<std::uint8_t>(i % 3 == 0   ? 0
                                        : i % 5 == 0 ? 255
                                        : i % 7 == 0 ? 2
                                                     : 1),
    x[i] = static_cast<f32>(i % 11);
  const Tensor<pred, 2> tm(device, {rows, columns}), tn(device, {rows, columns}), tg(device, {4, columns}),
      ts(device, {4, columns});
  const Tensor<f32, 2> tx(device, {rows, columns}), ty(device, {rows, columns});
  const Tensor<i32, 2> counts(device, {rows, 1});
  const Tensor<i32, 1> at(device, {4});
  tm.copy_from(bits(mask)), tx.copy_from(x), at.copy_from(std::vector<i32>{2, -1, 0, 3});
  ts.fill(false);
  launch(device.stream(), k, tm, at, tx, ty, tn, tg, ts, counts);
  const auto y = ty.to_vector();
  const auto n = tn.to_vector(), g = tg.to_vector(), s = ts.to_vector();
  const auto count = counts.to_vector();
  for (int r = 0; r < rows; ++r) {
    int expected = 0;
    for (int c = 0; c < columns; ++c) {
      const int i = r * columns + c;
      const bool holds = mask[i] != 0;
      expected += holds;
      CHECK(y[i] == (holds ? x[i] : -1));
      CHECK(n[i].bits == (!holds && x[i] > 3 ? 1 : 0));  // 0 or 1, whatever was read
    }
    CHECK(count[r] == expected);
  }
  for (int c = 0; c < columns; ++c) {
    CHECK(g[c].bits == (mask[2 * columns + c] != 0));
    CHECK(g[columns + c].bits == 1);  // padding
    for (const int row : {0, 2, 3}) CHECK(s[row * columns + c].bits == 1);
    CHECK(s[columns + c].bits == 0);
  }
}

TEST_CASE("tensors of pred are made from values, filled and read on the host", "[api]") {
  const auto x = Tensor<pred, 2>::of(device, {{true, false}, {false, true}});
  CHECK(x.to_vector() == std::vector<pred>{true, false, false, true});
  x.fill(true);
  CHECK(x.to_vector() == std::vector<pred>(4, true));
  x.fill(pred(false));
  CHECK(x.to_vector() == std::vector<pred>(4, false));
}

TEST_CASE("a pred is no number whose bits are reinterpreted", "[graph]") {
  CHECK(!bitcasts(ElementType::pred, ElementType::u8));
  CHECK(!bitcasts(ElementType::u8, ElementType::pred));
  CHECK(bitcasts(ElementType::i8, ElementType::u8));
}

}  // namespace test_pred_tensors
