// A forward pass over new positions of the sequences of a session: its activations and its launches.
#pragma once
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "model/network.hpp"
#include "model/repeated.hpp"

namespace tessera::internal {

/// A new tensor [rows,V] of logits, over rows of `columns_of_logits(V)` columns in memory.
template <Element L>
struct PaddedLogits {
  PaddedLogits(const Device& device, std::int64_t rows, int vocab)
      : all(device, {rows, columns_of_logits(vocab)}), tokens(all.slice(1, 0, vocab)) {}
  Tensor<L, 2> all, tokens;
};

/// Memory for the candidates of a draw (kernels::candidates), for so many rows of logits.
struct Candidates {
  Candidates(const Device& device, std::int64_t rows, int vocab)
      : tokens(device, {rows * kernels::candidate_parts(vocab), kernels::most_candidates}),
        scores(device, {rows * kernels::candidate_parts(vocab), kernels::most_candidates}) {}
  /// The first `rows` rows of both.
  Candidates first(std::int64_t rows) const {
    Candidates part = *this;
    part.tokens = tokens.slice(0, 0, rows), part.scores = scores.slice(0, 0, rows);
    return part;
  }
  Tensor<i32, 2> tokens;
  Tensor<f32, 2> scores;
};

/// The memory that the steps of a session share on the device, for B sequences of up to P positions.
template <Element P>
struct SessionMemory {
  using A = kernels::Activations<P>;
  /// That of the first `batch` sequences.
  SessionMemory first(std::int64_t batch) const {
    const auto of = [&](const auto& tensor) { return tensor.slice(0, 0, batch); };
    const auto of_layers = [&](const auto& tensors) {
      std::vector<Tensor<A, 3>> parts;
      for (const auto& tensor : tensors) parts.push_back(of(tensor));
      return parts;
    };
    SessionMemory part = *this;
    part.past = of(past), part.count = of(count), part.token = of(token), part.last = of(last);
    part.best_tokens = of(best_tokens), part.best_scores = of(best_scores);
    part.candidates = candidates.first(batch * candidates.tokens.extent(0) / past.size());
    part.keys = of_layers(keys), part.values = of_layers(values);
    return part;
  }

  SessionMemory(const Device& device, const TransformerConfig& config, std::int64_t batch, std::int64_t capacity)
      : past(device, {batch}),
        count(device, {batch}),
        token(device, {batch}),
        last(device, {batch, config.width}),
        best_tokens(device, {batch, parts_of(config.vocab)}),
        best_scores(device, {batch, parts_of(config.vocab)}),
        candidates(device, batch, config.vocab) {
    for (int i = 0; i < config.layers; ++i) {
      keys.emplace_back(device, std::array<std::int64_t, 3>{batch, capacity, config.key_width()});
      values.emplace_back(device, std::array<std::int64_t, 3>{batch, capacity, config.key_width()});
    }
  }
  Tensor<i32, 1> past, count;  ///< [B]: positions in the cache, and new ones
  Tensor<i32, 1> token;        ///< [B]: the tokens that were chosen last
  Tensor<A, 2> last;           ///< [B,C]: for one step at a time
  Tensor<i32, 2> best_tokens;  ///< of each part of the logits, for one step at a time
  Tensor<f32, 2> best_scores;
  Candidates candidates;                   ///< of a draw, for one step at a time
  std::vector<Tensor<A, 3>> keys, values;  ///< [B,P,K] of each layer
};

/// The activations and launches of one forward pass; kept for the next pass of the same length. It has two parts:
/// layers, and an ending for the last position of each sequence: logits, and the most probable token, which becomes
/// SessionMemory::token; then the new positions are past. A step of one position does both at once.
template <Element P, Element W>
class Step {
  using A = kernels::Activations<P>;

 public:
  /// For `positions` new positions of each of the first `batch` sequences.
  Step(const TypedNetwork<P, W>& network, const SessionMemory<P>& memory, std::int64_t batch, std::int64_t positions)
      : network_(network),
        memory_(memory.first(batch)),
        batch_(batch),
        length_(positions),
        of_rows_(network.row_kernels(batch_ * positions)),
        ids_(positions == 1 ? memory_.token.reshaped(std::array{batch_, positions})
                            : Tensor<i32, 2>(device(), {batch_, positions})),
        x_(device(), {batch_ * positions, config().width}),
        normed_(device(), {batch_ * positions, config().width}),
        inner_(device(), {batch_ * positions, config().inner}),
        logits_(device(), batch_, config().vocab),
        chosen_memory_(device().pinned(static_cast<std::size_t>(batch_) * sizeof(i32))),
        chosen_(device(), static_cast<i32*>(chosen_memory_.get()), {batch_}, {1}, chosen_memory_),
        layers_(made()),
        ending_(length_ == 1 ? Sequence(device()) : ended()) {}

  std::int64_t batch() const { return batch_; }
  std::int64_t length() const { return length_; }
  const SessionMemory<P>& memory() const { return memory_; }
  /// The tokens [B,length]; those of a step of one position are SessionMemory::token.
  const Tensor<i32, 2>& ids() const { return ids_; }
  /// Logits [B,V] of the last new position of each sequence, and all columns in memory.
  const PaddedLogits<f32>& logits() const { return logits_; }
  /// The chosen tokens [B] in memory of the host, where kernels write them.
  const Tensor<i32, 1>& chosen() const { return chosen_; }
  std::span<const std::int32_t> chosen_on_host() const {
    return {static_cast<const std::int32_t*>(chosen_memory_.get()), static_cast<std::size_t>(batch_)};
  }

  Sequence launches() const {
    Sequence all = layers_.launches();
    all.append(ending_.launches());
    return all;
  }
  /// The form in which the step runs from now on; graph, unless another one is chosen.
  void choose(DecodeForm form) { layers_.choose(form); }
  DecodeForm form() const { return layers_.form(); }
  DecodeReport report() const {
    DecodeReport report = layers_.report();
    report.why_general = network_.why_general();
    for (const Sequence::Launch& launch : layers_.launches().launches())
      report.launches.emplace_back(launch.executable->name());
    return report;
  }
  bool is_ready() const { return layers_.is_ready(); }
  void make() { layers_.make(); }

  /// Changes activations, logits, and positions of the cache behind the text. With one position, the ending follows.
  void compute(const Stream& stream) { layers_.run(stream); }
  void end(const Stream& stream) { ending_.run(stream); }

  /// Logits [B length,N] of all positions, and the token that follows each, chosen in memory of the host.
  struct Everywhere {
    Everywhere(const Step& step, std::int64_t rows, int parts)
        : logits(step.device(), rows, step.config().vocab),
          best_tokens(step.device(), {rows, parts}),
          best_scores(step.device(), {rows, parts}),
          past(step.device(), {rows}),
          keys(step.device(), {rows}),
          token(step.device(), {rows}),
          candidates(step.device(), rows, step.config().vocab),
          memory(step.device().pinned(static_cast<std::size_t>(rows) * sizeof(i32))),
          chosen(step.device(), static_cast<i32*>(memory.get()), {rows}, {1}, memory),
          greedy(step.greedy_everywhere(*this)) {}
    std::span<const std::int32_t> on_host() const {
      return {static_cast<const std::int32_t*>(memory.get()), static_cast<std::size_t>(chosen.size())};
    }
    PaddedLogits<f32> logits;
    Tensor<i32, 2> best_tokens;
    Tensor<f32, 2> best_scores;
    Tensor<i32, 1> past;  ///< positions up to that of the row
    Tensor<i64, 1> keys;  ///< of the random number generator
    Tensor<i32, 1> token;
    Candidates candidates;
    std::shared_ptr<void> memory;
    Tensor<i32, 1> chosen;
    Repeated greedy;  ///< computes the logits, and chooses the most probable tokens
  };
  Everywhere& everywhere() {
    if (!everywhere_) {
      const std::int64_t rows = batch_ * length_;
      everywhere_ = std::make_unique<Everywhere>(*this, rows, network_.greedy_kernels(rows).parts);
    }
    return *everywhere_;
  }

  /// Writes the logits [B length,N] of all positions; N may be larger than V.
  template <Element L>
  void all_logits(const Stream& stream, const Tensor<L, 2>& logits) const {
    launch_last_norm(stream, normed_);
    launch(stream, network_.template head_kernel<L>(normed_.extent(0)), normed_, network_.head, logits);
  }
  /// Writes the hidden states [B length,C] of all positions, behind the last norm.
  template <Element L>
  void hidden_states(const Stream& stream, const Tensor<L, 2>& states) const {
    if constexpr (std::same_as<L, A>) {
      launch_last_norm(stream, states);
    } else {
      static const auto& convert = *new auto(kernels::convert<L, A>(elements_per_block));
      launch_last_norm(stream, normed_);
      const std::array all{states.size()};
      launch(stream, convert, normed_.reshaped(all), states.reshaped(all));
    }
  }

 private:
  void launch_last_norm(const Stream& stream, const Tensor<A, 2>& to) const {
    launch(stream, of_rows_.last_norm, x_, network_.last_norm, network_.last_norm_bias, to, config().epsilon);
  }
  const Device& device() const { return network_.device(); }
  const TransformerConfig& config() const { return network_.config(); }
  /// Factor of the scores of a layer.
  float scale(std::size_t layer) const {
    const float scale = config().attention_scale != 0 ? config().attention_scale
                                                      : 1.0f / std::sqrt(static_cast<float>(config().head_width()));
    return config().scales_by_layer ? scale / static_cast<float>(layer + 1) : scale;
  }
  bool is_rotary() const { return config().is_rotary(); }
  bool is_local(std::size_t layer) const { return config().is_local(static_cast<std::int32_t>(layer)); }
  const Tensor<f32, 2>& rotation(std::size_t layer) const {
    return is_local(layer) ? *network_.local_rotation : *network_.rotation;
  }
  /// Weights of the norm of queries or keys, for a kernel that may have none.
  static std::optional<Tensor<f32, 1>> weights_of(const Tensor<f32, 1>& norm) {
    return norm.size() > 0 ? std::optional(norm) : std::nullopt;
  }
  /// Memory [rows,Q] that nothing else needs meanwhile, if it is as wide; else new memory.
  Tensor<A, 2> for_queries(const Tensor<A, 2>& memory) const {
    const std::int64_t width = config().query_width();
    return memory.extent(1) == width ? memory : Tensor<A, 2>(device(), {memory.extent(0), width});
  }

  Sequence greedy_everywhere(const Everywhere& to) const {
    const auto greedy = network_.greedy_kernels(batch_ * length_);
    Sequence made(device());
    made.add(of_rows_.last_norm, x_, network_.last_norm, network_.last_norm_bias, normed_, config().epsilon);
    made.add(greedy.head, normed_, network_.head, to.logits.all, to.best_tokens, to.best_scores);
    made.add(greedy.token, to.best_tokens, to.best_scores, to.token, to.chosen, std::nullopt, std::nullopt);
    return made;
  }

  Sequence made() const {
    if (length_ == 1 && batch_ == 1 && network_.decode_kernels()) return of_one_position();
    Sequence made = of_any();
    if (length_ == 1) made.append(ended());
    return made;
  }

  /// The layers for any number of positions.
  Sequence of_any() const {
    const auto& kernels = network_.kernels();
    const std::int64_t rows = batch_ * length_;
    const Few few =
        length_ == 1 && batch_ <= rows_of_block && network_.batch_kernels() ? &*network_.batch_kernels() : nullptr;
    // Queries alone, if keys and values go to the cache at once. Those of one position are where the last norm writes
    // behind all layers.
    const bool appends = tiles_are_of_sequences() || (length_ == 1 && ((few && few->appends()) || of_rows_.append));
    const bool separate = appends || is_rotary();
    const Tensor<A, 2> queries =
        separate && length_ == 1
            ? for_queries(memory_.last)
            : Tensor<A, 2>(device(), {rows, separate ? config().query_width() : config().qkv_width()});
    const bool fused = few && few->normalizing;  // up with its gate, and QKV with its rotation, unless that is separate
    const Tensor<A, 2> qkv =
        is_rotary() && !(fused && few->appends()) ? Tensor<A, 2>(device(), {rows, config().qkv_width()}) : queries;
    const Tensor<A, 2> gate_and_up =
        config().gated && !fused ? Tensor<A, 2>(device(), {rows, config().up_width()}) : inner_;
    const Tensor<A, 2> attended = for_queries(normed_);  // which nothing reads behind QKV
    const Tensor<A, 2> update = config().norm_after ? Tensor<A, 2>(device(), {rows, config().width}) : normed_;
    const Updates updates = fused && of_rows_.project_few && of_rows_.down_few ? Updates(*this) : Updates();

    Sequence made(device());
    const Tensor<f32, 2> first = updates ? updates.other_x : x_;
    made.add(kernels.embed, ids_, memory_.past, network_.embedding, network_.positions, by_sequence(first),
             config().embedding_scale);
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      if (updates)
        add_qkv_behind(made, *few->normalizing, i, updates, qkv, queries);
      else
        add_qkv(made, few, i, appends, qkv, queries);
      if (config().parallel) add_up(made, few, block, gate_and_up);  // while its input is still that of QKV
      const auto attend = [&](const auto& kernel) {
        made.add(kernel, by_sequence(queries), memory_.keys[i], memory_.values[i], memory_.past, memory_.count,
                 by_sequence(attended), scale(i));
      };
      if (length_ > 1)
        attend(kernels.attention[is_local(i)]);
      else if (network_.is_batch_invariant())
        attend(kernels.attention_of_one[is_local(i)]);
      else if (network_.is_on_gpu())
        made.add(of_rows_.attend[is_local(i)], queries, memory_.keys[i], memory_.values[i], memory_.past, memory_.count,
                 attended, scale(i));
      else
        attend(kernels.decode_attention[is_local(i)]);
      if (updates) {
        made.add(*of_rows_.project_few, attended, block.projection, block.projection_bias, updates.update);
        add_up_behind(made, few->normalizing->behind->up, block, updates);
        made.add(*of_rows_.down_few, inner_, block.down, block.down_bias, updates.update);
        continue;
      }
      if (config().norm_after)
        add_normed(made, *of_rows_.project_update, attended, block.projection, block.projection_bias,
                   block.attention_post_norm, update);
      else
        add_residual(made, of_rows_.project_few, of_rows_.project, attended, block.projection, block.projection_bias);
      if (!config().parallel) add_up(made, few, block, gate_and_up);
      if (config().norm_after)
        add_normed(made, *of_rows_.down_update, inner_, block.down, block.down_bias, block.mlp_post_norm, update);
      else
        add_residual(made, of_rows_.down_few, of_rows_.down, inner_, block.down, block.down_bias);
    }
    if (updates)
      made.add(few->normalizing->behind->add_norm, updates.update, network_.blocks.back().mlp_post_norm, x_,
               config().epsilon);
    return made;
  }

  using Few = const BatchKernels<P, W>*;  // null: the step has other kernels

  /// In decode steps, outputs that have a norm are an update of the residual stream, which the next kernel adds as it
  /// reads both. The stream is in `other_x` before attention, and in x_ behind it.
  struct Updates {
    Updates() = default;
    explicit Updates(const Step& step) {
      if (!step.config().norm_after) return;
      const std::array extents{step.batch_, std::int64_t{step.config().width}};
      update = Tensor<f32, 2>(step.device(), extents), other_x = Tensor<f32, 2>(step.device(), extents);
      exist = true;
    }
    explicit operator bool() const { return exist; }
    bool exist = false;
    Tensor<f32, 2> update, other_x;
  };

  /// Queries, and keys and values in the cache, of the norm of the residual stream, behind the update of the layer
  /// before.
  void add_qkv_behind(Sequence& to, const auto& kernels, std::size_t layer, const Updates& updates,
                      const Tensor<A, 2>& qkv, const Tensor<A, 2>& queries) const {
    const Block<W>& block = network_.blocks[layer];
    if (layer == 0)
      to.add(*kernels.product, updates.other_x, block.attention_norm, block.attention_norm_bias, block.qkv,
             block.qkv_bias, qkv, config().epsilon);
    else
      to.add(kernels.behind->product, x_, updates.update, network_.blocks[layer - 1].mlp_post_norm,
             block.attention_norm, block.attention_norm_bias, block.qkv, block.qkv_bias, qkv, updates.other_x,
             config().epsilon);
    add_rotation(to, layer, qkv, queries);
  }
  /// inner_ of the norm of the residual stream, behind the update of attention.
  void add_up_behind(Sequence& to, const auto& up, const Block<W>& block, const Updates& updates) const {
    to.add(up, updates.other_x, updates.update, block.attention_post_norm, block.mlp_norm, block.mlp_norm_bias,
           block.up, block.up_bias, inner_, x_, config().epsilon);
  }
  /// Rotates queries and keys, and appends keys and values to the cache.
  void add_rotation(Sequence& to, std::size_t layer, const Tensor<A, 2>& qkv, const Tensor<A, 2>& queries) const {
    const Block<W>& block = network_.blocks[layer];
    const std::vector<Tensor<A, 3>> outputs{by_sequence(queries), memory_.keys[layer], memory_.values[layer]};
    const auto add = [&](const auto& kernel) {
      to.add(kernel, by_sequence(qkv), rotation(layer), weights_of(block.query_norm), weights_of(block.key_norm),
             memory_.past, memory_.count, outputs, config().epsilon);
    };
    if (length_ == 1 && batch_ == 1 && network_.decode_kernels())
      add(*network_.decode_kernels()->rotate_append);
    else
      add(*network_.kernels().rotate_append);
  }

  /// Queries, and keys and values in the cache, of the norm of x_.
  void add_qkv(Sequence& to, Few few, std::size_t layer, bool appends, const Tensor<A, 2>& qkv,
               const Tensor<A, 2>& queries) const {
    const auto& kernels = network_.kernels();
    const Block<W>& block = network_.blocks[layer];
    const std::vector<Tensor<A, 3>> outputs{by_sequence(queries), memory_.keys[layer], memory_.values[layer]};
    if (few && few->normalizing) {
      if (few->normalizing->rotated_qkv)
        return to.add(*few->normalizing->rotated_qkv, x_, block.attention_norm, block.attention_norm_bias, block.qkv,
                      block.qkv_bias, rotation(layer), memory_.past, memory_.count, outputs, config().epsilon);
      if (few->normalizing->product) {
        to.add(*few->normalizing->product, x_, block.attention_norm, block.attention_norm_bias, block.qkv,
               block.qkv_bias, qkv, config().epsilon);
        return add_rotation(to, layer, qkv, queries);
      }
      return to.add(*few->normalizing->qkv, x_, block.attention_norm, block.attention_norm_bias, block.qkv,
                    block.qkv_bias, memory_.past, memory_.count, outputs, config().epsilon);
    }
    to.add(of_rows_.norm, x_, block.attention_norm, block.attention_norm_bias, normed_, config().epsilon);
    const auto append = [&](const auto& kernel) {
      to.add(kernel, normed_, block.qkv, block.qkv_bias, memory_.past, memory_.count, outputs);
    };
    if (few && few->qkv) return append(*few->qkv);
    if (tiles_are_of_sequences())
      return to.add(*of_rows_.qkv_to_cache, by_sequence(normed_), by_groups(block.qkv),
                    block.qkv_bias.reshaped(
                        std::array{block.qkv_bias.size() / config().key_width(), std::int64_t{config().key_width()}}),
                    memory_.past, memory_.count, outputs);
    if (appends) return append(*of_rows_.append);
    to.add(of_rows_.qkv, normed_, block.qkv, block.qkv_bias, qkv);
    if (is_rotary())
      add_rotation(to, layer, qkv, queries);
    else
      to.add(kernels.append_cache, by_sequence(qkv), memory_.past, memory_.count, memory_.keys[layer],
             memory_.values[layer]);
  }

  /// x_ += norm of in w + bias, by way of `update`.
  void add_normed(Sequence& to, const auto& linear, const Tensor<A, 2>& in, const Tensor<W, 2>& w,
                  const Tensor<f32, 1>& bias, const Tensor<f32, 1>& norm, const Tensor<A, 2>& update) const {
    to.add(linear, in, w, bias, update);
    to.add(*of_rows_.add_norm, update, norm, x_, config().epsilon);
  }

  /// inner_ of the norm of x_: the activated product, or that with the gate.
  void add_up(Sequence& to, Few few, const Block<W>& block, const Tensor<A, 2>& gate_and_up) const {
    if (few && few->normalizing)
      return to.add(few->normalizing->up, x_, block.mlp_norm, block.mlp_norm_bias, block.up, block.up_bias, inner_,
                    config().epsilon);
    to.add(of_rows_.norm, x_, block.mlp_norm, block.mlp_norm_bias, normed_, config().epsilon);
    if (few && few->up) return to.add(*few->up, normed_, block.up, block.up_bias, inner_);
    if (!config().gated) return to.add(*of_rows_.up, normed_, block.up, block.up_bias, inner_);
    to.add(*of_rows_.gate_and_up, normed_, block.up, block.up_bias, gate_and_up);
    to.add(*network_.kernels().multiply_by_gate, gate_and_up, inner_);
  }

  /// x_ += in w + bias, by the first kernel if there is one.
  void add_residual(Sequence& to, const auto& few, const auto& any, const Tensor<A, 2>& in, const Tensor<W, 2>& w,
                    const Tensor<f32, 1>& bias) const {
    if (few)
      to.add(*few, in, w, bias, x_);
    else
      to.add(any, in, w, bias, x_);
  }

  Sequence ended() const {
    const auto& kernels = network_.kernels();
    Sequence made(device());
    made.add(kernels.last_norm, by_sequence(x_), memory_.count, network_.last_norm, network_.last_norm_bias,
             memory_.last, config().epsilon);
    const auto greedy = network_.greedy_kernels(batch_);
    const Tensor<i32, 2> tokens(device(), {batch_, greedy.parts});
    const Tensor<f32, 2> scores(device(), {batch_, greedy.parts});
    made.add(greedy.head, memory_.last, network_.head, logits_.all, tokens, scores);
    made.add(greedy.token, tokens, scores, memory_.token, chosen_, memory_.count, memory_.past);
    return made;
  }
  /// Do tiles of the rows of one sequence lose little to those of all rows?
  bool tiles_are_of_sequences() const {
    constexpr std::int64_t rows = 128;
    const std::int64_t padded = (length_ + rows - 1) / rows * rows;
    return network_.is_on_gpu() && of_rows_.qkv_to_cache && (batch_ == 1 || padded * 8 <= length_ * 9) && length_ > 1;
  }
  /// A weight [C,Q+2K] as [C,G+2,K].
  Tensor<W, 3> by_groups(const Tensor<W, 2>& weight) const {
    const std::int64_t width = config().width, columns = config().key_width(), groups = weight.extent(1) / columns;
    if (!network_.is_along_k()) return weight.reshaped(std::array{width, groups, columns});
    return weight.permuted({1, 0}).reshaped(std::array{groups, columns, width}).permuted({2, 0, 1});
  }
  auto by_sequence(const auto& tensor) const { return tensor.reshaped(std::array{batch_, length_, tensor.extent(1)}); }

  /// The same for one position of one sequence, with the ending.
  Sequence of_one_position() const {
    const auto& kernels = network_.kernels();
    const DecodeKernels<P, W>& decode = *network_.decode_kernels();
    const std::int64_t parts = decode.parts, heads = config().heads;
    const float epsilon = config().epsilon;
    const Tensor<A, 2> q = for_queries(memory_.last);
    const Tensor<f32, 4> attended(device(), {1, parts, heads, config().head_width()});
    const Tensor<f32, 3> top(device(), {1, parts, heads}), norm(device(), {1, parts, heads});

    const Updates updates(*this);
    const Tensor<f32, 2> first = updates ? updates.other_x : x_, update = updates ? updates.update : x_;
    const Tensor<A, 2> qkv = decode.product ? Tensor<A, 2>(device(), {1, config().qkv_width()}) : q;

    Sequence made(device());
    made.add(kernels.embed, ids_, memory_.past, network_.embedding, network_.positions,
             first.reshaped(std::array<std::int64_t, 3>{1, 1, config().width}), config().embedding_scale);
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      const Tensor<A, 3>&keys = memory_.keys[i], &values = memory_.values[i];
      const std::vector outputs{by_sequence(q), keys, values};
      if (updates) {
        add_qkv_behind(made, decode, i, updates, qkv, q);
      } else if (decode.product) {
        made.add(*decode.product, x_, block.attention_norm, block.attention_norm_bias, block.qkv, block.qkv_bias, qkv,
                 epsilon);
        add_rotation(made, i, qkv, q);
      } else if (decode.rotated_qkv) {
        made.add(*decode.rotated_qkv, x_, block.attention_norm, block.attention_norm_bias, block.qkv, block.qkv_bias,
                 rotation(i), memory_.past, memory_.count, outputs, epsilon);
      } else {
        made.add(*decode.qkv, x_, block.attention_norm, block.attention_norm_bias, block.qkv, block.qkv_bias,
                 memory_.past, memory_.count, outputs, epsilon);
      }
      const auto add_up = [&] {
        made.add(decode.up, x_, block.mlp_norm, block.mlp_norm_bias, block.up, block.up_bias, inner_, epsilon);
      };
      if (config().parallel) add_up();  // while its input is still that of QKV
      made.add(decode.part[is_local(i)], q, keys, values, memory_.past, memory_.count, attended, top, norm, scale(i));
      made.add(decode.project, attended, top, norm, block.projection, block.projection_bias, update);
      if (updates)
        add_up_behind(made, decode.behind->up, block, updates);
      else if (!config().parallel)
        add_up();
      made.add(decode.down, inner_, block.down, block.down_bias, update);
    }
    if (updates) made.add(decode.behind->add_norm, updates.update, network_.blocks.back().mlp_post_norm, x_, epsilon);
    const Tensor<i32, 2> tokens(device(), {1, decode.head_parts});
    const Tensor<f32, 2> scores(device(), {1, decode.head_parts});
    made.add(decode.head, x_, network_.last_norm, network_.last_norm_bias, network_.head, logits_.all, tokens, scores,
             epsilon);
    made.add(decode.greedy_token, tokens, scores, memory_.token, chosen_, memory_.count, memory_.past);
    return made;
  }

  const TypedNetwork<P, W>& network_;
  SessionMemory<P> memory_;
  std::int64_t batch_, length_;
  RowKernels<P, W> of_rows_;
  Tensor<i32, 2> ids_;
  Tensor<f32, 2> x_;  // [B length,C]: the residual stream
  Tensor<A, 2> normed_, inner_;
  PaddedLogits<f32> logits_;
  std::shared_ptr<void> chosen_memory_;
  Tensor<i32, 1> chosen_;
  Repeated layers_, ending_;
  std::unique_ptr<Everywhere> everywhere_;  // made when it is needed
};

}  // namespace tessera::internal
