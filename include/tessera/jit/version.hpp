// Which Tessera this is.
#pragma once

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// "0.4.0": that of the libraries that a program is linked with.
const char* version();

}  // namespace internal
}  // namespace tessera
