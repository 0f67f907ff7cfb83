// Messages on stderr, as far as TESSERA_LOG lets them through.
#pragma once
#include <string_view>

namespace tessera {

void log_debug(std::string_view message);
/// Is anything gained by composing a debug message?
bool logs_debug();
void log_warn(std::string_view message);

}  // namespace tessera
