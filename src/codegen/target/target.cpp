#include "codegen/target/target.hpp"

namespace tessera::internal {

Target Target::of(Arch arch, bool warp_specialize) {
  Target target;
  target.arch = arch;
  target.programmatic_launch = arch.number() == 90;  // others have it, too, but it has not been measured there
  target.l2_policy = arch.number() == 90;            // likewise
  if (warp_specialize && arch == Arch::sm_90a) target.tier = Tier::wgmma;
  target.shared_bytes = arch.shared_bytes();
  switch (arch.number()) {
    case 80:
    case 90:
    case 100:
    case 103:
      target.resident_blocks = 32;
      target.resident_threads = 2048;
      break;
    case 89:
    case 101:
    case 110:
    case 120:
    case 121:
      target.resident_blocks = 24;
      break;
    default:
      target.resident_blocks = 16;
  }
  if (arch.number() >= 100) {
    target.registers_more_for_matmuls = 32;
    target.registers_of_reads = 384;  // measured: 512 do not spill, 576 do
    target.unrolled_k = 1;
  }
  return target;
}

}  // namespace tessera::internal
