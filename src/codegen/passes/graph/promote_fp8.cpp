// promote_fp8: mma of fp8 becomes mma of f16, which represents all values of fp8. So every GPU multiplies them exactly:
// sm_80 has no instruction for fp8, and that of sm_90a keeps 14 bits of a sum.
#include <array>

#include "codegen/passes.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class Fp8Promoter final : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    const bool narrow =
        node.op == Op::mma && info(made(in[0]).type).kind == ElementKind::real && info(made(in[0]).type).bytes == 1;
    if (!narrow) return Rewriter::rewrite(node, in);
    const auto widened = [&](Id factor) {
      return builder().apply(Op::cast, ElementType::f16, std::array{factor}, {}, node.location);
    };
    return builder().apply(Op::mma, node.type, std::array{widened(in[0]), widened(in[1]), in[2]}, {}, node.location);
  }
};

}  // namespace

Graph promote_fp8(const Graph& graph) { return Fp8Promoter(graph).run(); }

}  // namespace tessera::internal
