// The kinds of failure: mistakes of the user, lack of memory, and bugs in Tessera.
#pragma once
#include <stdexcept>
#include <string>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A mistake of the user or in the user's input. The text names it and says how to fix it.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The error of a launch that cannot run as it was asked for.
inline Error launch_refused(const std::string& kernel, const std::string& why) {
  return Error("launch of kernel '" + kernel + "' refused: " + why);
}

/// The host has no memory left for the request, or less memory is free than a model or a session takes.
struct OutOfMemory : Error {
  using Error::Error;
};

/// A sequence cannot be one persistent kernel, or the driver refuses to launch that. Nothing has run.
struct PersistentRefused : Error {
  using Error::Error;
};

/// A broken invariant inside Tessera. No input should ever cause one.
struct InternalError : std::logic_error {
  explicit InternalError(const std::string& what)
      : std::logic_error("internal error in Tessera, please report it: " + what) {}
};

}  // namespace internal
}  // namespace tessera
