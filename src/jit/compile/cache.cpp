#include "jit/compile/cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- An entry as bytes: magic, schema, key, fields, and the SHA-256 of all of these. Numbers have the byte order of
// this machine: a cache folder belongs to one kind of machine.

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

/// Reads what Writer wrote. Past the end, or for an impossible size, it returns nothing and `good` becomes false.
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

/// The fields of an entry in order, for reading and for writing.
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
  writer.bytes = entry_magic;
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
  const bool is_entry = reader.take(entry_magic.size()) == entry_magic;
  reader(version);
  const bool is_ours = version == cache_schema && reader.take(key.bytes.size()) == as_text(key.bytes);
  if (!is_entry || !is_ours) return std::nullopt;
  CacheEntry entry;
  each_field(reader, entry);
  if (!reader.good || !reader.at_end()) return std::nullopt;
  return entry;
}

}  // namespace

CompileCache::CompileCache(std::string_view option, Warn warn, Limits limits)
    : warn_(std::move(warn)), limits_(limits) {
  const auto environment = [](std::string_view variable) {
    const char* value = std::getenv(std::string(variable).c_str());
    return std::string(value ? value : "");
  };
  try {
    const fs::path folder = cache_folder(option, environment);
    if (!folder.empty()) folder_.emplace(folder, environment("HOME"));
  } catch (const std::exception& e) {
    disk_failed(e.what());
  }
}

void CompileCache::disk_failed(std::string_view what) {
  if (warn_ && !warned_disk_.exchange(true)) {
    warn_(fmt::format(
        "compiled kernels are not kept on disk, all else works: {} (set TESSERA_CACHE_DIR to another folder)", what));
  }
}

CompileCache::Shared CompileCache::get(const CacheKey& key, const std::function<CacheEntry()>& compile) {
  std::promise<Shared> promise;
  bool dropped = false;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      const std::shared_future<Shared> future = found->second;
      ++counters_.memory_hits;
      lock.unlock();
      return future.get();  // waits if another thread is compiling it
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
  if (!on_disk) store(key, *entry);  // after set_value, so that no thread waits for the disk
  return entry;
}

CompileCache::Shared CompileCache::load(const CacheKey& key) {
  if (!folder_) return nullptr;
  std::string why;
  std::optional<CacheEntry> entry;
  try {
    folder_->read(
        key.hex(), [&](std::string_view bytes) { return (entry = from_bytes(key, bytes)).has_value(); }, why);
  } catch (const std::exception& e) {
    disk_failed(e.what());
  }
  if (entry) return std::make_shared<const CacheEntry>(std::move(*entry));
  if (why.empty()) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    ++counters_.rejected;
  }
  if (warn_ && !warned_entry_.exchange(true)) {
    warn_(fmt::format("cached kernel {} is not used because {}; it is compiled again",
                      folder_->file(key.hex()).native(), why));
  }
  return nullptr;
}

void CompileCache::store(const CacheKey& key, const CacheEntry& entry) {
  if (!folder_) return;
  try {
    folder_->write(key.hex(), to_bytes(key, entry));
    bool sweep = false;
    {
      const std::lock_guard lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      if (now < next_trim_) return;
      next_trim_ = now + limits_.trim_interval;
      sweep = !std::exchange(swept_, true);
    }
    folder_->trim(limits_.bytes, sweep);
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
  if (!folder_) return;
  try {
    folder_->remove(key.hex());
  } catch (const std::exception& e) {
    disk_failed(e.what());
  }
}

CompileCache::Counters CompileCache::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace tessera::internal
