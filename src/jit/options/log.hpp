// Messages on stderr, as far as TESSERA_LOG lets them through.
#pragma once
#include <string_view>

namespace tessera::internal {

void log_debug(std::string_view message);
/// Is anything gained by composing a debug message?
bool logs_debug();
[[gnu::visibility("default")]] void log_warn(std::string_view message);

}  // namespace tessera::internal
