// The kernels that tessera_numpy.py launches, exported by name from a shared library.
#include <tessera/c/export.hpp>

using namespace tessera;

// y = scale * x, for matrices with any strides.
auto scaled() {
  return kernel("scaled", [](In<f32, 2> x, Out<f32, 2> y, Scalar<f32> scale) {
    same_extents(x, y);
    auto [m, n] = blocks(cdiv(x.extent(0), 16), cdiv(x.extent(1), 64));
    store(y, {m, n}, scale * load(x, {m, n}, {16, 64}));
  });
}

// The softmax of each row of x, in place: e^x / sum(e^x).
auto softmax() {
  return kernel("softmax", [](InOut<f32, 2> x) {
    require(x.extent(1) <= 1024, "rows of 1024 elements at most");
    Index row = blocks(x.extent(0));
    Tile xs   = load(x, {row, 0}, {1, 1024}, -inf);
    Tile e    = exp(xs - max(xs, 1));
    store(x, {row, 0}, e / sum(e, 1));
  });
}

TESSERA_EXPORT_KERNEL(scaled, scaled())
TESSERA_EXPORT_KERNEL(softmax, softmax())
