/* libtessera_c as a C program uses it, in C11. Usage: c_api KERNELS_OF_SAMPLES KERNELS_OF_TESTS
 * KERNELS_OF_ANOTHER_VERSION NO_KERNELS MODEL, or c_api cuda: with a driver, which may be the tests' fake one. */
#include <dlpack/dlpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tessera/tessera_c.h>

static int failures = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  printf("line %d: %s (last error: %s)\n", line, what, tessera_last_error());
  ++failures;
}
#define EXPECT(condition) expect(!!(condition), #condition, __LINE__)
#define OK(call) expect((call) == TESSERA_OK, #call, __LINE__)
/* Fails, and says all of these words. */
static void refused(int status, const char* a, const char* b, const char* what, int line) {
  expect(status == TESSERA_ERROR && strstr(tessera_last_error(), a) && strstr(tessera_last_error(), b), what, line);
}
#define REFUSED(call, a, b) refused((call), (a), (b), #call, __LINE__)

static int deleted = 0;
static void count(DLManagedTensor* self) {
  (void)self;
  ++deleted;
}

/* A row-major matrix of the program's. */
static DLManagedTensor matrix(float* values, int64_t* shape) {
  DLManagedTensor managed;
  memset(&managed, 0, sizeof managed);
  managed.dl_tensor.data = values;
  managed.dl_tensor.device.device_type = kDLCPU;
  managed.dl_tensor.ndim = 2;
  managed.dl_tensor.dtype.code = kDLFloat;
  managed.dl_tensor.dtype.bits = 32;
  managed.dl_tensor.dtype.lanes = 1;
  managed.dl_tensor.shape = shape;
  managed.deleter = count;
  return managed;
}
static tessera_argument tensor(const tessera_tensor* value) {
  tessera_argument argument;
  argument.kind = TESSERA_TENSOR;
  argument.value.tensor = value;
  return argument;
}
static tessera_argument list(const tessera_tensor* const* tensors, size_t count) {
  tessera_argument argument;
  argument.kind = TESSERA_LIST;
  argument.value.list.tensors = tensors;
  argument.value.list.count = count;
  return argument;
}
static tessera_argument integer(int64_t value) {
  tessera_argument argument;
  argument.kind = TESSERA_INTEGER;
  argument.value.integer = value;
  return argument;
}
static tessera_argument number(uint64_t value) {
  tessera_argument argument;
  argument.kind = TESSERA_UNSIGNED;
  argument.value.number = value;
  return argument;
}
static tessera_argument real(double value) {
  tessera_argument argument;
  argument.kind = TESSERA_REAL;
  argument.value.real = value;
  return argument;
}

/* Streams of the CUDA runtime API, and tensors on a GPU. */
static int on_cuda(void) {
  tessera_device *gpu = NULL, *cpu = NULL;
  tessera_stream *theirs = NULL, *ours = NULL, *legacy = NULL;
  tessera_event *begin = NULL, *end = NULL;
  tessera_tensor *here = NULL, *there = NULL, *back = NULL, *again = NULL;
  int64_t shape[2] = {2, 3};
  float values[6] = {0, 1, 2, 3, 4, 5};
  DLManagedTensor from = matrix(values, shape), *lent = NULL;
  int32_t type = 0, id = -1;
  OK(tessera_device_open("cuda:0", &gpu));
  OK(tessera_device_open("cpu", &cpu));
  OK(tessera_device_dlpack(gpu, &type, &id));
  EXPECT(type == kDLCUDA && id == 0);
  REFUSED(tessera_device_open("cuda:9", &gpu), "cuda:9", "last CUDA device");

  OK(tessera_stream_new(gpu, &theirs));
  void *native = NULL, *same = NULL;
  OK(tessera_stream_native(theirs, &native));
  EXPECT(native != NULL);
  OK(tessera_stream_from(gpu, native, &ours)); /* as a cudaStream_t is */
  OK(tessera_stream_native(ours, &same));
  EXPECT(same == native);
  OK(tessera_stream_from(gpu, NULL, &legacy));
  double milliseconds = -1;
  OK(tessera_event_record(ours, &begin));
  OK(tessera_stream_wait(legacy, begin));
  OK(tessera_event_record(legacy, &end));
  OK(tessera_event_milliseconds(begin, end, &milliseconds));
  EXPECT(milliseconds >= 0);
  OK(tessera_stream_synchronize(ours));

  OK(tessera_tensor_from_dlpack(&from, NULL, &here));
  OK(tessera_tensor_new(gpu, "f32", 2, shape, &there));
  OK(tessera_tensor_new(cpu, "f32", 2, shape, &back));
  OK(tessera_tensor_copy(there, here));
  OK(tessera_tensor_copy(back, there));
  OK(tessera_tensor_to_dlpack(back, &lent));
  EXPECT(memcmp(lent->dl_tensor.data, values, sizeof values) == 0);
  tessera_dlpack_free(lent);
  OK(tessera_tensor_to_dlpack(there, &lent));
  EXPECT(lent->dl_tensor.device.device_type == kDLCUDA && lent->dl_tensor.device.device_id == 0);
  REFUSED(tessera_tensor_from_dlpack(lent, cpu, &again), "on cuda:0, but cpu", "");
  OK(tessera_tensor_from_dlpack(lent, gpu, &again));
  OK(tessera_device_synchronize(gpu));

  tessera_tensor_free(here);
  tessera_tensor_free(there);
  tessera_tensor_free(back);
  tessera_tensor_free(again);
  EXPECT(deleted == 1);
  tessera_event_free(begin);
  tessera_event_free(end);
  tessera_stream_free(ours);
  tessera_stream_free(theirs);
  tessera_stream_free(legacy);
  tessera_device_free(gpu);
  tessera_device_free(cpu);
  puts(failures ? "failed" : "ok");
  return failures != 0;
}

#ifdef TESSERA_HAS_MODELS
/* What check_models.py cannot pass: null, and handles of other kinds. */
static void models(tessera_device* device, const char* folder) {
  tessera_model* model = NULL;
  tessera_session* session = NULL;
  tessera_tokenizer* tokenizer = NULL;
  REFUSED(tessera_model_open(NULL, folder, NULL, 0, &model), "the device is null", "");
  REFUSED(tessera_model_open(device, NULL, NULL, 0, &model), "the path of the model is null", "");
  REFUSED(tessera_model_open(device, folder, NULL, 0, NULL), "the pointer for the result is null", "");
  REFUSED(tessera_session_new((tessera_model*)device, 1, 8, &session), "argument for a model", "not a handle");
  REFUSED(tessera_tokenizer_open(NULL, &tokenizer), "the path of the model is null", "");
  EXPECT(!model && !session && !tokenizer);
  OK(tessera_model_open(device, folder, NULL, 0, &model));
  int32_t vocabulary = 0, token = -1, length = 0;
  OK(tessera_model_extents(model, &vocabulary, NULL));
  OK(tessera_session_new(model, 1, 8, &session));
  const int32_t tokens[] = {1, 2};
  const size_t two = 2;
  const tessera_sampling greedy = tessera_sampling_greedy();
  REFUSED(tessera_session_append(session, NULL, &two), "2 values of the tokens are at null", "");
  REFUSED(tessera_session_append(session, tokens, NULL), "counts are at null", "");
  OK(tessera_session_append(session, tokens, &two));
  REFUSED(tessera_session_sample(session, NULL, NULL, &token), "null", "");
  REFUSED(tessera_session_sample(session, &greedy, NULL, NULL), "tokens are at null", "");
  OK(tessera_session_sample(session, &greedy, NULL, &token));
  EXPECT(token >= 0 && token < vocabulary);
  REFUSED(tessera_session_logits(session, NULL), "null", "");
  REFUSED(tessera_session_length(session, 1, &length), "no sequence 1", "");
  REFUSED(tessera_session_copy(session, 0, NULL, 0), "the session is null", "");
  OK(tessera_session_copy(session, 0, session, 0));
  tessera_model_free(model); /* the session keeps it */
  OK(tessera_session_append(session, tokens, &two));
  OK(tessera_session_length(session, 0, &length));
  EXPECT(length == 4);
  tessera_session_free(session);
  tessera_model_free(NULL), tessera_session_free(NULL), tessera_tokenizer_free(NULL);
}
#endif

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "cuda") == 0) return on_cuda();
  tessera_device* device = NULL;
  tessera_stream *stream = NULL, *other = NULL;
  tessera_event *begin = NULL, *end = NULL;
  tessera_tensor *x = NULL, *y = NULL, *z = NULL, *n = NULL;
  tessera_library *library = NULL, *tests = NULL;
  tessera_kernel *scaled = NULL, *add = NULL;
  const char* text = NULL;
  if (argc != 6) return 2;

  /* Devices, streams, events. */
  EXPECT(strcmp(tessera_last_error(), "") == 0 && tessera_version()[0] != 0);
  OK(tessera_device_open("cpu", &device));
  OK(tessera_device_name(device, &text));
  EXPECT(strstr(text, "cpu") == text);
#ifdef TESSERA_HAS_MODELS
  models(device, argv[5]);
#endif
  REFUSED(tessera_device_open("gpu", &device), "tessera_device_open: ", "there is no device 'gpu'");
  REFUSED(tessera_device_open("cpu", NULL), "the pointer for the result is null", "");
  int32_t type = 0, id = -1;
  OK(tessera_device_dlpack(device, &type, &id));
  EXPECT(type == kDLCPU && id == 0);
  OK(tessera_stream_of(device, &stream));
  OK(tessera_stream_new(device, &other));
  REFUSED(tessera_stream_from(device, NULL, &other), "no CUstream", "");
  void* native = device;
  OK(tessera_stream_native(stream, &native));
  EXPECT(native == NULL);
  OK(tessera_event_record(stream, &begin));
  OK(tessera_event_record(other, &end));
  OK(tessera_stream_wait(stream, end));
  OK(tessera_event_synchronize(end));
  double milliseconds = -1;
  OK(tessera_event_milliseconds(begin, end, &milliseconds));
  EXPECT(milliseconds >= 0);
  REFUSED(tessera_stream_synchronize(NULL), "the stream is null", "");
  REFUSED(tessera_stream_synchronize((tessera_stream*)device), "the argument for a stream is not a handle of one", "");

  /* Tensors. */
  float values[6] = {0, 1, 2, 3, 4, 5}, results[6] = {0};
  int64_t shape[2] = {2, 3};
  DLManagedTensor from = matrix(values, shape), to = matrix(results, shape), crooked = from;
  OK(tessera_tensor_from_dlpack(&from, NULL, &x));
  OK(tessera_tensor_from_dlpack(&to, device, &y));
  OK(tessera_tensor_text(x, &text));
  EXPECT(strcmp(text, "f32 [2,3]") == 0);
  crooked.dl_tensor.dtype.bits = 24;
  REFUSED(tessera_tensor_from_dlpack(&crooked, NULL, &z), "code 2, 24 bits", "");
  REFUSED(tessera_tensor_from_dlpack(NULL, NULL, &z), "null", "");
  EXPECT(z == NULL && deleted == 0);
  OK(tessera_tensor_new(device, "f32", 2, shape, &z));
  OK(tessera_tensor_copy(z, x));
  DLManagedTensor* lent = NULL;
  OK(tessera_tensor_to_dlpack(z, &lent));
  EXPECT(lent && memcmp(lent->dl_tensor.data, values, sizeof values) == 0);
  tessera_dlpack_free(lent);
  tessera_dlpack_free(NULL);
  tessera_dlpack_capsule_free(NULL); /* there is no Python here */
  int64_t length[1] = {40};
  OK(tessera_tensor_new(device, "i64", 1, length, &n));
  REFUSED(tessera_tensor_copy(z, n), "f32 [2,3]", "i64 [40]");
  REFUSED(tessera_tensor_new(device, "float", 2, shape, &z), "'float'", "f32, f64, f16");
  REFUSED(tessera_tensor_new(device, "f32", 7, shape, &z), "1 to 6 axes, not 7", "");

  /* Kernels. */
  OK(tessera_library_open(argv[1], &library));
  OK(tessera_library_open(argv[2], &tests));
  size_t kernels = 0;
  OK(tessera_library_count(library, &kernels));
  EXPECT(kernels == 2);
  OK(tessera_library_count(tests, &kernels)); /* each has a list of its own */
  EXPECT(kernels == 9);
  int known = 0;
  for (size_t i = 0; i < kernels; ++i) {
    OK(tessera_library_name(tests, i, &text));
    known += strcmp(text, "broken") == 0 || strcmp(text, "add_numbers") == 0;
  }
  EXPECT(known == 2);
  REFUSED(tessera_library_name(tests, 9, &text), "no kernel number 9", "");
  REFUSED(tessera_library_open("/nowhere/libkernels.so", &library), "libkernels.so", "");
  REFUSED(tessera_library_open("", &library), "the path of the library is empty", "");
  REFUSED(tessera_library_open(argv[3], &library), "was built with another version of Tessera", "build it again");
  REFUSED(tessera_library_open(argv[4], &library), "tessera_exported_kernels", "");
  OK(tessera_kernel_get(library, "scaled", &scaled));
  OK(tessera_kernel_get(tests, "add_numbers", &add));
  OK(tessera_kernel_text(scaled, &text));
  EXPECT(strcmp(text, "scaled(In<f32, 2>, Out<f32, 2>, Scalar<f32>)") == 0);
  REFUSED(tessera_kernel_get(library, "scale", &scaled), "no kernel 'scale'", "scaled");
  REFUSED(tessera_kernel_get(tests, "broken", &scaled), "broken", "kernels.cpp:");

  /* Launches: on the program's own memory. */
  tessera_argument arguments[4] = {tensor(x), tensor(y), real(2)};
  OK(tessera_launch(stream, scaled, arguments, 3));
  OK(tessera_stream_synchronize(stream));
  EXPECT(results[5] == 10);
  values[5] = 7;
  arguments[2] = integer(3);
  OK(tessera_launch(stream, scaled, arguments, 3));
  EXPECT(results[5] == 21);
  REFUSED(tessera_launch(stream, scaled, arguments, 2), "'scaled' refused", "2 arguments for 3 parameters");
  arguments[2] = tensor(x);
  REFUSED(tessera_launch(stream, scaled, arguments, 3), "argument 3 is a tensor", "parameter 3 is Scalar<f32>");
  arguments[2] = real(1e300);
  REFUSED(tessera_launch(stream, scaled, arguments, 3), "launch of kernel 'scaled' refused: argument 3: a Scalar<f32>", "out of its range");
  arguments[2] = real(2);
  arguments[0] = tensor(n);
  REFUSED(tessera_launch(stream, scaled, arguments, 3), "argument 1 is a tensor i64 [40]", "In<f32, 2>");
  arguments[0] = real(1);
  REFUSED(tessera_launch(stream, scaled, arguments, 3), "argument 1 is a number", "In<f32, 2>");
  arguments[0] = tensor(NULL);
  REFUSED(tessera_launch(stream, scaled, arguments, 3), "argument 1 is null", "");
  arguments[0] = tensor(y);
  results[5] = 8;
  OK(tessera_launch(stream, scaled, arguments, 3)); /* in place */
  EXPECT(results[5] == 16);
  arguments[0].kind = 9;
  REFUSED(tessera_launch(stream, scaled, arguments, 3), "argument 1 is of the kind 9", "");
  REFUSED(tessera_launch(stream, NULL, arguments, 3), "the kernel is null", "");

  /* Lists, and a tensor that is left out. */
  tessera_kernel* add_lists = NULL;
  OK(tessera_kernel_get(tests, "add_lists", &add_lists));
  OK(tessera_kernel_text(add_lists, &text));
  EXPECT(strcmp(text, "add_lists(List<In<f32, 2>, 3>, Optional<In<f32, 2>>, Out<f32, 2>)") == 0);
  const tessera_tensor* three[4] = {x, x, x, x};
  values[5] = 7;
  arguments[0] = list(three, 3);
  arguments[1] = tensor(NULL);
  arguments[2] = tensor(y);
  OK(tessera_launch(stream, add_lists, arguments, 3));
  EXPECT(results[5] == 21);
  arguments[0] = list(three, 1);
  arguments[1] = tensor(x);
  OK(tessera_launch(stream, add_lists, arguments, 3));
  EXPECT(results[5] == 14);
  arguments[0] = list(NULL, 0);
  OK(tessera_launch(stream, add_lists, arguments, 3));
  EXPECT(results[5] == 7);
  arguments[0] = list(three, 4);
  REFUSED(tessera_launch(stream, add_lists, arguments, 3), "argument 1 has 4 tensors", "List<In<f32, 2>, 3>");
  three[1] = n;
  arguments[0] = list(three, 2);
  REFUSED(tessera_launch(stream, add_lists, arguments, 3), "argument 1 is a tensor i64 [40]", "List<In<f32, 2>, 3>");
  three[1] = NULL;
  REFUSED(tessera_launch(stream, add_lists, arguments, 3), "argument 1 is null", "");
  arguments[0] = list(NULL, 2);
  REFUSED(tessera_launch(stream, add_lists, arguments, 3), "argument 1 is a list of 2 tensors at null", "");
  arguments[0] = tensor(x);
  REFUSED(tessera_launch(stream, add_lists, arguments, 3), "argument 1 is not a list of tensors", "");
  arguments[0] = list(three, 1);
  arguments[1] = list(three, 1);
  REFUSED(tessera_launch(stream, add_lists, arguments, 3), "argument 2 is a list of tensors", "Optional<In<f32, 2>>");
  tessera_kernel_free(add_lists);

  OK(tessera_tensor_to_dlpack(n, &lent));
  int64_t* integers = (int64_t*)lent->dl_tensor.data;
  memset(integers, 0, 40 * sizeof(int64_t));
  arguments[0] = tensor(n);
  arguments[1] = integer(-1);
  arguments[2] = number(1ull << 40);
  arguments[3] = real(5.5);
  OK(tessera_launch(stream, add, arguments, 4));
  EXPECT(integers[39] == (1ll << 40) + 4);
  arguments[1] = number(1ull << 31);
  REFUSED(tessera_launch(stream, add, arguments, 4), "argument 2: a Scalar<i32>", "2147483648");
  arguments[1] = real(1);
  REFUSED(tessera_launch(stream, add, arguments, 4), "argument 2 is the real number 1", "takes an integer");
  lent->deleter(lent);

  /* What uses memory keeps it. */
  OK(tessera_tensor_to_dlpack(x, &lent));
  tessera_tensor_free(x);
  EXPECT(deleted == 0);
  lent->deleter(lent);
  EXPECT(deleted == 1);
  OK(tessera_device_synchronize(device));
  tessera_tensor_free(y);
  EXPECT(deleted == 2);
  tessera_tensor_free(z);
  tessera_tensor_free(n);
  tessera_library_free(library);
  tessera_library_free(tests);
  tessera_kernel_free(scaled);
  tessera_kernel_free(add);
  tessera_event_free(begin);
  tessera_event_free(end);
  tessera_stream_free(stream);
  tessera_stream_free(other);
  tessera_device_free(device);
  tessera_device_free(NULL);
  tessera_kernel_free(NULL);
  puts(failures ? "failed" : "ok");
  return failures != 0;
}
