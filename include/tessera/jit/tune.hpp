// Tuning: measures the configurations of a kernel in a process of its own, and keeps the fastest. api/tunable.hpp is
// the typed form that programs use.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/jit/choose.hpp"
#include "tessera/jit/device.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Values of the parameters that distinguish one kernel of a family from the others: extents of tiles, stages, warps.
using Config = std::vector<int>;

/// Every combination of the values of each parameter: combinations({{64, 128}, {64, 128}, {32}}) has four. The first is
/// made of the first values.
std::vector<Config> combinations(const std::vector<std::vector<int>>& values);
/// The extents of a matmul's tiles as configurations of a function of three ints.
std::vector<Config> configs_of(const std::vector<MatmulTiles>& tiles);

/// How tune() and a Tunable measure.
struct TuneOptions {
  std::chrono::milliseconds budget = std::chrono::seconds(5);  ///< for one kernel, compilation included
  int most = 24;            ///< configurations that are compiled, at most: see docs/tuning.md for which
  bool equal_bits = false;  ///< only configurations whose results have the bits of the first one's
  double tolerance = 0;     ///< error of a result relative to its value, or to the root mean square of its row (along
                            ///< the last axis) or its tensor; 0: by the element type, 1e-3 for f32 to 2e-2 for bf16
  bool again = false;       ///< measures even if there is a record
};

/// A configuration and what became of it.
struct TuneTrial {
  enum class Outcome : std::uint8_t {
    measured,
    skipped,  ///< not tried: beyond TuneOptions::most, or the budget was spent
    refused,  ///< it did not trace, compile, or accept the arguments
    wrong,    ///< its results differ from the first candidate's
    failed,   ///< it failed when it ran, or ended its process
    hung,     ///< it ran for too long, and was ended
  };
  Config config;
  Outcome outcome = Outcome::skipped;
  double milliseconds = 0;  ///< of one launch, the median; only if measured
  double spread = 0;        ///< of the samples: (largest - smallest) / median
  std::string why = {};     ///< if it is not measured
};
std::string_view name(TuneTrial::Outcome outcome);

/// The result of tuning one kernel.
struct TuneReport {
  std::string kernel, device;
  std::string shapes;             ///< the arguments, as classes
  std::vector<TuneTrial> trials;  ///< all configurations, in the order of the family; from a record: none
  Config best;
  double milliseconds = 0;   ///< of one launch with the best
  bool from_record = false;  ///< found, not measured
  double seconds = 0;        ///< that tuning took
  /// A table, fastest first.
  std::string text() const;
};

/// A kernel for each of several configurations, and a launch that they should be fast for.
struct TuneRequest {
  std::string kernel;           ///< the family's name
  std::vector<Config> configs;  ///< the first is the default: it counts as right
  /// The kernel of configs[i]. All have the same parameters. Throws Error if there is none.
  std::function<std::shared_ptr<const Executable>(std::size_t)> make;
  Device device;
  std::span<const Argument> arguments;
};

/// The record of such a launch, or the fastest configuration that was measured now, which is then recorded. The
/// arguments' memory is not written: the worker has copies. Throws Error if no configuration runs, and if there is no
/// worker.
TuneReport tune(const TuneRequest& request, const TuneOptions& options = {});

struct BestConfig {
  std::optional<std::size_t> place = {};  ///< in the request's list; none: there is no record, so the first counts
  bool is_final = true;                   ///< false: ask again at the next launch
  bool has_failed = false;                ///< tuning has: it is not to be tried again
};
/// The configuration that launches take. Without a record, and if TESSERA_TUNE=search, the kernel is tuned now; a
/// failure of that is a warning.
BestConfig best_config(const TuneRequest& request);
/// A number that grows with the records that this process knows.
std::uint64_t tune_generation();

enum class TuneMode : std::uint8_t { off, use, search };
/// TESSERA_TUNE.
TuneMode tune_mode();

/// Numbers that are equal for two launches if one record serves both: the extents of their tensors, rounded up to a
/// class, their layouts and the integer scalars.
std::vector<std::int64_t> tune_class(std::span<const Parameter> parameters, std::span<const Argument> arguments);

/// Records the best tiles of a report for choose().
void record_tiles(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device,
                  const TuneReport& report);

/// One line of the table of records.
struct TuneRecord {
  std::string key;  ///< of kernel, shapes, device, compiler and settings: 64 hexadecimal digits
  std::string kernel, shapes, device;
  Config config;
  double milliseconds = 0;
  double spread = 0;
  std::int64_t time = 0;  ///< seconds since 1970
};
/// All records: those of the cache folder, and of this process.
std::vector<TuneRecord> tune_records();
/// Writes all records to one file.
void export_tune_records(const std::filesystem::path& file);
/// Adds the records of such a file; of two with one key, the later one counts. Returns how many are new. Throws Error,
/// and adds none, if the file is not such a file.
std::size_t import_tune_records(const std::filesystem::path& file);

}  // namespace internal
}  // namespace tessera
