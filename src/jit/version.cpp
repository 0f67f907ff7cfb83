#include "tessera/jit/version.hpp"

namespace tessera::internal {

const char* version() { return TESSERA_VERSION; }

}  // namespace tessera::internal
