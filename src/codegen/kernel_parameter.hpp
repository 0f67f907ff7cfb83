// What a launch passes to a generated kernel.
#pragma once
#include <cstdint>

namespace tessera {

/// One parameter of a generated kernel, in order; the launcher fills it in.
struct KernelParameter {
  enum class Kind : std::uint8_t {
    pointer,      ///< of tensor `argument`, 8 bytes
    extent,       ///< of tensor `argument` along `axis`: int
    stride,       ///< of tensor `argument` along `axis`, in elements: long long in a wide variant, else int
    scalar,       ///< of scalar `argument`: 4 or 8 bytes, as its type is
    grid,         ///< extent `axis` of the grid: int
    blocks,       ///< blocks of the whole grid, for persistent blocks: as stride
    first_block,  ///< of the launch, for others in a wide variant, whose grid may take several: long long
    workspace,    ///< address of the launch's workspace, 8 bytes
  };
  Kind kind{};
  int argument = 0, axis = 0;
  bool operator==(const KernelParameter&) const = default;
};

}  // namespace tessera
