// Memory checks. Every access of the kernels is checked before it is made.
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

/// The access is by the thread itself, not by a unit on its behalf.
inline constexpr int no_unit = -1;

enum class Use {
  read,
  write,
  atomic,
  block_atomic,  ///< atomic with respect to the CTA only
  contended,     ///< a write where several threads may write; one of the values remains
  copy_start,    ///< from here on an asynchronous copy may write
  copy_end,      ///< the asynchronous copy has completed
};

/// The memory that an instruction can address.
enum class Space { any, shared, cluster, global };

class Checks {
 public:
  /// Accesses to stacks are not checked.
  Checks(const Stacks& stacks, const Lines& lines, std::vector<Shadow> tensors);

  /// Begins a launch whose first CTA has the number `block`.
  void begin_launch(std::uint32_t block, std::optional<Shadow> workspace);

  /// A thread is about to access memory, or to start a unit that will. Does not return if the access is invalid.
  void access(Thread& thread, const void* address, std::size_t bytes, std::size_t alignment, Use use, Code code,
              Space space = Space::any, int unit = no_unit);
  /// A copy by a unit has completed.
  void end_copy(Block& block, const char* address, std::size_t bytes, int unit);

 private:
  struct Verdict {
    Fault::Kind kind;
    Event other{};             ///< the access that this one conflicts with
    bool other_reads = false;  ///< otherwise it wrote
  };

  template <class Visit>
  void for_each_shadow(Block& block, Visit&& visit);
  static std::optional<Verdict> judge(const Owner* owner, Cell& cell, const Now& now, Use use);
  void check_registers(Thread& thread, const char* address, std::size_t bytes, Code code);
  std::string story(Block& block, const Verdict& verdict) const;
  static std::string place(Shadow& shadow, const char* address);
  std::string nearest(Block& block, const char* address, std::size_t bytes);
  const std::string& line(const Event& event) const { return lines_[lines_.code(event.code)]; }
  void report(Fault::Kind kind, Thread& thread, Code code, const std::string& text, std::uint32_t other = 0);

  const Stacks& stacks_;
  const Lines& lines_;
  std::vector<Shadow> tensors_;
  std::optional<Shadow> workspace_;
  std::uint32_t first_block_ = 1;
  std::set<std::tuple<Fault::Kind, std::uint32_t, std::uint32_t>> known_;  ///< each pair of lines is reported once
};

}  // namespace tessera::internal::emulator
