#include "codegen/plan/called.hpp"

#include <algorithm>

#include "codegen/plan/effects.hpp"

namespace tessera::internal::codegen {
namespace {

/// Instructions of one inlined copy on sm_90, as NVRTC 13.0 generates them.
struct Length {
  Op op;
  int f32, f64;
};
constexpr Length lengths[] = {
    {Op::sin, 68, 58},   {Op::cos, 68, 58},    {Op::tan, 64, 97},   {Op::pow, 77, 145},  {Op::atan2, 51, 126},
    {Op::erf, 24, 81},   {Op::erfc, 47, 170},  {Op::asin, 25, 68},  {Op::acos, 26, 133}, {Op::atan, 21, 56},
    {Op::sinh, 26, 126}, {Op::cosh, 18, 64},   {Op::tanh, 18, 102}, {Op::exp, 10, 38},   {Op::expm1, 32, 78},
    {Op::exp2, 4, 40},   {Op::log, 25, 86},    {Op::log2, 27, 88},  {Op::log10, 26, 88}, {Op::log1p, 31, 145},
    {Op::cbrt, 19, 45},  {Op::sigmoid2, 5, 60},
};
/// Functions with fewer instructions are inlined: a call would cost more than it saves.
constexpr int least = 16;
/// About 120 sines: 3 s of ptxas if each depends on the one before. Twice as many take four times as long.
constexpr std::int64_t most_inlined = 8192;

int length_of(const Term& term) {
  const auto* const found = std::ranges::find(lengths, term.op, &Length::op);
  if (found == std::end(lengths)) return 0;
  const int length = term.operand == ElementType::f64 ? found->f64 : found->f32;
  return length < least ? 0 : length;
}

/// Calls visit(term, copies) for each term of the steps.
template <class Visit>
void each_term(const Body& steps, std::int64_t copies, const Visit& visit) {
  for (const Step& step : steps) {
    if (const Sweep* const sweep = sweep_of(step)) {
      const std::int64_t written_out = sweep->unrolled ? sweep->layout.registers() : std::max(1, sweep->at_once);
      for (const Term& term : sweep->expression.terms) visit(term, copies * written_out);
    }
    const Loop* const loop = step.action.as<Loop>();
    const std::int64_t iterations = loop ? std::max(1, loop->unrolled) : 1;
    each_body(step, [&](const Body& body) { each_term(body, copies * iterations, visit); });
  }
}
template <class Visit>
void each_term(const Plan& plan, const Visit& visit) {
  for (const Phase& phase : plan.phases) {
    each_term(phase.prologue, 1, visit);
    for (const Role& role : phase.roles) each_term(role.body, 1, visit);
  }
}

}  // namespace

bool is_long(const Term& term) { return length_of(term) > 0; }

bool calls_functions(const Plan& plan) {
  std::int64_t inlined = 0;
  each_term(plan, [&](const Term& term, std::int64_t copies) { inlined += copies * length_of(term); });
  return inlined > most_inlined;
}

std::vector<std::pair<Op, ElementType>> long_functions(const Plan& plan) {
  std::vector<std::pair<Op, ElementType>> found;
  each_term(plan, [&](const Term& term, std::int64_t) {
    const std::pair function(term.op, term.operand);
    if (is_long(term) && std::ranges::find(found, function) == found.end()) found.push_back(function);
  });
  return found;
}

}  // namespace tessera::internal::codegen
