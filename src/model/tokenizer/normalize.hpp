// The normalizer: changes of a text before it is cut.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "model/tokenizer/spec.hpp"

namespace tessera::internal {

/// `text`, which is UTF-8, after all steps: `text` itself if nothing changed, otherwise in `memory`. If it `continues`
/// another text, nothing is put in front. Throws Error if this build lacks the library for a Unicode form.
std::string_view normalized(std::string_view text, std::span<const NormalizerStep> steps, bool continues,
                            std::string& memory);

/// `text` with each `from` replaced by `to`.
std::string with_replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace tessera::internal
