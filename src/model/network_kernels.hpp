// The kernels of a model: of prefill and batches, of a decode step of one sequence and of a few, and of sampling.
#pragma once
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "jit/launch/matmul_tiles.hpp"
#include "model/decode_kernels.hpp"
#include "model/tiles.hpp"
#include "model/weights.hpp"

namespace tessera::internal {

/// The kernels of one family, each made on first use of its tiles.
template <class K>
class ByTiles {
 public:
  explicit ByTiles(K (*make)(MatmulTiles)) : make_(make) {}
  const K& operator[](const MatmulTiles& tiles) {
    auto& made = kernels_[{tiles.m, tiles.n, tiles.k}];
    if (!made) made.emplace(make_(tiles));
    return *made;
  }

 private:
  K (*make_)(MatmulTiles);
  std::map<std::array<int, 3>, std::optional<K>> kernels_;
};

/// The kernels of the matmuls for a number of rows.
template <Element P, Element W>
struct Matmuls {
  decltype(kernels::linear<P, W>({})) qkv;
  decltype(kernels::linear_qkv<P, W>({})) qkv_to_cache;
  decltype(kernels::linear_gelu<P, W>({})) up;
  decltype(kernels::linear_residual<P, W>({})) project, down;
};

constexpr int columns_of_part = 1024, tiles_of_part = 8;  // one CTA finds the best of so many logits
constexpr int parts_of(int vocab) { return ceil_div(vocab, columns_of_part * tiles_of_part); }
/// Columns of logits in memory: rows of a multiple of 128 bytes are written fastest, whatever the vocabulary.
constexpr int columns_of_logits(int vocab) { return ceil_div(vocab, 64) * 64; }

/// The kernels of a decode step of one sequence.
template <Element P, Element W>
struct DecodeKernels {
  DecodeKernels(const Gpt2Config& config, const DecodeTiles& tiles, const KeyTiles& keys)
      : parts(tiles.parts),
        head_parts(ceil_div(columns_of_logits(config.vocab), tiles.head * tiles.rounds)),
        qkv(kernels::decode_qkv<P, W>(config.width, 1, tiles.columns)),
        part(kernels::decode_part<P>(config.heads, config.head_width(), tiles.parts, keys)),
        project(kernels::decode_project<P, W>(config.heads, config.head_width(), tiles.parts, tiles.project)),
        up(config.gelu == Gelu::exact ? kernels::decode_exact_up<P, W>(config.width, 1, tiles.columns)
                                      : kernels::decode_up<P, W>(config.width, 1, tiles.columns)),
        down(kernels::decode_residual<P, W>(config.inner, 1, tiles.down)),
        head(kernels::decode_head<P, W>(config.width, config.vocab, tiles.head, tiles.rounds)),
        greedy_token(kernels::greedy_token(head_parts)) {}
  int parts, head_parts;  // of the cache, and of the logits
  decltype(kernels::decode_qkv<P, W>(0, 0, 0)) qkv;
  decltype(kernels::decode_part<P>(0, 0, 0, {})) part;
  decltype(kernels::decode_project<P, W>(0, 0, 0, 0)) project;
  decltype(kernels::decode_up<P, W>(0, 0, 0)) up;
  decltype(kernels::decode_residual<P, W>(0, 0, 0)) down;
  decltype(kernels::decode_head<P, W>(0, 0, 0, 0)) head;
  decltype(kernels::greedy_token(0)) greedy_token;
};

/// The kernels that do not depend on a number of rows.
template <Element P, Element W>
struct Kernels {
  using A = kernels::Activation<P>;

  Kernels(const Gpt2Config& config, const TileTarget& target)
      : embed(kernels::embed<W>(config.width, copy_rows(target))),
        one_norm(kernels::layer_norm<A>(config.width, norm_rows(target))),
        last_norm(kernels::last_norm<A>(config.width)),
        append_cache(kernels::append_cache<A>(config.width, copy_rows(target))),
        attention(kernels::attention<P>(config.heads, config.head_width(), attention_tiles(target).queries,
                                        attention_tiles(target).keys)),
        decode_attend(kernels::decode_attend<P>(config.heads, config.head_width(), key_tiles(target))),
        decode_attention(kernels::decode_attention<P>(config.heads, config.head_width(), 64)),
        greedy_parts(kernels::greedy_parts(config.vocab, columns_of_part, tiles_of_part)),
        greedy_token(kernels::greedy_token(parts_of(config.vocab))),
        sample(kernels::sample(config.vocab)),
        mark_seen(kernels::mark_seen(64)),
        log_probability(kernels::log_probability(config.vocab)),
        fill(kernels::fill<u8>(elements_per_block)) {}
  decltype(kernels::embed<W>(0, 0)) embed;
  decltype(kernels::layer_norm<A>(0, 0)) one_norm;
  decltype(kernels::last_norm<A>(0)) last_norm;
  decltype(kernels::append_cache<A>(0, 0)) append_cache;
  decltype(kernels::attention<P>(0, 0, 0, 0)) attention;
  decltype(kernels::decode_attend<P>(0, 0, {})) decode_attend;       // on a GPU
  decltype(kernels::decode_attention<P>(0, 0, 0)) decode_attention;  // on a CPU
  decltype(kernels::greedy_parts(0, 0, 0)) greedy_parts;
  decltype(kernels::greedy_token(0)) greedy_token;
  decltype(kernels::sample(0)) sample;
  decltype(kernels::mark_seen(0)) mark_seen;
  decltype(kernels::log_probability(0)) log_probability;
  decltype(kernels::fill<u8>(0)) fill;
};

/// The kernels of a decode step of a few sequences that take the place of several of Kernels and Matmuls.
template <Element P, Element W>
struct BatchKernels {
  BatchKernels(const Gpt2Config& config, const DecodeTiles& tiles, const KeyTiles& keys)
      : most(tiles.rows),
        attend(kernels::decode_attend<P>(config.heads, config.head_width(), keys)),
        project(kernels::decode_residual<P, W>(config.width, tiles.rows, tiles.batch_project)) {
    const int width = config.width, columns = tiles.batch_columns;
    const bool is_exact = config.gelu == Gelu::exact;
    if (tiles.batch_down > 0) down = kernels::decode_residual<P, W>(config.inner, tiles.rows, tiles.batch_down);
    if (tiles.normalizes)
      normalizing = {kernels::decode_qkv<P, W>(width, tiles.rows, columns),
                     is_exact ? kernels::decode_exact_up<P, W>(width, tiles.rows, columns)
                              : kernels::decode_up<P, W>(width, tiles.rows, columns)};
    else
      linear = {kernels::decode_linear<P, W>("decode_linear", width, tiles.rows, columns, kernels::unchanged),
                is_exact
                    ? kernels::decode_linear<P, W>("decode_exact_gelu", width, tiles.rows, columns, kernels::exact_gelu)
                    : kernels::decode_linear<P, W>("decode_gelu", width, tiles.rows, columns, kernels::tanh_gelu)};
  }
  using Residual = decltype(kernels::decode_residual<P, W>(0, 0, 0));
  using Linear = decltype(kernels::decode_linear<P, W>("", 0, 0, 0, kernels::unchanged));
  struct Normalizing {
    decltype(kernels::decode_qkv<P, W>(0, 0, 0)) qkv;
    decltype(kernels::decode_up<P, W>(0, 0, 0)) up;
  };
  struct AfterNorm {
    Linear qkv, up;
  };
  int most;  // sequences
  decltype(kernels::decode_attend<P>(0, 0, {})) attend;
  Residual project;
  std::optional<Residual> down;
  std::optional<Normalizing> normalizing;  // or, if registers do not hold the rows,
  std::optional<AfterNorm> linear;         // kernels of rows that another one has normalized
};

/// Makes the kernels of the matmuls for a number of rows, on first use.
template <Element P, Element W>
class MatmulKernels {
 public:
  /// `along_k`: the weights [K,N] of layers are contiguous along K.
  MatmulKernels(const Device& device, const Gpt2Config& config, bool along_k)
      : device_(device),
        config_(config),
        along_k_(along_k),
        linear_gelu_(config.gelu == Gelu::exact ? kernels::linear_exact_gelu<P, W> : kernels::linear_gelu<P, W>) {}

  Matmuls<P, W> for_rows(std::int64_t rows) {
    const std::int64_t c = config_.width, inner = config_.inner;
    const auto tiles = [&](std::int64_t n, std::int64_t k, MatmulFamily family = MatmulFamily::plain) {
      return choose<P>(family, {rows, n, k, along_k_}, device_);
    };
    std::lock_guard lock(mutex_);
    return {linear_[tiles(3 * c, c)], linear_qkv_[tiles(3 * c, c)],
            linear_gelu_[tiles(inner, c, MatmulFamily::activated)],
            linear_residual_[tiles(c, c, MatmulFamily::residual)],
            linear_residual_[tiles(c, inner, MatmulFamily::residual)]};
  }

  /// The head for so many rows of logits of type L.
  template <Element L>
  auto head_for_rows(std::int64_t rows) {
    const MatmulTiles tiles = choose<P>(MatmulFamily::plain, {rows, config_.vocab, config_.width, true}, device_);
    std::lock_guard lock(mutex_);
    return std::get<Heads<L>>(heads_)[tiles];
  }

 private:
  Device device_;
  Gpt2Config config_;
  bool along_k_;
  std::mutex mutex_;
  ByTiles<decltype(Matmuls<P, W>::qkv)> linear_{kernels::linear<P, W>};
  ByTiles<decltype(Matmuls<P, W>::qkv_to_cache)> linear_qkv_{kernels::linear_qkv<P, W>};
  ByTiles<decltype(Matmuls<P, W>::up)> linear_gelu_;
  ByTiles<decltype(Matmuls<P, W>::down)> linear_residual_{kernels::linear_residual<P, W>};
  template <Element L>
  using Heads = ByTiles<decltype(kernels::lm_head<P, W, L>({}))>;
  std::tuple<Heads<f32>, Heads<bf16>> heads_{kernels::lm_head<P, W, f32>, kernels::lm_head<P, W, bf16>};
};

}  // namespace tessera::internal
