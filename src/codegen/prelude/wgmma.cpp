#include "codegen/prelude/wgmma.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace tessera::internal {
namespace {

struct Form {
  std::string_view type, ptx;   ///< our name of the operands' type, and that of PTX
  int k;                        ///< of an instruction
  std::string_view left;        ///< type of the registers that hold the left operand
  std::span<const int> widths;  ///< n of the instructions that schedules choose from

  bool has_transposed() const { return k == 16; }  ///< other operands are K-major
  bool is_integer() const { return type == "i8" || type == "u8"; }
};

// The instruction exists for every multiple of 8 up to 256; these are the widths of tiles and of their parts.
constexpr int widths_of_16_bits[] = {16, 32, 64, 96, 128, 160, 176, 192, 256};
constexpr int widths_of_tiles[] = {64, 96, 128, 192, 256};
constexpr int widths_of_fp8[] = {32, 48, 64, 96, 128};
constexpr Form forms[] = {{"bf16", "bf16", 16, "u32", widths_of_16_bits}, {"f16", "f16", 16, "u32", widths_of_16_bits},
                          {"tf32", "tf32", 8, "float", widths_of_tiles},  {"f8e4m3", "e4m3", 32, "u32", widths_of_fp8},
                          {"f8e5m2", "e5m2", 32, "u32", widths_of_fp8},   {"i8", "s8", 32, "u32", widths_of_tiles},
                          {"u8", "u8", 32, "u32", widths_of_tiles}};

/// item(first), item(first + 1), ..., `count` of them, in lines of eight that end and begin as `indent` has it.
template <class Item>
std::string list(int first, int count, std::string_view indent, const Item& item) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i % 8 ? ", " : fmt::format(",{}", indent), item(first + i));
  return text;
}

std::string item(const Form& form, int n, bool left) {
  const bool k_major = !form.has_transposed(), integer = form.is_integer();
  const int accumulators = n / 2;
  const auto number = [](int i) { return fmt::format("%{}", i); };
  // Operands of the instruction, numbered behind the accumulators: a, b, whether to add, and the transpositions.
  int next = accumulators;
  const std::string a = left ? fmt::format("{{{}}}", list(next, 4, "", number)) : number(next);
  next += left ? 4 : 1;
  const std::string b = number(next++), adds = number(next++);
  std::string transpositions, inputs;
  if (!k_major && !left) transpositions += ", " + number(next++), inputs += ", \"n\"(transposed_a)";
  if (!k_major) transpositions += ", " + number(next++), inputs += ", \"n\"(transposed_b)";

  std::string text =
      fmt::format("// d = a b, or d += a b, m64n{}k{} of {} (PTX ISA, \"wgmma.mma_async\"); ", n, form.k, form.type);
  text += left ? "a is in registers.\n" : "a and b are in shared memory.\n";
  text += k_major ? "// Both are K-major.\n" : "// A transposed operand is not K-major.\n";
  text += left ? "template <int transposed_b>\n" : "template <int transposed_a, int transposed_b>\n";
  text += fmt::format("__device__ inline void wgmma_{}{}_n{}({}* d, {} a, u64 b, bool adds) {{\n", left ? "left_" : "",
                      form.type, n, integer ? "int" : "float", left ? fmt::format("const {}*", form.left) : "u64");
  if (k_major)
    text +=
        left ? "  static_assert(transposed_b == 0);\n" : "  static_assert(transposed_a == 0 && transposed_b == 0);\n";
  text += fmt::format(
      "  asm volatile(\n      \"{{\\n.reg .pred p;\\nsetp.ne.b32 p, {}, 0;\\n"
      "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{\"\n      \"{}\"\n      \"}}, {}, {}, p{}{};\\n}}\"\n",
      adds, n, form.k, integer ? "s32" : "f32", form.ptx, form.ptx, list(0, accumulators, " \"\n      \"", number), a,
      b, integer ? "" : ", 1, 1", transpositions);  // scale-a and scale-b
  text += fmt::format("      : {}\n", list(0, accumulators, "\n        ", [&](int i) {
    return fmt::format("\"+{}\"(d[{}])", integer ? 'r' : 'f', i);
  }));
  const auto fragment = [&](int i) {
    return form.left == "float" ? fmt::format("\"r\"(bits_of(a[{}]))", i) : fmt::format("\"r\"(a[{}])", i);
  };
  const std::string a_in = left ? list(0, 4, "", fragment) : "\"l\"(a)";
  text += fmt::format("      : {}, \"l\"(b),\n        \"r\"(static_cast<int>(adds)){});\n}}", a_in, inputs);
  return text;
}

}  // namespace

std::string wgmma_items() {
  std::string text;
  for (const bool left : {false, true})
    for (const Form& form : forms)
      for (const int n : form.widths) text += (text.empty() ? "" : "\n\n") + item(form, n, left);
  return text + "\n";
}

}  // namespace tessera::internal
