#include "common/attention.hpp"

#include "common/attention_kernel.hpp"
#include "common/typed.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/tiles.hpp"

namespace tessera::internal::bench {
namespace {

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
