#include "common/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

std::size_t GenerationParams::most(std::size_t prompt) const {
  if (!max_length) return new_tokens;
  if (prompt >= *max_length)
    throw Error(
        fmt::format("the prompt has {} tokens, and max_length in generation_config.json of the model is {}; set the "
                    "number of new tokens with -n",
                    prompt, *max_length));
  return *max_length - prompt;
}

std::int32_t first_token(const TransformerConfig& config) {
  // A token outside of the vocabulary cannot begin a text.
  if (config.bos && *config.bos >= 0 && *config.bos < config.vocab) return *config.bos;
  for (const std::int32_t id : config.eos)
    if (id >= 0 && id < config.vocab) return id;
  throw Error("the prompt is empty, and the model has no token to begin with");
}

Generation::Generation(const Model& model, std::size_t texts, int capacity, Timings& timings, const Model* drafter)
    : config_(model.config()),
      positions_(static_cast<std::size_t>(config_.positions)),
      session_(model, static_cast<int>(texts), capacity),
      clock_(model.device().stream()),
      timings_(timings),
      tokens_(texts),
      streams_(texts),
      shifts_(texts),
      first_(texts),
      given_(texts) {
  std::iota(streams_.begin(), streams_.end(), 0);
  if (drafter) drafter_.emplace(*drafter, capacity);
}

void Generation::append(std::size_t text, const Ids& ids, const GenerationParams& params) {
  check_vocabulary(ids, config_);
  discard_verified();
  const std::size_t held = tokens_.at(text).size(), all = held + ids.size();
  if (all > positions_ && (held == 0 || !params.context_shift || ids.size() + kept(text, params) + 1 > positions_))
    throw Error(held == 0 ? fmt::format("the prompt has {} tokens, the model's context {}; shorten it", all, positions_)
                          : fmt::format("the text has {} tokens and gets {} more, the model's context {}", held,
                                        ids.size(), positions_));
  tokens_[text].insert(tokens_[text].end(), ids.begin(), ids.end());
  given_[text] = given_[text] || !ids.empty();
  if (held == 0) first_[text] = ids.size();
  while (tokens_[text].size() > positions_) shift(text, params);
}

void Generation::replace(std::size_t text, const Ids& ids) {
  check_vocabulary(ids, config_);
  if (ids.size() > positions_)
    throw Error(fmt::format("the prompt has {} tokens, the model's context {}; shorten it", ids.size(), positions_));
  if (ids.empty()) return clear(text);
  discard_verified();
  const auto common = static_cast<std::size_t>(std::ranges::mismatch(tokens_.at(text), ids).in1 - tokens_[text].begin());
  const std::size_t kept = std::min(common, ids.size() - 1);  // the last token is always evaluated
  if (evaluated(text) > kept) session_.truncate(static_cast<int>(text), static_cast<int>(kept));
  tokens_[text] = ids;
  given_[text] = true;
  first_[text] = ids.size();
}

void Generation::clear(std::size_t text) {
  discard_verified();
  session_.clear(static_cast<int>(text));
  tokens_.at(text).clear();
  shifts_[text] = 0;
}

std::size_t Generation::kept(std::size_t text, const GenerationParams& params) const {
  return params.keep.value_or(std::min(first_[text], positions_ - 2));
}

void Generation::shift(std::size_t text, const GenerationParams& params) {
  Ids& tokens = tokens_[text];
  const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(kept(text, params));
  tokens.erase(begin, begin + (tokens.end() - begin) / 2);
  session_.clear(static_cast<int>(text));
  ++shifts_[text];
}

void Generation::discard_verified() {
  if (verified_.empty()) return;
  verified_.clear();
  const std::size_t read = tokens_[0].size() - 1;  // the last token is always evaluated by the next step
  if (evaluated(0) > read) session_.truncate(0, static_cast<int>(read));
}

void Generation::add(std::size_t text, std::int32_t token, const GenerationParams& params) {
  if (std::ranges::find(params.ends, token) == params.ends.end()) {
    tokens_[text].push_back(token);
  } else if (!verified_.empty()) {
    verified_.clear();
    session_.truncate(0, static_cast<int>(tokens_[text].size()));
  }
}

Ids Generation::draft(const GenerationParams& params, std::int64_t stream) {
  Ids draft;
  if (drafter_) {
    clock_.time(timings_.draft,
                [&] { draft = drafter_->draft(tokens_[0], params.draft_tokens, params.sampling, stream); });
  } else {
    lookup_.read(tokens_[0]);
    draft = lookup_.draft(params.draft_tokens);
  }
  return draft;
}

bool Generation::verify_draft(const GenerationParams& params, std::span<const std::int64_t> streams) {
  const std::size_t before = evaluated(0), room = static_cast<std::size_t>(session_.capacity()) - before;
  if (tokens_[0].size() - before != 1 || given_[0] || room < params.draft_tokens + 1) return false;
  const Ids draft = this->draft(params, streams[0]);
  if (draft.empty()) return false;
  Ids appended{tokens_[0].back()};
  appended.insert(appended.end(), draft.begin(), draft.end());
  clock_.time(timings_.evaluate, [&] { session_.append(std::vector<Ids>{appended}); });
  Ids chosen;
  clock_.time(timings_.sample, [&] { chosen = session_.sample_all(params.sampling, streams)[0]; });
  const auto accepted = static_cast<std::size_t>(std::ranges::mismatch(draft, chosen).in1 - draft.begin());
  session_.truncate(0, static_cast<int>(before + 1 + accepted));
  verified_.assign(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(accepted) + 1);
  timings_.evaluated += verified_.size(), timings_.sampled += verified_.size();
  timings_.drafted += draft.size(), timings_.accepted += accepted;
  clock_.read();
  return true;
}

Ids Generation::step(const GenerationParams& params, std::span<const std::size_t> texts) {
  std::vector<std::int64_t> streams = streams_;
  for (const std::size_t text : texts) {
    if (is_full(text)) discard_verified(), shift(text, params);
    // Positions repeat after a shift; random numbers must not.
    streams[text] += shifts_[text] << 32;
  }
  const bool may_draft = params.draft_tokens > 0 && tokens_.size() == 1 && !given_[0];
  const bool drafts = may_draft && verified_.empty() && gain_.drafts();
  // A draft model may have missed tokens while there were no drafts.
  if (drafts && drafter_) clock_.time(timings_.draft, [&] { drafter_->read(tokens_[0]); });
  const Stopwatch stopwatch;
  if (drafts && verify_draft(params, streams)) gain_.drafted(stopwatch.milliseconds(), verified_.size());
  if (!verified_.empty()) {
    const std::int32_t token = verified_.front();
    verified_.pop_front();
    add(0, token, params);
    return {token};
  }
  std::vector<std::int32_t> chosen(tokens_.size());
  // Texts that get one token and texts that get several use different kernels, so that no text depends on how many
  // tokens the others get.
  for (const bool one : {true, false}) {
    std::vector<Ids> waiting(tokens_.size());
    std::size_t count = 0, sampled = 0;
    bool given = false;
    for (const std::size_t text : texts) {
      const std::size_t from = evaluated(text);
      if ((tokens_[text].size() - from == 1) != one) continue;
      waiting[text].assign(tokens_[text].begin() + static_cast<std::ptrdiff_t>(from), tokens_[text].end());
      count += waiting[text].size(), ++sampled;
      given = given || given_[text];
    }
    if (count == 0) continue;
    clock_.time(given ? timings_.prompt : timings_.evaluate, [&] { session_.append(waiting); });
    (given ? timings_.prompt_tokens : timings_.evaluated) += count;
    Ids next;
    clock_.time(timings_.sample, [&] { next = session_.sample(params.sampling, streams); });
    timings_.sampled += sampled;
    clock_.read();
    for (const std::size_t text : texts)
      if (!waiting[text].empty()) chosen[text] = next[text], given_[text] = false;
  }
  if (may_draft) gain_.plain(stopwatch.milliseconds());
  Ids tokens;
  for (const std::size_t text : texts) {
    tokens.push_back(chosen[text]);
    add(text, chosen[text], params);
  }
  return tokens;
}

}  // namespace tessera::internal
