// The CPU executor: runs any graph over its grid on all cores, and so defines the meaning of every op.
#pragma once
#include <memory>
#include <span>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

struct Tape;

class Program {
 public:
  /// With `debug`, stored values are checked: a NaN ends the launch.
  explicit Program(Graph graph, bool debug = false);
  ~Program();
  Program(Program&&) noexcept;

  /// Runs every grid tile (with the extents that the launch computed) and returns when all are done. May be called from
  /// several threads. The arguments must fit the parameters; nothing is checked here. Throws Error that names kernel,
  /// location and block for the conditions that `debug` checks; other grid tiles may have run or not.
  void run(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const;

 private:
  std::unique_ptr<const Tape> tape_;
  bool debug_;
};

}  // namespace tessera::internal::cpu
