// A forward pass over new positions of the sequences of a session: its activations and its launches.
#pragma once
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "model/network.hpp"

namespace tessera::internal {

/// The memory that the steps of a session share on the device, for B sequences of up to P positions.
template <Element P>
struct SessionMemory {
  using A = kernels::Activation<P>;
  SessionMemory(const Device& device, const Gpt2Config& config, std::int64_t batch, std::int64_t capacity)
      : past(device, {batch}),
        count(device, {batch}),
        token(device, {batch}),
        seen(device, {batch, config.vocab}),
        last(device, {batch, config.width}) {
    for (int i = 0; i < config.layers; ++i) {
      keys.emplace_back(device, std::array<std::int64_t, 3>{batch, capacity, config.width});
      values.emplace_back(device, std::array<std::int64_t, 3>{batch, capacity, config.width});
    }
  }
  Tensor<i32, 1> past, count;              ///< [B]: positions of the text, and new ones
  Tensor<i32, 1> token;                    ///< [B]: the tokens that were sampled last
  Tensor<u8, 2> seen;                      ///< [B,V]: 1 for tokens of the text
  Tensor<A, 2> last;                       ///< [B,C]: for one step at a time
  std::vector<Tensor<A, 3>> keys, values;  ///< [B,P,C] of each layer
};

/// The activations and launches of one forward pass; kept for the next pass of the same length.
template <Element P, Element W>
class Step {
  using A = kernels::Activation<P>;

 public:
  /// For `positions` new positions of each sequence.
  Step(const TypedNetwork<P, W>& network, const SessionMemory<P>& memory, std::int64_t positions)
      : network_(network),
        memory_(memory),
        batch_(memory.past.size()),
        length_(positions),
        matmuls_(network.matmuls(batch_ * positions)),
        ids_(positions == 1 ? memory.token.reshaped(std::array{batch_, positions})
                            : Tensor<i32, 2>(device(), {batch_, positions})),
        x_(device(), {batch_ * positions, config().width}),
        normed_(device(), {batch_ * positions, config().width}),
        inner_(device(), {batch_ * positions, config().inner}),
        logits_(device(), {batch_, config().vocab}),
        launches_(made()) {}

  std::int64_t length() const { return length_; }
  /// The tokens [B,length]; those of a step of one position are SessionMemory::token.
  const Tensor<i32, 2>& ids() const { return ids_; }
  /// Logits [B,V] of the last new position of each sequence.
  const Tensor<f32, 2>& logits() const { return logits_; }

  const Sequence& launches() const { return launches_; }

  /// Changes activations, logits, and positions of the cache behind the text. Steps of one position are repeated, so
  /// the second run is recorded.
  void compute(const Stream& stream) {
    if (length_ == 1 && runs_++ == 1) record();
    if (graph_)
      stream.launch(*graph_);
    else
      launches_.run(stream, 0, last_launch());
  }
  /// Makes the tokens part of the text.
  void commit(const Stream& stream) const { launches_.run(stream, last_launch(), last_launch() + 1); }

  /// Writes the logits [B length,V] of all positions.
  void all_logits(const Stream& stream, const Tensor<f32, 2>& logits) const {
    const std::int64_t rows = batch_ * length_;
    if (logits.extent(0) != rows || logits.extent(1) != config().vocab)
      throw Error(fmt::format("the logits are [{}, {}], and the tensor for them is [{}, {}]", rows, config().vocab,
                              logits.extent(0), logits.extent(1)));
    launch(stream, network_.kernels().one_norm, x_, network_.ln_f_weight, network_.ln_f_bias, normed_,
           config().epsilon);
    launch(stream, matmuls_.head, normed_, network_.head, logits);
  }

  /// Records the launches of compute(), which have run once, so that one launch on the host takes their place. The
  /// device's stream may be in use by other threads, whose launches would be recorded, too.
  void record() {
    if (device().shares_host_memory() || graph_) return;
    const Stream own = device().new_stream();
    graph_ = own.capture([&] { launches_.run(own, 0, last_launch()); });
  }
  bool is_recorded() const { return graph_.has_value(); }

 private:
  const Device& device() const { return network_.device(); }
  const Gpt2Config& config() const { return network_.config(); }
  std::size_t last_launch() const { return launches_.launches().size() - 1; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(config().head_width())); }

  Sequence made() const {
    if (length_ == 1 && batch_ == 1 && network_.decode_kernels()) return of_one_position();
    const auto& few = network_.batch_kernels();
    return length_ == 1 && few && batch_ <= few->most ? of_few_sequences() : of_any();
  }

  /// The launches for any number of positions. The last one makes the tokens part of the text.
  Sequence of_any() const {
    const auto& kernels = network_.kernels();
    const std::int64_t width = config().width;
    const float epsilon = config().epsilon;
    const Tensor<A, 2> qkv(device(), {batch_ * length_, 3 * width}), attended(device(), {batch_ * length_, width});

    Sequence made(device());
    made.add(kernels.embed, ids_, memory_.past, network_.wte, network_.wpe, by_sequence(x_));
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      const Tensor<A, 3>&keys = memory_.keys[i], &values = memory_.values[i];
      made.add(kernels.one_norm, x_, block.ln_1_weight, block.ln_1_bias, normed_, epsilon);
      made.add(matmuls_.qkv, normed_, block.attn_weight, block.attn_bias, qkv);
      made.add(kernels.append_cache, by_sequence(qkv), memory_.past, memory_.count, keys, values);
      if (length_ == 1)
        made.add(kernels.decode_attention, by_sequence(qkv), keys, values, memory_.past, memory_.count,
                 by_sequence(attended), scale());
      else
        made.add(kernels.attention, by_sequence(qkv), keys, values, memory_.past, memory_.count, by_sequence(attended),
                 scale());
      made.add(matmuls_.project, attended, block.proj_weight, block.proj_bias, x_);
      made.add(kernels.one_norm, x_, block.ln_2_weight, block.ln_2_bias, normed_, epsilon);
      made.add(matmuls_.up, normed_, block.fc_weight, block.fc_bias, inner_);
      made.add(matmuls_.down, inner_, block.out_weight, block.out_bias, x_);
    }
    finish(made);
    return made;
  }

  /// The same for one position of each of a few sequences.
  Sequence of_few_sequences() const {
    const auto& kernels = network_.kernels();
    const BatchKernels<P, W>& batch = *network_.batch_kernels();
    const float epsilon = config().epsilon;
    const Tensor<A, 2>& q = memory_.last;
    const Tensor<A, 2>& attended = normed_;

    Sequence made(device());
    made.add(kernels.embed, ids_, memory_.past, network_.wte, network_.wpe, by_sequence(x_));
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      const Tensor<A, 3>&keys = memory_.keys[i], &values = memory_.values[i];
      made.add(batch.qkv, x_, block.ln_1_weight, block.ln_1_bias, block.attn_weight, block.attn_bias, memory_.past,
               memory_.count, q, keys, values, epsilon);
      made.add(batch.attend, q, keys, values, memory_.past, memory_.count, attended, scale());
      made.add(matmuls_.project, attended, block.proj_weight, block.proj_bias, x_);
      made.add(batch.up, x_, block.ln_2_weight, block.ln_2_bias, block.fc_weight, block.fc_bias, inner_, epsilon);
      made.add(matmuls_.down, inner_, block.out_weight, block.out_bias, x_);
    }
    finish(made);
    return made;
  }

  /// Logits of the last positions; then the tokens become part of the text.
  void finish(Sequence& made) const {
    const auto& kernels = network_.kernels();
    made.add(kernels.last_norm, by_sequence(x_), memory_.count, network_.ln_f_weight, network_.ln_f_bias, memory_.last,
             config().epsilon);
    made.add(network_.matmuls(batch_).head, memory_.last, network_.head, logits_);
    made.add(kernels.advance, ids_, memory_.count, memory_.seen, memory_.past);
  }
  auto by_sequence(const auto& tensor) const { return tensor.reshaped(std::array{batch_, length_, tensor.extent(1)}); }

  /// The same for one position of one sequence.
  Sequence of_one_position() const {
    const auto& kernels = network_.kernels();
    const DecodeKernels<P, W>& decode = *network_.decode_kernels();
    const std::int64_t parts = decode.parts, heads = config().heads;
    const float epsilon = config().epsilon;
    const Tensor<A, 2>& q = memory_.last;
    const Tensor<f32, 4> attended(device(), {1, parts, heads, config().head_width()});
    const Tensor<f32, 3> top(device(), {1, parts, heads}), norm(device(), {1, parts, heads});

    Sequence made(device());
    made.add(kernels.embed, ids_, memory_.past, network_.wte, network_.wpe,
             x_.reshaped(std::array<std::int64_t, 3>{1, 1, config().width}));
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      const Tensor<A, 3>&keys = memory_.keys[i], &values = memory_.values[i];
      made.add(decode.qkv, x_, block.ln_1_weight, block.ln_1_bias, block.attn_weight, block.attn_bias, memory_.past,
               memory_.count, q, keys, values, epsilon);
      made.add(decode.part, q, keys, values, memory_.past, memory_.count, attended, top, norm, scale());
      made.add(decode.project, attended, top, norm, block.proj_weight, block.proj_bias, x_);
      made.add(decode.up, x_, block.ln_2_weight, block.ln_2_bias, block.fc_weight, block.fc_bias, inner_, epsilon);
      made.add(decode.down, inner_, block.out_weight, block.out_bias, x_);
    }
    made.add(decode.head, x_, network_.ln_f_weight, network_.ln_f_bias, network_.head, logits_, epsilon);
    made.add(kernels.advance, ids_, memory_.count, memory_.seen, memory_.past);
    return made;
  }

  const TypedNetwork<P, W>& network_;
  const SessionMemory<P>& memory_;
  std::int64_t batch_, length_;
  Matmuls<P, W> matmuls_;
  Tensor<i32, 2> ids_;
  Tensor<f32, 2> x_;  // [B length,C]: the residual stream
  Tensor<A, 2> normed_, inner_;
  Tensor<f32, 2> logits_;
  Sequence launches_;
  std::optional<CapturedGraph> graph_;  // of all launches but the last
  int runs_ = 0;
};

}  // namespace tessera::internal
