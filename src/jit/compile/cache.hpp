// Compiled kernels, kept in memory and on disk under a key made of all that they depend on. Several threads and several
// processes may use one folder; whatever is wrong with it costs a compilation, never a result.
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
  std::string source;  ///< as compiled, so that it can be looked at later
  CompiledCode code;
  bool operator==(const CacheEntry&) const = default;
};

class CompileCache {
 public:
  struct Limits {
    std::uint64_t bytes = 512 << 20;         ///< on disk; what was used longest ago goes first
    std::chrono::seconds trim_interval{60};  ///< least time between two looks at the folder's size
  };
  struct Counters {
    std::uint64_t compiled = 0, memory_hits = 0, disk_hits = 0, rejected = 0;
  };
  using Warn = std::function<void(std::string_view)>;

  /// `option` as for cache_folder. `warn` hears one line when the disk fails first, and one when an entry is damaged
  /// first; from any thread.
  explicit CompileCache(std::string_view option, Warn warn, Limits limits);
  CompileCache(std::string_view option, Warn warn) : CompileCache(option, std::move(warn), Limits()) {}

  /// The entry under `key`: from memory, from disk, or from `compile`, which is called once however many threads ask.
  /// Throws only what `compile` throws; the next to ask tries again.
  std::shared_ptr<const CacheEntry> get(const CacheKey& key, const std::function<CacheEntry()>& compile);

  /// Forgets an entry, on disk too: for one that the driver refuses to load.
  void drop(const CacheKey& key);

  Counters counters() const;
  /// Of which entries lie on disk; none if none do.
  const std::optional<CacheFolder>& folder() const { return folder_; }

 private:
  using Shared = std::shared_ptr<const CacheEntry>;

  Shared load(const CacheKey& key);
  void store(const CacheKey& key, const CacheEntry& entry);
  void disk_failed(std::string_view what);

  std::optional<CacheFolder> folder_;
  Warn warn_;
  Limits limits_;
  mutable std::mutex mutex_;  // of the next five
  std::map<CacheKey, std::shared_future<Shared>> entries_;
  std::set<CacheKey> dropped_;  // not looked for on disk, from where they may not have gone
  Counters counters_;
  std::chrono::steady_clock::time_point next_trim_{};
  bool swept_ = false;
  std::atomic<bool> warned_disk_ = false, warned_entry_ = false;
};

}  // namespace tessera::internal
