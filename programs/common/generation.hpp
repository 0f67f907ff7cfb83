// Texts that a model continues side by side, a token of each at a time.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "common/timings.hpp"
#include "tessera/model/gpt2.hpp"

namespace tessera::internal {

using Ids = std::vector<std::int32_t>;

/// How texts go on.
struct GenerationParams {
  Sampling sampling;
  Ids ends;                                 ///< tokens that end a text
  std::size_t new_tokens = 200;             ///< of a text, at most
  std::optional<std::size_t> max_length{};  ///< tokens of prompt and text together, in place of new_tokens
  bool context_shift =
      false;  ///< a text that fills the context loses the older half of what stands behind `keep` tokens
  std::optional<std::size_t> keep{};  ///< at most 2 less than the context has; none: as many as it began with

  /// New tokens of a text whose prompt has so many. Error if max_length leaves none.
  std::size_t most(std::size_t prompt) const;
};

/// What the model was taught that a text begins with; GPT-2 has one token for that and for the end. Error if it has
/// none.
std::int32_t first_token(const Gpt2Config& config);

/// Error, naming the first that is not in it.
void check_vocabulary(const Ids& ids, const Gpt2Config& config);

/// Compiles what continues so many texts, if the device is a GPU: so that the time is not spent when a text has begun.
void compile_ahead(const Gpt2& model, std::size_t texts, const Sampling& sampling);

class Generation {
 public:
  /// Room for so many texts of up to `capacity` tokens. Time that the device takes is added to `timings`.
  Generation(const Gpt2& model, std::size_t texts, int capacity, Timings& timings);

  /// Puts tokens behind a text. Error, and nothing changed, if the context cannot hold them, even after a shift, if the
  /// course has one, or if one is not in the vocabulary.
  void append(std::size_t text, const Ids& ids, const GenerationParams& params);
  void clear(std::size_t text);
  /// What tells the draws of texts with one seed apart.
  void set_stream(std::size_t text, std::int64_t stream) { streams_.at(text) = stream; }

  bool is_empty(std::size_t text) const { return tokens_.at(text).empty(); }
  /// Could a step choose another token, or was the last to come an end?
  bool can_continue(std::size_t text) const { return evaluated(text) < tokens_.at(text).size(); }
  bool is_full(std::size_t text) const { return tokens_.at(text).size() >= positions_; }

  /// Chooses the next token of each of `texts`, which becomes part of the text unless it is an end. Each can go on, and
  /// is not full unless the course shifts. The tokens are in the order of `texts`.
  Ids step(const GenerationParams& params, std::span<const std::size_t> texts);

 private:
  std::size_t evaluated(std::size_t text) const {
    return static_cast<std::size_t>(session_.length(static_cast<int>(text)));
  }
  std::size_t kept(std::size_t text, const GenerationParams& params) const;
  void shift(std::size_t text, const GenerationParams& params);

  Gpt2Config config_;
  std::size_t positions_;
  Session session_;
  DeviceClock clock_;
  Timings& timings_;
  std::vector<Ids> tokens_;  // of each text; the session has the first of them
  std::vector<std::int64_t> streams_, shifts_;
  std::vector<std::size_t> first_;  // tokens of the first append()
  std::vector<bool> given_;         // does what the session does not have come from append()?
};

}  // namespace tessera::internal
