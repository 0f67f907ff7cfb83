// A plan of several roles, built by hand: a matmul by TMA and wgmma, as kernels of sm_90 are lowered.
#pragma once
#include "codegen/plan/plan.hpp"

struct RoleTile {
  int m, n;  ///< of a CTA's tile
  int stages;
  bool in_turn;    ///< two roles with tiles of their own, in turn at the tensor cores, or one role of two warp groups
  bool b_along_n;  ///< B is [K,N], else [N,K]
};

inline constexpr RoleTile role_tiles[] = {
    {128, 256, 4, false, false}, {128, 192, 4, true, false}, {128, 192, 4, true, true}, {128, 128, 5, false, true}};

/// C[M,N] = A[M,K] B, bf16, in k-iterations of 64.
tessera::internal::codegen::Plan warp_specialized_matmul(const RoleTile& tile);
