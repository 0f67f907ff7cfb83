#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/names.hpp"

namespace tessera::codegen {

void emit(Writer& w, const Loop& loop) {
  const IndexExpression count = scalar(w, loop.count);
  const std::string counter = name_of(w.plan, loop.loop);
  if (loop.stages == 1) {
    w.open("for (int {0} = 0; {0} < {1}; ++{0}) {{", counter, count);
    emit(w, loop.body);
    w.close();
    return;
  }
  const int ahead = loop.stages - 1;
  const std::string fetching = "fetching_" + counter;
  w.line("// {} rounds are under way at a time.", loop.stages);  // one loop, so that a fetch is compiled once
  w.open("for (int {0} = 0; {0} - {1} < {2}; ++{0}) {{", fetching, ahead, count);
  w.open("if ({} >= {}) {{", fetching, ahead);
  emit(w, loop.arrive);
  w.close();
  w.open("if ({} < {}) {{", fetching, count);
  w.line("const int {} = {};", counter, fetching);
  emit(w, loop.ahead);
  w.close();
  emit(w, loop.issued);
  w.line("if ({} < {}) continue;", fetching, ahead);
  w.line("const int {} = {} - {};", counter, fetching, ahead);
  emit(w, loop.body);
  w.close();
}

void emit(Writer& w, const Branch& branch) {
  w.open("if ({}) {{", scalar(w, branch.condition));
  emit(w, branch.body);
  w.close();
}

void emit(Writer& w, const Barrier& barrier) {
  const char* const condition = barrier.again ? "if (c > 0) " : "";
  if (w.role.barrier)
    w.line("{}named_barrier({}, {});", condition, team_barrier(w, w.role.barrier), w.role.threads());
  else
    w.line("{}barrier();", condition);
}

void emit(Writer& w, const Commit&) { w.line("copy_async_commit();"); }

void emit(Writer& w, const Wait& wait) { w.line("copy_async_wait<{}>();", wait.pending); }

}  // namespace tessera::codegen
