#include "common/output_text.hpp"

#include <algorithm>

namespace tessera::internal {

std::string_view name(Ending ending) {
  switch (ending) {
    case Ending::end_token:
      return "eos";
    case Ending::stop_text:
      return "stop";
    case Ending::length:
      return "length";
    case Ending::context:
      return "context";
    case Ending::interrupt:
      return "interrupt";
    case Ending::failure:
      return "error";
  }
  return "";
}

void OutputText::begin(const Ids& ids) {
  if (!tokens_) return;
  tokens_->begin();
  for (const std::int32_t id : ids) {
    const std::string_view bytes = tokens_->push(id);
    bytes_ += bytes;
    prompt += utf8_.push(bytes);
  }
}

std::string OutputText::push(std::int32_t id, bool end) {
  ids.push_back(id);
  if (!tokens_ || end) return {};
  const std::string_view bytes = tokens_->push(id);
  bytes_ += bytes;
  return pass(stop_.push(utf8_.push(bytes)));
}

std::string OutputText::finish() {
  const std::string held = stop_.push(utf8_.finish());
  return pass(held + stop_.finish());
}

std::string OutputText::pass(std::string_view certain) {
  text += certain;
  return std::string(certain);
}

void generate_tokens(Generation& texts, const GenerationParams& params, std::vector<OutputText>& written,
                     const Interrupt& interrupt,
                     const std::function<void(std::size_t, std::int32_t, std::string_view)>& hand_out) {
  for (;;) {
    std::vector<std::size_t> going;
    for (std::size_t i = 0; i < written.size(); ++i) {
      OutputText& one = written[i];
      if (!one.ending && one.ids.size() >= one.most) one.ending = Ending::length;
      if (!one.ending && texts.is_full(i) && !params.context_shift) one.ending = Ending::context;
      if (!one.ending && interrupt.heard()) one.ending = Ending::interrupt;
      if (!one.ending) going.push_back(i);
    }
    if (going.empty()) return;
    const Ids tokens = texts.step(params, going);
    for (std::size_t i = 0; i < going.size(); ++i) {
      OutputText& one = written[going[i]];
      const bool end = std::ranges::find(params.ends, tokens[i]) != params.ends.end();
      const std::string certain = one.push(tokens[i], end);
      if (end) one.ending = Ending::end_token;
      if (one.stopped()) one.ending = Ending::stop_text;
      hand_out(going[i], tokens[i], certain);
    }
  }
}

}  // namespace tessera::internal
