// GPT-2: a model on a device, and sequences that grow in it. Every computation is a kernel of kernels.hpp.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/api/tensor.hpp"
#include "tessera/model/checkpoint.hpp"
#include "tessera/model/sampling.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The element type of the operands of products; what is added up is f32. For tf32, activations are f32 in memory; for
/// bf16, they are bf16 and weights become bf16. Else weights stay in memory as they are.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // GCC takes a scoped name to hide the type of that name
enum class Compute : std::uint8_t { f32, tf32, bf16 };
#pragma GCC diagnostic pop
/// "f32", "tf32" or "bf16"; Error otherwise.
Compute parse_compute(std::string_view text);

class Session;

/// A model ready to run: weights on a device, kernels traced. Immutable; may be shared by sessions.
class Gpt2 {
 public:
  /// Hears, while weights are read, which part of the file has been: rising, above 0 and at most 1.
  using Progress = std::function<void(double)>;

  /// Weights of a checkpoint, read into memory of the device: the file is no longer needed.
  Gpt2(const Device& device, const Checkpoint& checkpoint, Compute compute = Compute::f32, const Progress& = {});
  /// Random weights: matrices of deviation 0.02, norms the identity. Same seed, same model.
  Gpt2(const Device& device, const Gpt2Config& config, std::uint64_t seed, Compute compute = Compute::f32);

  const Gpt2Config& config() const;
  const Device& device() const;

  class Network;

 private:
  friend class Session;
  std::shared_ptr<const Network> network_;
};

/// A batch of sequences with their keys and values: prompts of different lengths go in, then one token each at a time.
///
/// A call that throws leaves the session as it was, with one exception: an append() that fails when its computation has
/// begun leaves the text as it was, but no logits; what needs them throws Error until an append() succeeds. If the very
/// end of a step fails, the session is lost, and every later call says so.
class Session {
 public:
  /// Room for `batch` sequences of up to `capacity` positions; Error if the model has fewer.
  Session(const Gpt2& model, int batch, int capacity);
  ~Session();
  Session(Session&&) noexcept;

  /// Appends tokens to each sequence: a prompt, or more of it; a sequence with none stays as it is. Error, and nothing
  /// changed, on an id outside of the vocabulary, on too many positions, if no sequence gets a token, and if there is
  /// no memory for the step.
  void append(std::span<const std::vector<std::int32_t>> tokens);

  /// Chooses each sequence's next token from the logits of its last one; it is not appended. Error if a logit of a
  /// sequence in the last append() is not finite; sequences that were not in it give a token that means nothing.
  /// `streams`, one for each sequence, are what tells the draws of sequences with one seed apart, by default their
  /// numbers: same seed, stream, position and logits, same token, whatever the sequences beside it.
  std::vector<std::int32_t> sample(const Sampling& sampling, std::span<const std::int64_t> streams = {});

  /// Makes a sequence empty, as a new one is; it gives no token until tokens are appended to it. Should that fail, the
  /// session is lost.
  void clear(int sequence);

  /// Logits [batch, vocab] of each sequence's last token, for those in the last append().
  std::vector<float> logits() const;
  /// Logits [batch, longest, vocab] at every position of the last append(), shorter sequences padded with no meaning.
  std::vector<float> all_logits();
  /// log softmax of logits [rows, vocab], on the host, at one target token per row.
  std::vector<float> log_probabilities(std::span<const float> logits, std::span<const std::int32_t> targets);

  /// Positions used by a sequence.
  int length(int sequence) const;
  int capacity() const;

  class State;

 private:
  void require_not_lost() const;
  void require_logits() const;
  std::size_t index_of(int sequence) const;

  std::unique_ptr<State> state_;
  Gpt2Config config_;
  std::vector<bool> appended_;  // which sequences the logits belong to; empty: there are none
  bool failed_ = false;         // since the last append() failed
  bool lost_ = false;
};

}  // namespace internal
}  // namespace tessera
