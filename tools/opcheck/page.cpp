#include "opcheck/page.hpp"

#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <vector>

#include "graph/evaluate.hpp"
#include "graph/host_ops.hpp"
#include "opcheck/case.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::opcheck {
namespace {

constexpr std::string_view page_head = R"(# Every op and function

Made by `scripts/run opcheck page > docs/ops.md` from `include/tessera/graph/ops.def` and `tools/opcheck/functions.def`, whose examples a test
traces (what stands once in a kernel, or outside of one, it compiles); do not edit. How they go together is told by
[language.md](language.md), what holds of all of them by the header of `include/tessera/graph/ops.def`. `computing` are the element types
that have arithmetic: )";

std::string types_text(Op op) {
  std::string text;
  for (const ElementType type : all_types())
    if (accepts(op, type)) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(type));
  return text;
}

// The syntax of an op with one, two or three operands, as names or as numbers.
std::string written(Op op, const std::vector<std::string>& operands) {
  switch (op) {
#define PREFIX(symbol, op) \
  case Op::op:             \
    return #symbol + operands[0];
    PREFIX(-, neg)
    PREFIX(!, logical_not)
    PREFIX(~, bitwise_not)
#undef PREFIX
#define INFIX(symbol, op) \
  case Op::op:            \
    return operands[0] + " " #symbol " " + operands[1];
    // clang-format off
    INFIX(+, add) INFIX(-, sub) INFIX(*, mul) INFIX(/, div) INFIX(/, floor_div) INFIX(%, modulo)
    INFIX(<, less) INFIX(<=, less_equal) INFIX(>, greater) INFIX(>=, greater_equal) INFIX(==, equal) INFIX(!=, not_equal)
    INFIX(<<, shift_left) INFIX(>>, shift_right) INFIX(&, bitwise_and) INFIX(|, bitwise_or) INFIX(^, bitwise_xor)
    INFIX(&, logical_and) INFIX(|, logical_or) INFIX(^, logical_xor)
    // clang-format on
#undef INFIX
    default:
      return fmt::format("{}({})", name(op), fmt::join(operands, ", "));
  }
}

// The op's value for numbers of its domain, so that readers can check it.
std::optional<std::string> example(Op op, double low, double high) {
  const ElementType type = accepts(op, ElementType::f32)   ? ElementType::f32
                           : accepts(op, ElementType::i32) ? ElementType::i32
                           : accepts(op, ElementType::i64) ? ElementType::i64
                                                           : ElementType::pred;
  const double reals[] = {2.5, -1, 0.5}, integers[] = {13, 3, 2};
  Cell cells[3];
  std::vector<std::string> operands;
  for (std::size_t i = 0; i < info(op).in.count; ++i) {
    const bool real = info(type).kind == ElementKind::real;
    double x = type == ElementType::pred ? double(i == 0) : real ? reals[i] : integers[i];
    if (x < low || x > high) x = real ? 0.5 : 1;
    Cell from;
    from.f32 = static_cast<float>(x);
    cells[i] = evaluate_cast(ElementType::f32, type, from);
    operands.push_back(type == ElementType::pred ? (x != 0 ? "true" : "false") : fmt::format("{}", x));
  }
  const ElementType result = result_type(op, type);
  const std::string value = number_text(result, encode(result, evaluate(op, type, cells[0], cells[1], cells[2])));
  return fmt::format("`{}` is {}", written(op, operands), result != ElementType::pred ? value : value == "0" ? "false" : "true");
}

// A table cell must not contain a bar.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

void row(std::string& page, std::initializer_list<std::string> cells) {
  for (const std::string& text : cells) page += "| " + cell(text) + " ";
  page += "|\n";
}

std::string elementwise() {
  std::string page = "\n## Element by element\n\nShapes are broadcast by NumPy's rule; operands have the same element type. Each "
                     "operator\nis also a function with the op's name, such as `add(x, y)`.\n\n"
                     "`error` is the largest relative error of an f32 result; if the cell is empty, the result is exact. For f64 it is 2^-29 of that. For\n"
                     "results below the smallest normal number the error is relative to that number; for `sin_approx`, `cos_approx` and `log2_approx` it is\n"
                     "relative to 1 where the result is less.\n\n"
                     "| written | types | result | error | meaning | example |\n|---|---|---|---|---|---|\n";
  const auto line = [&](Op op, std::string_view result, double low, double high, std::string_view error) {
    std::vector<std::string> names{"x", "y", "z"};
    names.resize(info(op).in.count);
    row(page, {"`" + written(op, names) + "`", types_text(op), std::string(result), error == "0" ? "" : std::string(error),
               std::string(info(op).meaning), example(op, low, high).value_or("")});
  };
#define UNARY(name, operands, result, host, real, integer, low, high, error, ...) line(Op::name, #result, low, high, #error);
#define BINARY UNARY
#define TERNARY UNARY
#define REDUCTION(...)
#define SCAN(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
  return page;
}

// The result of a reduction of two numbers.
double combined(Op reduction, double a, double b) {
  switch (reduction) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define STRUCTURAL(...)
#define REDUCTION(name, ...)                                                                       \
  case Op::name: {                                                                                 \
    using T = std::conditional_t<accepts(Op::name, ElementType::f32), float, std::int32_t>;        \
    return static_cast<double>(math::Host<Op::name>::apply(static_cast<T>(a), static_cast<T>(b))); \
  }
#include "tessera/graph/ops.def"
    default:
      throw InternalError("not a reduction");
  }
}

// The result of a reduction or a scan of three numbers.
std::string example_along(Op op) {
  const bool numbers = accepts(op, ElementType::f32);
  const Op reduction = is_scan(op) ? reduction_of(op) : op;
  std::vector<double> elements = numbers ? std::vector{0.5, -1.0, 2.5} : std::vector{1.0, 0.0, 0.0}, results;
  for (const double x : elements) results.push_back(results.empty() ? x : combined(reduction, results.back(), x));
  if (!is_scan(op)) results.erase(results.begin(), results.end() - 1);
  const auto text = [&](const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const double x : values) texts.push_back(numbers ? fmt::format("{}", x) : x != 0 ? "true" : "false");
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return fmt::format("`{}(x, -1)` of {} is {}", name(op), text(elements), text(results));
}

std::string along_axes() {
  std::string page = "\n## Along axes\n\nA reduction keeps its axis, with extent 1: `sum(x, 1)`, `sum(x, {0, 2})` along several, `sum(x)` along "
                     "all. A scan keeps\nthe shape; `{.reverse = true, .exclusive = true}` are its options.\n\n"
                     "| written | types | shapes | meaning | example |\n|---|---|---|---|---|\n";
  for (const Op op : all_ops()) {
    const std::string_view meaning = info(op).meaning;
    if (is_reduction(op))
      row(page, {fmt::format("`{}(x, axis)`", name(op)), types_text(op), "extent 1 along the axis", std::string(meaning),
                 example_along(op)});
    if (is_scan(op))
      row(page, {fmt::format("`{}(x, axis, options)`", name(op)), types_text(op), "as `x`",
                 std::string(meaning.substr(meaning.find("-> ") + 3)), example_along(op)});
  }
  return page;
}

}  // namespace

std::string page() {
  std::string page(page_head);
  page += types_text(Op::add) + ".\n" + elementwise() + along_axes();
#define HEADING(title) \
  page += "\n## " title "\n\n| written | types | shapes | meaning | example |\n|---|---|---|---|---|\n";
#define FUNCTION(op, signature, types, shapes, meaning, ...) \
  row(page, {"`" signature "`", types, shapes, meaning, "`" #__VA_ARGS__ "`"});
#define APART FUNCTION
#include "opcheck/functions.def"
  return page;
}

}  // namespace tessera::internal::opcheck
