#include "tessera/model/continuous_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <type_traits>
#include <utility>

namespace tessera::internal {
namespace {

ContinuousBatch::Options checked(ContinuousBatch::Options options, const Model& model) {
  if (options.capacity == 0) options.capacity = model.config().positions;
  if (options.prompt_tokens < 1)
    throw Error(fmt::format("a step reads at least 1 token of a prompt, not {}", options.prompt_tokens));
  return options;
}

}  // namespace

ContinuousBatch::ContinuousBatch(const Model& model, const Sampling& sampling, const Options& options)
    : sampling_(sampling),
      options_(checked(options, model)),
      config_(model.config()),
      session_(model, options_.sequences, options_.capacity),
      prompts_(model, 1, options_.capacity),
      sequences_(static_cast<std::size_t>(options_.sequences)) {
  check(sampling);
  prompts_.run_ahead(false);  // its tokens go to session_
}

std::size_t ContinuousBatch::running() const {
  return static_cast<std::size_t>(std::ranges::count_if(sequences_, [](const auto& text) { return text.has_value(); }));
}

std::optional<std::size_t> ContinuousBatch::free_sequence() const {
  const auto found = std::ranges::find_if(sequences_, [](const auto& text) { return !text; });
  if (found == sequences_.end()) return {};
  return static_cast<std::size_t>(found - sequences_.begin());
}

std::int64_t ContinuousBatch::add(TextRequest request) {
  if (request.prompt.empty()) throw Error("the prompt is empty; give at least one token");
  if (request.prompt.size() > static_cast<std::size_t>(options_.capacity))
    throw Error(fmt::format("the prompt has {} tokens, and a sequence of the batch has room for {}; shorten it",
                            request.prompt.size(), options_.capacity));
  check_vocabulary(request.prompt, config_);
  if (request.new_tokens < 1) throw Error(fmt::format("{} new tokens are requested; at least 1", request.new_tokens));
  if (options_.when_full == WhenFull::refuse && texts() >= sequences_.size())
    throw Error(
        fmt::format("all {} sequences of the batch are in use; try again when a text has ended", sequences_.size()));
  waiting_.push_back({.number = next_number_, .request = std::move(request)});
  return next_number_++;
}

void ContinuousBatch::remove(std::int64_t number) {
  std::erase_if(waiting_, [&](const Text& text) { return text.number == number; });
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (sequences_[i] && sequences_[i]->number == number) {
      session_.clear(static_cast<int>(i));
      sequences_[i].reset();
    }
}

std::vector<TextToken> ContinuousBatch::step() {
  std::exception_ptr failure;  // of a prompt: the other texts go on
  const auto of_first = [&](const auto& error) {
    using Kind = std::remove_cvref_t<decltype(error)>;
    return std::make_exception_ptr(Kind(fmt::format("text {}: {}", waiting_.front().number, error.what())));
  };
  try {
    read_prompts();
  } catch (const OutOfMemory& error) {
    failure = of_first(error);
  } catch (const Error& error) {
    failure = of_first(error);
  }
  continue_texts();
  if (failure) std::rethrow_exception(failure);
  return std::exchange(made_, {});
}

void ContinuousBatch::read_prompts() {
  int budget = options_.prompt_tokens;
  while (!waiting_.empty() && budget > 0 && !appended_) {
    const std::optional<std::size_t> sequence = free_sequence();
    if (!sequence || !read_part(waiting_.front(), budget)) return;
    Text& text = waiting_.front();
    const std::int32_t token = prompts_.sample(sampling_, std::array{text.request.stream})[0];
    session_.copy(static_cast<int>(*sequence), prompts_, 0);
    if (add_token(text, token))
      sequences_[*sequence] = std::move(text);
    else
      session_.clear(static_cast<int>(*sequence));
    waiting_.pop_front();
  }
}

// Returns whether prompts_ has the whole prompt, with logits.
bool ContinuousBatch::read_part(const Text& text, int& budget) {
  const std::vector<std::int32_t>& prompt = text.request.prompt;
  // The last token is always appended, since its logits choose the next one.
  const auto shared = std::ranges::mismatch(read_, prompt).in1 - read_.begin();
  const std::size_t known = std::min(static_cast<std::size_t>(shared), prompt.size() - 1);
  prompts_.truncate(0, static_cast<int>(known));
  read_.resize(known);
  const std::size_t count = std::min(prompt.size() - known, static_cast<std::size_t>(budget));
  const auto first = prompt.begin() + static_cast<std::ptrdiff_t>(known);
  const std::vector<std::int32_t> part(first, first + static_cast<std::ptrdiff_t>(count));
  prompts_.append(std::array{part});
  read_.insert(read_.end(), part.begin(), part.end());
  budget -= static_cast<int>(count);
  return read_.size() == prompt.size();
}

void ContinuousBatch::continue_texts() {
  if (running() == 0) {
    appended_ = false;
    return;
  }
  std::vector<std::vector<std::int32_t>> last(sequences_.size());
  std::vector<std::int64_t> streams(sequences_.size());
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (sequences_[i]) last[i] = {sequences_[i]->last}, streams[i] = sequences_[i]->request.stream;
  if (!appended_) session_.append(last);
  appended_ = true;
  const std::vector<std::int32_t> next = session_.sample(sampling_, streams);
  appended_ = false;
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (sequences_[i] && !add_token(*sequences_[i], next[i])) {
      session_.clear(static_cast<int>(i));
      sequences_[i].reset();
    }
}

bool ContinuousBatch::add_token(Text& text, std::int32_t token) {
  text.last = token;
  ++text.made;
  const auto& [prompt, ends, most, stream] = text.request;
  const std::size_t length = prompt.size() + static_cast<std::size_t>(text.made);
  const FinishReason reason = std::ranges::find(ends, token) != ends.end()           ? FinishReason::end_token
                              : text.made == most                                    ? FinishReason::new_tokens
                              : length > static_cast<std::size_t>(options_.capacity) ? FinishReason::capacity
                                                                                     : FinishReason::none;
  made_.push_back({text.number, token, reason});
  return reason == FinishReason::none;
}

}  // namespace tessera::internal
