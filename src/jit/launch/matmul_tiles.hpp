// The inputs of choose(): where a matmul runs, the candidates, and the plain rules.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/cost_model.hpp"
#include "codegen/target/target.hpp"
#include "tessera/jit/choose.hpp"

namespace tessera::internal {

/// The device that runs a matmul.
struct MatmulTarget {
  std::optional<Target> gpu = {};  ///< none: a CPU
  int multiprocessors = 0;         ///< of the GPU; threads of the CPU
  SplitKPolicy split_k = SplitKPolicy::automatic;
  MulticastPolicy multicast = MulticastPolicy::automatic;
  const MachineModel* machine = &MachineModel::h200();
  std::string machine_text = {};  ///< of tune_machine(); empty: results of tuning are not used

  /// Does it have sm_90a's tensor cores (wgmma), and are they enabled?
  bool has_wgmma() const { return gpu && gpu->tier == Target::Tier::wgmma; }
};
/// The target for a device, under TESSERA_TENSOR_CORES, TESSERA_SPLIT_K and TESSERA_MULTICAST.
[[gnu::visibility("default")]] MatmulTarget matmul_target(const Device& device);  // also used by tessera::model

/// The target for GPUs of an architecture, with as many multiprocessors as an H200 has.
[[gnu::visibility("default")]] MatmulTarget matmul_target(Arch arch);

/// Same as choose() with a device, for a given target.
[[gnu::visibility("default")]] MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                                  const MatmulTarget& target);

/// Same as matmul_candidates() with a device, for a given target.
std::vector<MatmulTiles> matmul_candidates(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                           const MatmulTarget& target);

/// Do all tiles that choose() takes for such a matmul of two rows or more add up an element's products in one order,
/// that of k? All wgmma instructions on 16-bit operands do, whatever the extents of their results.
[[gnu::visibility("default")]] bool adds_in_order_of_k(const MatmulShape& shape, ElementType operands,
                                                       const MatmulTarget& target);

/// The plain rules for a GPU, with features that every GPU has: the number of rows of a tile, which takes few values,
/// and the tile with so many rows.
int rule_rows(std::int64_t rows, ElementType operands);
MatmulTiles rule_tiles(int m, const MatmulShape& shape, ElementType operands);

/// Are there enough rows for wgmma, and is each operand TMA-addressable, with rows that are multiples of 16 bytes
/// apart? (For other operands, threads load what wgmma reads, if the tiles suit it; which tiles are best then has not
/// been measured.)
bool suits_wgmma(const MatmulShape& shape, ElementType operands, const MatmulTarget& target);

/// All tiles that choose() selects from when it uses the model: for matmuls by wgmma.
std::vector<MatmulTiles> wgmma_tiles(ElementType operands = ElementType::bf16);
/// And those of 16-bit operands that it takes for a right operand along k, without split-K.
std::vector<MatmulTiles> narrow_tiles();

}  // namespace tessera::internal
