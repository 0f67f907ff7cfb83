// Messages on stderr, filtered by TESSERA_LOG.
#pragma once
#include <string_view>

namespace tessera::internal {

void log_debug(std::string_view message);
/// True if debug messages are printed; otherwise there is no need to compose one.
bool logs_debug();
[[gnu::visibility("default")]] void log_warn(std::string_view message);

}  // namespace tessera::internal
