// Shared by all functions of libtessera_c: handles, and exceptions as a status.
#pragma once
#include <fmt/format.h>

#include <new>
#include <string_view>
#include <utility>

#include "tessera/graph/error.hpp"
#include "tessera/jit/device.hpp"
#include "tessera/tessera_c.h"

namespace tessera::internal::c {

/// The first member of each handle: the name of its kind. Kinds are compared by its address.
struct Kind {
  explicit Kind(const char* what) : is(what) {}
  Kind(const Kind&) = delete;
  ~Kind() { *const_cast<const char* volatile*>(&is) = nullptr; }  // may help to detect a handle that was freed
  const char* is;
};

/// Stores the text of tessera_last_error().
tessera_status failed(tessera_status status, const char* function, std::string_view text) noexcept;

/// Runs a function, and converts its exceptions to a status.
template <class Work>
tessera_status guarded(const char* function, const Work& work) noexcept {
  try {
    work();
    return TESSERA_OK;
  } catch (const OutOfMemory& error) {
    return failed(TESSERA_OUT_OF_MEMORY, function, error.what());
  } catch (const Error& error) {
    return failed(TESSERA_ERROR, function, error.what());
  } catch (const std::bad_alloc&) {
    return failed(TESSERA_OUT_OF_MEMORY, function, "no memory is left");
  } catch (const std::exception& error) {
    return failed(TESSERA_INTERNAL, function, error.what());
  } catch (...) {
    return failed(TESSERA_INTERNAL, function, "an exception of unknown type");
  }
}

/// Error if it is null or of another kind.
template <class H>
H& use(H* handle) {
  if (!handle) throw Error(fmt::format("the {} is null", H::what));
  if (handle->is != H::what) throw Error(fmt::format("the argument for a {} is not a handle of one", H::what));
  return *handle;
}
/// The output parameter, checked before the result is made.
template <class T>
T& result(T* place) {
  if (!place) throw Error("the pointer for the result is null");
  return *place;
}
inline std::string_view given(const char* text, std::string_view what) {
  if (!text) throw Error(fmt::format("{} is null", what));
  return text;
}

}  // namespace tessera::internal::c

struct tessera_device : tessera::internal::c::Kind {
  static constexpr const char* what = "device";
  explicit tessera_device(tessera::internal::Device opened) : Kind(what), device(std::move(opened)) {}
  const tessera::internal::Device device;
};
