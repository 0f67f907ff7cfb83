#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "jit/profile/profile.hpp"
#include "model/untyped.hpp"

namespace tessera::internal {

namespace {

/// A step of a session in a profile.
class TokenSpan {
 public:
  TokenSpan(const char* what, std::size_t tokens) : span_(profile::Kind::token, [&] { return profile::named(what); }) {
    if (profile::Details* const details = span_.details()) details->count = static_cast<std::int64_t>(tokens);
  }

 private:
  profile::Span span_;
};

}  // namespace

Session::Session(const Model& model, int batch, int capacity)
    : state_(model.network_->session(model.network_, batch, capacity)), config_(model.config()) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

void Session::require_logits() const {
  if (!appended_.empty()) return;
  throw Error(failed_ ? "there are no logits, since the last append failed; append its tokens again"
                      : "there are no logits yet; append tokens first");
}

void Session::append(std::span<const std::vector<std::int32_t>> tokens) {
  if (tokens.size() != state_->lengths_.size())
    throw Error(
        fmt::format("tokens for {} sequences are given to a session of {}", tokens.size(), state_->lengths_.size()));
  std::size_t longest = 0;
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    check_vocabulary(tokens[b], config_);
    const std::size_t length = static_cast<std::size_t>(state_->lengths_[b]) + tokens[b].size();
    if (length > static_cast<std::size_t>(state_->capacity_))
      throw Error(
          fmt::format("the text has {} tokens, there is room for {}; shorten the prompt", length, state_->capacity_));
    longest = std::max(longest, tokens[b].size());
  }
  if (longest == 0) throw Error("there are no tokens to append; give at least one");
  std::vector<std::size_t> appended;
  for (const auto& sequence : tokens) appended.push_back(sequence.size());
  const TokenSpan span("append", std::accumulate(appended.begin(), appended.end(), std::size_t{0}));
  state_->prepare(tokens, static_cast<int>(longest));
  appended_.clear(), failed_ = true;
  state_->compute();
  state_->commit();
  for (std::size_t b = 0; b < tokens.size(); ++b) state_->lengths_[b] += static_cast<int>(tokens[b].size());
  appended_.swap(appended), failed_ = false;
}

std::vector<std::int64_t> Session::keys_of(const Sampling& sampling, std::span<const std::int64_t> streams) const {
  check(sampling);
  require_logits();
  if (!streams.empty() && streams.size() != state_->lengths_.size())
    throw Error(
        fmt::format("{} streams are given to a session of {} sequences", streams.size(), state_->lengths_.size()));
  std::vector<std::int64_t> keys;
  for (std::size_t b = 0; b < state_->lengths_.size(); ++b) {
    const std::uint64_t stream = streams.empty() ? b : static_cast<std::uint64_t>(streams[b]);
    // Multiples of the golden ratio in 61 bits keep neighboring streams apart.
    keys.push_back(static_cast<std::int64_t>(sampling.seed + stream * 0x1E3779B97F4A7C15));
  }
  return keys;
}

namespace {

void check_finite(std::int32_t token) {
  if (token < 0) throw Error("the model's logits are not finite; check its weights and the type of computation");
}

}  // namespace

std::vector<std::int32_t> Session::sample(const Sampling& sampling, std::span<const std::int64_t> streams) {
  const TokenSpan span("sample", state_->lengths_.size());
  std::vector<std::int32_t> tokens = state_->sample(sampling, keys_of(sampling, streams));
  for (std::size_t b = 0; b < tokens.size(); ++b)
    if (appended_[b] > 0) check_finite(tokens[b]);
  return tokens;
}

std::vector<std::vector<std::int32_t>> Session::sample_all(const Sampling& sampling,
                                                           std::span<const std::int64_t> streams) {
  const std::vector<std::int64_t> keys = keys_of(sampling, streams);
  if (sampling.repetition_penalty != 1)
    throw Error("tokens after each position cannot be chosen with a repetition penalty, which depends on those before");
  const TokenSpan span("sample_all", std::accumulate(appended_.begin(), appended_.end(), std::size_t{0}));
  const std::vector<std::int32_t> tokens = state_->sample_all(sampling, keys);
  const std::size_t longest = tokens.size() / appended_.size();
  std::vector<std::vector<std::int32_t>> chosen;
  for (std::size_t b = 0; b < appended_.size(); ++b) {
    const std::span of = std::span(tokens).subspan(b * longest, appended_[b]);
    std::ranges::for_each(of, check_finite);
    chosen.emplace_back(of.begin(), of.end());
  }
  return chosen;
}

void Session::run_ahead(bool ahead) { state_->runs_ahead_ = ahead; }

void Session::warm_up(std::span<const int> lengths, const std::optional<Sampling>& sampling) {
  if (sampling) check(*sampling);
  state_->launches_of(lengths, sampling).warm_up();
}

void Session::truncate(int sequence, int length) {
  const std::size_t index = index_of(sequence);
  if (length < 0 || length > state_->lengths_[index])
    throw Error(fmt::format("sequence {} has {} tokens and is to be shortened to {}", sequence, state_->lengths_[index],
                            length));
  if (length == state_->lengths_[index]) return;
  state_->truncate(sequence, length);
  state_->lengths_[index] = length;
  if (!appended_.empty()) appended_[index] = 0;
  if (std::ranges::all_of(appended_, [](std::size_t count) { return count == 0; })) appended_.clear();
}
void Session::clear(int sequence) { truncate(sequence, 0); }

void Session::copy(int sequence, const Session& from, int of) {
  const std::size_t to = index_of(sequence), source = from.index_of(of);
  const int length = from.state_->lengths_[source];
  if (!state_->has_model_of(*from.state_)) throw Error("a sequence is copied from a session of another model");
  if (length > state_->capacity_)
    throw Error(fmt::format("the text to be copied has {} tokens, there is room for {}", length, state_->capacity_));
  if (state_ == from.state_ && to == source) return;
  clear(sequence);
  state_->copy(sequence, *from.state_, of);
  state_->lengths_[to] = length;
}

std::vector<float> Session::logits() {
  require_logits();
  return state_->logits();
}
std::vector<float> Session::all_logits() {
  require_logits();
  return state_->all_logits();
}
void Session::all_logits(const Tensor<f32, 2>& logits) {
  require_logits();
  state_->all_logits(logits);
}
void Session::all_logits(const Tensor<bf16, 2>& logits) {
  require_logits();
  state_->all_logits(logits);
}
void Session::hidden_states(const Tensor<f32, 2>& states) {
  require_logits();
  state_->hidden_states(states);
}
void Session::hidden_states(const Tensor<bf16, 2>& states) {
  require_logits();
  state_->hidden_states(states);
}
std::vector<float> Session::log_probabilities(std::span<const float> logits, std::span<const std::int32_t> targets) {
  check_vocabulary(targets, config_);
  if (logits.size() != targets.size() * static_cast<std::size_t>(config_.vocab))
    throw Error(fmt::format("{} logits are given for {} tokens of a vocabulary of {}", logits.size(), targets.size(),
                            config_.vocab));
  return state_->log_probabilities(logits, targets);
}
std::size_t Session::index_of(int sequence) const {
  const std::size_t count = state_->lengths_.size();
  if (sequence < 0 || static_cast<std::size_t>(sequence) >= count)
    throw Error(fmt::format("there is no sequence {} in a session of {}", sequence, count));
  return static_cast<std::size_t>(sequence);
}
DecodeReport Session::decode_report() const { return state_->decode_report(); }
int Session::length(int sequence) const { return state_->lengths_[index_of(sequence)]; }
int Session::capacity() const { return state_->capacity_; }

}  // namespace tessera::internal
