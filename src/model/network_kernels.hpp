// The kernels of a model: of prefill and batches, of a decode step of one sequence and of a few, and of sampling.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>

#include "jit/launch/matmul_tiles.hpp"
#include "model/candidate_kernels.hpp"
#include "model/decode_kernels.hpp"
#include "model/tiles.hpp"
#include "model/weights.hpp"
#include "tessera/model/config.hpp"

namespace tessera::internal {

/// The kernels of one family, each made on first use of its tiles.
template <class K, class Tiles = MatmulTiles>
class ByTiles {
 public:
  explicit ByTiles(std::function<K(Tiles)> make) : make_(std::move(make)) {}
  const K& operator[](const Tiles& tiles) {
    auto& made = kernels_[tiles];
    if (!made) made.emplace(make_(tiles));
    return *made;
  }

 private:
  std::function<K(Tiles)> make_;
  std::map<Tiles, std::optional<K>> kernels_;
};

/// A kernel of attention for layers whose queries see all keys, and for those with a window.
template <class K>
class ByWindow {
 public:
  ByWindow(const TransformerConfig& config, const std::function<K(kernels::ScoreRules)>& make)
      : all_(make({.cap = config.score_cap})),
        window_(config.window > 0 ? make({.window = config.window, .cap = config.score_cap}) : all_) {}
  const K& operator[](bool is_local) const { return is_local ? window_ : all_; }

 private:
  K all_, window_;
};

/// Do queries and keys have a norm before their rotation, or the residual stream an update, so that no kernel of a
/// decode step rotates the products of its own?
inline bool has_separate_rotation(const TransformerConfig& config) {
  return config.is_rotary() && (config.qk_norm != QkNorm::none || config.norm_after);
}

/// The kernels for a number of rows, by tiles that depend on it.
template <Element P, Element W>
struct RowKernels {
  using A = kernels::Activations<P>;
  decltype(kernels::layer_norm<A>(0, {})) norm, last_norm;  // of inputs, and of all layers' output
  decltype(kernels::linear<P, W>({})) qkv;
  // For tiles of rows of one sequence, unless they do not divide the columns of keys.
  std::optional<decltype(kernels::linear_qkv<P, W>({}))> qkv_to_cache;
  // For one position of each sequence, on a GPU.
  std::optional<decltype(kernels::linear_append<P, W>({}))> append;
  ByWindow<decltype(kernels::decode_attend<P>(0, 0, {}))> attend;
  std::optional<decltype(kernels::linear_activated<P, W>({}, {}))> up;
  std::optional<decltype(kernels::linear<P, W>({}))> gate_and_up;  // of an MLP with a gate
  decltype(kernels::linear_residual<P, W>({})) project, down;
  // Updates, and the kernel that adds them, for models that normalize outputs.
  std::optional<decltype(kernels::linear<P, W>({}))> project_update, down_update;
  std::optional<decltype(kernels::add_norm<A>(0, {}))> add_norm;
  std::optional<decltype(kernels::decode_residual<P, W>(0, 0, 0))> project_few, down_few;  // faster for so few rows
};

constexpr int columns_of_part = 1024, tiles_of_part = 8;  // one CTA finds the best of so many logits
constexpr int parts_of(int vocab) { return ceil_div(vocab, columns_of_part * tiles_of_part); }
/// Columns of logits in memory: rows of a multiple of 128 bytes are written fastest, whatever the vocabulary.
constexpr int columns_of_logits(int vocab) { return ceil_div(vocab, 64) * 64; }

inline kernels::QkvWidths qkv_widths(const TransformerConfig& config) {
  return {config.query_width(), config.key_width(), config.head_width()};
}
inline kernels::Mlp mlp_of(const TransformerConfig& config) { return {config.activation, config.gated, config.inner}; }
/// Heads of queries that share one of keys.
inline int group_of(const TransformerConfig& config) { return config.heads / config.key_heads(); }

/// Kernels of a decode step of models that normalize outputs: those of inputs behind an update of the residual stream,
/// and the one that adds the last update.
template <Element P, Element W>
struct BehindUpdates {
  BehindUpdates(const TransformerConfig& config, int rows, int columns_of_qkv, int columns_of_up, NormTiles norms)
      : product(kernels::decode_up_behind<P, W>(config.width, rows, columns_of_qkv, {.activation = Activation::none},
                                                config.norm_of_inputs())),
        up(kernels::decode_up_behind<P, W>(config.width, rows, columns_of_up, mlp_of(config), config.norm_of_inputs())),
        add_norm(kernels::add_norm<f32>(config.width, norms)) {}
  decltype(kernels::decode_up_behind<P, W>(0, 0, 0, {}, {})) product, up;
  decltype(kernels::add_norm<f32>(0, {})) add_norm;
};

/// The kernels of a decode step of one sequence.
template <Element P, Element W>
struct DecodeKernels {
  DecodeKernels(const TransformerConfig& config, const DecodeTiles& tiles, const KeyTiles& keys, NormTiles norms)
      : parts(tiles.parts),
        head_parts(ceil_div(columns_of_logits(config.vocab), tiles.head * tiles.rounds)),
        part(config, of_keys(config, tiles.parts, keys)),
        project(kernels::decode_project<P, W>(config.heads, config.head_width(), tiles.parts, tiles.project,
                                              config.norm_after)),
        up(kernels::decode_up<P, W>(config.width, 1, tiles.up, mlp_of(config), config.norm_of_inputs())),
        down(kernels::decode_residual<P, W>(config.inner, 1, tiles.down, config.norm_after)),
        head(kernels::decode_head<P, W>(config.width, config.vocab, tiles.head, tiles.rounds, config.norm,
                                        config.logit_cap)),
        greedy_token(kernels::greedy_token(head_parts)) {
    const Norm norm = config.norm_of_inputs();
    constexpr kernels::Mlp plain{.activation = Activation::none};
    if (has_separate_rotation(config))
      product = kernels::decode_up<P, W>(config.width, 1, tiles.qkv, plain, norm),
      rotate_append =
          kernels::rotate_append<A>(config.heads, config.key_heads(), config.head_width(), 1, config.qk_norm);
    else if (config.is_rotary())
      rotated_qkv = kernels::decode_rotated_qkv<P, W>(config.width, 1, tiles.qkv, qkv_widths(config), norm);
    else
      qkv = kernels::decode_qkv<P, W>(config.width, 1, tiles.qkv, qkv_widths(config), norm);
    if (config.norm_after) behind.emplace(config, 1, tiles.qkv, tiles.up, norms);
  }
  using A = kernels::Activations<P>;
  int parts, head_parts;  // of the cache, and of the logits
  // One of the two, or QKV as they are and then their rotation.
  std::optional<decltype(kernels::decode_qkv<P, W>(0, 0, 0, {}))> qkv;
  std::optional<decltype(kernels::decode_rotated_qkv<P, W>(0, 0, 0, {}, {}))> rotated_qkv;
  std::optional<decltype(kernels::decode_up<P, W>(0, 0, 0, {}))> product;
  std::optional<decltype(kernels::rotate_append<A>(0, 0, 0, 0))> rotate_append;
  static auto of_keys(const TransformerConfig& config, int parts, const KeyTiles& keys) {
    return [&config, parts, keys](const kernels::ScoreRules& rules) {
      return kernels::decode_part<P>(config.heads, config.head_width(), parts, keys, group_of(config), rules);
    };
  }
  ByWindow<decltype(kernels::decode_part<P>(0, 0, 0, {}))> part;
  decltype(kernels::decode_project<P, W>(0, 0, 0, 0)) project;
  decltype(kernels::decode_up<P, W>(0, 0, 0, {})) up;
  decltype(kernels::decode_residual<P, W>(0, 0, 0)) down;
  decltype(kernels::decode_head<P, W>(0, 0, 0, 0)) head;
  decltype(kernels::greedy_token(0)) greedy_token;
  std::optional<BehindUpdates<P, W>> behind;
};

/// The kernels that do not depend on a number of rows.
template <Element P, Element W>
struct Kernels {
  using A = kernels::Activations<P>;

  Kernels(const TransformerConfig& config, const TileTarget& target)
      : embed(kernels::embed<W>(config.width, copy_rows(target), config.position_encoding)),
        last_norm(kernels::last_norm<A>(config.width, norm_tiles(target, 1), config.norm)),
        append_cache(kernels::append_cache<A>(config.key_width(), copy_rows(target), group_of(config))),
        attention(config, of_tiles(config, attention_tiles(target))),
        attention_of_one(config, of_tiles(config, tiles_of_one(target))),
        decode_attention(config, on_cpu(config)),
        greedy_parts(kernels::greedy_parts(config.vocab, columns_of_part, tiles_of_part)),
        greedy_token(kernels::greedy_token(parts_of(config.vocab))),
        sample(kernels::sample(config.vocab)),
        candidates(kernels::candidates(config.vocab)),
        sample_candidates(kernels::sample_candidates(config.vocab)),
        mark_seen(kernels::mark_seen(64)),
        log_probability(kernels::log_probability(config.vocab)),
        fill(kernels::fill<u8>(elements_per_block)) {
    if (config.is_rotary())
      rotate_append = kernels::rotate_append<A>(config.heads, config.key_heads(), config.head_width(),
                                                copy_rows(target), config.qk_norm);
    if (config.gated)
      multiply_by_gate =
          kernels::multiply_by_gate<A>(config.activation, config.inner, 1, columns_of_gate(target, config.inner));
  }
  decltype(kernels::embed<W>(0, 0)) embed;
  decltype(kernels::last_norm<A>(0, {})) last_norm;
  decltype(kernels::append_cache<A>(0, 0)) append_cache;
  std::optional<decltype(kernels::rotate_append<A>(0, 0, 0, 0))> rotate_append;  // instead, for rotary positions
  std::optional<decltype(kernels::multiply_by_gate<A>({}, 0, 0, 0))> multiply_by_gate;
  static auto of_tiles(const TransformerConfig& config, const AttentionTiles& tiles) {
    return [&config, tiles](const kernels::ScoreRules& rules) {
      return kernels::attention<P>(config.heads, config.head_width(), tiles.queries, tiles.keys, group_of(config),
                                   tiles.blocks, rules);
    };
  }
  static auto on_cpu(const TransformerConfig& config) {
    return [&config](const kernels::ScoreRules& rules) {
      return kernels::decode_attention<P>(config.heads, config.head_width(), 64, group_of(config), rules);
    };
  }
  ByWindow<decltype(kernels::attention<P>(0, 0, 0, 0))> attention, attention_of_one;  // of one, in the same order
  ByWindow<decltype(kernels::decode_attention<P>(0, 0, 0))> decode_attention;         // on a CPU
  decltype(kernels::greedy_parts(0, 0, 0)) greedy_parts;
  decltype(kernels::greedy_token(0)) greedy_token;
  decltype(kernels::sample(0)) sample;
  decltype(kernels::candidates(0)) candidates;
  decltype(kernels::sample_candidates(0)) sample_candidates;
  decltype(kernels::mark_seen(0)) mark_seen;
  decltype(kernels::log_probability(0)) log_probability;
  decltype(kernels::fill<u8>(0)) fill;
};

/// The kernels of a decode step of a few sequences that take the place of several of Kernels and RowKernels.
template <Element P, Element W>
struct BatchKernels {
  BatchKernels(const TransformerConfig& config, const DecodeTiles& tiles, NormTiles norms) {
    const int width = config.width, rows = rows_of_block;
    const kernels::QkvWidths of_qkv = qkv_widths(config);
    const kernels::Mlp mlp = mlp_of(config);
    const Norm norm = config.norm_of_inputs();
    if (tiles.normalizes) {
      normalizing = {.up = kernels::decode_up<P, W>(width, rows, tiles.batch_up, mlp, norm)};
      if (has_separate_rotation(config))
        normalizing->product =
            kernels::decode_up<P, W>(width, rows, tiles.batch_qkv, {.activation = Activation::none}, norm);
      else if (config.is_rotary())
        normalizing->rotated_qkv = kernels::decode_rotated_qkv<P, W>(width, rows, tiles.batch_qkv, of_qkv, norm);
      else
        normalizing->qkv = kernels::decode_qkv<P, W>(width, rows, tiles.batch_qkv, of_qkv, norm);
      if (config.norm_after) normalizing->behind.emplace(config, rows, tiles.batch_qkv, tiles.batch_up, norms);
      return;
    }
    if (tiles.batch_qkv > 0) qkv = kernels::decode_append<P, W>(width, rows, tiles.batch_qkv, of_qkv);
    if (tiles.batch_up > 0) up = kernels::decode_linear<P, W>(width, rows, tiles.batch_up, mlp);
  }
  /// Do their kernels write the cache?
  bool appends() const { return normalizing ? !normalizing->product : qkv.has_value(); }

  struct Normalizing {
    // One of them; of the last, the rotation follows.
    std::optional<decltype(kernels::decode_qkv<P, W>(0, 0, 0, {}))> qkv = {};
    std::optional<decltype(kernels::decode_rotated_qkv<P, W>(0, 0, 0, {}, {}))> rotated_qkv = {};
    std::optional<decltype(kernels::decode_up<P, W>(0, 0, 0, {}))> product = {};
    std::optional<BehindUpdates<P, W>> behind = {};
    decltype(kernels::decode_up<P, W>(0, 0, 0, {})) up;
  };
  std::optional<Normalizing> normalizing;
  // Or, if registers do not hold the rows, kernels of rows that another one has normalized; each if it is faster.
  std::optional<decltype(kernels::decode_append<P, W>(0, 0, 0, {}))> qkv;
  std::optional<decltype(kernels::decode_linear<P, W>(0, 0, 0, {}))> up;
};

/// Makes the kernels for a number of rows, on first use.
template <Element P, Element W>
class KernelsByRows {
 public:
  /// `along_k`: the weights [K,N] of layers are contiguous along K.
  KernelsByRows(const Device& device, const TransformerConfig& config, const TileTarget& target, bool along_k)
      : device_(device), config_(config), target_(target), along_k_(along_k) {}

  RowKernels<P, W> for_rows(std::int64_t rows) {
    const std::int64_t c = config_.width, inner = config_.inner, queries = config_.query_width();
    const auto tiles = [&](std::int64_t n, std::int64_t k, MatmulFamily family = MatmulFamily::plain) {
      return tiles_of(family, rows, n, k, along_k_);
    };
    // A tile has columns of queries, of keys, or of values.
    MatmulTiles of_qkv = tiles(config_.qkv_width(), c);
    const int columns = static_cast<int>(std::gcd(config_.key_width(), of_qkv.n));
    // Tiles of half the columns may need other instructions than those of a prompt.
    const bool divides = (target_.batch_invariant ? columns : 2 * columns) >= of_qkv.n;
    const bool appends = device_.info().arch && !target_.rotary && divides;
    std::lock_guard lock(mutex_);
    std::optional<decltype(kernels::linear_qkv<P, W>({}))> qkv_to_cache;
    if (!target_.rotary && group_of(config_) == 1)
      qkv_to_cache = linear_qkv_[of_qkv];
    else if (!target_.rotary && divides)
      qkv_to_cache = linear_qkv_[{of_qkv.m, columns, of_qkv.k}];
    std::optional<decltype(kernels::linear_append<P, W>({}))> append;
    if (appends) append = linear_append_[{of_qkv.m, columns, of_qkv.k}];
    std::optional<decltype(kernels::linear<P, W>({}))> gate_and_up;
    std::optional<decltype(kernels::linear_activated<P, W>({}, {}))> up;
    if (config_.gated)
      gate_and_up = linear_[tiles(config_.up_width(), c)];
    else
      up = linear_activated_[tiles(inner, c, MatmulFamily::activated)];
    const auto few = [&](std::int64_t k) {
      const MatmulTiles block{rows_of_block, columns_of_block(target_, rows, static_cast<int>(c), static_cast<int>(k)),
                              static_cast<int>(k)};
      return block.n > 0 ? std::optional(residual_blocks_[block]) : std::nullopt;
    };
    const NormTiles of_norm = norm_tiles(target_, rows);
    std::optional<decltype(kernels::linear<P, W>({}))> project_update, down_update;
    std::optional<decltype(kernels::add_norm<A>(0, {}))> add_norm;
    if (config_.norm_after) {
      project_update = linear_[tiles(c, queries)], down_update = linear_[tiles(c, inner)];
      add_norm = add_norm_[of_norm];
    }
    return {norm_[of_norm],
            last_norm_[of_norm],
            linear_[of_qkv],
            std::move(qkv_to_cache),
            std::move(append),
            decode_attend_[key_tiles(target_, rows * config_.heads)],
            std::move(up),
            std::move(gate_and_up),
            linear_residual_[tiles(c, queries, MatmulFamily::residual)],
            linear_residual_[tiles(c, inner, MatmulFamily::residual)],
            std::move(project_update),
            std::move(down_update),
            std::move(add_norm),
            few(queries),
            few(inner)};
  }

  /// The head that finds the best tokens of so many rows of logits, in parts, and the kernel for these parts.
  struct Greedy {
    int parts;
    decltype(kernels::greedy_head<P, W>({}, 0)) head;
    decltype(kernels::greedy_token(0)) token;
  };
  Greedy greedy_for_rows(std::int64_t rows) {
    const MatmulTiles tiles = greedy_head_tiles(target_, rows, head_tiles(rows));
    const int parts = ceil_div(columns_of_logits(config_.vocab), tiles.n);
    std::lock_guard lock(mutex_);
    return {parts, greedy_heads_[tiles], greedy_tokens_[parts]};
  }

  /// The head for so many rows of logits of type L.
  template <Element L>
  auto head_for_rows(std::int64_t rows) {
    const MatmulTiles tiles = head_tiles(rows);
    std::lock_guard lock(mutex_);
    return std::get<Heads<L>>(heads_)[tiles];
  }

 private:
  template <class K>
  std::function<K(MatmulTiles)> made_by(K (*make)(MatmulTiles, bool)) const {
    return [=, this](MatmulTiles tiles) { return make(tiles, target_.batch_invariant); };
  }
  template <class K>
  std::function<K(MatmulTiles)> by_group(K (*make)(MatmulTiles, int, bool)) const {
    return [=, this](MatmulTiles tiles) { return make(tiles, group_of(config_), target_.batch_invariant); };
  }
  MatmulTiles head_tiles(std::int64_t rows) const {
    return tiles_of(MatmulFamily::plain, rows, config_.vocab, config_.width, true);
  }
  /// The tiles of a matmul. Batch-invariant ones add up in one order: on a GPU, those of wgmma, or else those of one
  /// number of rows. On a CPU, a row's sums have one order in all tiles but those of one row with [n,k], which are dot
  /// products.
  MatmulTiles tiles_of(MatmulFamily family, std::int64_t rows, std::int64_t n, std::int64_t k, bool nk) const {
    MatmulTarget target = matmul_target(device_);
    const bool invariant = target_.batch_invariant;
    if (invariant) target.split_k = SplitKPolicy::none;
    if (invariant && target_.gpu)
      rows = adds_in_order_of_k({2, n, k, nk}, element_type<P>, target) ? std::max<std::int64_t>(rows, 2) : 64;
    MatmulTiles tiles = choose(family, {rows, n, k, nk}, element_type<P>, target);
    if (invariant && nk) tiles.m = std::max(tiles.m, 2);
    return tiles;
  }

  Device device_;
  TransformerConfig config_;
  TileTarget target_;
  bool along_k_;
  std::mutex mutex_;
  using A = kernels::Activations<P>;
  ByTiles<decltype(kernels::layer_norm<A>(0, {})), NormTiles> norm_{
      [this](NormTiles tiles) { return kernels::layer_norm<A>(config_.width, tiles, config_.norm_of_inputs()); }};
  ByTiles<decltype(kernels::layer_norm<A>(0, {})), NormTiles> last_norm_{
      [this](NormTiles tiles) { return kernels::layer_norm<A>(config_.width, tiles, config_.norm); }};
  ByTiles<decltype(kernels::add_norm<A>(0, {})), NormTiles> add_norm_{
      [this](NormTiles tiles) { return kernels::add_norm<A>(config_.width, tiles); }};
  ByTiles<decltype(RowKernels<P, W>::qkv)> linear_{made_by(kernels::linear<P, W>)};
  ByTiles<decltype(kernels::linear_qkv<P, W>({}))> linear_qkv_{by_group(kernels::linear_qkv<P, W>)};
  ByTiles<decltype(kernels::linear_append<P, W>({}))> linear_append_{by_group(kernels::linear_append<P, W>)};
  ByTiles<decltype(kernels::linear_activated<P, W>({}, {}))> linear_activated_{[this](MatmulTiles tiles) {
    return kernels::linear_activated<P, W>(config_.activation, tiles, target_.batch_invariant);
  }};
  ByTiles<decltype(RowKernels<P, W>::down)> linear_residual_{made_by(kernels::linear_residual<P, W>)};
  ByTiles<decltype(kernels::decode_residual<P, W>(0, 0, 0))> residual_blocks_{[this](MatmulTiles tiles) {
    return kernels::decode_residual<P, W>(tiles.k, tiles.m, tiles.n, config_.norm_after);
  }};
  using Attend = ByWindow<decltype(kernels::decode_attend<P>(0, 0, {}))>;
  ByTiles<Attend, KeyTiles> decode_attend_{[this](KeyTiles tiles) {
    return Attend(config_, [&](const kernels::ScoreRules& rules) {
      return kernels::decode_attend<P>(config_.heads, config_.head_width(), tiles, group_of(config_), rules);
    });
  }};
  ByTiles<decltype(kernels::greedy_head<P, W>({}, 0))> greedy_heads_{[this](MatmulTiles tiles) {
    return kernels::greedy_head<P, W>(tiles, config_.vocab, target_.batch_invariant, config_.logit_cap);
  }};
  ByTiles<decltype(kernels::greedy_token(0)), int> greedy_tokens_{
      [](int parts) { return kernels::greedy_token(parts); }};
  template <Element L>
  using Heads = ByTiles<decltype(kernels::lm_head<P, W, L>({}))>;
  template <Element L>
  auto head_maker() const {
    return [this](MatmulTiles tiles) {
      return kernels::lm_head<P, W, L>(tiles, target_.batch_invariant, config_.logit_cap);
    };
  }
  std::tuple<Heads<f32>, Heads<bf16>> heads_{head_maker<f32>(), head_maker<bf16>()};
};

}  // namespace tessera::internal
