#include "jit/tune/worker_process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <system_error>
#include <vector>

#include "jit/options/options.hpp"
#include "jit/options/own_folders.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

namespace fs = std::filesystem;

fs::path tune_worker_path() {
  std::vector<std::string> places;
  if (!options().tune_worker.empty())
    places.push_back(options().tune_worker);
  else
    for (const fs::path& folder : own_folders())
      for (const fs::path& place : {folder / "tune-worker", folder / "tessera" / "tune-worker"})
        places.push_back(place);
  for (const std::string& place : places)
    if (std::error_code error; fs::is_regular_file(place, error) && ::access(place.c_str(), X_OK) == 0) return place;
  const fs::path build = build_folder();
  throw Error(fmt::format(
      "tuning runs kernels in another process, by the program tune-worker, which was not found; "
      "tried: {}; {}set TESSERA_TUNE_WORKER to its path",
      fmt::join(places, ", "),
      build.empty() ? "" : fmt::format("build it with `cmake --build {} --target tune-worker`, or ", build.native())));
}

TuneWorker::TuneWorker(const TuneJob& job, const Device& device) try
    : process_({tune_worker_path().native()}, {.talks = true, .reports_errors = true}) {
  const std::string bytes = job.bytes();
  const std::uint64_t size = bytes.size();
  bool takes = process_.write(std::as_bytes(std::span(&size, 1))) && process_.write(bytes);
  std::vector<std::byte> buffer(std::size_t{16} << 20);
  for (const TuneBlock& block : job.blocks)
    for (std::uint64_t at = 0; takes && block.is_read && at < block.bytes; at += buffer.size()) {
      const std::size_t part = std::min<std::uint64_t>(buffer.size(), block.bytes - at);
      device.copy_out(buffer.data(), reinterpret_cast<const void*>(block.address + at), part);
      takes = process_.write(std::span(buffer).first(part));
    }
  // If it reads no more, its answers say why.
} catch (const std::system_error& error) {
  throw Error(fmt::format("the tuning worker cannot be started: {}", error.what()));
}

std::optional<TuneWorker::Answer> TuneWorker::answer(std::chrono::milliseconds patience) {
  const std::optional<std::string> line = process_.read_answer(patience);
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  Answer answer;
  words >> answer.word;
  if (answer.word != "stuck") words >> answer.candidate;
  if (answer.word == "ran" || answer.word == "timed") words >> answer.number;
  std::getline(words >> std::ws, answer.why);
  return answer;
}

void TuneWorker::check(std::size_t candidate) { process_.write(fmt::format("check {}\n", candidate)); }
void TuneWorker::time(std::size_t candidate, int calls) {
  process_.write(fmt::format("time {} {}\n", candidate, calls));
}

std::string TuneWorker::end() { return process_.how_it_ended(!has_ended()); }

}  // namespace tessera::internal
