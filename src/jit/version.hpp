// Which Tessera this is.
#pragma once

namespace tessera {

/// "0.1.0": that of the libraries that a program is linked with.
const char* version();

}  // namespace tessera
