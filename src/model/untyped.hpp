// A model, and the sequences of a session, as far as they do not depend on element types.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/jit/sequence.hpp"
#include "tessera/model/session.hpp"

namespace tessera::internal {

/// The model, independent of its element types.
class Model::Network {
 public:
  Network(Device device, TransformerConfig config, DecodeForm form)
      : device_(std::move(device)), config_(std::move(config)), decode_form_(form) {}
  virtual ~Network() = default;
  virtual std::unique_ptr<Session::State> session(std::shared_ptr<const Network> self, int batch,
                                                  int capacity) const = 0;
  const Device& device() const { return device_; }
  const TransformerConfig& config() const { return config_; }
  DecodeForm decode_form() const { return decode_form_; }

 private:
  Device device_;
  TransformerConfig config_;
  DecodeForm decode_form_;
};

using Tokens = std::span<const std::vector<std::int32_t>>;

/// The sequences of a session, independent of its element types.
class Session::State {
 public:
  State(const TransformerConfig& config, int batch, int capacity) : capacity_(capacity) {
    if (batch < 1) throw Error(fmt::format("a session has at least 1 sequence, not {}", batch));
    if (capacity < 1 || capacity > config.positions)
      throw Error(fmt::format("{} positions are requested; the model supports 1 to {}", capacity, config.positions));
    lengths_.resize(static_cast<std::size_t>(batch));
  }
  virtual ~State() = default;
  // A step has three parts: prepare() may fail and changes nothing; compute() changes activations, logits, unused parts
  // of the cache, and the device's lengths and tokens; commit() makes the tokens part of the text, on the host.
  virtual void prepare(Tokens tokens, int longest) = 0;
  virtual void compute() = 0;
  virtual void commit() noexcept = 0;
  virtual std::vector<std::int32_t> sample(const Sampling& sampling, const std::vector<std::int64_t>& keys) = 0;
  /// Tokens [B,longest] after each position of the last step.
  virtual std::vector<std::int32_t> sample_all(const Sampling& sampling, const std::vector<std::int64_t>& keys) = 0;
  virtual void truncate(int sequence, int length) = 0;
  virtual bool has_model_of(const State& other) const = 0;
  /// Copies the text, keys and values of a sequence of the same model to an empty one.
  virtual void copy(int sequence, const State& from, int of) = 0;
  /// The launches of append() for each length, of sample() behind the first, and of sample_all() behind further ones
  /// above 1. Throws Error for a length that does not fit.
  virtual Sequence launches_of(std::span<const int> lengths, const std::optional<Sampling>& sampling) const = 0;
  virtual DecodeReport decode_report() const = 0;
  virtual std::vector<float> logits() = 0;
  virtual std::vector<float> all_logits() = 0;
  virtual void all_logits(const Tensor<f32, 2>& logits) = 0;
  virtual void all_logits(const Tensor<bf16, 2>& logits) = 0;
  virtual void hidden_states(const Tensor<f32, 2>& states) = 0;
  virtual void hidden_states(const Tensor<bf16, 2>& states) = 0;
  virtual std::vector<float> log_probabilities(std::span<const float> logits,
                                               std::span<const std::int32_t> targets) = 0;

  std::vector<int> lengths_;
  int capacity_;
  bool runs_ahead_ = false;
};

}  // namespace tessera::internal
