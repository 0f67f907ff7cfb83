// The CPU executor: runs any graph over its grid on all cores, and so defines what every op means.
#pragma once
#include <memory>
#include <span>

#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

struct Tape;

class Program {
 public:
  /// With `debug` what is stored is looked at: NaN ends the launch.
  explicit Program(Graph graph, bool debug = false);
  ~Program();
  Program(Program&&) noexcept;

  /// Runs every block of the grid (extents as the launch computed them) and returns when all are done. May be called
  /// from several threads. Arguments fit the parameters; nothing is checked here. Throws Error naming kernel, place and
  /// block for what `debug` looks for; other blocks may have run or not.
  void run(std::span<const Argument> arguments, std::span<const std::int64_t> grid) const;

 private:
  std::unique_ptr<const Tape> tape_;
  bool debug_;
};

}  // namespace tessera::internal::cpu
