#include "jit/tune/records.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "jit/compile/compiler.hpp"
#include "jit/options/files.hpp"
#include "jit/options/log.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

constexpr std::uint64_t most_bytes = 64 << 20;
constexpr std::size_t key_size = 64;

std::string field(std::string_view text) {
  std::string clean(text);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return clean;
}

template <class N>
bool parse(std::string_view text, N& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = std::min(text.find(by), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string tune_records_heading() {
  return "# Tessera's tunings: key, kernel, shapes, device, configuration, ms, spread, time\n";
}

std::string to_line(const TuneRecord& r) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{:.6g}\t{:.3f}\t{}\n", r.key, field(r.kernel), field(r.shapes),
                     field(r.device), fmt::join(r.config, ","), r.milliseconds, r.spread, r.time);
}

std::optional<TuneRecord> record_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::vector<std::string_view> fields = split(line, '\t');
  if (fields.size() != 8 || fields[0].size() != key_size ||
      fields[0].find_first_not_of("0123456789abcdef") != fields[0].npos)
    return std::nullopt;
  TuneRecord record{.key = std::string(fields[0]),
                    .kernel = std::string(fields[1]),
                    .shapes = std::string(fields[2]),
                    .device = std::string(fields[3]),
                    .config = {}};
  for (const std::string_view value : split(fields[4], ','))
    if (!parse(value, record.config.emplace_back())) return std::nullopt;
  if (!parse(fields[5], record.milliseconds) || !parse(fields[6], record.spread) || !parse(fields[7], record.time))
    return std::nullopt;
  constexpr std::int64_t last_time = std::int64_t{1} << 40;
  const bool is_possible = record.milliseconds >= 0 && record.milliseconds < 1e12 && record.spread >= 0 &&
                           record.time >= 0 && record.time < last_time;
  return is_possible ? std::optional(record) : std::nullopt;
}

TuneRecords& TuneRecords::instance() {
  const std::optional<CacheFolder>& folder = Compiler::instance().cache_folder();
  static TuneRecords& records =  // never destroyed, like the compiler
      *new TuneRecords(folder ? folder->path() / file_name : std::filesystem::path());
  return records;
}

bool TuneRecords::take(const TuneRecord& record) {
  ++generation_;
  const auto [place, is_new] = records_.try_emplace(record.key, record);
  if (is_new) return true;
  if (place->second.time > record.time) return false;
  place->second = record;
  return false;
}

/// Other processes may have appended lines. A line that is not complete yet is read later; a damaged one is skipped.
void TuneRecords::read_new_lines() {
  has_read_ = true;
  if (file_.empty()) return;
  try {
    const Descriptor file(file_, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (!file) return;
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size < read_) read_ = 0;  // somebody emptied it
    if (size == read_) return;
    if (size > most_bytes)
      throw std::runtime_error(fmt::format("{} has more than {} MiB", file_.native(), most_bytes >> 20));
    if (::lseek(file.get(), static_cast<off_t>(read_), SEEK_SET) < 0) return;
    const std::string text = read_some(file, size - read_, file_);
    const std::size_t end = text.rfind('\n');
    if (end == text.npos) return;
    read_ += end + 1;
    for (const std::string_view line : split(std::string_view(text).substr(0, end), '\n')) {
      if (line.empty() || line.front() == '#') continue;
      if (const auto record = record_of(line)) {
        take(*record);
      } else if (!warned_) {
        warned_ = true;
        log_warn(fmt::format("{} has a line that is no tuning, and is skipped: {:.60}", file_.native(), field(line)));
      }
    }
  } catch (const std::exception& error) {
    if (!warned_) log_warn(fmt::format("tunings cannot be read: {}", error.what()));
    warned_ = true;
  }
}

bool TuneRecords::knows_any() {
  const std::lock_guard lock(mutex_);
  if (!has_read_) read_new_lines();
  return !records_.empty();
}

std::optional<TuneRecord> TuneRecords::find_known(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (!has_read_) read_new_lines();
  const auto found = records_.find(key);
  return found == records_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<TuneRecord> TuneRecords::find(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    read_new_lines();
  }
  return find_known(key);
}

std::vector<TuneRecord> TuneRecords::all() {
  const std::lock_guard lock(mutex_);
  read_new_lines();
  std::vector<TuneRecord> all;
  for (const auto& [key, record] : records_) all.push_back(record);
  std::ranges::sort(all, {}, [](const TuneRecord& r) { return std::tie(r.kernel, r.device, r.shapes, r.key); });
  return all;
}

std::size_t TuneRecords::import(const std::vector<TuneRecord>& records) {
  const std::lock_guard lock(mutex_);
  read_new_lines();
  std::size_t added = 0;
  std::string lines;
  for (const TuneRecord& record : records) {
    const auto known = records_.find(record.key);
    if (known != records_.end() && (known->second.time > record.time || to_line(known->second) == to_line(record)))
      continue;
    added += take(record);
    lines += to_line(record);
  }
  if (file_.empty() || lines.empty()) return added;
  // One write at the end of the file, so that lines of several processes do not mix.
  try {
    const Descriptor file(file_, O_RDWR | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC, 0600);
    if (!file) throw_errno("write", file_);
    for (int tries = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
      constexpr int most_tries = 200;
      if ((errno != EINTR && errno != EWOULDBLOCK) || tries == most_tries) throw_errno("lock", file_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) throw_errno("look at", file_);
    char last = '\n';
    if (status.st_size == 0)
      lines.insert(0, tune_records_heading());
    else if (::pread(file.get(), &last, 1, status.st_size - 1) == 1 && last != '\n')  // of a process that was killed
      lines.insert(0, "\n");
    write_all(file, std::as_bytes(std::span(lines)), file_);
  } catch (const std::exception& error) {
    if (!warned_) log_warn(fmt::format("tunings are not kept for other processes: {}", error.what()));
    warned_ = true;
  }
  return added;
}

void TuneRecords::add(TuneRecord record) {
  if (const auto known = find(record.key)) record.time = std::max(record.time, known->time + 1);  // clocks differ
  import({record});
}

std::uint64_t tune_generation() { return TuneRecords::instance().generation(); }

std::vector<TuneRecord> tune_records() { return TuneRecords::instance().all(); }

void export_tune_records(const std::filesystem::path& path) {
  try {
    OutputFile file(path);
    file.write(tune_records_heading());
    for (const TuneRecord& record : tune_records()) file.write(to_line(record));
    file.publish();
  } catch (const std::exception& error) {
    throw Error(fmt::format("tunings are not exported: {}", error.what()));
  }
}

std::size_t import_tune_records(const std::filesystem::path& path) {
  std::optional<std::string> text;
  try {
    text = read_regular_file(path, most_bytes);
  } catch (const std::exception& error) {
    throw Error(fmt::format("tunings are not imported: {}", error.what()));
  }
  if (!text) throw Error(fmt::format("tunings are not imported: there is no {}", path.native()));
  std::vector<TuneRecord> records;
  int number = 0;
  for (std::string_view line : split(*text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const auto record = record_of(line);
    if (!record) throw Error(fmt::format("tunings are not imported: {}:{} is no tuning", path.native(), number));
    records.push_back(*record);
  }
  return TuneRecords::instance().import(records);
}

}  // namespace tessera::internal
