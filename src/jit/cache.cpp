#include "jit/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "jit/files.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "tessera\x1a";  // 0x1a: `type` and `more` stop before the binary part
constexpr std::uint64_t largest_entry = 256 << 20;
constexpr std::chrono::hours stale_after{1};
constexpr const char* temporary = "tmp";

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- An entry as bytes: magic, schema, key, fields, and SHA-256 of all that. Numbers as this machine has them: a
// cache folder belongs to one kind of machine.

class Writer {
 public:
  std::string bytes;
  template <class T>
  void operator()(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      (*this)(static_cast<std::uint64_t>(value.size()));
      if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        for (const std::string& item : value) (*this)(item);
      } else {
        bytes.append(reinterpret_cast<const char*>(value.data()), value.size());
      }
    }
  }
};

/// Reads what Writer wrote. Past the end, or for a size that cannot be, it gives nothing and `good` turns false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  void operator()(T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      const std::string_view bytes = take(sizeof value);
      if (good) std::memcpy(&value, bytes.data(), sizeof value);
    } else {
      std::uint64_t size = 0;
      (*this)(size);
      if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        for (; good && size > 0; --size) (*this)(value.emplace_back());
      } else {
        const std::string_view bytes = take(size);
        value.resize(bytes.size());
        std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(value.data()));
      }
    }
  }
  std::string_view take(std::uint64_t size) {
    good = good && size <= rest_.size();
    const std::string_view bytes = rest_.substr(0, good ? size : 0);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  bool at_end() const { return rest_.empty(); }
  bool good = true;

 private:
  std::string_view rest_;
};

/// The fields of an entry in their order, for both directions.
template <class Stream, class Entry>
void each_field(Stream& stream, Entry& entry) {
  stream(entry.kernel), stream(entry.source);
  auto& code = entry.code;
  stream(code.is_ptx), stream(code.log), stream(code.note);
  auto& report = code.report;
  stream(report.registers), stream(report.barriers), stream(report.shared_bytes), stream(report.constant_bytes);
  stream(report.stack_bytes), stream(report.spill_store_bytes), stream(report.spill_load_bytes);
  stream(report.compile_ms), stream(report.warnings);
  stream(code.image);
}

std::string to_bytes(const CacheKey& key, const CacheEntry& entry) {
  Writer writer;
  writer.bytes = magic;
  writer(cache_schema);
  writer.bytes += as_text(key.bytes);
  each_field(writer, entry);
  writer.bytes += as_text(sha256(writer.bytes));
  return std::move(writer.bytes);
}

std::optional<CacheEntry> from_bytes(const CacheKey& key, std::string_view bytes) {
  if (bytes.size() < sizeof(Digest)) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(Digest));
  if (as_text(sha256(body)) != bytes.substr(body.size())) return std::nullopt;
  Reader reader(body);
  std::uint32_t version = 0;
  const bool is_entry = reader.take(magic.size()) == magic;
  reader(version);
  const bool is_ours = version == cache_schema && reader.take(key.bytes.size()) == as_text(key.bytes);
  if (!is_entry || !is_ours) return std::nullopt;
  CacheEntry entry;
  each_field(reader, entry);
  if (!reader.good || !reader.at_end()) return std::nullopt;
  return entry;
}

// ---- Files

bool others_write(const struct stat& status) { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// Normal, and without the slash at its end, which would give the folder two names.
fs::path plain(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

/// Whoever can write to the folder decides what runs on the GPU. Checked as well: what lies between it and HOME.
void check_folder(const fs::path& folder, const fs::path& home) {
  for (fs::path path = folder; path.has_relative_path(); path = path.parent_path()) {
    const bool below_home = !home.empty() && path != home && path.native().starts_with(home.native() + "/");
    if (path != folder && !below_home) break;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw_errno("look at", path);
    if (!S_ISDIR(status.st_mode)) throw std::runtime_error(path.native() + " is not a folder");
    if (status.st_uid != ::geteuid()) throw std::runtime_error(path.native() + " belongs to another user");
    if (others_write(status) && !(path != folder && (status.st_mode & S_ISVTX))) {
      throw std::runtime_error(path.native() + " can be written by others (chmod go-w mends that)");
    }
  }
}

/// Every file of two levels of folders with its status; folders and files that vanish meanwhile are left out.
template <class Action>
void each_file(const fs::path& folder, Action&& action) {
  std::error_code error;
  for (fs::recursive_directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    struct stat status {};
    if (::lstat(i->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) action(i->path(), status);
  }
}

}  // namespace

// ---- The folder

fs::path cache_folder(std::string_view option, const std::function<std::string(std::string_view)>& environment) {
  std::string lower(option);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "off" || lower == "0" || lower == "none") return {};
  if (::getauxval(AT_SECURE) != 0 || ::geteuid() != ::getuid()) return {};
  if (!option.empty()) return plain(fs::absolute(option));
  // The XDG rules: a relative path counts as unset.
  if (const fs::path base = environment("XDG_CACHE_HOME"); base.is_absolute()) return plain(base / "tessera");
  if (const fs::path home = environment("HOME"); home.is_absolute()) return plain(home / ".cache" / "tessera");
  return {};
}

CompileCache::CompileCache(std::string_view option, Warn warn, Limits limits)
    : warn_(std::move(warn)), limits_(limits) {
  const auto environment = [](std::string_view variable) {
    const char* value = std::getenv(std::string(variable).c_str());
    return std::string(value ? value : "");
  };
  try {
    const fs::path folder = cache_folder(option, environment);
    if (folder.empty()) return;
    make_folder(folder);
    check_folder(folder, plain(environment("HOME")));
    folder_ = folder;
  } catch (const std::exception& e) {
    disk_failed(e.what());
  }
}

void CompileCache::disk_failed(std::string_view what) {
  if (warn_ && !warned_disk_.exchange(true)) {
    warn_(fmt::format(
        "compiled kernels are not kept on disk, all else works: {} (TESSERA_CACHE_DIR names another folder)", what));
  }
}

fs::path CompileCache::file(const CacheKey& key) const {
  const std::string hex = key.hex();
  return folder_ / hex.substr(0, 2) / hex.substr(2);
}

// ---- Entries

CompileCache::Shared CompileCache::get(const CacheKey& key, const std::function<CacheEntry()>& compile) {
  std::promise<Shared> promise;
  bool dropped = false;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      const std::shared_future<Shared> future = found->second;
      ++counters_.memory_hits;
      lock.unlock();
      return future.get();  // waits while another thread compiles
    }
    entries_.emplace(key, promise.get_future().share());
    dropped = dropped_.erase(key) > 0;
  }
  Shared entry;
  bool on_disk = false;
  try {
    if (!dropped) entry = load(key);
    on_disk = entry != nullptr;
    if (!on_disk) entry = std::make_shared<const CacheEntry>(compile());
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      entries_.erase(key);
    }
    promise.set_exception(std::current_exception());
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    ++(on_disk ? counters_.disk_hits : counters_.compiled);
  }
  promise.set_value(entry);
  if (!on_disk) store(key, *entry);  // nobody waits for the disk
  return entry;
}

CompileCache::Shared CompileCache::load(const CacheKey& key) {
  if (folder_.empty()) return nullptr;
  const fs::path path = file(key);
  std::string why;
  try {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    const Descriptor file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status {};
    if (!file) {
      if (errno == ENOENT) return nullptr;
      if (errno != ELOOP && errno != ENXIO) throw_errno("read", path);
      why = "it is a link or a socket";
    } else if (::fstat(file.get(), &status) != 0) {
      throw_errno("look at", path);
    } else if (!S_ISREG(status.st_mode)) {
      why = "it is not a regular file";
    } else if (status.st_uid != ::geteuid() || others_write(status)) {
      why = "others can write it";
    } else if (static_cast<std::uint64_t>(status.st_size) > largest_entry) {
      why = "it is too large";
    } else {
      std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
      std::size_t size = 0;
      while (size < bytes.size()) {
        const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_errno("read", path);
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
      }
      if (std::optional<CacheEntry> entry = from_bytes(key, std::string_view(bytes).substr(0, size))) {
        ::futimens(file.get(), nullptr);  // used now; without it, age counts, which does too
        return std::make_shared<const CacheEntry>(std::move(*entry));
      }
      why = "its checksum is wrong";
    }
    // Another process may just have put a good entry in the place of the bad one: remove only what was looked at.
    struct stat now {};
    if (::lstat(path.c_str(), &now) == 0 && (!file || (now.st_ino == status.st_ino && now.st_dev == status.st_dev))) {
      if (::remove(path.c_str()) != 0) throw_errno("remove the bad entry", path);
    }
  } catch (const std::exception& e) {
    disk_failed(e.what());
  }
  if (why.empty()) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    ++counters_.rejected;
  }
  if (warn_ && !warned_entry_.exchange(true)) {
    warn_(fmt::format("cached kernel {} is not used, {}; it is compiled again", path.native(), why));
  }
  return nullptr;
}

void CompileCache::store(const CacheKey& key, const CacheEntry& entry) {
  if (folder_.empty()) return;
  try {
    const std::string bytes = to_bytes(key, entry);
    if (bytes.size() > largest_entry) return;
    try {
      write_whole_file(folder_ / temporary, file(key), bytes);
    } catch (const std::system_error& e) {
      if (e.code().value() != ENOENT) throw;
      write_whole_file(folder_ / temporary, file(key),
                       bytes);  // somebody emptied the cache meanwhile: its folders are made again
    }
    trim();
  } catch (const std::exception& e) {
    disk_failed(e.what());
  }
}

void CompileCache::drop(const CacheKey& key) {
  {
    const std::lock_guard lock(mutex_);
    entries_.erase(key);
    dropped_.insert(key);
  }
  if (!folder_.empty()) ::unlink(file(key).c_str());
}

CompileCache::Counters CompileCache::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

/// Removes what a killed process left, and the entries used longest ago beyond the limit.
void CompileCache::trim() {
  bool sweep = false;
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_trim_) return;
    next_trim_ = now + limits_.trim_interval;
    sweep = !std::exchange(swept_, true);
  }
  const Descriptor lock(folder_ / "lock", O_RDWR | O_CREAT, 0600);
  if (!lock) throw_errno("open", folder_ / "lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;  // another process is at it

  struct File {
    std::int64_t seconds, nanoseconds;
    std::uint64_t bytes;
    fs::path path;
    bool operator<(const File& other) const {
      return std::pair(seconds, nanoseconds) < std::pair(other.seconds, other.nanoseconds);
    }
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  const std::int64_t stale = std::time(nullptr) - std::chrono::seconds(stale_after).count();
  each_file(folder_, [&](const fs::path& path, const struct stat& status) {
    const fs::path parent = path.parent_path();
    if (parent == folder_) return;  // the lock
    if (parent == folder_ / temporary) {
      if (sweep && status.st_mtim.tv_sec < stale) ::unlink(path.c_str());
      return;
    }
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    total += bytes;
    files.push_back({status.st_mtim.tv_sec, status.st_mtim.tv_nsec, bytes, path});
  });
  if (total <= limits_.bytes) return;
  std::sort(files.begin(), files.end());
  for (const File& file : files) {
    if (total <= limits_.bytes) break;
    if (::unlink(file.path.c_str()) == 0) total -= file.bytes;
  }
}

}  // namespace tessera
