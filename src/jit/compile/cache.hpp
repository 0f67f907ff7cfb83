// The cache of compiled kernels, in memory and on disk, under a key made of everything that they depend on. Several
// threads and several processes may use one folder. A problem with the folder can cost a compilation, but never a wrong
// result.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "jit/compile/cache_folder.hpp"
#include "jit/compile/cache_key.hpp"
#include "jit/compile/nvrtc.hpp"

namespace tessera::internal {

struct CacheEntry {
  std::string kernel;
  std::string source;  ///< the text that was compiled, for later inspection
  CompiledCode code;
  bool operator==(const CacheEntry&) const = default;
};

class CompileCache {
 public:
  struct Limits {
    std::uint64_t bytes = 512 << 20;         ///< limit on disk; the least recently used entries are removed first
    std::chrono::seconds trim_interval{60};  ///< minimum time between two checks of the folder's size
  };
  struct Counters {
    std::uint64_t compiled = 0, memory_hits = 0, disk_hits = 0, rejected = 0;
  };
  using Warn = std::function<void(std::string_view)>;

  /// `option` as for cache_folder. `warn` is called, from any thread, at the first failure of the disk and at the first
  /// damaged entry, with one line each.
  explicit CompileCache(std::string_view option, Warn warn, Limits limits);
  CompileCache(std::string_view option, Warn warn) : CompileCache(option, std::move(warn), Limits()) {}

  /// The entry for `key`: from memory, from disk, or from `compile`, which is called once however many threads ask.
  /// Throws only what `compile` throws; the next caller then tries again.
  std::shared_ptr<const CacheEntry> get(const CacheKey& key, const std::function<CacheEntry()>& compile);

  /// Removes an entry, also from disk: for code that the driver rejects.
  void drop(const CacheKey& key);

  Counters counters() const;
  /// The folder of the entries on disk; nullopt if they are kept in memory only.
  const std::optional<CacheFolder>& folder() const { return folder_; }

 private:
  using Shared = std::shared_ptr<const CacheEntry>;

  Shared load(const CacheKey& key);
  void store(const CacheKey& key, const CacheEntry& entry);
  void disk_failed(std::string_view what);

  std::optional<CacheFolder> folder_;
  Warn warn_;
  Limits limits_;
  mutable std::mutex mutex_;  // guards the next five members
  std::map<CacheKey, std::shared_future<Shared>> entries_;
  std::set<CacheKey> dropped_;  // not read from disk, where they may not have been removed
  Counters counters_;
  std::chrono::steady_clock::time_point next_trim_{};
  bool swept_ = false;
  std::atomic<bool> warned_disk_ = false, warned_entry_ = false;
};

}  // namespace tessera::internal
