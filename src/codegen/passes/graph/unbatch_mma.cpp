// unbatch_mma: a batched mma becomes one mma per matrix, whose results are concatenated. Schedules know mma of rank 2.
#include <array>

#include "codegen/passes.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class Unbatcher final : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (node.op != Op::mma || node.shape.rank() != 3) return Rewriter::rewrite(node, in);
    const auto apply = [&](Op op, ElementType type, std::span<const Id> operands,
                           std::span<const std::int64_t> attributes, const Shape& shape = {}) {
      return builder().apply(op, type, operands, attributes, node.location, shape);
    };
    const int batch = node.shape[0];
    std::vector<Id> matrices;
    for (int i = 0; i < batch; ++i) {
      const auto matrix = [&](Id of) {
        const Shape all = made(of).shape;
        const ElementType type = made(of).type;
        if (batch > 1) {
          const auto at = [&](int start) {
            return builder().constant(ElementType::i32, cell_of(start), {}, node.location);
          };
          of = apply(Op::extract, type, std::array{of, at(i), at(0), at(0)}, std::array<std::int64_t, 3>{1, 1, 1},
                     {1, all[1], all[2]});
        }
        return apply(Op::reshape, type, std::array{of}, {}, {all[1], all[2]});
      };
      const Id one = apply(Op::mma, node.type, std::array{matrix(in[0]), matrix(in[1]), matrix(in[2])}, {});
      matrices.push_back(apply(Op::reshape, node.type, std::array{one}, {}, {1, node.shape[1], node.shape[2]}));
    }
    return batch == 1 ? matrices[0] : apply(Op::concat, node.type, matrices, std::array<std::int64_t, 1>{0});
  }
};

}  // namespace

Graph unbatch_mma(const Graph& graph) { return Unbatcher(graph).run(); }

}  // namespace tessera::internal
