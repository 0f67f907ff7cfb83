// Drafts of further tokens, by a smaller model.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/model/session.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Guesses how a text goes on: as a smaller model with the same vocabulary would continue it (speculative decoding,
/// Leviathan et al., 2023). Session::sample_all() of the larger model verifies the draft.
class DraftModel {
 public:
  /// For texts of up to `capacity` tokens, or as many as the model has positions for.
  DraftModel(const Model& model, int capacity);

  /// Computes all of a text but its last token, as far as it differs from that of the last call. draft() does so, too.
  void read(std::span<const std::int32_t> text);
  /// The `count` tokens that the model chooses behind a text of at least one token; fewer, or none, if there is no
  /// room. They are drawn with the seed, stream and position with which Session::sample() draws tokens of the text, so
  /// that similar models choose equal ones. Tokens shared with the text of the last call are not computed again.
  /// Error as Session::append() and Session::sample().
  std::vector<std::int32_t> draft(std::span<const std::int32_t> text, std::size_t count, const Sampling& sampling,
                                  std::int64_t stream = 0);

 private:
  Session session_;
  bool runs_ahead_;
  std::vector<std::int32_t> text_;  // that the session holds
};

}  // namespace internal
}  // namespace tessera
