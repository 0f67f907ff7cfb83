// The results of tuning, kept in the cache folder: a file of lines, to which processes append.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/jit/tune.hpp"

namespace tessera::internal {

class TuneRecords {
 public:
  static constexpr const char* file_name = "tunings-1.tsv";

  /// The records in `file`; empty: they are kept in memory only.
  explicit TuneRecords(std::filesystem::path file) : file_(std::move(file)) {}
  /// Those of this process.
  static TuneRecords& instance();

  /// Reads what other processes have recorded meanwhile.
  std::optional<TuneRecord> find(const std::string& key);
  /// Without reading: what this process knows. It does not change but by what this process tunes or imports.
  std::optional<TuneRecord> find_known(const std::string& key);
  /// False, without reading: nothing is known, so no key need be made.
  bool knows_any();
  std::uint64_t generation() const { return generation_; }
  /// A later record than any with its key.
  void add(TuneRecord record);
  std::vector<TuneRecord> all();
  std::size_t import(const std::vector<TuneRecord>& records);

 private:
  void read_new_lines();
  bool take(const TuneRecord& record);

  std::filesystem::path file_;
  std::mutex mutex_;  // guards the rest
  std::map<std::string, TuneRecord> records_;
  std::uint64_t read_ = 0;  // bytes of the file
  bool has_read_ = false, warned_ = false;
  std::atomic<std::uint64_t> generation_ = 0;
};

/// tune() with records of one's own.
TuneReport tune(const TuneRequest& request, const TuneOptions& options, TuneRecords& records);

/// The first line of a file of records.
std::string tune_records_heading();
std::string to_line(const TuneRecord& record);
/// None: it is not such a line.
std::optional<TuneRecord> record_of(std::string_view line);

}  // namespace tessera::internal
