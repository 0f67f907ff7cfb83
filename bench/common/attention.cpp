#include "common/attention.hpp"

#include "common/typed.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/tiles.hpp"

namespace tessera::internal::bench {
namespace {

constexpr int window = 1024;
enum class Seen : std::uint8_t { causal, full, window, cached };

/// softmax(q k^T scale) v, online (Dao et al., 2022): q and o are [batch, heads, queries, d]; k and v [batch, heads,
/// positions, d] have fewer heads, each shared by `group` heads of q. Packed: q and o are [batch, queries, heads, d],
/// and the rows of a tile are queries and the heads of a group (FlashAttention: pack_gqa).
auto attention_kernel(AttentionTiles tiles, int d, Seen kind, int group, bool packed) {
  return kernel("attention", [=](In<bf16, 4> q, In<bf16, 4> k, In<bf16, 4> v, Out<bf16, 4> o, Scalar<f32> scale) {
    require(q.extent(3) == d, "heads as wide as the kernel was made for");
    if (tiles.blocks > 0) hints({.occupancy = tiles.blocks});
    const int bm = tiles.queries, bn = tiles.keys, positions = packed ? bm / group : bm;
    auto [m, head, batch] = packed ? blocks(cdiv(q.extent(1), positions), k.extent(1), q.extent(0))
                                   : blocks(cdiv(q.extent(2), positions), q.extent(1), q.extent(0));
    Tile queries = reshape(packed ? Tile(load(q, {batch, m, head, 0}, {1, positions, group, d}))
                                  : Tile(load(q, {batch, head, m, 0}, {1, 1, positions, d})),
                           {bm, d});
    Tile rows = packed ? Tile(m * positions + iota({bm, 1}, 0) / group) : Tile(m * bm + iota({bm, 1}, 0));
    Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    Tile factor = scale * log2e;
    const bool all = kind == Seen::full || kind == Seen::cached;
    Tile length = all ? Tile(k.extent(2)) : Tile(minimum((m + 1) * positions, k.extent(2)));
    Tile first = kind == Seen::window ? Tile(maximum(m * positions - (window - 1), 0) / bn) : Tile(0 * m);
    Tile of_keys = packed ? Tile(head) : Tile(head / group);
    for (Index i : range(cdiv(length, bn) - first)) {
      Tile j = first + i;
      Tile columns = j * bn + iota({1, bn}, 1);
      Tile seen = all                    ? Tile(columns < k.extent(2))
                  : kind == Seen::causal ? Tile(columns <= rows)
                                         : Tile((columns <= rows) & (columns > rows - window));
      Tile keys = reshape(load(k, {batch, of_keys, j, 0}, {1, 1, bn, d}), {bn, d});
      Tile values = reshape(load(v, {batch, of_keys, j, 0}, {1, 1, bn, d}), {bn, d});
      Tile s = where(seen, mma(queries, transpose(keys), zeros<f32>({bm, bn})), -inf);
      Tile hi = maximum(top, max(s, 1));
      // The scale is above 0, so the largest scaled score is the scale times the largest score.
      Tile p = exp2(s * factor - hi * factor), shrink = exp2((top - hi) * factor);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<bf16>(p), values, acc * shrink);
      top = hi;
    }
    Tile out = cast<bf16>(acc * (1 / norm));
    packed ? store(o, {batch, m, head, 0}, reshape(out, {1, positions, group, d}))
           : store(o, {batch, head, m, 0}, reshape(out, {1, 1, positions, d}));
  });
}

struct AttentionSetup {
  std::int64_t batch, positions;
  int heads, width;
  Seen kind = Seen::causal;
  int group = 1;    ///< query heads per key-value head
  int queries = 0;  ///< per head; 0: as many as positions
  std::string named = {};
  bool packed = false;
  std::optional<MatmulTiles> tiles = {};  ///< m queries, n keys; without it attention_tiles() chooses
};

Row attention(const AttentionSetup& of) {
  const auto [batch, positions, heads, width, kind, group, few, named, packed, given] = of;
  const std::int64_t rows = few ? few : positions;
  const double queries = static_cast<double>(batch * heads * rows), count = static_cast<double>(positions);
  const bool all = kind == Seen::full || kind == Seen::cached;
  const double seen = all ? count : kind == Seen::causal ? count / 2 : std::min<double>(window, count / 2);
  const double bytes = 2.0 * width * (2 * queries + 2.0 / group * static_cast<double>(batch * heads * positions));
  Row row{.op = "attention",
          .type = "bf16",
          .form = kind == Seen::full     ? "full"
                  : kind == Seen::cached ? "cached"
                  : kind == Seen::window ? "window"
                  : packed               ? "packed"
                  : group > 1            ? "gqa"
                                         : "causal",
          .group = named,
          .shape = {batch, positions, heads, width},
          .resource = kind == Seen::cached ? Resource::memory : Resource::bf16,
          .work = kind == Seen::cached ? bytes : 4 * queries * seen * width,
          .bytes = bytes,
          .allowed = allowed<bf16>,
          .tiled = true};
  if (group > 1) row.shape.push_back(heads / group);
  row.make = [=](const Device& device, const Turns& turns) {
    AttentionTiles tiles = attention_tiles({.gpu = device.info().arch.has_value(),
                                            .wgmma = matmul_target(device).has_wgmma(),
                                            .operands = ElementType::bf16,
                                            .width = heads * width,
                                            .head_width = width,
                                            .seen = static_cast<std::int64_t>(seen)});
    if (few) tiles = {few, 128};
    if (given) tiles = {given->m, given->n};
    const Normal of_q(1), of_k(2), of_v(3);
    const std::array<std::int64_t, 4> of_queries{batch, packed ? rows : heads, packed ? heads : rows, width};
    const auto q = operands<bf16, 4>(device, turns, of_queries, of_q);
    const auto k = operands<bf16, 4>(device, turns, {batch, heads / group, positions, width}, of_k);
    const auto v = operands<bf16, 4>(device, turns, {batch, heads / group, positions, width}, of_v);
    const auto o = results<bf16, 4>(device, turns, of_queries);
    const double scale = 1 / std::sqrt(width);
    const auto reference = [=](std::int64_t index) {
      const std::int64_t column = index % width, query = index / width, sequence = query / rows / heads;
      const std::int64_t row = packed ? query / heads % rows : query % rows;
      const std::int64_t head = packed ? query % heads : query / rows % heads;
      const std::int64_t keys = (sequence * (heads / group) + head / group) * positions;
      const auto at = [](const Normal& normal, std::int64_t i) { return static_cast<float>(bf16(normal[i])); };
      double norm = 0, sum = 0;
      const std::int64_t first = kind == Seen::window ? std::max<std::int64_t>(row - window + 1, 0) : 0;
      for (std::int64_t j = first; j < (all ? positions : row + 1); ++j) {
        double score = 0;
        for (int i = 0; i < width; ++i)
          score += static_cast<double>(at(of_q, query * width + i)) * at(of_k, (keys + j) * width + i);
        const double p = std::exp(score * scale);
        norm += p, sum += p * at(of_v, (keys + j) * width + column);
      }
      return sum / norm;
    };
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = attention_kernel(tiles, width, kind, group, packed)](const Stream& stream, int i) {
      launch(stream, kernel, q[i], k[i], v[i], o[i], scale);
        },
        [=] { return error_of(o.back(), reference); });
  };
  return row;
}

}  // namespace

std::vector<Row> attention_rows(const RowSettings& settings) {
  std::vector<Row> rows;
  const auto add = [&](AttentionSetup setup) {
    setup.tiles = settings.tiles;
    rows.push_back(attention(setup));
  };
  if (settings.small) {
    add({.batch = 2, .positions = 70, .heads = 2, .width = 16});
    for (const bool packed : {false, true})
      add({.batch = 1, .positions = 70, .heads = 4, .width = 16, .group = 2, .named = "gqa", .packed = packed});
    add({.batch = 1, .positions = 70, .heads = 2, .width = 16, .kind = Seen::cached, .queries = 16, .named = "cached"});
    return rows;
  }
  constexpr std::int64_t tokens = 16384;
  for (const Seen kind : {Seen::causal, Seen::full})
    for (const int width : {64, 128})
      for (std::int64_t positions = 1024; positions <= tokens; positions *= 2)
        add({.batch = tokens / positions, .positions = positions, .heads = 16, .width = width, .kind = kind});
  for (const std::int64_t batch : {8, 2}) add({.batch = batch, .positions = 8192 / batch, .heads = 12, .width = 64});
  for (const int width : {64, 128}) {
    for (const std::int64_t positions : {1024, 4096, 16384})
      for (const bool packed : {false, true})
        add({.batch = tokens / positions,
             .positions = positions,
             .heads = 16,
             .width = width,
             .group = 4,
             .named = "gqa",
             .packed = packed});
    add({.batch = 1, .positions = tokens, .heads = 16, .width = width, .kind = Seen::window, .named = "window"});
    for (const std::int64_t positions : {1024, 8192})
      add({.batch = 4096 / width * 8192 / positions,
           .positions = positions,
           .heads = 8,
           .width = width,
           .kind = Seen::cached,
           .queries = 16,
           .named = "cached"});
  }
  return rows;
}

}  // namespace tessera::internal::bench
