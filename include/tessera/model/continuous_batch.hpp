// Texts that join and leave a batch while it runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "tessera/model/session.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A text to be continued.
struct TextRequest {
  std::vector<std::int32_t> prompt{};      ///< at least one token
  std::vector<std::int32_t> end_tokens{};  ///< each ends the text
  int new_tokens = 200;                    ///< at most; at least 1
  /// Distinguishes the random draws of texts with the same seed; see Session::sample().
  std::int64_t stream = 0;
};

/// Why a text ended: at an end token, with as many new tokens as requested, or since the sequence is full.
enum class FinishReason : std::uint8_t { none, end_token, new_tokens, capacity };

/// A new token of a text, which may be its last one.
struct TextToken {
  std::int64_t text;
  std::int32_t token;
  FinishReason finished;
};

/// Generates any number of texts with the sequences of one session: a text joins when a sequence is free, and leaves
/// when it ends (continuous batching; Orca, Yu et al., 2022). Prompts are read in a session of their own, so that they
/// cause no padding, and in parts, so that they do not delay other texts for long (chunked prefill). A beginning that a
/// prompt shares with the one before is read once. A text has the tokens that it would have alone, but for two tokens
/// of almost equal probability, since sums may have another order. A step computes all sequences, also those that are
/// free.
class ContinuousBatch {
 public:
  /// Without a free sequence, add() keeps the text until one is free, or refuses it.
  enum class WhenFull : std::uint8_t { queue, refuse };
  struct Options {
    int sequences = 8;        ///< texts at a time
    int capacity = 0;         ///< tokens of a text with its prompt; 0: the positions of the model
    int prompt_tokens = 512;  ///< read in a step, at most
    WhenFull when_full = WhenFull::queue;
  };

  /// Error as Session, for a sampling that check() rejects, or for options that are not positive.
  ContinuousBatch(const Model& model, const Sampling& sampling, const Options& options);

  /// Takes a text, and returns its number: 0, 1, ... Error, without any change, if the prompt is empty, has tokens that
  /// are not in the vocabulary, or is longer than the capacity, if no new token is requested, or if the batch is full
  /// and is to refuse texts then.
  std::int64_t add(TextRequest request);
  /// Ends a text early; nothing happens if it has ended.
  void remove(std::int64_t text);

  /// Reads prompts of waiting texts, as far as sequences are free, and then continues every text that has a sequence by
  /// a token, also those that just got their first one. Returns the new tokens, in that order. Error as
  /// Session::append() and Session::sample(), which names the text if a prompt is at fault; the others go on then. No
  /// token is lost, and a further call tries again.
  std::vector<TextToken> step();

  /// Texts that have not ended, and those of them that have no sequence yet.
  std::size_t texts() const { return waiting_.size() + running(); }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Text {
    std::int64_t number;
    TextRequest request;
    std::int32_t last = 0;  ///< the newest token, which the session has not
    int made = 0;           ///< new tokens
  };
  std::size_t running() const;
  std::optional<std::size_t> free_sequence() const;
  void read_prompts();
  bool read_part(const Text& text, int& budget);
  void continue_texts();
  /// Adds the token to the text; returns whether the text goes on.
  bool add_token(Text& text, std::int32_t token);

  Sampling sampling_;
  Options options_;
  TransformerConfig config_;
  Session session_, prompts_;                   // the second has one sequence
  std::vector<std::int32_t> read_;              // the tokens of prompts_
  std::deque<Text> waiting_;                    // the prompt of the first may be read in part
  std::vector<std::optional<Text>> sequences_;  // of session_; none: free
  std::vector<TextToken> made_;                 // that step() has not returned yet
  std::int64_t next_number_ = 0;
  bool appended_ = false;  // are the last tokens of all running texts appended, and only the next ones missing?
};

}  // namespace internal
}  // namespace tessera
