#include "codegen/forms/widen_fp8.hpp"

#include <array>

#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class Fp8Widener final : public Rewriter {
 public:
  using Rewriter::Rewriter;

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (node.op != Op::mma || !is_fp8(made(in[0]).type)) return Rewriter::rewrite(node, in);
    const auto widened = [&](Id factor) {
      return builder().apply(Op::cast, ElementType::f16, std::array{factor}, {}, node.location);
    };
    return builder().apply(Op::mma, node.type, std::array{widened(in[0]), widened(in[1]), in[2]}, {}, node.location);
  }
};

}  // namespace

Graph widen_fp8(const Graph& graph) { return Fp8Widener(graph).run(); }

}  // namespace tessera::internal
