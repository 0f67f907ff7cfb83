/* Tessera for C, and for every language that calls C: devices, streams, events, tensors shared through DLPack, kernels
 * that a C++ library exports under names (include/tessera/c/export.hpp), and language models.
 *
 * Every function that can fail returns a status; after a failure tessera_last_error() returns the error. Results are
 * written last, and not at all after a failure. Handles are opaque. Each is freed by the function of its kind, which
 * accepts null and never fails; the object behind it lives as long as something uses it. A handle of the wrong kind is
 * an error; a handle that was freed is not detected. Any thread may use any handle; docs/contracts.md has the rules. */
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
typedef struct tessera_tokenizer tessera_tokenizer;
typedef struct tessera_model tessera_model;
typedef struct tessera_session tessera_session;

typedef enum tessera_status {
  TESSERA_OK = 0,
  TESSERA_ERROR = 1,         /* a mistake of the caller or in the input, or a device that failed */
  TESSERA_OUT_OF_MEMORY = 2, /* of the host, or less than a model or session takes is free */
  TESSERA_INTERNAL = 3       /* a mistake in Tessera: please report it */
} tessera_status;

/* "0.4.0". */
const char* tessera_version(void);
/* The error of the last function that failed in this thread, one sentence in UTF-8, valid until the next one fails; ""
 * if none has failed. */
const char* tessera_last_error(void);

/* Devices ------------------------------------------------------------------------------------- */

/* Opens "auto", "cpu", "cuda", "cuda:1" or "emulated"; null is "auto". */
tessera_status tessera_device_open(const char* text, tessera_device** device);
/* "cuda:0 (NVIDIA H200, sm_90)"; the text lives as long as the handle. */
tessera_status tessera_device_name(const tessera_device* device, const char** name);
/* The device in DLPack's numbers, as Python's __dlpack_device__ returns it: type 1 (CPU) or 2 (CUDA), and the CUDA
 * device's ordinal. */
tessera_status tessera_device_dlpack(const tessera_device* device, int32_t* type, int32_t* id);
/* Waits for all work enqueued on the device's streams. */
tessera_status tessera_device_synchronize(const tessera_device* device);
void tessera_device_free(tessera_device* device);

/* Streams and events -------------------------------------------------------------------------- */

/* The device's default stream, whose work is ordered with that of CUDA's legacy default stream. */
tessera_status tessera_stream_of(const tessera_device* device, tessera_stream** stream);
/* A new stream, whose work may overlap with that of all others. */
tessera_status tessera_stream_new(const tessera_device* device, tessera_stream** stream);
/* A stream over a CUstream or cudaStream_t of the device, which must outlive the handle; null is the legacy default
 * stream. */
tessera_status tessera_stream_from(const tessera_device* device, void* cu_stream, tessera_stream** stream);
/* Its CUstream; null on the CPU. */
tessera_status tessera_stream_native(const tessera_stream* stream, void** cu_stream);
/* Waits for all its work. */
tessera_status tessera_stream_synchronize(const tessera_stream* stream);
/* Work enqueued on the stream from now on runs after the event, which may be of another stream of the same kind of
 * device. */
tessera_status tessera_stream_wait(const tessera_stream* stream, const tessera_event* event);
void tessera_stream_free(tessera_stream* stream);

/* Records the point at which all work enqueued on the stream so far is done. */
tessera_status tessera_event_record(const tessera_stream* stream, tessera_event** event);
tessera_status tessera_event_synchronize(const tessera_event* event);
/* The device's time between two events, in milliseconds; waits for both. */
tessera_status tessera_event_milliseconds(const tessera_event* earlier, const tessera_event* later,
                                          double* milliseconds);
void tessera_event_free(tessera_event* event);

/* Tensors ------------------------------------------------------------------------------------- */

/* A tensor in new memory, row-major, contents undefined. `type` is "f32", "bf16", ... as in docs/language.md; 1 to 6
 * axes. */
tessera_status tessera_tensor_new(const tessera_device* device, const char* type, int32_t rank, const int64_t* extents,
                                  tessera_tensor** tensor);
/* A tensor over the memory of `managed`, which it owns from then on: its deleter is called once, in any thread, when
 * the last user of the memory is gone. After a failure `managed` is still the caller's. `device` is null, or a device
 * that can access the memory. */
tessera_status tessera_tensor_from_dlpack(struct DLManagedTensor* managed, const tessera_device* device,
                                          tessera_tensor** tensor);
/* A DLPack tensor over the tensor's memory, which it keeps alive until its deleter is called. */
tessera_status tessera_tensor_to_dlpack(const tessera_tensor* tensor, struct DLManagedTensor** managed);
/* Calls the deleter of a DLPack tensor that nobody took; null is allowed. */
void tessera_dlpack_free(struct DLManagedTensor* managed);
/* The destructor of a Python capsule (a PyObject*) that holds a DLPack tensor under the name "dltensor", as __dlpack__
 * returns it: frees the tensor if nobody took it. Python calls it, with its lock held; a pending exception is kept. */
void tessera_dlpack_capsule_free(void* capsule);
/* "f32 [2,3]"; the text lives as long as the handle. */
tessera_status tessera_tensor_text(const tessera_tensor* tensor, const char** text);
/* Copies all elements of `from`, which has the same type and extents, any strides and any device. The copy runs after
 * all work of both devices, and is done when the call returns. */
tessera_status tessera_tensor_copy(const tessera_tensor* to, const tessera_tensor* from);
void tessera_tensor_free(tessera_tensor* tensor);

/* Kernels ------------------------------------------------------------------------------------- */

/* Opens a shared library that exports kernels. The loader searches for a name without '/'. The library stays loaded
 * until the process ends. */
tessera_status tessera_library_open(const char* path, tessera_library** library);
/* The number of its kernels, and the name of each. */
tessera_status tessera_library_count(const tessera_library* library, size_t* count);
tessera_status tessera_library_name(const tessera_library* library, size_t position, const char** name);
void tessera_library_free(tessera_library* library);

/* A kernel of the library; this call traces it. */
tessera_status tessera_kernel_get(const tessera_library* library, const char* name, tessera_kernel** kernel);
/* "scale(In<f32, 1>, Out<f32, 1>, Scalar<f32>)"; the text lives as long as the handle. */
tessera_status tessera_kernel_text(const tessera_kernel* kernel, const char** text);
void tessera_kernel_free(tessera_kernel* kernel);

typedef enum tessera_kind {
  TESSERA_TENSOR = 0,
  TESSERA_INTEGER = 1,  /* for every Scalar that can hold it */
  TESSERA_UNSIGNED = 2, /* the same */
  TESSERA_REAL = 3,     /* for a Scalar<f32> or Scalar<f64> */
  TESSERA_LIST = 4      /* for a List */
} tessera_kind;

typedef struct tessera_argument {
  int32_t kind; /* a tessera_kind: which member of `value` is used */
  union {
    const tessera_tensor* tensor; /* NULL leaves an Optional tensor out */
    int64_t integer;
    uint64_t number;
    double real;
    struct {
      const tessera_tensor* const* tensors; /* none is NULL */
      size_t count;
    } list;
  } value;
} tessera_argument;

/* Enqueues a launch on the stream: asynchronous where the device is; the tensors may be freed immediately. Count,
 * types, ranks, devices and the kernel's requirements are checked before anything runs. */
tessera_status tessera_launch(const tessera_stream* stream, const tessera_kernel* kernel,
                              const tessera_argument* arguments, size_t count);

/* Models: in a library that was built with nlohmann-json --------------------------------------- */

/* The tokenizer of a model: of a folder in the Hugging Face layout, or of a name in the hub's cache. */
tessera_status tessera_tokenizer_open(const char* path, tessera_tokenizer** tokenizer);
/* The ids of a text of `bytes` bytes of UTF-8, with the tokens that the model expects around it, as <s>: *count of them,
 * of which at most `capacity` are written. */
tessera_status tessera_tokenizer_encode(const tessera_tokenizer* tokenizer, const char* text, size_t bytes, int32_t* ids,
                                        size_t capacity, size_t* count);
/* The text of `count` ids: *bytes bytes of UTF-8, of which at most `capacity` are written; no 0 ends it. Bytes that are
 * no UTF-8 become U+FFFD. */
tessera_status tessera_tokenizer_decode(const tessera_tokenizer* tokenizer, const int32_t* ids, size_t count, char* text,
                                        size_t capacity, size_t* bytes);
/* The bytes of one token, often only a part of a character: *bytes of them, of which at most `capacity` are written. */
tessera_status tessera_tokenizer_bytes(const tessera_tokenizer* tokenizer, int32_t id, char* text, size_t capacity,
                                       size_t* bytes);
void tessera_tokenizer_free(tessera_tokenizer* tokenizer);

/* Loads a model, a GPT-2 or a Llama, from such a folder or name. `type` of the matmul operands: "f32", "tf32" or
 * "bf16"; null is "f32". If `batch_invariant` is not 0, the logits of a text have the same bits in any batch, and
 * however its tokens were appended; steps take longer. */
tessera_status tessera_model_open(const tessera_device* device, const char* path, const char* type,
                                  int32_t batch_invariant, tessera_model** model);
/* The numbers of its tokens and of its positions; either may be null. */
tessera_status tessera_model_extents(const tessera_model* model, int32_t* vocabulary, int32_t* positions);
/* The tokens that end a text, of its config.json: *count of them, of which at most `capacity` are written. */
tessera_status tessera_model_end_tokens(const tessera_model* model, int32_t* ids, size_t capacity, size_t* count);
void tessera_model_free(tessera_model* model);

/* How a token is chosen; tessera_sampling_greedy() for the values that leave each filter out. */
typedef struct tessera_sampling {
  float temperature; /* 0: greedy, the most probable token */
  int32_t top_k;     /* only the k most probable tokens; 0: all */
  float top_p;       /* only the most probable tokens that make up this mass; 1: all */
  float min_p;       /* only tokens at least this many times as probable as the best; 0: all */
  float repetition_penalty; /* above 1: tokens of the text so far become less likely; 1: off */
  uint64_t seed;     /* same seed, same text */
} tessera_sampling;
tessera_sampling tessera_sampling_greedy(void);

/* `sequences` texts of up to `capacity` tokens, with their keys and values. */
tessera_status tessera_session_new(const tessera_model* model, int32_t sequences, int32_t capacity,
                                   tessera_session** session);
/* Appends counts[i] tokens to each sequence; `tokens` has those of all, in order. A sequence without tokens is unchanged.
 * Nothing is appended after a failure, but there may be no logits then until an append succeeds. */
tessera_status tessera_session_append(tessera_session* session, const int32_t* tokens, const size_t* counts);
/* Chooses the next token of each sequence from the logits of its last one, and does not append it; those of sequences
 * that got no token by the last append are meaningless. `streams`, one for each sequence, distinguish random draws with
 * the same seed; null is their numbers. */
tessera_status tessera_session_sample(tessera_session* session, const tessera_sampling* sampling, const int64_t* streams,
                                      int32_t* tokens);
/* The logits of each sequence's last token: sequences times vocabulary numbers, meaningless for sequences that got no
 * token by the last append. */
tessera_status tessera_session_logits(tessera_session* session, float* logits);
/* The number of tokens of a sequence. */
tessera_status tessera_session_length(const tessera_session* session, int32_t sequence, int32_t* length);
/* Shortens a sequence to its first `length` tokens. */
tessera_status tessera_session_truncate(tessera_session* session, int32_t sequence, int32_t length);
/* Makes a sequence a copy of one of a session of the same model, which may be the same session. It has no next token
 * until tokens are appended to it. If the copy itself fails, the sequence is empty. */
tessera_status tessera_session_copy(tessera_session* session, int32_t sequence, const tessera_session* from, int32_t of);
void tessera_session_free(tessera_session* session);

#ifdef __cplusplus
}
#endif
#endif
