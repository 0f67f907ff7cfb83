// Mixture of experts: each token is multiplied by the matrix of its expert, then scaled by its weight. The host sorts
// the tokens by expert into groups of whole tiles. It pads each group with -1, an index out of range: gather reads 0
// for it, scatter drops it.
#include "gallery/gallery.hpp"

namespace gallery {

auto mixture_of_experts(int bm, int bn, int bk) {
  return kernel("mixture_of_experts", [=](In<f32, 2> x, In<f32, 3> experts, In<f32, 1> weights, In<i32, 1> rows,
                                          In<i32, 1> expert_of_tile, Out<f32, 2> y) {
    require(x.extent(1) == experts.extent(1), "inner extents agree");
    require(rows.extent(0) == expert_of_tile.extent(0) * bm, "an expert for each tile of rows");
    require(weights.extent(0) == x.extent(0), "a weight for each token");
    require((y.extent(0) == x.extent(0)) & (y.extent(1) == experts.extent(2)), "a row of y for each token");
    auto [m, n] = blocks(expert_of_tile.extent(0), cdiv(y.extent(1), bn));
    Tile tokens = load(rows, {m}, {bm});
    Index expert = item(load(expert_of_tile, {m}, {1}));
    Var acc = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(x.extent(1), bk)))
      acc = mma(gather(x, tokens, {k}, {bk}), squeeze(load(experts, {expert, k, n}, {1, bk, bn}), 0), acc);
    scatter(y, tokens, {n}, acc * expand_dims(gather(weights, tokens), 1));
  });
}

const Example mixture_of_experts_example("mixture_of_experts", 1e-5, [](const Device& device) {
  const int tokens = 101, experts = 4, inner = 48, cols = 70, bm = 16;
  const auto x = normal_values(tokens * inner, 1), w = normal_values(experts * inner * cols, 2);
  const auto weights = normal_values(tokens, 3);
  const auto expert = random_integers(tokens, experts, 4);
  std::vector<i32> rows, expert_of_tile;
  for (int e = 0; e < experts; ++e) {
    for (int token = 0; token < tokens; ++token)
      if (expert[token] == e) rows.push_back(token);
    while (rows.size() % bm != 0) rows.push_back(-1);
    expert_of_tile.resize(rows.size() / bm, e);
  }
  const auto y = device.tensor<f32>({tokens, cols});
  launch(device.stream(), mixture_of_experts(bm, 64, 16), tensor_of(device, {tokens, inner}, x),
         tensor_of(device, {experts, inner, cols}, w), tensor_of(device, {tokens}, weights),
         tensor_of(device, {std::ssize(rows)}, rows), tensor_of(device, {std::ssize(expert_of_tile)}, expert_of_tile),
         y);

  std::vector<double> expected;
  for (int token = 0; token < tokens; ++token)
    for (int col = 0; col < cols; ++col) {
      double sum = 0;
      for (int k = 0; k < inner; ++k) sum += double{x[token * inner + k]} * w[(expert[token] * inner + k) * cols + col];
      expected.push_back(sum * weights[token]);
    }
  return largest_error(y, expected);
});

}  // namespace gallery
