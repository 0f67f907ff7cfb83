// The version of Tessera.
#pragma once

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// "0.4.0": the version of the libraries that a program is linked with.
const char* version();

}  // namespace internal
}  // namespace tessera
