#include <utility>

#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/names.hpp"

namespace tessera::internal::codegen {
namespace {

// The prologue is a loop of its own, so that the main loop has no condition around a matmul or a fetch: ptxas can then
// interleave them.
void fetching_within(Writer& w, const Loop& loop, const Mma& matmul, const IndexExpression& count) {
  const std::string counter = name_of(w.plan, loop.loop);
  w.line("// Software pipeline: {} iterations are in flight.", loop.stages);
  w.open("for (int {0} = 0; {0} < {1}; ++{0}) {{", counter, loop.stages - 1);
  w.open("if ({} < {}) {{", counter, count);
  emit(w, loop.ahead);
  w.close();
  emit(w, loop.issued);
  w.close();
  w.open("{{");
  begin_fetching(w, matmul);
  if (loop.unrolled > 0) w.unroll_by(loop.unrolled);
  w.open("for (int {0} = 0; {0} < {1}; ++{0}) {{", counter, count);
  emit(w, loop.arrive);
  const Loop* const around = std::exchange(w.fetching, &loop);
  emit(w, loop.body);
  w.fetching = around;
  w.close();
  end_fetching(w, matmul);
  w.close();
}

}  // namespace

void emit_fetch_ahead(Writer& w, const Loop& loop) {
  const std::string counter = name_of(w.plan, loop.loop), fetching = "fetching_" + counter;
  w.line("const int {} = {} + {};", fetching, counter, loop.stages - 1);
  w.open("{{");
  w.line("const int {} = {};", counter, fetching);
  w.fetched_if = IndexExpression::variable(fetching) < scalar(w, loop.count);
  w.apart([&] { emit(w, loop.ahead); });  // the current iteration may have declared the same names
  w.fetched_if = IndexExpression::always();
  w.close();
  emit(w, loop.issued);
}

void emit(Writer& w, const Loop& loop) {
  const IndexExpression count = scalar(w, loop.count);
  const std::string counter = name_of(w.plan, loop.loop);
  if (loop.repeats) {
    w.open("for (u32 {0} = 0; continues({1}, {0}); ++{0}) {{", counter, count);
    emit(w, loop.body);
    w.close();
    return;
  }
  if (loop.stages == 1) {
    if (loop.unrolled > 0) w.unroll_by(loop.unrolled);
    w.open("for (int {0} = 0; {0} < {1}; ++{0}) {{", counter, count);
    emit(w, loop.body);
    w.close();
    return;
  }
  const int ahead = loop.stages - 1;
  if (const Mma* matmul = fetching_matmul(loop)) return fetching_within(w, loop, *matmul, count);
  const std::string fetching = "fetching_" + counter;
  // One loop, so that a fetch is compiled once.
  w.line("// Software pipeline: {} iterations are in flight.", loop.stages);
  if (loop.unrolled > 0) w.unroll_by(loop.unrolled);
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
  const Operand& of = branch.condition;
  const auto inlined =
      of.kind == Operand::Kind::value ? w.inlined.find(w.plan.values[of.value].storage) : w.inlined.end();
  if (inlined == w.inlined.end())
    w.open("if ({}) {{", scalar(w, of));
  else
    w.open("if ({}) {{", inlined->second);
  emit(w, branch.body);
  w.close();
}

void emit(Writer& w, const Barrier& barrier) {
  const char* const condition = barrier.again ? "if (c > 0) " : "";
  if (w.role.barrier)
    w.line("{}named_barrier({}, {});", condition, consumer_group_barrier(w, w.role.barrier), w.role.threads());
  else
    w.line("{}barrier();", condition);
}

void emit(Writer& w, const CpAsyncCommit&) { w.line("copy_async_commit();"); }

void emit(Writer& w, const CpAsyncWait& wait) { w.line("copy_async_wait<{}>();", wait.pending); }

}  // namespace tessera::internal::codegen
