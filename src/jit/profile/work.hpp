// How much a launch moves and computes, from its graph: for rates and shares of peak in a profile.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "graph/evaluate.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::profile {

/// The work of one launch, or of several together.
struct Work {
  std::int64_t bytes = -1;     ///< of tensors that it reads or writes, each element once; -1: unknown
  bool bytes_at_most = false;  ///< how often a loop runs is only known on the device, so it may touch fewer bytes
  double flops = -1;           ///< of matmuls, two for each multiply-add; -1: unknown
  double macs16 = -1;          ///< multiply-adds of 16-bit operands that take a tensor core as long; -1: unknown
};

/// The sum of both.
Work operator+(const Work& a, const Work& b);

/// Counts the work of a kernel's launches.
class WorkCount {
 public:
  explicit WorkCount(const Graph& graph);
  /// The work of a launch with so many grid tiles.
  Work of(std::span<const Argument> arguments, std::int64_t tiles) const;

 private:
  /// How often a region runs in a CTA: the product of loops' counts.
  struct Runs {
    std::vector<std::size_t> counts;  ///< roots of uniform_
    bool is_known = true;
  };
  struct Touch {
    std::size_t parameter;
    bool writes;
    double elements;  ///< each time
    Runs runs;
  };
  struct Product {
    double macs, macs16;  ///< each time
    Runs runs;
  };

  std::vector<Runs> runs_of_regions(const Graph& graph);
  double times(const Runs& runs, std::span<const Cell> values) const;

  std::vector<Parameter> parameters_;
  std::vector<Touch> touches_;
  std::vector<Product> products_;
  std::vector<Id> roots_;
  UniformProgram uniform_;
  bool is_raw_ = false;  ///< a raw CUDA kernel, of which nothing is known
};

}  // namespace tessera::internal::profile
