// Sums of fp8 products, which are promoted: wgmma sums up one part of the accumulators' columns after another, at most
// 128 products each, in two sets of registers by turns. Meanwhile the sums of the part before are added to the
// accumulators in f32.
#pragma once
#include <functional>

#include "codegen/lower/lower_fragments.hpp"
#include "codegen/lower/sm90/matmul_pipelines.hpp"

namespace tessera::internal::lowering {

class PromotedSums {
 public:
  PromotedSums(const MatmulPipelines& pipelines, Fragments& fragments, Steps& steps)
      : pipelines_(pipelines), fragments_(fragments), steps_(steps) {}

  /// How left operands are read: all products that a part sums up, in one set of registers.
  static constexpr FragmentPieces pieces{.bytes = codegen::most_fp8_products, .sets = 1};

  /// Declares the sets: zeros, which the first k-iteration promotes.
  void declare();
  /// Multiplies a stage; `release` releases the stage before, once that has been read.
  void multiply(const std::vector<PendingWgmma>& matmuls, const std::function<void()>& release);
  /// Promotes the sums of the last stage, after a wait for them.
  void finish() const { promote(open_); }

 private:
  struct Part {
    std::size_t matmul;
    int first_column, columns, first_k;
    ValueId sums = {};
  };
  std::vector<Part> parts_of_stage() const;
  Sweep sweep_of(const Part& part) const;
  void promote(const PromoteSums& sums) const;
  template <class Kind>
  void push(Kind kind) const {
    steps_.push(pipelines_.how.matmuls[0].id, std::move(kind));
  }

  const MatmulPipelines& pipelines_;
  Fragments& fragments_;
  Steps& steps_;
  std::vector<Part> parts_;  // of a stage: an even number, so that each begins with the first set
  PromoteSums open_;
};

}  // namespace tessera::internal::lowering
