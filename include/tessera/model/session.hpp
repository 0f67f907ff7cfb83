// Sequences that grow in a model. All computation is in the kernels of kernels.hpp.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/api/tensor.hpp"
#include "tessera/model/model.hpp"
#include "tessera/model/sampling.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The form in which a step ran.
struct DecodeReport {
  DecodeForm form = DecodeForm::plain;
  std::string why_not = {};  ///< why a form that was asked for was not possible; empty: it was
  /// On a GPU, why steps of few sequences have the kernels of many; empty: they have their own.
  std::string why_general = {};
  std::vector<std::string> launches = {};  ///< the names of the kernels of a step, in order
};

/// A batch of sequences with their keys and values: prompts of different lengths first, then one token each at a time.
///
/// A call that throws leaves the session as it was, with one exception: if an append() fails after its computation
/// began, the text is unchanged but there are no logits; functions that need them throw Error until an append()
/// succeeds.
class Session {
 public:
  /// Space for `batch` sequences of up to `capacity` positions; Error if the model has fewer.
  Session(const Model& model, int batch, int capacity);
  ~Session();
  Session(Session&&) noexcept;

  /// Compiles, on several threads, the kernels of append() for each of these lengths (tokens of the longest sequence)
  /// and of sample(), which comes after the first; runs nothing. Returns when all are compiled. Error for a length that
  /// is not in [1, capacity()], for no memory, or as Sequence::warm_up.
  void warm_up(std::span<const int> lengths, const std::optional<Sampling>& sampling = Sampling());

  /// Appends tokens to each sequence: a prompt, or more of it; a sequence without tokens is unchanged. Error, without
  /// any change, if an id is outside of the vocabulary, if there are too many positions, if no sequence gets a token,
  /// or if there is no memory for the step.
  void append(std::span<const std::vector<std::int32_t>> tokens);

  /// Chooses the next token of each sequence from the logits of its last one, and does not append it. Error if a logit
  /// of a sequence in the last append() is not finite; the tokens of sequences that were not in it are meaningless.
  /// `streams`, one for each sequence, distinguish the random draws of sequences with the same seed; the default is
  /// their numbers. Same seed, stream, position and logits, same token, independent of the other sequences.
  std::vector<std::int32_t> sample(const Sampling& sampling, std::span<const std::int64_t> streams = {});

  /// Chooses the token that follows each new position of the last append(): for each sequence as many as it got. The
  /// token after position i is the one that sample() chooses if the append ends there. So a draft of several tokens can
  /// be verified by one append, and truncate() removes what was wrong (speculative decoding, Leviathan et al., 2023).
  /// Error as sample(), and for a repetition penalty other than 1.
  std::vector<std::vector<std::int32_t>> sample_all(const Sampling& sampling,
                                                    std::span<const std::int64_t> streams = {});

  /// Does sample() begin the step that appends its tokens, before the host knows them? The results are the same, and
  /// the device does not wait for the host. The default on a GPU; a caller that appends other tokens than those sampled
  /// may turn it off.
  void run_ahead(bool ahead);

  /// Shortens a sequence to its first `length` tokens; if it becomes shorter, it has no next token until tokens are
  /// appended to it. Error for a length below 0 or above that of the sequence.
  void truncate(int sequence, int length);
  /// Empties a sequence, as in a new session: truncate(sequence, 0).
  void clear(int sequence);

  /// Makes a sequence a copy of another one, of this or another session of the same model: its text, keys and values,
  /// which are not computed again. It has no next token until tokens are appended to it. Error, without any change, if
  /// the models differ or the text does not fit; if the copy fails, the sequence is empty.
  void copy(int sequence, const Session& from, int of);

  /// Logits [batch, vocab] of each sequence's last token, for those in the last append().
  std::vector<float> logits();
  /// Logits [batch, longest, vocab] at every position of the last append(); the padding of shorter sequences is
  /// meaningless.
  std::vector<float> all_logits();
  /// The same, written to a tensor [batch * longest, columns] on the model's device, in the order of the device's
  /// stream, without a copy to the host. It has a column for each token, or more, which become 0: rows of a multiple of
  /// 16 bytes are written several times as fast. The tensor is the caller's: it may be used for any number of calls,
  /// and may outlive the session. Rows of sequences that got no token are meaningless, or not written. Error if it has
  /// another number of rows, or too few columns.
  void all_logits(const Tensor<f32, 2>& logits);
  void all_logits(const Tensor<bf16, 2>& logits);
  /// The hidden states at every position of the last append(), behind the last norm; logits are their products with the
  /// head. Written to a tensor [batch * longest, width] on the model's device, as all_logits() does. Error if it has
  /// other extents.
  void hidden_states(const Tensor<f32, 2>& states);
  void hidden_states(const Tensor<bf16, 2>& states);
  /// log softmax of logits [rows, vocab], on the host, at one target token per row.
  std::vector<float> log_probabilities(std::span<const float> logits, std::span<const std::int32_t> targets);

  /// The form in which steps of one token run, of the number of sequences in the last append(); plain before the first.
  DecodeReport decode_report() const;

  /// The number of positions used by a sequence.
  int length(int sequence) const;
  int capacity() const;

  class State;

 private:
  void require_logits() const;
  std::vector<std::int64_t> keys_of(const Sampling& sampling, std::span<const std::int64_t> streams) const;
  std::size_t index_of(int sequence) const;

  std::unique_ptr<State> state_;
  TransformerConfig config_;
  std::vector<std::size_t> appended_;  // tokens of each sequence with logits, 0 for others; empty: there are no logits
  bool failed_ = false;                // the last append() failed
};

}  // namespace internal
}  // namespace tessera
