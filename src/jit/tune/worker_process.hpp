// The tuning worker as the process that tunes sees it.
#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "jit/options/process.hpp"
#include "jit/tune/job.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal {

/// The worker program: TESSERA_TUNE_WORKER, or tune-worker in one of own_folders(), or in its tessera. Throws Error
/// that lists the places.
std::filesystem::path tune_worker_path();

class TuneWorker {
 public:
  /// An answer of the worker: see job.hpp.
  struct Answer {
    std::string word;
    std::size_t candidate = 0;
    double number = 0;  ///< milliseconds
    std::string why;
  };

  /// Starts the worker and sends it the job, with the memory of its blocks. Throws Error if that fails.
  TuneWorker(const TuneJob& job, const Device& device);

  /// The next answer; none: it says nothing in time, or has ended.
  std::optional<Answer> answer(std::chrono::milliseconds patience);
  void check(std::size_t candidate);
  void time(std::size_t candidate, int calls);
  /// Has it ended, so that it will answer no more?
  bool has_ended() const { return process_.answers_ended(); }
  /// Ends it, if it has not, and says how it ended.
  std::string end();

 private:
  Process process_;
};

}  // namespace tessera::internal
