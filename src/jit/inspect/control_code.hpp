// The scheduling fields of a machine instruction. Since sm_70 an instruction has 128 bits, and its bits 105 to 125 tell
// the scheduler when it may issue (Jia, Maggioni, Staiger, Scarpazza: "Dissecting the NVIDIA Volta GPU Architecture via
// Microbenchmarking", arXiv:1804.06826, section 2.1). NVIDIA documents them nowhere; tests check what can be checked:
// nvdisasm's .reuse, that each barrier waited for was set before, and that encoding gives the same bits.
#pragma once
#include <cstdint>
#include <string>

namespace tessera::internal {

/// An instruction's encoding: bits 0 to 63, and 64 to 127.
struct Encoding {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Encoding&) const = default;
};

struct ControlCode {
  static constexpr unsigned no_barrier = 7;

  unsigned stall = 0;                   ///< cycles until the warp may issue its next instruction
  bool yield = false;                   ///< the scheduler prefers another warp next; its bit is 0 then
  unsigned write_barrier = no_barrier;  ///< of six; set until the result has been written
  unsigned read_barrier = no_barrier;   ///< set until the operands have been read
  unsigned wait = 0;                    ///< a bit for each barrier that the instruction waits for
  unsigned reuse = 0;                   ///< a bit for each operand slot whose register stays in the operand cache

  static ControlCode decode(const Encoding& encoding);
  /// The encoding with these fields in place of its own.
  Encoding encode(Encoding encoding) const;
  bool operator==(const ControlCode&) const = default;
};

/// "B01----:R-:W2:Y:S04": barriers waited for, read and write barrier, yield, stall: the notation of maxas and
/// CuAssembler.
std::string to_string(const ControlCode& code);

}  // namespace tessera::internal
