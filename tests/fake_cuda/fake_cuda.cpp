#include "fake_cuda.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "jit/cuda/driver.hpp"

namespace {

FakeCuda& fake() {
  static FakeCuda& state = *new FakeCuda;
  return state;
}

struct Stream {
  int number = 0;
  Stream* records = nullptr;  // the stream whose capture its work goes to; itself, or one whose event it waited for
  std::vector<std::function<void()>> recorded = {};
  std::vector<Stream*> joined = {};  // its capture
};
struct Event {
  double milliseconds = 0;
  bool recorded = false;
  Stream* records = nullptr;
};
struct Graph {
  std::vector<std::function<void()>> work;
};
struct Function {
  std::string name;
  int shared_bytes = 48 << 10;
};
struct Module {
  std::string image;
  std::map<std::string, Function> functions;
};

std::recursive_mutex mutex;  // protects everything below, and the state
Stream legacy;
int next_event = 1;
double clock_milliseconds = 0;  // each operation takes a millisecond
std::map<Event*, int> event_numbers;
thread_local int* current = nullptr;  // a context is the address of its device's number
thread_local Stream* recording = nullptr;
thread_local int capture_mode = 0;
int device_numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};

Stream& at(void* stream) { return stream ? *static_cast<Stream*>(stream) : legacy; }
std::string text(void* stream) { return "stream" + std::to_string(at(stream).number); }
std::string text(Event* event) { return "event" + std::to_string(event_numbers[event]); }

/// The result of a call before it does anything: an error that a test injects, or 201 without a context.
int begin(const char* name, bool needs_context = true) {
  const std::string call = name;
  if (const auto found = fake().fail.find("!" + call); found != fake().fail.end()) {
    const int error = found->second;
    fake().fail.erase(found);
    return error;
  }
  if (const auto found = fake().fail.find(call); found != fake().fail.end()) return found->second;
  return needs_context && !current ? 201 : 0;
}

int done(const std::string& call) {
  fake().calls.push_back(call);
  return 0;
}

/// Submits work to a stream.
int work(void* stream, const std::string& call, std::function<void()> action) {
  if (Stream* const records = at(stream).records) {
    records->recorded.push_back(std::move(action));
    return done("record " + call);
  }
  clock_milliseconds += 1;
  action();
  return done(call);
}

/// May this thread wait, or make calls that could wait?
bool may_wait() { return !recording || capture_mode == 2; }

#define BEGIN(call, ...)             \
  const std::lock_guard lock(mutex); \
  if (const int error = begin(call __VA_OPT__(, ) __VA_ARGS__)) return error

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &fake(); }

int cuDriverGetVersion(int* version) {
  *version = fake().version;
  return 0;
}
int cuInit(unsigned) {
  BEGIN("cuInit", false);
  return fake().devices.empty() ? 100 : 0;
}
int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case 2:
      return *name = "CUDA_ERROR_OUT_OF_MEMORY", 0;
    case 209:
      return *name = "CUDA_ERROR_NO_BINARY_FOR_GPU", 0;
    case 700:
      return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", 0;
    default:
      return *name = "CUDA_ERROR_OF_A_TEST", 0;
  }
}
int cuGetErrorString(int error, const char** words) {
  if (error == 12345) return 1;  // one that the driver does not know
  *words = error == 700 ? "an illegal memory access was encountered" : "words of the driver";
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(fake().devices.size());
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  std::strncpy(name, fake().devices[static_cast<std::size_t>(device)].name.c_str(), static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int number) {
  const FakeCuda::Device& device = fake().devices[static_cast<std::size_t>(number)];
  switch (attribute) {
    case 13:
      return *value = 1'980'000, 0;  // kHz
    case 16:
      return *value = device.multiprocessors, 0;
    case 36:
      return *value = 3'201'000, 0;
    case 38:
      return *value = device.l2_bytes, 0;
    case 75:
      return *value = device.major, 0;
    case 76:
      return *value = device.minor, 0;
    case 81:
      return *value = 228 << 10, 0;  // an H100
    case 115:
      return *value = device.pools, 0;
    default:
      return 1;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  BEGIN("cuDevicePrimaryCtxRetain", false);
  ++fake().contexts;
  *context = &device_numbers[device];
  return 0;
}
int cuDevicePrimaryCtxRelease(int) {
  BEGIN("cuDevicePrimaryCtxRelease", false);
  --fake().contexts;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = current;
  return 0;
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<int*>(context);
  return 0;
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  BEGIN("cuModuleLoadDataEx");
  const std::string text = static_cast<const char*>(image);
  if (text.rfind("refused", 0) == 0) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), "ptxas has words too");
    return 209;
  }
  *module = new Module{text, {}};
  ++fake().modules;
  return done("cuModuleLoadDataEx " + text);
}
int cuModuleUnload(void* module) {
  BEGIN("cuModuleUnload");
  delete static_cast<Module*>(module);
  --fake().modules;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  BEGIN("cuModuleGetFunction");
  Function& found = static_cast<Module*>(module)->functions[name];
  found.name = name;
  *function = &found;
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  BEGIN("cuFuncSetAttribute");
  if (attribute != 8) return 1;
  static_cast<Function*>(function)->shared_bytes = value;
  return done("cuFuncSetAttribute shared " + std::to_string(value));
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t) {
  BEGIN("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *blocks = fake().blocks_per_multiprocessor;
  return 0;
}
// The rules are those of CUDA's driver API for tiles without interleaving.
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const std::uint64_t* extents,
                           const std::uint64_t* strides, const unsigned* box, const unsigned* steps, int interleave,
                           int swizzle, int promotion, int fill) {
  std::this_thread::sleep_for(fake().encoding);
  BEGIN("cuTensorMapEncodeTiled");
  constexpr unsigned bytes_of[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};  // by type
  constexpr unsigned most_bytes[] = {256 * 8, 32, 64, 128};                 // of a box's rows, by swizzle
  if (reinterpret_cast<std::uintptr_t>(map) % 64 || reinterpret_cast<std::uintptr_t>(address) % 16) return 1;
  if (type < 0 || type > 12 || rank < 1 || rank > 5 || swizzle < 0 || swizzle > 3) return 1;
  if (interleave != 0 || promotion < 0 || promotion > 3 || fill < 0 || fill > 1) return 1;
  const unsigned row = box[0] * bytes_of[type];
  if (row % 16 || row > most_bytes[swizzle]) return 1;
  for (unsigned axis = 0; axis < rank; ++axis) {
    if (extents[axis] < 1 || extents[axis] > std::uint64_t{1} << 32) return 1;
    if (axis > 0 && (strides[axis - 1] % 16 || strides[axis - 1] == 0 || strides[axis - 1] >> 40)) return 1;
    if (box[axis] < 1 || box[axis] > 256 || steps[axis] < 1 || steps[axis] > 8) return 1;
  }
  const std::uint64_t number = fake().tensor_maps.size();
  for (int word = 0; word < 16; ++word) static_cast<std::uint64_t*>(map)[word] = number;
  fake().tensor_maps.push_back({type,
                                reinterpret_cast<std::uintptr_t>(address),
                                {extents, extents + rank},
                                {strides, strides + rank - 1},
                                {box, box + rank},
                                {steps, steps + rank},
                                interleave,
                                swizzle,
                                promotion,
                                fill});
  return 0;
}
// Multiprocessors form groups of 16; the CTAs of a cluster share one.
int cuOccupancyMaxActiveClusters(int* clusters, void*, const tessera::internal::cuda::CUlaunchConfig* config) {
  BEGIN("cuOccupancyMaxActiveClusters");
  const int multiprocessors = fake().devices.at(0).multiprocessors,
            blocks = static_cast<int>(config->attributes->cluster[0]);
  *clusters = multiprocessors / 16 * (16 / blocks) + multiprocessors % 16 / blocks;
  return 0;
}
// Each is aligned to its size, a tensor map to 64 bytes.
static std::vector<std::byte> one_by_one(void** values, const std::vector<std::size_t>& sizes) {
  std::vector<std::byte> block;
  for (const std::size_t bytes : sizes) {
    const std::size_t alignment = std::min<std::size_t>(bytes, 64);
    block.resize((block.size() + alignment - 1) / alignment * alignment);
    const std::byte* const value = static_cast<const std::byte*>(*values++);
    block.insert(block.end(), value, value + bytes);
  }
  return block;
}
static int launch_kernel(const std::string& call, const Function& kernel, FakeCuda::Launch launch, void** values,
                         void** extra) {
  if (launch.grid == 0 || launch.grid > 0x7fffffff || launch.shared_bytes > static_cast<unsigned>(kernel.shared_bytes))
    return 1;
  if (launch.cluster < 1 || launch.cluster > 8 || launch.grid % launch.cluster != 0) return 1;
  if (!values == !extra) return 1;
  if (values) {
    const auto sizes = fake().parameter_bytes.find(kernel.name);
    if (sizes == fake().parameter_bytes.end()) return 1;
    launch.parameters = one_by_one(values, sizes->second);
  } else {
    const std::byte* block = nullptr;
    std::size_t bytes = 0;
    for (; *extra; extra += 2) {
      if (*extra == reinterpret_cast<void*>(1)) block = static_cast<const std::byte*>(extra[1]);
      if (*extra == reinterpret_cast<void*>(2)) bytes = *static_cast<std::size_t*>(extra[1]);
    }
    launch.parameters.assign(block, block + bytes);
  }
  return work(launch.stream, call + " " + kernel.name + " " + text(launch.stream),
              [launch] { fake().launches.push_back(launch); });
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                   unsigned threads_z, unsigned shared, void* stream, void** values, void** extra) {
  BEGIN("cuLaunchKernel");
  const Function& kernel = *static_cast<Function*>(function);
  FakeCuda::Launch launch{kernel.name, x, threads_x, shared, stream, {}};
  launch.further = {y, z, threads_y, threads_z};
  return launch_kernel("cuLaunchKernel", kernel, launch, values, extra);
}
int cuLaunchKernelEx(const tessera::internal::cuda::CUlaunchConfig* config, void* function, void** values,
                     void** extra) {
  BEGIN("cuLaunchKernelEx");
  const Function& kernel = *static_cast<Function*>(function);
  const auto& [grid, block, shared, stream, attributes, count] = *config;
  if (grid[1] != 1 || grid[2] != 1 || block[1] != 1 || block[2] != 1 || count == 0) return 1;
  FakeCuda::Launch launch{kernel.name, grid[0], block[0], shared, stream, {}};
  for (const auto& attribute : std::span(attributes, count)) {
    if (attribute.id == 4) {
      if (attribute.cluster[1] != 1 || attribute.cluster[2] != 1) return 1;
      launch.cluster = attribute.cluster[0];
    } else if (attribute.id == 2) {
      launch.cooperative = attribute.cooperative != 0;
      const int resident = fake().devices.at(0).multiprocessors * fake().blocks_per_multiprocessor;
      if (launch.cooperative && launch.grid > static_cast<unsigned>(resident)) return 720;  // they do not fit
    } else if (attribute.id == 6) {
      launch.early = attribute.early != 0;
    } else {
      return 1;
    }
  }
  return launch_kernel("cuLaunchKernelEx", kernel, launch, values, extra);
}

int cuStreamCreate(void** stream, unsigned flags) {
  BEGIN("cuStreamCreate");
  *stream = new Stream{++fake().streams_made};
  ++fake().streams;
  return done("cuStreamCreate " + text(*stream) + (flags ? " alone" : ""));
}
int cuStreamDestroy(void* stream) {
  BEGIN("cuStreamDestroy");
  --fake().streams;
  done("cuStreamDestroy " + text(stream));
  delete &at(stream);
  return 0;
}
int cuStreamSynchronize(void* stream) {
  BEGIN("cuStreamSynchronize");
  if (at(stream).records || !may_wait()) return 900;
  return done("cuStreamSynchronize " + text(stream));
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  BEGIN("cuStreamWaitEvent");
  Stream* const records = static_cast<Event*>(event)->records;
  if (at(stream).records && at(stream).records != records) return 905;  // the event is not of the stream's capture
  if (records && !at(stream).records) {
    at(stream).records = records;
    records->joined.push_back(&at(stream));
  }
  return done("cuStreamWaitEvent " + text(stream) + " " + text(static_cast<Event*>(event)));
}
int cuStreamIsCapturing(void* stream, int* status) {
  BEGIN("cuStreamIsCapturing");
  *status = at(stream).records != nullptr;
  return 0;
}
int cuStreamBeginCapture(void* stream, int mode) {
  BEGIN("cuStreamBeginCapture");
  if (mode != 1 || !stream || recording) return 900;
  at(stream).records = &at(stream);
  at(stream).recorded.clear();
  recording = &at(stream);
  capture_mode = mode;
  return done("cuStreamBeginCapture " + text(stream));
}
int cuStreamEndCapture(void* stream, void** graph) {
  BEGIN("cuStreamEndCapture");
  if (recording != &at(stream)) return 908;
  recording = nullptr;
  at(stream).records = nullptr;
  for (Stream* const joined : std::exchange(at(stream).joined, {})) joined->records = nullptr;
  *graph = new Graph{at(stream).recorded};
  ++fake().graphs;
  return done("cuStreamEndCapture " + text(stream));
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  BEGIN("cuGraphInstantiateWithFlags");
  *executable = new Graph(*static_cast<Graph*>(graph));
  ++fake().graphs;
  return 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  BEGIN("cuGraphLaunch");
  for (const auto& action : static_cast<Graph*>(executable)->work) action();
  return done("cuGraphLaunch " + text(stream));
}
int cuGraphDestroy(void* graph) {
  BEGIN("cuGraphDestroy");
  --fake().graphs;
  delete static_cast<Graph*>(graph);
  return 0;
}
int cuGraphExecDestroy(void* graph) {
  BEGIN("cuGraphExecDestroy");
  --fake().graphs;
  delete static_cast<Graph*>(graph);
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  BEGIN("cuEventCreate");
  Event* made = new Event;
  event_numbers[made] = next_event++;
  *event = made;
  ++fake().events;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  BEGIN("cuEventRecord");
  Event* to = static_cast<Event*>(event);
  to->records = at(stream).records;
  return work(stream, "cuEventRecord " + text(to) + " " + text(stream),
              [to] { to->milliseconds = clock_milliseconds, to->recorded = true; });
}
int cuEventSynchronize(void* event) {
  BEGIN("cuEventSynchronize");
  if (!may_wait()) return 900;
  return done("cuEventSynchronize " + text(static_cast<Event*>(event)));
}
int cuEventElapsedTime(float* milliseconds, void* begin_event, void* end_event) {
  BEGIN("cuEventElapsedTime");
  const Event &from = *static_cast<Event*>(begin_event), &to = *static_cast<Event*>(end_event);
  if (!from.recorded || !to.recorded) return 400;
  *milliseconds = static_cast<float>(to.milliseconds - from.milliseconds);
  return 0;
}
int cuEventDestroy(void* event) {
  BEGIN("cuEventDestroy");
  --fake().events;
  event_numbers.erase(static_cast<Event*>(event));
  delete static_cast<Event*>(event);
  return 0;
}

int cuMemGetInfo(std::size_t* free, std::size_t* total) {
  BEGIN("cuMemGetInfo");
  std::size_t used = 0;
  for (const auto& [address, bytes] : fake().memory) used += bytes;
  *free = fake().memory_bytes - used;
  *total = fake().memory_bytes;
  return 0;
}

static int allocate(unsigned long long* address, std::size_t bytes) {
  std::size_t free = 0, total = 0;
  if (const int error = cuMemGetInfo(&free, &total)) return error;
  if (bytes == 0) return 1;
  if (bytes > free) return 2;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xcd, bytes);
  *address = reinterpret_cast<std::uintptr_t>(memory);
  fake().memory[*address] = bytes;
  return 0;
}
static int release(unsigned long long address) {
  if (fake().memory.erase(address) == 0) return 1;
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemAlloc(unsigned long long* address, std::size_t bytes) {
  BEGIN("cuMemAlloc");
  if (!may_wait()) return 900;
  if (const int error = allocate(address, bytes)) return error;
  return done("cuMemAlloc " + std::to_string(bytes));
}
int cuMemFree(unsigned long long address) {
  BEGIN("cuMemFree");
  if (!may_wait()) return 900;
  return release(address) ? 1 : done("cuMemFree");
}
int cuMemAllocAsync(unsigned long long* address, std::size_t bytes, void* stream) {
  BEGIN("cuMemAllocAsync");
  const std::string call = "cuMemAllocAsync " + std::to_string(bytes) + " " + text(stream);
  if (at(stream).records) return *address = 4096, done("record " + call);  // belongs to the graph, not to the pool
  if (const int error = allocate(address, bytes)) return error;
  return done(call);
}
int cuMemFreeAsync(unsigned long long address, void* stream) {
  BEGIN("cuMemFreeAsync");
  if (at(stream).records) return address == 4096 ? done("record cuMemFreeAsync " + text(stream)) : 1;
  return release(address) ? 1 : done("cuMemFreeAsync " + text(stream));
}
int cuDeviceGetDefaultMemPool(void** pool, int device) {
  *pool = &device_numbers[device];
  return 0;
}
int cuMemPoolSetAttribute(void*, int attribute, void* value) {
  if (attribute != 4) return 1;
  return done("cuMemPoolSetAttribute " + std::to_string(*static_cast<std::uint64_t*>(value)));
}
int cuMemPoolTrimTo(void*, std::size_t bytes) { return done("cuMemPoolTrimTo " + std::to_string(bytes)); }
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  BEGIN("cuMemHostAlloc");
  if (!may_wait()) return 900;
  *memory = std::malloc(bytes);
  ++fake().pinned;
  return 0;
}
int cuMemFreeHost(void* memory) {
  BEGIN("cuMemFreeHost");
  std::free(memory);
  --fake().pinned;
  return done("cuMemFreeHost");
}
int cuMemsetD32Async(unsigned long long to, unsigned value, std::size_t count, void* stream) {
  BEGIN("cuMemsetD32Async");
  return work(stream, "cuMemsetD32Async " + std::to_string(count) + " " + text(stream),
              [=] { std::fill_n(reinterpret_cast<unsigned*>(to), count, value); });
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t bytes, void* stream) {
  BEGIN("cuMemcpyAsync");
  return work(stream, "cuMemcpyAsync " + std::to_string(bytes) + " " + text(stream),
              [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
}

int cuGetProcAddress_v2(const char* name, void** found, int version, unsigned long long, int*) {
  static const std::map<std::string, void*> functions = {
#define CALL(name, ...) {#name, reinterpret_cast<void*>(&name)},
#include "jit/cuda/driver.def"
  };
  const auto function = functions.find(name);
  if (version != 12000 || function == functions.end() || fake().lacks.contains(name)) return 500;
  *found = function->second;
  return 0;
}
}
