// The results of tuning, kept in the cache folder: a file of lines, to which processes append.
#pragma once
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/jit/tune.hpp"

namespace tessera::internal {

class TuneRecords {
 public:
  static constexpr const char* file_name = "tunings-1.tsv";

  /// The records in `file`; empty: they are kept in memory only.
  explicit TuneRecords(std::filesystem::path file) : file_(std::move(file)) {}
  /// Those of this process.
  static TuneRecords& instance();

  bool is_empty();
  std::optional<TuneRecord> find(const std::string& key);
  void add(const TuneRecord& record);
  std::vector<TuneRecord> all();
  std::size_t import(const std::vector<TuneRecord>& records);

 private:
  void read_new_lines();
  bool take(const TuneRecord& record);

  std::filesystem::path file_;
  std::mutex mutex_;  // guards the rest
  std::map<std::string, TuneRecord> records_;
  std::uint64_t read_ = 0;  // bytes of the file
  bool warned_ = false;
};

/// tune() with records of one's own.
TuneReport tune(const TuneRequest& request, const TuneOptions& options, TuneRecords& records);

/// The first line of a file of records.
std::string tune_records_heading();
std::string to_line(const TuneRecord& record);
/// None: it is not such a line.
std::optional<TuneRecord> record_of(std::string_view line);

}  // namespace tessera::internal
