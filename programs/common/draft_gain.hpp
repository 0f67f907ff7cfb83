// Do drafts pay?
#pragma once
#include <algorithm>
#include <cstddef>

namespace tessera::internal {

/// Compares the time of a token with and without drafts, by steps that were measured. While drafts are slower, they are
/// tried now and then, since texts change.
class DraftGain {
 public:
  /// Is the next step to verify a draft, if there is one?
  bool drafts() {
    if (plain_.count < unknown) return false;
    return !is_slower() || ++refused_ > pause_;
  }
  /// A step without a draft; and one with a draft, of which so many tokens were new ones of the text.
  void plain(double milliseconds) { plain_.add(milliseconds, 1); }
  void drafted(double milliseconds, std::size_t tokens) {
    drafted_.add(milliseconds, static_cast<double>(tokens));
    refused_ = 0, pause_ = is_slower() ? std::min(2 * pause_, longest_pause) : shortest_pause;
  }

 private:
  static constexpr int ignored = 2;                              // steps that compile kernels, and record graphs
  static constexpr int unknown = ignored + 2;                    // steps that tell nothing yet
  static constexpr int shortest_pause = 8, longest_pause = 256;  // steps

  struct Mean {
    int count = 0;
    double milliseconds = 0, tokens = 0;
    void add(double more_milliseconds, double more_tokens) {
      if (++count <= ignored) return;
      const double share = count == ignored + 1 ? 1.0 : 0.2;  // of the newest step
      milliseconds += share * (more_milliseconds - milliseconds);
      tokens += share * (more_tokens - tokens);
    }
    double each() const { return milliseconds / tokens; }
  };
  bool is_slower() const { return drafted_.count >= unknown && drafted_.each() > plain_.each(); }

  Mean plain_, drafted_;
  int refused_ = 0, pause_ = shortest_pause;
};

}  // namespace tessera::internal
