#include "codegen/plan/steps.hpp"

namespace tessera::internal::codegen {
namespace {

struct BodyFields : FieldVisitor {
  void body(Body& body) { found.at[found.count++] = &body; }
  void exchange(Body& body) {
    if (with_exchanges) this->body(body);
  }

  bool with_exchanges;
  Bodies found = {};
};

}  // namespace

Bodies bodies_of(Step& step, bool with_exchanges) {
  BodyFields fields{{}, with_exchanges};
  visit_kind([&](auto& kind) { each_field(kind, fields); }, step.action);
  return fields.found;
}

}  // namespace tessera::internal::codegen
