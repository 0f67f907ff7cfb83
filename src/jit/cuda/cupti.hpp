// CUPTI, CUDA's library for profilers, opened at run time: what each GPU did and when, also inside of graphs.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/options/shared_library.hpp"
#include "jit/profile/join.hpp"

namespace tessera::internal::cuda {

class Cupti {
 public:
  /// The places to search: only `option` (TESSERA_CUPTI), a file or a folder, if it is set; otherwise the loader path,
  /// CUDA_HOME, CUDA_PATH and /usr/local/cuda*. `environment`: variable -> value, "" if unset.
  static std::vector<std::string> places(std::string_view option,
                                         const std::function<std::string(std::string_view)>& environment);

  /// Opens the first of `places`, and begins to trace all devices of the process; one object of a process at a time
  /// may. Throws Error that says why it cannot: there is no such library, its records are not known, or the driver
  /// permits no tracing.
  Cupti(std::span<const std::string> places, profile::Join& join);
  ~Cupti();
  Cupti(const Cupti&) = delete;
  Cupti& operator=(const Cupti&) = delete;

  /// The calls of the driver that this thread makes between the two belong to a call of the recorder.
  void begin(std::uint64_t number) const;
  void end() const;
  /// Adds what the devices have done so far to the join.
  void flush() const;
  const std::string& version() const { return version_; }

 private:
  using Result = int;
  struct Calls {
    Result (*version)(std::uint32_t*);
    Result (*register_clock)(std::uint64_t (*)());
    Result (*register_buffers)(void (*)(std::uint8_t**, std::size_t*, std::size_t*),
                               void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t));
    Result (*enable)(int kind);
    Result (*disable)(int kind);
    Result (*flush)(std::uint32_t forced);
    Result (*next_record)(std::uint8_t* buffer, std::size_t bytes, std::byte** record);
    Result (*push)(int kind, std::uint64_t id);
    Result (*pop)(int kind, std::uint64_t* id);
    Result (*result_text)(Result, const char**);
  };

  void check(Result result, std::string_view call) const;
  void begin_tracing();
  void read(std::uint8_t* buffer, std::size_t bytes);
  static void give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records);
  static void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                          std::size_t valid);

  const SharedLibrary& library_;  // never closed: its threads may run to the end of the process
  Calls calls_{};
  std::string version_;
  profile::Join& join_;
};

}  // namespace tessera::internal::cuda
