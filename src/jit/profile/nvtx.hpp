// Names of ranges for an attached profiler, such as Nsight Systems, through NVTX.
#pragma once
#include <memory>

namespace tessera::internal::profile {

/// The functions of an attached profiler. Ranges of a thread nest.
class Nvtx {
 public:
  /// The profiler whose library is named by NVTX_INJECTION64_PATH, which it sets for the processes that it starts;
  /// null: there is none, or it takes no ranges. Its library stays loaded.
  static std::unique_ptr<const Nvtx> attached();
  /// The same for a library. With libnvToolsExt, of CUDA 12 and older, too.
  static std::unique_ptr<const Nvtx> of(const char* library);

  void push(const char* name) const { push_(name); }
  void pop() const { pop_(); }

 private:
  int (*push_)(const char*) = nullptr;
  int (*pop_)() = nullptr;
};

}  // namespace tessera::internal::profile
