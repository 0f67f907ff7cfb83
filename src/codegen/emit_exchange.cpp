#include "codegen/emit_exchange.hpp"

#include <algorithm>
#include <limits>

#include "graph/error.hpp"

namespace tessera {
namespace {

std::string combine(Op op, ElementType type, const std::string& a, const std::string& b) {
  return substitute(info(type).kind == ElementKind::real ? info(op).cuda_real : info(op).cuda_integer, a, b);
}

std::string identity(Op op, ElementType type) {
  Cell cell;
  const auto of = [&]<class T>(T) {
    switch (op) {
#define UNARY(...)
#define BINARY(...)
#define STRUCTURAL(...)
#define REDUCTION(name, ...) \
  case Op::name:             \
    return math::Host<Op::name>::identity<T>();
#include "graph/ops.def"
      default:
        return std::numeric_limits<T>::lowest();
    }
  };
  switch (host_type(type)) {
    case HostType::f32:
      cell.f32 = of(0.0f);
      break;
    case HostType::i32:
      cell.i32 = of(std::int32_t(0));
      break;
    case HostType::i64:
      cell.i64 = of(std::int64_t(0));
      break;
  }
  return number(type, cell);
}

std::vector<int> lane_masks(const std::vector<std::pair<Factor, int>>& of_thread) {
  std::vector<int> masks;
  for (const auto& [factor, scale] : of_thread)
    if (factor.place == Place::lane)
      for (int bit = factor.unit; bit < factor.unit * factor.size; bit *= 2) masks.push_back(bit);
  std::sort(masks.begin(), masks.end());
  return masks;
}

std::vector<int> bits_of(int mask) {
  std::vector<int> bits;
  for (int bit = 1; bit <= mask; bit *= 2)
    if (mask & bit) bits.push_back(bit);
  return bits;
}

int warp_bits(const Layout& layout, int axis) {
  int bits = 0;
  for (const Factor& factor : layout.axis(axis))
    if (factor.place == Place::warp) bits |= (factor.size - 1) * factor.unit;
  return bits;
}

}  // namespace

std::string ExchangeEmitter::scratch(const Step& step, ElementType type) {
  const Scratch& s = plan_.scratch[static_cast<std::size_t>(step.scratch)];
  use(s.in_workspace ? "" : "shared");
  return fmt::format("reinterpret_cast<{}*>({} + {})", scratch_type(type), s.in_workspace ? "workspace" : "shared",
                     s.offset);
}

void ExchangeEmitter::over_results(const Value& out, int count, const Each& each) {
  if (count == 1) return each("0");
  unroll(out.home == Home::registers);
  open("for (int i = 0; i < {}; ++i) {{", count);
  each("i");
  close();
}

void ExchangeEmitter::over_members(int bits, const Each& each) {
  const int unit = bits & -bits, others = ~bits & (plan_.warps - 1);
  if ((bits / unit & (bits / unit + 1)) != 0) throw InternalError("warps of two factors hold parts of one result");
  const std::string first = others ? fmt::format("(warp & {})", others) : "0";
  const auto member = [&](const std::string& by) { return others ? fmt::format("{} + {}", first, by) : by; };
  each(first);
  if (bits == unit) return each(member(fmt::format("{}", unit)));
  unroll(true);
  open("for (int other = {}; other <= {}; {}) {{", unit, bits,
       unit == 1 ? "++other" : fmt::format("other += {}", unit));
  each(member("other"));
  close();
}

void ExchangeEmitter::over_warps(const Value& out, int count, int bits, const Put& put, const Take& take) {
  use("lane");
  use("warp");
  const int chunk = std::min(count, most_partials);
  if (count > chunk) {
    unroll(out.home == Home::registers);
    open("for (int c = 0; c < {}; c += {}) {{", count, chunk);
    line("if (c > 0) barrier();");
  }
  const auto slot = [&](const std::string& i, const std::string& warp) {
    const std::string row = i == "0"      ? warp
                            : warp == "0" ? fmt::format("{} * {}", i, plan_.warps)
                                          : fmt::format("{} * {} + {}", i, plan_.warps, warp);
    return row == "0" ? "[lane]" : fmt::format("[{} * 32 + lane]", atom(row));
  };
  // Registers of this round: i, of result c + i.
  const auto round = [&](const auto& body) {
    if (chunk == 1) return body("0", "0");
    unroll(true);
    open("for (int i = 0; i < {}; ++i) {{", chunk);
    const bool guard = count % chunk != 0;
    if (guard) open("if (c + i < {}) {{", count);
    body("i", count > chunk ? "c + i" : "i");
    if (guard) close();
    close();
  };
  round([&](const std::string& i, const std::string& result) { put(slot(i, "warp"), result); });
  line("barrier();");
  bool first = true;
  over_members(bits, [&](const std::string& warp) {
    round([&](const std::string& i, const std::string& result) { take(slot(i, warp), result, first); });
    first = false;
  });
  if (count > chunk) close();
}

void ExchangeEmitter::combine_lanes(const Step& step, ElementType type, int count, std::span<const int> masks) {
  const Value& out = value(step.out);
  for (int mask : masks)
    over_results(out, count, [&](const std::string& index) {
      const std::string to = element(out, index);
      line("{} = {};", to, combine(step.op, type, to, fmt::format("shuffle_xor({}, {})", to, mask)));
    });
}

void ExchangeEmitter::combine_warps(const Step& step, ElementType type, int count, int bits) {
  const Value& out = value(step.out);
  open("{{");
  line("{}* const partial = {};", scratch_type(type), scratch(step, type));
  over_warps(
      out, count, bits,
      [&](const std::string& slot, const std::string& index) { line("partial{} = {};", slot, element(out, index)); },
      [&](const std::string& slot, const std::string& index, bool first) {
    const std::string to = element(out, index), from = "partial" + slot;
    line("{} = {};", to, first ? from : combine(step.op, type, to, from));
      });
  close();
}

void ExchangeEmitter::reduce(const Step& step) {
  const Value& out = value(step.out);
  const ElementType type = out.type;
  declare(step.out, false);
  over_results(out, out.layout.registers(),
               [&](const std::string& index) { line("{} = {};", element(out, index), identity(step.op, type)); });
  const std::vector<Digit> map = register_map(out.layout, step.layout);
  const bool padded = step.layout.covers_more(step.axis, step.shape);
  sweep(step, [&](const std::string& index) {
    std::string text = expression(step, index);
    const std::string to = element(out, digits(map, index, step.layout.registers()));
    if (padded)
      line("if ({} < {}) {} = {};", coordinate(step.layout, step.axis, index), step.shape[step.axis], to,
           combine(step.op, type, to, text));
    else
      line("{} = {};", to, combine(step.op, type, to, text));
  });
  const int count = out.layout.registers();
  combine_lanes(step, type, count, lane_masks(step.layout.thread_digits(step.axis)));
  if (const int bits = warp_bits(step.layout, step.axis)) combine_warps(step, type, count, bits);
}

void ExchangeEmitter::replicas(const Step& step) {
  const Value& out = value(step.out);
  mention(out.name);
  const int registers = out.layout.registers();
  const std::vector<int> masks = bits_of(step.replica_lanes);
  std::size_t halvings = 0;
  for (; registers >> halvings > step.kept; ++halvings)
    line("add_halves<{}>({}, {});", registers >> halvings, out.name, masks[halvings]);
  combine_lanes(step, out.type, step.kept, std::span(masks).subspan(halvings));
  if (step.replica_warps) combine_warps(step, out.type, step.kept, step.replica_warps);
  while (halvings-- > 0) line("gather_halves<{}>({}, {});", registers >> halvings, out.name, masks[halvings]);
}

void ExchangeEmitter::argmax(const Step& step) {
  const Value& out = value(step.out);
  const ElementType type = step.expression.terms.back().type;
  const int count = out.layout.registers();
  declare(step.out, false);
  declare(step.best, false);
  const auto best = [&](const std::string& index) { return element(value(step.best), index); };
  over_results(out, count, [&](const std::string& index) {
    line("{} = {};", best(index), info(type).kind == ElementKind::real ? "nan_value()" : identity(step.op, type));
    line("{} = 0;", element(out, index));
  });
  const auto keep = [&](const std::string& x, const std::string& at, const std::string& index) {
    return fmt::format("keep_best({}, {}, {}, {});", x, at, best(index), element(out, index));
  };
  const std::vector<Digit> map = register_map(out.layout, step.layout);
  const bool padded = step.layout.covers_more(step.axis, step.shape);
  sweep(step, [&](const std::string& index) {
    open("{{");
    const std::string text = expression(step, index);
    line("const {} x = {};", register_type(type), text);
    line("const int at = {};", coordinate(step.layout, step.axis, index));
    line("{}{}", padded ? fmt::format("if (at < {}) ", step.shape[step.axis]) : "",
         keep("x", "at", digits(map, index, step.layout.registers())));
    close();
  });
  for (int mask : lane_masks(step.layout.thread_digits(step.axis)))
    over_results(out, count, [&](const std::string& index) {
      open("{{");
      line("const {} x = shuffle_xor({}, {});", register_type(type), best(index), mask);
      line("const int at = shuffle_xor({}, {});", element(out, index), mask);
      line("{}", keep("x", "at", index));
      close();
    });
  const int bits = warp_bits(step.layout, step.axis);
  if (!bits) return;
  const int chunk = std::min(count, most_partials);
  open("{{");
  line("{}* const partial = {};", scratch_type(type), scratch(step, type));
  line("int* const partial_at = reinterpret_cast<int*>(partial + {});", chunk * plan_.threads());
  over_warps(
      out, count, bits,
      [&](const std::string& slot, const std::string& index) {
    line("partial{} = {};", slot, best(index));
    line("partial_at{} = {};", slot, element(out, index));
      },
      [&](const std::string& slot, const std::string& index, bool) {
    line("{}", keep("partial" + slot, "partial_at" + slot, index));
  });
  close();
}

std::string ExchangeEmitter::linear(const Step& step, const std::string& index) {
  std::vector<std::string> parts;
  if (step.base) parts.push_back(fmt::format("{}", step.base));
  for (int axis = 0; axis < step.shape.rank(); ++axis) {
    const std::string at = coordinate(step.layout, axis, index);
    const std::int64_t by = step.strides[static_cast<std::size_t>(axis)];
    if (at == "0" || step.shape[axis] == 1) continue;
    parts.push_back(by == 1 ? at : fmt::format("{} * {}", atom(at), by));
  }
  return joined(parts, " + ", "0");
}

void ExchangeEmitter::put(const Step& step) {
  const ElementType type = step.expression.terms.back().type;
  open("{{");
  line("{}* const to = {};", scratch_type(type), scratch(step, type));
  const std::string mine = first_copy(step.layout);
  sweep(step, [&](const std::string& index) {
    const std::string text = expression(step, index);
    const std::string condition = both(mine, inside_tile(step, index));
    line("{}to[{}] = {};", condition.empty() ? "" : fmt::format("if ({}) ", condition), linear(step, index), text);
  });
  close();
}

void ExchangeEmitter::get(const Step& step) {
  const Value& out = value(step.out);
  declare(step.out, false);
  open("{{");
  line("const {}* const from = {};", scratch_type(out.type), scratch(step, out.type));
  sweep(step, [&](const std::string& index) {
    const std::string condition = inside_tile(step, index), at = linear(step, index);
    line("{} = {};", element(out, index),
         condition.empty() ? fmt::format("from[{}]", at)
                           : fmt::format("{} ? from[{}] : {}", condition, at, number(out.type, Cell{})));
  });
  close();
}

void ExchangeEmitter::scan(const Step& step) {
  use("shared");
  line("scan_lines({}, {}, {}, {}, {});", scratch(step, plan_.scratch[static_cast<std::size_t>(step.scratch)].type),
       step.lines, step.length, step.inner, plan_.threads());
}

}  // namespace tessera
