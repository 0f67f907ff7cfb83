// TMA: asynchronous copies of tensor boxes to and from shared memory. They take effect at arbitrary times.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "emulator/memory_barriers.hpp"
#include "emulator/tensor_map.hpp"

namespace tessera::internal::emulator {

class Block;

class CopyEngine {
 public:
  explicit CopyEngine(Block& block) : block_(block) {}

  /// Starts a copy to shared memory of the box at these coordinates, one per axis. `barrier` counts its bytes.
  void load(Thread& self, const void* map, void* to, const void* barrier, std::span<const int> at, Code code);
  /// The same to the shared memory of each CTA of the cluster, at the same offset. In each CTA the mbarrier at the
  /// same offset counts the bytes, which arrive there at a time of their own.
  void load_multicast(Thread& self, const void* map, void* to, const void* barrier, std::span<const int> at, Code code);
  /// Starts a copy from shared memory.
  void store(Thread& self, const void* map, const void* from, std::span<const int> at, Code code);
  /// Commits the stores that the thread has started since the last commit as a group.
  void commit(const Thread& self);
  /// Waits until all but the last `pending` groups of the thread have read shared memory.
  void wait(const Thread& self, int pending);

  int under_way() const { return static_cast<int>(loads_.size() + stores_.size()); }
  /// Performs one of the copies in flight.
  void make(int which);
  /// The CTA ends, with this knowledge. Reports a copy by another CTA that may end later; returns false if so.
  bool end(const Now& now) const;

 private:
  struct Load {
    BoxMap map;
    BoxMap::Coordinates at;
    std::uint32_t to;
    MemoryBarrier* barrier;
    int unit;
    std::uint32_t time;
  };
  struct Store {
    BoxMap map;
    BoxMap::Coordinates at;
    std::uint32_t from;
    int thread, group;
  };
  /// Stores of one thread.
  struct Stores {
    int reads = 0, writes = 0;            ///< units that read shared memory, which a wait covers, and write the tensor
    std::vector<std::uint32_t> closed{};  ///< time at which each group was committed
  };

  /// The copies to this CTA's shared memory that an mbarrier counts and the threads of one CTA start.
  struct Loads {
    int unit;
    std::uint32_t time = 0;  ///< of the last
    const Thread* thread = nullptr;
    Code code = nullptr;
  };

  BoxMap box(Thread& self, const void* map, std::span<const int> at, Code code);
  Loads& loads_of(const Thread& self, const MemoryBarrier& barrier);
  MemoryBarrier& counting(Thread& self, const void* at_barrier, Code code);
  void check_box(Thread& self, const Load& load, Code code);
  void start(Thread& self, Load load, void* to, Code code);
  void make(const Load& load);
  void make(const Store& store);
  Stores& stores_of(int thread);

  Block& block_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::map<std::pair<std::int64_t, const MemoryBarrier*>, Loads> loads_of_;  ///< by CTA that starts them
  std::map<int, Stores> of_threads_;
};

}  // namespace tessera::internal::emulator
