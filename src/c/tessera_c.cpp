#include "tessera/tessera_c.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

#include "c/handles.hpp"
#include "c/launch.hpp"
#include "graph/of_this_thread.hpp"
#include "jit/options/shared_library.hpp"
#include "tessera/c/exported.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/copy_tensor.hpp"
#include "tessera/jit/dlpack.hpp"

using namespace tessera::internal;

using c::given, c::guarded, c::Kind, c::result, c::use;

struct tessera_stream : Kind {
  static constexpr const char* what = "stream";
  explicit tessera_stream(Stream made) : Kind(what), stream(std::move(made)) {}
  const Stream stream;
};
struct tessera_event : Kind {
  static constexpr const char* what = "event";
  explicit tessera_event(Event recorded) : Kind(what), event(std::move(recorded)) {}
  const Event event;
};
struct tessera_tensor : Kind {
  static constexpr const char* what = "tensor";
  tessera_tensor() : Kind(what) {}
  detail::AnyTensor tensor;
  mutable std::once_flag told;
  mutable std::string text;  // filled on first request
};
struct tessera_library : Kind {
  static constexpr const char* what = "library";
  tessera_library(std::string file, const detail::ExportedKernel* kernels)
      : Kind(what), path(std::move(file)), first(kernels) {}
  const std::string path;
  const detail::ExportedKernel* const first;
};
struct tessera_kernel : Kind {
  static constexpr const char* what = "kernel";
  explicit tessera_kernel(std::shared_ptr<const Executable> made)
      : Kind(what), executable(std::move(made)), text(c::signature(*executable)) {}
  const std::shared_ptr<const Executable> executable;
  const std::string text;
};

namespace {

// Also valid in code that runs at the end of the process, such as Python's atexit.
std::string& last_error() { return of_this_thread<std::string>(); }

/// Never destroyed: kernels refer to locations and functions in their library.
void keep(SharedLibrary library) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<SharedLibrary>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(library));
}

/// A function of the Python interpreter that this library is loaded into; null elsewhere.
template <class Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

c::LaunchValue value_of(const tessera_argument& argument, std::size_t position) {
  switch (argument.kind) {
    case TESSERA_TENSOR:
      return argument.value.tensor ? &use(argument.value.tensor).tensor : nullptr;  // an Optional one may be left out
    case TESSERA_INTEGER:
      return argument.value.integer;
    case TESSERA_UNSIGNED:
      return argument.value.number;
    case TESSERA_REAL:
      return argument.value.real;
    case TESSERA_LIST: {
      const auto& [tensors, count] = argument.value.list;
      if (count && !tensors)
        throw Error(fmt::format("argument {} is a list of {} tensors at null", position + 1, count));
      c::TensorList list;
      for (std::size_t i = 0; i < count; ++i) list.push_back(tensors[i] ? &use(tensors[i]).tensor : nullptr);
      return list;
    }
    default:
      throw Error(fmt::format("argument {} is of the kind {}, which does not exist", position + 1, argument.kind));
  }
}

}  // namespace

tessera_status tessera::internal::c::failed(tessera_status status, const char* function,
                                            std::string_view text) noexcept {
  try {
    last_error() = fmt::format("{}: {}", function, text);
  } catch (const std::exception&) {  // no memory for the text
    last_error().clear();
  }
  return status;
}

const char* tessera_version() { return version(); }
const char* tessera_last_error() { return last_error().c_str(); }

// Devices -----------------------------------------------------------------------------------------

tessera_status tessera_device_open(const char* text, tessera_device** device) {
  return guarded(__func__, [&] {
    tessera_device*& opened = result(device);
    opened = new tessera_device(Device::parse(text ? text : "auto"));
  });
}
tessera_status tessera_device_name(const tessera_device* device, const char** name) {
  return guarded(__func__, [&] { result(name) = use(device).device.name().c_str(); });
}
tessera_status tessera_device_dlpack(const tessera_device* device, int32_t* type, int32_t* id) {
  return guarded(__func__, [&] {
    constexpr int32_t cpu = 1, cuda = 2;  // the values of DLDeviceType
    const std::optional<int> ordinal = use(device).device.info().ordinal;
    int32_t &to_type = result(type), &to_id = result(id);
    to_type = ordinal ? cuda : cpu, to_id = ordinal.value_or(0);
  });
}
tessera_status tessera_device_synchronize(const tessera_device* device) {
  return guarded(__func__, [&] { use(device).device.synchronize(); });
}
void tessera_device_free(tessera_device* device) { delete device; }

// Streams and events ------------------------------------------------------------------------------

tessera_status tessera_stream_of(const tessera_device* device, tessera_stream** stream) {
  return guarded(__func__, [&] {
    tessera_stream*& made = result(stream);
    made = new tessera_stream(use(device).device.stream());
  });
}
tessera_status tessera_stream_new(const tessera_device* device, tessera_stream** stream) {
  return guarded(__func__, [&] {
    tessera_stream*& made = result(stream);
    made = new tessera_stream(use(device).device.new_stream());
  });
}
tessera_status tessera_stream_from(const tessera_device* device, void* cu_stream, tessera_stream** stream) {
  return guarded(__func__, [&] {
    tessera_stream*& made = result(stream);
    made = new tessera_stream(use(device).device.stream_from(cu_stream));
  });
}
tessera_status tessera_stream_native(const tessera_stream* stream, void** cu_stream) {
  return guarded(__func__, [&] { result(cu_stream) = use(stream).stream.native(); });
}
tessera_status tessera_stream_synchronize(const tessera_stream* stream) {
  return guarded(__func__, [&] { use(stream).stream.synchronize(); });
}
tessera_status tessera_stream_wait(const tessera_stream* stream, const tessera_event* event) {
  return guarded(__func__, [&] { use(stream).stream.wait(use(event).event); });
}
void tessera_stream_free(tessera_stream* stream) { delete stream; }

tessera_status tessera_event_record(const tessera_stream* stream, tessera_event** event) {
  return guarded(__func__, [&] {
    tessera_event*& recorded = result(event);
    recorded = new tessera_event(use(stream).stream.record());
  });
}
tessera_status tessera_event_synchronize(const tessera_event* event) {
  return guarded(__func__, [&] { use(event).event.synchronize(); });
}
tessera_status tessera_event_milliseconds(const tessera_event* earlier, const tessera_event* later,
                                          double* milliseconds) {
  return guarded(__func__, [&] { result(milliseconds) = use(later).event.milliseconds_since(use(earlier).event); });
}
void tessera_event_free(tessera_event* event) { delete event; }

// Tensors -----------------------------------------------------------------------------------------

tessera_status tessera_tensor_new(const tessera_device* device, const char* type, int32_t rank, const int64_t* extents,
                                  tessera_tensor** tensor) {
  return guarded(__func__, [&] {
    tessera_tensor*& made = result(tensor);
    if (rank < 1 || rank > max_rank) throw Error(fmt::format("a tensor has 1 to {} axes, not {}", max_rank, rank));
    if (!extents) throw Error("the extents are null");
    auto handle = std::make_unique<tessera_tensor>();
    handle->tensor = detail::new_tensor(use(device).device, c::stored_type(given(type, "the element type")),
                                        {extents, static_cast<std::size_t>(rank)});
    made = handle.release();
  });
}
tessera_status tessera_tensor_from_dlpack(DLManagedTensor* managed, const tessera_device* device,
                                          tessera_tensor** tensor) {
  return guarded(__func__, [&] {
    tessera_tensor*& made = result(tensor);
    std::optional<Device> wanted;
    if (device) wanted = use(device).device;
    auto handle = std::make_unique<tessera_tensor>();  // anything that may fail comes before the memory is ours
    handle->tensor = detail::from_dlpack(managed, wanted);
    made = handle.release();
  });
}
tessera_status tessera_tensor_to_dlpack(const tessera_tensor* tensor, DLManagedTensor** managed) {
  return guarded(__func__, [&] {
    DLManagedTensor*& lent = result(managed);
    lent = detail::to_dlpack(use(tensor).tensor);
  });
}
void tessera_dlpack_free(DLManagedTensor* managed) {
  (void)guarded(__func__, [&] { detail::free_dlpack(managed); });
}
void tessera_dlpack_capsule_free(void* capsule) {
  // Functions of the calling Python interpreter. The call releases its lock, as ctypes does, since a deleter may wait
  // for it.
  static const auto is_valid = python<int (*)(void*, const char*)>("PyCapsule_IsValid");
  static const auto pointer = python<void* (*)(void*, const char*)>("PyCapsule_GetPointer");
  static const auto release = python<void* (*)()>("PyEval_SaveThread");
  static const auto lock = python<void (*)(void*)>("PyEval_RestoreThread");
  constexpr const char* unclaimed = "dltensor";
  if (!is_valid || !pointer || !release || !lock || !is_valid(capsule, unclaimed)) return;
  auto* const managed = static_cast<DLManagedTensor*>(pointer(capsule, unclaimed));
  void* const thread = release();
  tessera_dlpack_free(managed);
  lock(thread);
}
tessera_status tessera_tensor_text(const tessera_tensor* tensor, const char** text) {
  return guarded(__func__, [&] {
    const tessera_tensor& handle = use(tensor);
    std::call_once(handle.told, [&] { handle.text = handle.tensor.text(); });
    result(text) = handle.text.c_str();
  });
}
tessera_status tessera_tensor_copy(const tessera_tensor* to, const tessera_tensor* from) {
  return guarded(__func__, [&] { detail::copy(use(to).tensor, use(from).tensor); });
}
void tessera_tensor_free(tessera_tensor* tensor) { delete tensor; }

// Kernels -----------------------------------------------------------------------------------------

tessera_status tessera_library_open(const char* path, tessera_library** library) {
  return guarded(__func__, [&] {
    tessera_library*& made = result(library);
    const std::string places[] = {std::string(given(path, "the path of the library"))};
    if (places[0].empty()) throw Error("the path of the library is empty");
    SharedLibrary opened = SharedLibrary::open("the library of kernels", places);
    const auto& exported = *opened.symbol<const detail::ExportedKernels* (*)()>("tessera_exported_kernels")();
    if (detail::exported_layout() != exported.made_with)
      throw Error(
          fmt::format("{} was built with another version of Tessera than this one, {}; build it again with its "
                      "headers",
                      opened.path().native(), version()));
    auto handle = std::make_unique<tessera_library>(opened.path().native(), exported.first);
    keep(std::move(opened));
    made = handle.release();
  });
}
tessera_status tessera_library_count(const tessera_library* library, size_t* count) {
  return guarded(__func__, [&] {
    std::size_t kernels = 0;
    for (const auto* kernel = use(library).first; kernel; kernel = kernel->next) ++kernels;
    result(count) = kernels;
  });
}
tessera_status tessera_library_name(const tessera_library* library, size_t position, const char** name) {
  return guarded(__func__, [&] {
    const auto* kernel = use(library).first;
    for (std::size_t i = 0; kernel && i < position; ++i) kernel = kernel->next;
    if (!kernel) throw Error(fmt::format("{} has no kernel number {}", library->path, position));
    result(name) = kernel->name;
  });
}
void tessera_library_free(tessera_library* library) { delete library; }

tessera_status tessera_kernel_get(const tessera_library* library, const char* name, tessera_kernel** kernel) {
  return guarded(__func__, [&] {
    tessera_kernel*& got = result(kernel);
    const std::string_view wanted = given(name, "the kernel's name");
    std::string names;
    for (const auto* each = use(library).first; each; each = each->next) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", each->name);
      if (each->name != wanted) continue;
      std::shared_ptr<const Executable> made;
      std::string failure;
      each->make(made, failure);
      if (!made) throw Error(failure);
      got = new tessera_kernel(std::move(made));
      return;
    }
    throw Error(fmt::format("{} has no kernel '{}'; it has {}", library->path, wanted, names.empty() ? "none" : names));
  });
}
tessera_status tessera_kernel_text(const tessera_kernel* kernel, const char** text) {
  return guarded(__func__, [&] { result(text) = use(kernel).text.c_str(); });
}
void tessera_kernel_free(tessera_kernel* kernel) { delete kernel; }

tessera_status tessera_launch(const tessera_stream* stream, const tessera_kernel* kernel,
                              const tessera_argument* arguments, size_t count) {
  return guarded(__func__, [&] {
    const Stream& on = use(stream).stream;
    const Executable& executable = *use(kernel).executable;
    if (count && !arguments) throw Error("the arguments are null");
    std::vector<c::LaunchValue> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(value_of(arguments[i], i));
    c::launch(on, executable, values);
  });
}
