// Two owners of a failure: the person who uses Tessera, and Tessera itself.
#pragma once
#include <stdexcept>
#include <string>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A mistake of the user or of his input: the text names it and says how to mend it.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// There is no memory of the host left for what is asked for.
struct OutOfMemory : Error {
  using Error::Error;
};

/// A broken invariant inside Tessera. No input should ever cause one.
struct InternalError : std::logic_error {
  explicit InternalError(const std::string& what)
      : std::logic_error("internal error in Tessera, please report it: " + what) {}
};

}  // namespace internal
}  // namespace tessera
