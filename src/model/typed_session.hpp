// The sequences of a session on a device, for matmuls of type P and weights of type W.
#pragma once
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "jit/compile/kept_choice.hpp"
#include "model/step.hpp"
#include "model/untyped.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {

template <Element P, Element W>
class TypedState final : public Session::State {
 public:
  TypedState(std::shared_ptr<const Model::Network> owner, const TypedNetwork<P, W>& network, int batch, int capacity)
      : State(network.config(), batch, capacity),
        owner_(std::move(owner)),
        network_(with_memory(network, batch, capacity)),
        stream_(network.device().stream()),
        memory_(network.device(), network.config(), batch, capacity),
        keys_(device(), {batch}),
        text_(static_cast<std::size_t>(batch)) {
    runs_ahead_ = !device().shares_host_memory();
  }

  void prepare(Tokens tokens, int longest) override {
    std::vector<std::int32_t> padded(tokens.size() * static_cast<std::size_t>(longest), 0), counts;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      std::copy(tokens[b].begin(), tokens[b].end(), padded.begin() + static_cast<std::ptrdiff_t>(b) * longest);
      counts.push_back(static_cast<std::int32_t>(tokens[b].size()));
      text_[b].tokens.reserve(static_cast<std::size_t>(capacity_));
    }
    const std::int64_t batch = batch_of(counts);
    if (!step_ || step_->length() != longest || step_->batch() != batch) {
      std::unique_ptr<Step<P, W>> step = step_of(batch, longest);
      if (!device().shares_host_memory()) step->launches().warm_up();  // not one kernel after the other
      kept_.reserve(kept_.size() + 1);                                 // nothing fails once step_ changes
      keep(std::exchange(step_, std::move(step)));
    }
    ids_ = std::move(padded), counts_ = std::move(counts);
  }

  void compute() override {
    const bool was_ahead = std::exchange(computed_ahead_, false);
    ended_ = step_->length() == 1;
    if (was_ahead && ended_ && has_tokens(ids_ahead_) && counts_ == on_device_.count) return step_.swap(ahead_);
    // While a text is generated, nothing is copied from the host: the tokens are those of the last sample.
    if (!ended_)
      step_->ids().copy_from(std::span<const std::int32_t>(ids_).first(static_cast<std::size_t>(step_->ids().size())));
    else if (!has_tokens(on_device_.token))
      upload(ids_, memory_.token, on_device_.token);
    upload(counts_, memory_.count, on_device_.count);
    upload(lengths_, memory_.past, on_device_.past);
    on_device_.token.clear();
    if (!ended_) return step_->compute(stream_);
    advancing([&] { step_->compute(stream_); });
  }

  void commit() noexcept override {
    const auto longest = static_cast<std::ptrdiff_t>(step_->length());
    for (std::size_t b = 0; b < text_.size(); ++b) {
      const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(b) * longest;
      text_[b].tokens.insert(text_[b].tokens.end(), first, first + counts_[b]);
    }
    is_greedy_ = token_is_chosen_ = ended_;
  }

  std::vector<std::int32_t> sample(const Sampling& sampling, const std::vector<std::int64_t>& keys) override {
    end();
    if (!is_greedy_ || sampling.temperature != 0 || sampling.repetition_penalty != 1) {
      on_device_.token.clear();  // unknown until the sample is done
      computed_ahead_ = is_greedy_ = token_is_chosen_ = false;
      upload(lengths_, memory_.past, on_device_.past);
      if (sampling.temperature != 0) upload(keys, keys_, on_device_.keys);
      if (sampling.repetition_penalty != 1) mark_seen();
      choose_tokens(sampling, *step_, seen_, [&](const auto&... launched) { launch(stream_, launched...); });
      token_is_chosen_ = true;
    }
    const Event chosen = stream_.record();
    if (!computed_ahead_) compute_ahead();
    chosen.synchronize();
    const auto on_host = step_->chosen_on_host();
    std::vector<std::int32_t> sampled(on_host.begin(), on_host.end());
    sampled.resize(lengths_.size(), not_computed);
    if (computed_ahead_) ids_ahead_ = sampled;
    if (token_is_chosen_) on_device_.token = sampled;
    std::ranges::replace(sampled, not_computed, 0);
    return sampled;
  }

  std::vector<std::int32_t> sample_all(const Sampling& sampling, const std::vector<std::int64_t>& keys) override {
    const std::int64_t longest = step_->length();
    if (longest == 1) return sample(sampling, keys);
    auto& everywhere = step_->everywhere();
    everywhere.greedy.run(stream_);
    if (sampling.temperature != 0) {
      std::vector<std::int32_t> past;
      std::vector<std::int64_t> keys_of_rows;
      for (std::size_t b = 0; b < static_cast<std::size_t>(step_->batch()); ++b)
        for (std::int64_t i = 0; i < longest; ++i) {
          past.push_back(lengths_[b] - counts_[b] + static_cast<std::int32_t>(i) + 1);
          keys_of_rows.push_back(keys[b]);
        }
      everywhere.past.copy_from(past);
      everywhere.keys.copy_from(keys_of_rows);
      draw_tokens(sampling, everywhere.logits.all, std::nullopt, everywhere.past, everywhere.keys, everywhere.token,
                  everywhere.chosen, everywhere.candidates,
                  [&](const auto&... launched) { launch(stream_, launched...); });
    }
    stream_.synchronize();
    const auto on_host = everywhere.on_host();
    std::vector<std::int32_t> chosen(on_host.begin(), on_host.end());
    chosen.resize(lengths_.size() * static_cast<std::size_t>(longest), 0);
    return chosen;
  }

  Sequence launches_of(std::span<const int> lengths, const std::optional<Sampling>& sampling) const override {
    Sequence made(device());
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 1 || lengths[i] > capacity_)
        throw Error(fmt::format("{} tokens are to be appended; there is room for 1 to {}", lengths[i], capacity_));
      Step<P, W> step(network_, memory_, memory_.past.size(), lengths[i]);
      made.append(step.launches());
      if (i > 0 && lengths[i] > 1) made.append(step.everywhere().greedy.launches());
      if (i > 0 || !sampling || (sampling->temperature == 0 && sampling->repetition_penalty == 1)) continue;
      std::optional<Tensor<u8, 2>> seen;
      if (sampling->repetition_penalty != 1) {
        seen = new_marks();
        made.add(kernels().fill, seen->reshaped(std::array{seen->size()}), 0.0f);
        const Tensor<i32, 2> unmarked(device(), {memory_.past.size(), columns_of_marks});
        made.add(kernels().mark_seen, unmarked, memory_.count, *seen);
      }
      choose_tokens(*sampling, step, seen, [&](const auto&... launched) { made.add(launched...); });
    }
    return made;
  }

  void truncate(int sequence, int length) override {
    computed_ahead_ = false;
    Text& text = text_[static_cast<std::size_t>(sequence)];
    text.tokens.resize(static_cast<std::size_t>(length));
    if (text.marks && *text.marks > text.tokens.size()) text.marks = {};
  }

  bool has_model_of(const State& other) const override {
    const auto* const same = dynamic_cast<const TypedState*>(&other);
    return same && &same->network_ == &network_;
  }

  void copy(int sequence, const State& from, int of) override {
    const auto& source = static_cast<const TypedState&>(from);
    const Text& text = source.text_[static_cast<std::size_t>(of)];
    const auto length = static_cast<std::int64_t>(text.tokens.size());
    computed_ahead_ = false;
    const auto copy_positions = [&](const auto& to, const auto& positions) {
      to.slice(0, sequence, 1).slice(1, 0, length).copy_from(positions.slice(0, of, 1).slice(1, 0, length), stream_);
    };
    for (std::size_t i = 0; length > 0 && i < memory_.keys.size(); ++i) {
      copy_positions(memory_.keys[i], source.memory_.keys[i]);
      copy_positions(memory_.values[i], source.memory_.values[i]);
    }
    text_[static_cast<std::size_t>(sequence)].tokens = text.tokens;
  }

  DecodeReport decode_report() const override {
    if (step_ && step_->length() == 1) return step_->report();
    for (const auto& step : kept_)
      if (step->length() == 1 && step->batch() == step_->batch()) return step->report();
    return {};
  }

  std::vector<float> logits() override {
    end();
    return for_all(step_->logits().tokens.to_vector(), 1);
  }
  std::vector<float> all_logits() override {
    const std::int64_t rows = step_->batch() * step_->length();
    const PaddedLogits<f32> all(device(), rows, network_.config().vocab);
    step_->all_logits(stream_, all.all);
    return for_all(all.tokens.to_vector(), step_->length());
  }
  void all_logits(const Tensor<f32, 2>& logits) override { write_logits(logits); }
  void all_logits(const Tensor<bf16, 2>& logits) override { write_logits(logits); }
  void hidden_states(const Tensor<f32, 2>& states) override { write_states(states); }
  void hidden_states(const Tensor<bf16, 2>& states) override { write_states(states); }

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
  static const TypedNetwork<P, W>& with_memory(const TypedNetwork<P, W>& network, std::int64_t batch,
                                               std::int64_t capacity) {
    const TransformerConfig& config = network.config();
    const std::int64_t bytes =
        2 * batch * capacity * config.layers * config.key_width() * std::int64_t{sizeof(kernels::Activations<P>)};
    require_memory(network.device(), bytes, fmt::format("keys and values of {} x {} tokens", batch, capacity),
                   "a session of fewer sequences or positions takes less");
    return network;
  }
  const Device& device() const { return network_.device(); }
  const Kernels<P, W>& kernels() const { return network_.kernels(); }

  /// A step computes the first sequences, up to the last that gets tokens; few numbers of them, so that steps are reused.
  std::int64_t batch_of(const std::vector<std::int32_t>& counts) const {
    std::size_t batch = counts.size();
    while (batch > 1 && counts[batch - 1] == 0) --batch;
    return static_cast<std::int64_t>(std::min(std::bit_ceil(batch), counts.size()));
  }
  /// A step that was kept, or a new one.
  std::unique_ptr<Step<P, W>> step_of(std::int64_t batch, std::int64_t length) {
    const auto found = std::ranges::find_if(
        kept_, [&](const auto& step) { return step->batch() == batch && step->length() == length; });
    if (found == kept_.end()) {
      auto step = std::make_unique<Step<P, W>>(network_, memory_, batch, length);
      // A form that was measured for the current step holds for another one like it.
      const bool is_known = network_.decode_form() == DecodeForm::automatic && step_ && step_->batch() == batch &&
                            step_->length() == length;
      if (length == 1) step->choose(is_known ? step_->form() : form_of(*step));
      return step;
    }
    std::unique_ptr<Step<P, W>> step = std::move(*found);
    kept_.erase(found);
    return step;
  }
  /// The form of a step of one position.
  DecodeForm form_of(Step<P, W>& step) {
    const DecodeForm form = network_.decode_form();
    if (form != DecodeForm::automatic) return form;
    if (device().shares_host_memory()) return DecodeForm::plain;
    try {
      return parse_decode_form(
          kept_choice(question_of(step.launches()), [&] { return std::string(name(fastest(step))); }));
    } catch (const OutOfMemory&) {  // for a second step beside this one
      return DecodeForm::graph;
    }
  }
  /// Everything that the fastest form depends on.
  std::string question_of(const Sequence& launches) const {
    const TransformerConfig& config = network_.config();
    std::string question = fmt::format(
        "the form of a step of Tessera {} on {} with {} multiprocessors: {} times {}, {} layers of {} and {} columns:",
        version(), device().name(), device().info().multiprocessors, tessera::internal::name(element_type<P>),
        tessera::internal::name(element_type<W>), config.layers, config.width, config.inner);
    for (const Sequence::Launch& launch : launches.launches())
      question += fmt::format(" {}[{}]", launch.executable->name(),
                              fmt::join(std::span(launch.grid.extent).first(launch.grid.axes), ","));
    return question;
  }
  /// Measures a step, in which no sequence gets a token: so it changes no text.
  DecodeForm fastest(Step<P, W>& recorded) {
    recorded.launches().warm_up();  // not one kernel after the other
    if (step_) end();               // which needs the numbers of its tokens
    computed_ahead_ = false;
    on_device_.token.clear(), on_device_.count.clear();
    memory_.token.copy_from(std::vector<std::int32_t>(static_cast<std::size_t>(memory_.token.size()), 0));
    memory_.count.copy_from(std::vector<std::int32_t>(static_cast<std::size_t>(memory_.count.size()), 0));
    upload(lengths_, memory_.past, on_device_.past);
    Step<P, W> persistent(network_, memory_, recorded.batch(), 1);
    persistent.choose(DecodeForm::persistent);
    constexpr int rounds = 5, runs = 10;
    const auto time = [&](Step<P, W>& step) {
      const Event begin = stream_.record();
      for (int i = 0; i < runs; ++i) step.compute(stream_);
      return stream_.record().milliseconds_since(begin);
    };
    persistent.compute(stream_);
    if (persistent.report().form != DecodeForm::persistent) return DecodeForm::graph;
    time(recorded);  // of compiling and recording, too
    double of_graph = time(recorded), of_persistent = time(persistent);
    for (int i = 1; i < rounds; ++i) {
      of_graph = std::min(of_graph, time(recorded));
      of_persistent = std::min(of_persistent, time(persistent));
    }
    constexpr double gain = 0.97;  // which other work on the device does not feign
    return of_persistent < gain * of_graph ? DecodeForm::persistent : DecodeForm::graph;
  }

  /// Steps of one position are used again when texts end or join, and the last of several positions for the next prompt.
  void keep(std::unique_ptr<Step<P, W>> step) {
    if (!step) return;
    if (step->length() > 1) std::erase_if(kept_, [](const auto& other) { return other->length() > 1; });
    if (step->length() == 1 || step_->length() == 1) kept_.push_back(std::move(step));
  }

  /// Rows for all sequences, of which the last step may have computed the first.
  std::vector<float> for_all(std::vector<float> rows, std::int64_t positions) const {
    rows.resize(lengths_.size() * static_cast<std::size_t>(positions * network_.config().vocab));
    return rows;
  }
  template <Element L>
  void write_logits(const Tensor<L, 2>& logits) {
    const std::int64_t rows = memory_.past.size() * step_->length();
    const int vocab = network_.config().vocab;
    if (logits.extent(0) != rows || logits.extent(1) < vocab)
      throw Error(fmt::format("the logits are [{}, {}], and the tensor for them is [{}, {}]", rows, vocab,
                              logits.extent(0), logits.extent(1)));
    step_->all_logits(stream_, logits.slice(0, 0, step_->batch() * step_->length()));
  }
  template <Element L>
  void write_states(const Tensor<L, 2>& states) {
    const std::int64_t rows = memory_.past.size() * step_->length(), width = network_.config().width;
    if (states.extent(0) != rows || states.extent(1) != width)
      throw Error(fmt::format("the hidden states are [{}, {}], and the tensor for them is [{}, {}]", rows, width,
                              states.extent(0), states.extent(1)));
    step_->hidden_states(stream_, states.slice(0, 0, step_->batch() * step_->length()));
  }

  /// Are these the new tokens of a step of one position? Those of sequences without a new token do not matter.
  bool has_tokens(const std::vector<std::int32_t>& tokens) const {
    if (tokens.size() != counts_.size()) return false;
    for (std::size_t b = 0; b < counts_.size(); ++b)
      if (counts_[b] > 0 && tokens[b] != ids_[b]) return false;
    return true;
  }

  /// Calls `each` with the kernel and arguments of each launch that chooses tokens from the logits of a step.
  template <class Each>
  void choose_tokens(const Sampling& sampling, const Step<P, W>& step, const std::optional<Tensor<u8, 2>>& seen,
                     const Each& each) const {
    const Tensor<f32, 2>& logits = step.logits().all;
    const SessionMemory<P>& memory = step.memory();
    std::optional<Tensor<u8, 2>> marks;
    if (seen) marks = seen->slice(0, 0, step.batch());
    if (sampling.temperature == 0) {
      each(kernels().greedy_parts, logits, marks, memory.best_tokens, memory.best_scores, sampling.repetition_penalty);
      each(kernels().greedy_token, memory.best_tokens, memory.best_scores, memory.token, step.chosen(), std::nullopt,
           std::nullopt);
    } else {
      draw_tokens(sampling, logits, marks, memory.past, keys_.slice(0, 0, step.batch()), memory.token, step.chosen(),
                  memory.candidates, each);
    }
  }
  /// The same for a draw, with the random numbers of `past` and `keys`. On a GPU, one CTA takes long to look for a few
  /// tokens among all.
  template <class Each>
  void draw_tokens(const Sampling& sampling, const Tensor<f32, 2>& logits, const std::optional<Tensor<u8, 2>>& seen,
                   const Tensor<i32, 1>& past, const Tensor<i64, 1>& keys, const Tensor<i32, 1>& token,
                   const Tensor<i32, 1>& chosen, const Candidates& candidates, const Each& each) const {
    if (!network_.is_on_gpu() || sampling.top_k < 1 || sampling.top_k > kernels::most_candidates)
      return each(kernels().sample, logits, seen, past, keys, token, chosen, sampling.repetition_penalty,
                  sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p);
    const auto by_row = [&](const auto& all) {
      return all.reshaped(std::array{past.size(), all.size() / past.size()});
    };
    each(kernels().candidates, logits, seen, candidates.tokens, candidates.scores, sampling.repetition_penalty);
    each(kernels().sample_candidates, by_row(candidates.tokens), by_row(candidates.scores), past, keys, token, chosen,
         sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p);
  }

  /// Calls run(), which changes memory_.past from the lengths before the new positions to those after them.
  void advancing(const auto& run) {
    std::vector<std::int32_t> after = std::exchange(on_device_.past, {});
    run();
    for (std::size_t b = 0; b < after.size(); ++b) after[b] += on_device_.count[b];
    on_device_.past = std::move(after);
  }

  /// Completes the step, if only its layers are computed.
  void end() {
    if (ended_) return;
    on_device_.token.clear();
    advancing([&] { step_->end(stream_); });
    ended_ = is_greedy_ = token_is_chosen_ = true;
  }

  /// Begins the step that appends the tokens just chosen, before the host knows them: most callers append them. It has
  /// activations, logits and chosen tokens of its own; what else it changes, on_device_ says, and compute() repairs
  /// unless it takes the step over.
  void compute_ahead() try {
    const bool is_ready = step_->length() == 1 && (step_->is_ready() || device().shares_host_memory());
    if (!runs_ahead_ || !is_ready || !token_is_chosen_) return;
    for (std::size_t b = 0; b < lengths_.size(); ++b)
      if (lengths_[b] + on_device_.count[b] > capacity_) return;
    upload(lengths_, memory_.past, on_device_.past);
    if (!ahead_ || ahead_->batch() != step_->batch()) {
      std::unique_ptr<Step<P, W>> ahead = step_of(step_->batch(), 1);
      keep(std::exchange(ahead_, std::move(ahead)));
    }
    ahead_->make();
    on_device_.token.clear();
    token_is_chosen_ = false;
    ids_ahead_.clear();  // until the host has read them
    advancing([&] { ahead_->compute(stream_); });
    computed_ahead_ = true;
  } catch (const std::exception&) {
    computed_ahead_ = false;  // append() begins the step, and reports what is wrong
  }

  static constexpr std::int32_t not_computed = -2;  // in place of a token
  static constexpr int columns_of_marks = 4;  // a multiple of 16 bytes, so that one code serves any number of tokens
  Tensor<u8, 2> new_marks() const {
    return {device(), {memory_.past.size(), columns_of_logits(network_.config().vocab)}};
  }

  /// Makes seen_ name the tokens of the text.
  void mark_seen() {
    if (!seen_) {
      for (Text& text : text_) text.marks = {};
      seen_ = new_marks();
    }
    std::size_t longest = 0;
    std::vector<std::int32_t> counts;
    for (std::size_t b = 0; b < text_.size(); ++b) {
      Text& text = text_[b];
      if (!text.marks) {
        const auto row = seen_->slice(0, static_cast<std::int64_t>(b), 1);
        launch(stream_, kernels().fill, row.reshaped(std::array{row.size()}), 0.0f);
        text.marks = 0;
      }
      const std::size_t count = text.tokens.size() - *text.marks;
      counts.push_back(static_cast<std::int32_t>(count));
      longest = std::max(longest, count);
    }
    if (longest == 0) return;
    longest = (longest + columns_of_marks - 1) / columns_of_marks * columns_of_marks;
    std::vector<std::int32_t> ids(text_.size() * longest);
    for (std::size_t b = 0; b < text_.size(); ++b)
      std::copy(text_[b].tokens.end() - counts[b], text_[b].tokens.end(),
                ids.begin() + static_cast<std::ptrdiff_t>(b * longest));
    const auto columns = static_cast<std::int64_t>(longest);
    if (!unmarked_count_) unmarked_count_ = Tensor<i32, 1>(device(), {memory_.past.size()});
    if (!unmarked_ || unmarked_->extent(1) != columns)
      unmarked_ = Tensor<i32, 2>(device(), {memory_.past.size(), columns});
    unmarked_->copy_from(ids);
    unmarked_count_->copy_from(counts);
    launch(stream_, kernels().mark_seen, *unmarked_, *unmarked_count_, *seen_);
    for (Text& text : text_) text.marks = text.tokens.size();
  }

  /// Copies values to the device, unless they are there already.
  template <class T>
  static void upload(const std::vector<T>& values, const Tensor<T, 1>& to, std::vector<T>& there) {
    if (values == there) return;
    there.clear();
    to.copy_from(values);
    there = values;
  }

  std::shared_ptr<const Model::Network> owner_;
  const TypedNetwork<P, W>& network_;
  Stream stream_;
  SessionMemory<P> memory_;
  Tensor<i64, 1> keys_;  // of the random number generator
  struct Text {
    std::vector<std::int32_t> tokens;
    std::optional<std::size_t> marks;  // tokens that seen_ marks; none: it has other marks
  };
  std::vector<Text> text_;
  std::optional<Tensor<u8, 2>> seen_;  // [B,N]: 1 for tokens of the text; made when a penalty needs it
  std::optional<Tensor<i32, 2>> unmarked_;
  std::optional<Tensor<i32, 1>> unmarked_count_;
  std::vector<std::int32_t> ids_, counts_;  // of the current step
  struct {
    std::vector<std::int32_t> token, count, past;
    std::vector<std::int64_t> keys;
  } on_device_;                        // values known to be in memory_ and keys_; empty: unknown
  std::unique_ptr<Step<P, W>> step_;               // of the last append()
  std::unique_ptr<Step<P, W>> ahead_;              // the same for the next token
  std::vector<std::unique_ptr<Step<P, W>>> kept_;  // others, which may be used again
  bool ended_ = false;                 // are there logits of step_?
  bool is_greedy_ = false;             // are its chosen tokens the most probable ones?
  bool token_is_chosen_ = false;       // are they in memory_.token, too?
  bool computed_ahead_ = false;        // ahead_ has the tokens that sample() chose: ids_ahead_
  std::vector<std::int32_t> ids_ahead_;
};

template <Element P, Element W>
std::unique_ptr<Session::State> TypedNetwork<P, W>::session(std::shared_ptr<const Network> self, int batch,
                                                            int capacity) const {
  return std::make_unique<TypedState<P, W>>(std::move(self), *this, batch, capacity);
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
