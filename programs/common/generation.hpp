// Texts that a model continues side by side, one token each per step.
#pragma once
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "common/draft_gain.hpp"
#include "common/timings.hpp"
#include "tessera/model/draft_model.hpp"
#include "tessera/model/prompt_lookup.hpp"
#include "tessera/model/session.hpp"

namespace tessera::internal {

using Ids = std::vector<std::int32_t>;

/// Parameters of text generation.
struct GenerationParams {
  Sampling sampling;
  Ids ends;                                 ///< tokens that end a text
  std::size_t new_tokens = 200;             ///< per text, at most
  std::optional<std::size_t> max_length{};  ///< limit for prompt and text together, instead of new_tokens
  bool context_shift = false;  ///< when the context is full, drops the older half of the tokens after the first `keep`
  /// Tokens of a draft, which the model verifies at once; 0: no drafts. For one text, without a repetition penalty.
  std::size_t draft_tokens = 0;
  std::optional<std::size_t> keep{};  ///< at most the context minus 2; none: as many tokens as the text began with

  /// The most new tokens for a prompt of so many tokens. Throws Error if max_length leaves none.
  std::size_t most(std::size_t prompt) const;
};

/// The token with which the model was trained to begin a text; GPT-2 uses one token for the beginning and the end.
/// Throws Error if there is none.
std::int32_t first_token(const TransformerConfig& config);

class Generation {
 public:
  /// For so many texts of up to `capacity` tokens. Drafts are made by `drafter`, if there is one, else by prompt
  /// look-up. The device's time is added to `timings`.
  Generation(const Model& model, std::size_t texts, int capacity, Timings& timings, const Model* drafter = nullptr);

  /// Appends tokens to a text. Throws Error, and changes nothing, if the context cannot hold them (after a shift, if
  /// `params` permits one), or if a token is not in the vocabulary.
  void append(std::size_t text, const Ids& ids, const GenerationParams& params);
  /// Makes a text these tokens. The beginning that it shares with the text before is not evaluated again. Throws Error, and
  /// changes nothing, if the context cannot hold them, or if a token is not in the vocabulary.
  void replace(std::size_t text, const Ids& ids);
  void clear(std::size_t text);
  /// Sets the random stream, which distinguishes texts with the same seed.
  void set_stream(std::size_t text, std::int64_t stream) { streams_.at(text) = stream; }

  /// The form in which steps of one token run.
  DecodeReport decode_report() const { return session_.decode_report(); }

  bool is_empty(std::size_t text) const { return tokens_.at(text).empty(); }
  /// True if a step could choose another token; false if the last one was an end.
  bool can_continue(std::size_t text) const { return !verified_.empty() || evaluated(text) < tokens_.at(text).size(); }
  bool is_full(std::size_t text) const { return tokens_.at(text).size() >= positions_; }

  /// Chooses the next token of each of `texts` and appends it to the text, unless it is an end. Each text must be able
  /// to continue, and must not be full unless `params` shifts the context. Returns the tokens in the order of `texts`.
  Ids step(const GenerationParams& params, std::span<const std::size_t> texts);

 private:
  std::size_t evaluated(std::size_t text) const {
    return static_cast<std::size_t>(session_.length(static_cast<int>(text)));
  }
  std::size_t kept(std::size_t text, const GenerationParams& params) const;
  void shift(std::size_t text, const GenerationParams& params);

  Ids draft(const GenerationParams& params, std::int64_t stream);
  /// Chooses the next token of the only text, and perhaps some that follow it: appends a draft to verified_. Returns
  /// false, and does nothing, without a draft.
  bool verify_draft(const GenerationParams& params, std::span<const std::int64_t> streams);
  /// Forgets tokens that are verified, but not yet part of the text.
  void discard_verified();
  /// Ends a step: the token that it chose for a text.
  void add(std::size_t text, std::int32_t token, const GenerationParams& params);

  TransformerConfig config_;
  std::size_t positions_;
  Session session_;
  DeviceClock clock_;
  Timings& timings_;
  std::vector<Ids> tokens_;  // of each text; the session holds a prefix
  std::vector<std::int64_t> streams_, shifts_;
  std::vector<std::size_t> first_;  // number of tokens of the first append()
  std::vector<bool> given_;         // do the tokens that the session lacks come from append()?

  // Drafts need a single text; these belong to it.
  std::optional<DraftModel> drafter_;
  PromptLookup lookup_;
  DraftGain gain_;
  std::deque<std::int32_t> verified_;  // the next tokens; the session holds all but the last
};

}  // namespace tessera::internal
