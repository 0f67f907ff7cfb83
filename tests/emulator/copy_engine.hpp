// The copy engine: boxes of tensors into shared memory and out of it, at moments of its own.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "emulator/memory_barriers.hpp"
#include "emulator/tensor_map.hpp"

namespace tessera::internal::emulator {

class Block;

class CopyEngine {
 public:
  explicit CopyEngine(Block& block) : block_(block) {}

  /// Starts a copy of the box at these coordinates, as many as there are axes, to shared memory. `barrier` counts it.
  void load(Thread& self, const void* map, void* to, const void* barrier, std::span<const int> at, Code code);
  /// Starts a copy from shared memory.
  void store(Thread& self, const void* map, const void* from, std::span<const int> at, Code code);
  /// Closes the group of the stores that the thread started since the last.
  void commit(const Thread& self);
  /// Until all but the last `pending` groups of the thread have read shared memory.
  void wait(const Thread& self, int pending);

  int under_way() const { return static_cast<int>(loads_.size() + stores_.size()); }
  /// Makes one of the copies under way.
  void make(int which);

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
  /// Stores of a thread.
  struct Stores {
    int reads = 0, writes = 0;            ///< units: of shared memory, which a wait covers, and of the tensor
    std::vector<std::uint32_t> closed{};  ///< when each group was
  };

  BoxMap box(Thread& self, const void* map, std::span<const int> at, Code code);
  void make(const Load& load);
  void make(const Store& store);
  Stores& stores_of(int thread);

  Block& block_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::map<const MemoryBarrier*, int> load_units_;
  std::map<int, Stores> of_threads_;
};

}  // namespace tessera::internal::emulator
