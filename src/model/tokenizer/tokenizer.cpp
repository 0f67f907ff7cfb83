#include "tessera/model/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/tokenizer/engine.hpp"
#include "model/tokenizer/read.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {

Tokenizer::Tokenizer(TokenizerSpec spec) : engine_(std::make_shared<const TokenizerEngine>(std::move(spec))) {}

Tokenizer Tokenizer::open(const std::filesystem::path& folder) { return Tokenizer(read_tokenizer(folder)); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, TextPlace place) const {
  return engine_->encode(text, place);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string bytes;
  TokenBytes text(*this);
  for (const std::int32_t id : ids) bytes += text.push(id);
  return replace_invalid_utf8(bytes);
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0) throw Error(fmt::format("token id {} is negative; ids begin at 0", id));
  return id < size() ? std::string_view(engine_->texts()[static_cast<std::size_t>(id)]) : std::string_view();
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view bytes) const { return engine_->id_of(bytes); }

std::int32_t Tokenizer::size() const { return static_cast<std::int32_t>(engine_->texts().size()); }

TokenBytes::TokenBytes(Tokenizer tokenizer, TextPlace place) : tokenizer_(std::move(tokenizer)) {
  if (place == TextPlace::continuation) {
    prefix_ = tokenizer_.engine_->spec().prefix.size();
  } else {
    begin();
  }
}

void TokenBytes::begin() {
  prefix_ = 0;
  strips_ = tokenizer_.engine_->spec().stripped_count;
  loses_blanks_ = tokenizer_.engine_->first_loses_blanks();
}

std::string_view TokenBytes::push(std::int32_t id) {
  const TokenizerSpec& spec = tokenizer_.engine_->spec();
  std::string_view bytes = tokenizer_.bytes_of(id);
  if (prefix_ < spec.prefix.size()) {
    if (id == spec.prefix[prefix_++]) return {};
    prefix_ = spec.prefix.size();
  }
  if (std::exchange(loses_blanks_, false)) {
    first_ = bytes;
    std::erase(first_, ' ');
    return first_;
  }
  for (; strips_ > 0 && !bytes.empty(); --strips_) {
    if (!bytes.starts_with(spec.stripped)) {
      strips_ = 0;
      break;
    }
    bytes.remove_prefix(spec.stripped.size());
  }
  return bytes;
}

}  // namespace tessera::internal
