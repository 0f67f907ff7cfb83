/* Tessera for C, and for every language that calls C: devices, streams, events, tensors that are shared through DLPack,
 * and kernels that a C++ library exports under names (include/tessera/c/export.hpp).
 *
 * Every function that can fail returns a status; what went wrong is what tessera_last_error() says then. Results are
 * written last, and not at all after a failure. Handles are opaque. Each is freed by the function of its kind, which
 * takes null and never fails; what it stands for lives as long as something uses it. A handle of another kind is an
 * error, one that was freed is not told apart. Any thread may use any handle; docs/contracts.md has the rules. */
#ifndef TESSERA_C_H
#define TESSERA_C_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor; /* of dlpack/dlpack.h */

typedef struct tessera_device tessera_device;
typedef struct tessera_stream tessera_stream;
typedef struct tessera_event tessera_event;
typedef struct tessera_tensor tessera_tensor;
typedef struct tessera_library tessera_library;
typedef struct tessera_kernel tessera_kernel;

typedef enum tessera_status {
  TESSERA_OK = 0,
  TESSERA_ERROR = 1,         /* a mistake of the caller or of his input, or a device that failed */
  TESSERA_OUT_OF_MEMORY = 2, /* of the host */
  TESSERA_INTERNAL = 3       /* a mistake in Tessera: please report it */
} tessera_status;

/* "0.4.0". */
const char* tessera_version(void);
/* Of the last function that failed in this thread, one sentence in UTF-8, until the next one fails; "" before. */
const char* tessera_last_error(void);

/* Devices ------------------------------------------------------------------------------------- */

/* "auto", "cpu", "cuda", "cuda:1" or "emulated"; null is "auto". */
tessera_status tessera_device_open(const char* text, tessera_device** device);
/* "cuda:0 (NVIDIA H200, sm_90)"; it lives as long as the handle. */
tessera_status tessera_device_name(const tessera_device* device, const char** name);
/* As DLPack numbers it: type 1 (CPU) or 2 (CUDA), and the CUDA device's ordinal. What Python's __dlpack_device__
 * returns. */
tessera_status tessera_device_dlpack(const tessera_device* device, int32_t* type, int32_t* id);
/* Waits for all work given to the device's streams. */
tessera_status tessera_device_synchronize(const tessera_device* device);
void tessera_device_free(tessera_device* device);

/* Streams and events -------------------------------------------------------------------------- */

/* The device's own stream, which is in order with CUDA's legacy default stream. */
tessera_status tessera_stream_of(const tessera_device* device, tessera_stream** stream);
/* Another, whose work may run beside that of all others. */
tessera_status tessera_stream_new(const tessera_device* device, tessera_stream** stream);
/* One over a CUstream or cudaStream_t of the device, which must outlive the handle; null is the legacy default stream.
 */
tessera_status tessera_stream_from(const tessera_device* device, void* cu_stream, tessera_stream** stream);
/* Its CUstream; null on the CPU. */
tessera_status tessera_stream_native(const tessera_stream* stream, void** cu_stream);
/* Waits for all its work. */
tessera_status tessera_stream_synchronize(const tessera_stream* stream);
/* What is given to the stream from now on comes after the event, which may be of another stream of the kind of device.
 */
tessera_status tessera_stream_wait(const tessera_stream* stream, const tessera_event* event);
void tessera_stream_free(tessera_stream* stream);

/* The moment when all work given to the stream so far is done. */
tessera_status tessera_event_record(const tessera_stream* stream, tessera_event** event);
tessera_status tessera_event_synchronize(const tessera_event* event);
/* The device's time between two events; waits for both. */
tessera_status tessera_event_milliseconds(const tessera_event* earlier, const tessera_event* later,
                                          double* milliseconds);
void tessera_event_free(tessera_event* event);

/* Tensors ------------------------------------------------------------------------------------- */

/* Fresh memory, row-major, contents undefined. `type` is "f32", "bf16", ... as docs/language.md names them; 1 to 6
 * axes. */
tessera_status tessera_tensor_new(const tessera_device* device, const char* type, int32_t rank, const int64_t* extents,
                                  tessera_tensor** tensor);
/* Over the memory of `managed`, which is the tensor's from then on: its deleter is called once, in whatever thread,
 * when the last that uses the memory has gone. After a failure it is still the caller's. `device` is null, or one that
 * reaches the memory. */
tessera_status tessera_tensor_from_dlpack(struct DLManagedTensor* managed, const tessera_device* device,
                                          tessera_tensor** tensor);
/* For others, over the tensor's memory, which it keeps until its deleter is called. */
tessera_status tessera_tensor_to_dlpack(const tessera_tensor* tensor, struct DLManagedTensor** managed);
/* Calls the deleter of one that nobody took; null is fine. */
void tessera_dlpack_free(struct DLManagedTensor* managed);
/* The destructor of a Python capsule (a PyObject*) that holds one under the name "dltensor", as __dlpack__ returns it: frees
 * what nobody took. Called by Python, with its lock; a pending exception stays as it is. */
void tessera_dlpack_capsule_free(void* capsule);
/* "f32 [2,3]"; it lives as long as the handle. */
tessera_status tessera_tensor_text(const tessera_tensor* tensor, const char** text);
/* All elements of `from`, of the same type and extents, any strides and any device: behind all work of both devices,
 * and done when it returns. */
tessera_status tessera_tensor_copy(const tessera_tensor* to, const tessera_tensor* from);
void tessera_tensor_free(tessera_tensor* tensor);

/* Kernels ------------------------------------------------------------------------------------- */

/* A shared library that exports kernels. A name without '/' is looked for where the loader looks. It stays loaded to
 * the end of the process. */
tessera_status tessera_library_open(const char* path, tessera_library** library);
/* How many kernels it has, and the name of each. */
tessera_status tessera_library_count(const tessera_library* library, size_t* count);
tessera_status tessera_library_name(const tessera_library* library, size_t position, const char** name);
void tessera_library_free(tessera_library* library);

/* A kernel of the library, traced now. */
tessera_status tessera_kernel_get(const tessera_library* library, const char* name, tessera_kernel** kernel);
/* "scale(In<f32, 1>, Out<f32, 1>, Scalar<f32>)"; it lives as long as the handle. */
tessera_status tessera_kernel_text(const tessera_kernel* kernel, const char** text);
void tessera_kernel_free(tessera_kernel* kernel);

typedef enum tessera_kind {
  TESSERA_TENSOR = 0,
  TESSERA_INTEGER = 1,  /* for every Scalar that it fits */
  TESSERA_UNSIGNED = 2, /* likewise */
  TESSERA_REAL = 3      /* for a Scalar<f32> or Scalar<f64> */
} tessera_kind;

typedef struct tessera_argument {
  int32_t kind; /* a tessera_kind: which of the values is meant */
  union {
    const tessera_tensor* tensor;
    int64_t integer;
    uint64_t number;
    double real;
  } value;
} tessera_argument;

/* Gives a launch to the stream: asynchronous where the device is; the tensors may be freed at once. Count, types,
 * ranks, devices and all that the kernel requires are checked before anything runs. */
tessera_status tessera_launch(const tessera_stream* stream, const tessera_kernel* kernel,
                              const tessera_argument* arguments, size_t count);

#ifdef __cplusplus
}
#endif
#endif
