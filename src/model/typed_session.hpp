// The sequences of a session on a device, for matmuls of type P and weights of type W.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "model/step.hpp"
#include "model/untyped.hpp"

namespace tessera::internal {

template <Element P, Element W>
class TypedState final : public Session::State {
 public:
  TypedState(std::shared_ptr<const Gpt2::Network> owner, const TypedNetwork<P, W>& network, int batch, int capacity)
      : State(network.config(), batch, capacity),
        owner_(std::move(owner)),
        network_(network),
        stream_(network.device().stream()),
        memory_(network.device(), network.config(), batch, capacity),
        keys_(device(), {batch}),
        best_tokens_(device(), {batch, parts_of(network.config().vocab)}),
        best_scores_(device(), {batch, parts_of(network.config().vocab)}),
        pinned_(device().pinned(static_cast<std::size_t>(batch) * sizeof(i32))) {
    runs_ahead_ = !device().shares_host_memory();
  }
  /// Empties all sequences of a new session.
  void begin() const {
    launch(stream_, kernels().fill, memory_.seen.reshaped(std::array{memory_.seen.size()}), 0.0f);
    launch(stream_, kernels().fill_positions, memory_.past, 0.0f);
  }

  void prepare(Tokens tokens, int longest) override {
    std::vector<std::int32_t> padded(tokens.size() * static_cast<std::size_t>(longest), 0), counts;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      std::copy(tokens[b].begin(), tokens[b].end(), padded.begin() + static_cast<std::ptrdiff_t>(b) * longest);
      counts.push_back(static_cast<std::int32_t>(tokens[b].size()));
    }
    if (!step_ || step_->length() != longest) {
      auto step = std::make_unique<Step<P, W>>(network_, memory_, longest);
      if (!device().shares_host_memory()) step->launches().warm_up();  // not one kernel after the other
      step_ = std::move(step);
    }
    ids_ = std::move(padded), counts_ = std::move(counts);
  }

  void compute() override {
    const bool is_computed = std::exchange(computed_ahead_, false) && step_->length() == 1 &&
                             ids_ == on_device_.token && counts_ == on_device_.count;
    if (is_computed) return step_.swap(ahead_);
    // While a text is generated, nothing is copied from the host: the tokens are those of the last sample.
    if (step_->length() > 1)
      step_->ids().copy_from(ids_);
    else
      upload(ids_, memory_.token, on_device_.token);
    upload(counts_, memory_.count, on_device_.count);
    step_->compute(stream_);
  }

  void commit() override { step_->commit(stream_); }

  std::vector<std::int32_t> sample(const Sampling& sampling, const std::vector<std::int64_t>& keys) override {
    on_device_.token.clear();  // unknown until the sample is done
    computed_ahead_ = false;
    if (sampling.temperature != 0) upload(keys, keys_, on_device_.keys);
    choose_tokens(sampling, step_->logits(), [&](const auto&... launched) { launch(stream_, launched...); });
    std::vector<std::int32_t> sampled(lengths_.size());
    const std::size_t bytes = sampled.size() * sizeof(i32);
    stream_.copy(pinned_.get(), memory_.token.data(), bytes);
    const Event chosen = stream_.record();
    compute_ahead();
    chosen.synchronize();
    std::memcpy(sampled.data(), pinned_.get(), bytes);
    on_device_.token = sampled;
    return sampled;
  }

  Sequence launches_of(std::span<const int> lengths, const std::optional<Sampling>& sampling) const override {
    Sequence made(device());
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 1 || lengths[i] > capacity_)
        throw Error(fmt::format("{} tokens are to be appended; there is room for 1 to {}", lengths[i], capacity_));
      const Step<P, W> step(network_, memory_, lengths[i]);
      made.append(step.launches());
      if (i == 0 && sampling)
        choose_tokens(*sampling, step.logits(), [&](const auto&... launched) { made.add(launched...); });
    }
    return made;
  }

  void clear(int sequence) override {
    computed_ahead_ = false;
    const Tensor<u8, 2>& seen = memory_.seen;
    launch(stream_, kernels().fill, seen.slice(0, sequence, 1).reshaped(std::array{seen.extent(1)}), 0.0f);
    launch(stream_, kernels().fill_positions, memory_.past.slice(0, sequence, 1), 0.0f);
  }

  std::vector<float> logits() const override { return step_->logits().to_vector(); }
  std::vector<float> all_logits() override {
    Tensor<f32, 2> all(device(), {memory_.past.size() * step_->length(), network_.config().vocab});
    all_logits(all);
    return all.to_vector();
  }
  void all_logits(const Tensor<f32, 2>& logits) override { step_->all_logits(stream_, logits); }

  std::vector<float> log_probabilities(std::span<const float> logits, std::span<const std::int32_t> targets) override {
    const auto rows = static_cast<std::int64_t>(targets.size());
    Tensor<f32, 2> scores(device(), {rows, network_.config().vocab});
    Tensor<i32, 1> wanted(device(), {rows});
    Tensor<f32, 1> result(device(), {rows});
    scores.copy_from(logits);
    wanted.copy_from(targets);
    launch(stream_, kernels().log_probability, scores, wanted, result);
    return result.to_vector();
  }

 private:
  const Device& device() const { return network_.device(); }
  const Kernels<P, W>& kernels() const { return network_.kernels(); }

  /// Calls `each` with the kernel and arguments of each launch of sample().
  template <class Each>
  void choose_tokens(const Sampling& sampling, const Tensor<f32, 2>& logits, const Each& each) const {
    if (sampling.temperature == 0) {
      each(kernels().greedy_parts, logits, memory_.seen, best_tokens_, best_scores_, sampling.repetition_penalty);
      each(kernels().greedy_token, best_tokens_, best_scores_, memory_.token);
    } else {
      each(kernels().sample, logits, memory_.seen, memory_.past, keys_, memory_.token, sampling.repetition_penalty,
           sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p);
    }
  }

  /// Begins the step that appends the tokens just chosen, before the host knows them: most callers append them. The
  /// step leaves no trace unless compute() takes it over, since it has activations and logits of its own.
  void compute_ahead() try {
    constexpr std::size_t most = 16;  // for more sequences, the host's time matters less than the memory
    const bool is_ready = step_->is_recorded() || (step_->length() == 1 && device().shares_host_memory());
    if (!runs_ahead_ || !is_ready || lengths_.size() > most) return;
    for (std::size_t b = 0; b < lengths_.size(); ++b)
      if (lengths_[b] + on_device_.count[b] > capacity_) return;
    if (!ahead_) ahead_ = std::make_unique<Step<P, W>>(network_, memory_, 1);
    ahead_->record();
    ahead_->compute(stream_);
    computed_ahead_ = true;
  } catch (const std::exception&) {
    computed_ahead_ = false;  // append() begins the step, and reports what is wrong
  }

  /// Copies values to the device, unless they are there already.
  template <class T>
  static void upload(const std::vector<T>& values, const Tensor<T, 1>& to, std::vector<T>& there) {
    if (values == there) return;
    there.clear();
    to.copy_from(values);
    there = values;
  }

  std::shared_ptr<const Gpt2::Network> owner_;
  const TypedNetwork<P, W>& network_;
  Stream stream_;
  SessionMemory<P> memory_;
  Tensor<i64, 1> keys_;         // of the random number generator
  Tensor<i32, 2> best_tokens_;  // of each part of the logits
  Tensor<f32, 2> best_scores_;
  std::shared_ptr<void> pinned_;            // the host's copy of the tokens
  std::vector<std::int32_t> ids_, counts_;  // of the current step
  struct {
    std::vector<std::int32_t> token, count;
    std::vector<std::int64_t> keys;
  } on_device_;                        // values known to be in memory_.token, memory_.count and keys_
  std::unique_ptr<Step<P, W>> step_;   // of the last append()
  std::unique_ptr<Step<P, W>> ahead_;  // the same for the next token
  bool computed_ahead_ = false;        // ahead_ has the tokens that sample() chose
};

template <Element P, Element W>
std::unique_ptr<Session::State> TypedNetwork<P, W>::session(std::shared_ptr<const Network> self, int batch,
                                                            int capacity) const {
  auto state = std::make_unique<TypedState<P, W>>(std::move(self), *this, batch, capacity);
  state->begin();
  return state;
}

template <Element P, Element W>
void TypedNetwork<P, W>::begin_warm_up(const FirstUse& first) {
  if (first.lengths.empty() || this->device().shares_host_memory()) return;
  try {
    warm_up_ = std::jthread([this, first](std::stop_token stop) {
      try {
        const int capacity = std::ranges::max(first.lengths);
        const TypedState<P, W> session(nullptr, *this, first.batch, capacity);
        session.launches_of(first.lengths, first.sampling).warm_up(stop);
      } catch (const std::exception&) {  // the session that needs the kernel reports it
      }
    });
  } catch (const std::system_error&) {  // no thread can be started; kernels are compiled when they are needed
  }
}

}  // namespace tessera::internal
