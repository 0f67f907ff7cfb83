#include "fuzz/custom.hpp"

namespace tessera::internal::fuzz {
namespace {

template <class T, int operands, class F>
Custom made(const char* name, const char* expression, const char* lambda, F) {
  return {{name, expression, element_type<T>, operands, &detail::run_custom<F, T, operands>}, lambda};
}

}  // namespace

#define CUSTOM(T, operands, name, expression, ...) made<T, operands>(name, expression, #__VA_ARGS__, __VA_ARGS__)

std::span<const Custom> customs() {
  static const Custom all[] = {
      CUSTOM(f32, 1, "below", "a > 0.5f ? 0.5f : a", [](float a) { return a > 0.5f ? 0.5f : a; }),
      CUSTOM(f32, 2, "further", "fabsf(a) < fabsf(b) ? b : a",
             [](float a, float b) { return std::fabs(a) < std::fabs(b) ? b : a; }),
      CUSTOM(f32, 3, "chosen", "a < b ? c : a", [](float a, float b, float c) { return a < b ? c : a; }),
      CUSTOM(i32, 1, "transposed", "~a", [](int a) { return ~a; }),
      CUSTOM(i32, 2, "differing", "a ^ b", [](int a, int b) { return a ^ b; }),
      CUSTOM(i32, 3, "mixed", "(a & b) | (~a & c)", [](int a, int b, int c) { return (a & b) | (~a & c); }),
      CUSTOM(f32, 4, "either", "a < b ? c : d", [](float a, float b, float c, float d) { return a < b ? c : d; }),
      CUSTOM(f64, 2, "closer", "fabs(a) < fabs(b) ? a : b",
             [](double a, double b) { return std::fabs(a) < std::fabs(b) ? a : b; }),
      CUSTOM(i64, 4, "spliced", "(a & ~b) ^ (c | d)",
             [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) { return (a & ~b) ^ (c | d); }),
      CUSTOM(bf16, 2, "greater", "a < b ? b : a", [](bf16 a, bf16 b) { return float(a) < float(b) ? b : a; }),
      CUSTOM(u32, 1, "flipped", "a ^ 1u", [](std::uint32_t a) { return a ^ 1u; }),
  };
  return all;
}

}  // namespace tessera::internal::fuzz
