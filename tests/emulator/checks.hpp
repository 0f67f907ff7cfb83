// The checks of memory: every access of the kernels comes here before it is made.
#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/emulator.hpp"
#include "emulator/lines.hpp"
#include "emulator/shadow.hpp"
#include "emulator/stacks.hpp"

namespace tessera::internal::emulator {

class Block;
struct Thread;

/// The thread itself, and not somebody who works for it.
inline constexpr int no_unit = -1;

enum class Use {
  read,
  write,
  atomic,
  block_atomic,  ///< for threads of the block alone
  contended,     ///< a write where several may write; one of the values stays
  copy_start,    ///< an asynchronous copy may write here from now on
  copy_end,      ///< and has now done so
};

/// Which memory an instruction takes addresses of.
enum class Space { any, shared, cluster, global };

class Checks {
 public:
  /// Threads use their stacks as they like.
  Checks(const Stacks& stacks, const Lines& lines, std::vector<Shadow> tensors);

  /// A launch begins whose first block has the number `block`.
  void begin_launch(std::uint32_t block, std::optional<Shadow> workspace);

  /// A thread is about to use memory, or to have a unit use it. Where the access makes no sense, this does not return.
  void access(Thread& thread, const void* address, std::size_t bytes, std::size_t alignment, Use use, Code code,
              Space space = Space::any, int unit = no_unit);
  /// A copy that a unit started there has come to its end.
  void end_copy(Block& block, const char* address, std::size_t bytes, int unit);

 private:
  struct Verdict {
    Fault::Kind kind;
    Event other{};             ///< in whose way the access is
    bool other_reads = false;  ///< else it wrote
  };

  template <class Visit>
  void for_each_shadow(Block& block, Visit&& visit);
  static std::optional<Verdict> judge(const Owner* owner, Cell& cell, const Now& now, Use use);
  void check_registers(Thread& thread, const char* address, std::size_t bytes, Code code);
  std::string story(Block& block, const Verdict& verdict, const Event& event) const;
  static std::string place(Shadow& shadow, const char* address);
  std::string nearest(Block& block, const char* address, std::size_t bytes);
  const std::string& line(const Event& event) const { return lines_[lines_.code(event.code)]; }
  void report(Fault::Kind kind, Thread& thread, Code code, const std::string& text, std::uint32_t other = 0);

  const Stacks& stacks_;
  const Lines& lines_;
  std::vector<Shadow> tensors_;
  std::optional<Shadow> workspace_;
  std::uint32_t first_block_ = 1;
  std::set<std::tuple<Fault::Kind, std::uint32_t, std::uint32_t>> known_;  ///< a pair of lines is reported once
};

}  // namespace tessera::internal::emulator
