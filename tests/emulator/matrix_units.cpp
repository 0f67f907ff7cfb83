#include "emulator/matrix_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "emulator/block.hpp"
#include "emulator/checks.hpp"
#include "emulator/fp8_sum.hpp"
#include "emulator/operands.hpp"
#include "emulator/swizzle.hpp"

namespace tessera::internal::emulator {
namespace {

constexpr int rows = 64, core_row = 16;
constexpr std::uint32_t address_mask = 0x3ffff;

/// Row and column of register i of a thread (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16").
int row_of(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8; }
int column_of(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }
std::size_t place_of(int thread, int i, int n) {
  return static_cast<std::size_t>(row_of(thread, i) * n + column_of(thread, i));
}

bool overlap(const unsigned* a, int n, const unsigned* b, int m) { return a < b + m / 2 && b < a + n / 2; }

struct OperandInfo {
  std::string_view name;
  int bytes;
  bool integer;
};
const OperandInfo& operand_info(EmulatedOperand type) {
  static constexpr OperandInfo table[] = {{"f16", 2, false},    {"bf16", 2, false},   {"tf32", 4, false},
                                          {"f8e4m3", 1, false}, {"f8e5m2", 1, false}, {"i8", 1, true},
                                          {"u8", 1, true}};
  return table[type];
}

/// Adds the product of a[64, depth] and b[depth, n] to sums[64, n], which are f32, or integers, unsigned so that they
/// wrap.
template <class Number>
void add_product(const std::vector<Number>& a, const std::vector<Number>& b, std::size_t n,
                 std::vector<unsigned>& sums) {
  const std::size_t depth = b.size() / n;
  std::vector<Number> row(n);
  for (std::size_t m = 0; m < rows; ++m) {
    std::memcpy(row.data(), &sums[m * n], n * sizeof row[0]);
    for (std::size_t k = 0; k < depth; ++k) {
      const Number x = a[m * depth + k];
      const Number* const y = &b[k * n];
      for (std::size_t column = 0; column < n; ++column) row[column] += x * y[column];
    }
    std::memcpy(&sums[m * n], row.data(), n * sizeof row[0]);
  }
}

void add_product(const std::vector<Fp8>& a, const std::vector<Fp8>& b, std::size_t n, std::vector<unsigned>& sums) {
  const std::size_t depth = b.size() / n;
  std::vector<Fp8> y(depth);
  for (std::size_t column = 0; column < n; ++column) {
    for (std::size_t k = 0; k < depth; ++k) y[k] = b[k * n + column];
    for (std::size_t m = 0; m < rows; ++m) {
      unsigned& sum = sums[m * n + column];
      sum = std::bit_cast<unsigned>(fp8_sum(std::bit_cast<float>(sum), {&a[m * depth], depth}, y));
    }
  }
}

constexpr int pairs_of_left = 4;
constexpr std::uint32_t poisoned = ~0u;

}  // namespace

bool Wgmma::same(const Wgmma& other) const {
  return type == other.type && n == other.n && transposed_a == other.transposed_a &&
         transposed_b == other.transposed_b && (left == nullptr) == (other.left == nullptr) && a == other.a &&
         b == other.b && adds == other.adds;
}

Matrix Matrix::decode(std::uint64_t descriptor, EmulatedOperand type, bool transposed, int other) {
  const auto field = [&](int bit, std::uint32_t mask) { return static_cast<std::uint32_t>(descriptor >> bit) & mask; };
  Matrix matrix{.start = field(0, 0x3fff) * 16,
                .leading = field(16, 0x3fff) * 16,
                .stride = field(32, 0x3fff) * 16,
                .transposed = transposed,
                .other = other,
                .in_chunk = core_row / operand_info(type).bytes};
  constexpr std::uint32_t chunks_of_mode[] = {1, 8, 4, 2};  // bits 62 and 63: no swizzle, 128-byte, 64-byte, 32-byte
  const bool other_base = field(49, 7) != 0;                // base offsets are not supported: no kernel uses them
  matrix.row_chunks = other_base ? 0 : chunks_of_mode[field(62, 3)];
  return matrix;
}

/// PTX ISA, "Strides". K-major: without a swizzle, chunks of a row are `leading` apart and groups of eight rows
/// `stride`; with a swizzle, a row is as long as the swizzle. M- or N-major (`transposed`): as many chunks as the
/// swizzle has are side by side, the next ones are `leading` apart, and groups of eight k are `stride` apart; without a
/// swizzle, leading and stride are exchanged.
std::uint32_t Matrix::address(int i) const {
  const auto u = [](int x) { return static_cast<std::uint32_t>(x); };
  const std::uint32_t row = row_chunks * core_row;
  std::uint32_t offset;
  if (transposed) {
    const std::uint32_t k = u(i % transposed_k), j = u(i / transposed_k);
    offset = k % 8 * row;
    offset += row_chunks == 1 ? j * stride + k / 8 * leading
                              : j % row_chunks * core_row + j / row_chunks * leading + k / 8 * stride;
  } else {
    const std::uint32_t r = u(i / 2), c = u(i % 2);
    offset = r % 8 * row + r / 8 * stride + c * (row_chunks == 1 ? leading : core_row);
  }
  return swizzled((start + offset) & address_mask, row_chunks);
}

MatrixUnits::Unit& MatrixUnits::unit_of(const Thread& thread) {
  const int group = thread.index / group_size;
  const auto [known, is_new] = units_.try_emplace(group);
  if (is_new)
    known->second.id = block_.order().new_unit(
        fmt::format("wgmma of threads {} to {}", group * group_size, (group + 1) * group_size - 1));
  return known->second;
}

void MatrixUnits::fence(std::span<Thread> threads) { unit_of(threads[0]).fenced = true; }

void MatrixUnits::start(std::span<Thread> threads, std::span<const Wgmma> asked, Code code) {
  Unit& unit = unit_of(threads[0]);
  const Wgmma& first = asked[0];
  for (std::size_t i = 1; i < group_size; ++i)
    if (!asked[i].same(first))
      block_.refuse(threads[i], code, fmt::format("issues a different wgmma than thread {}", threads[0].index));
  if (operand_info(first.type).bytes != 2 && (first.transposed_a || first.transposed_b))
    block_.refuse(threads[0], code,
                  fmt::format("passes {} operands to wgmma that are not K-major", operand_info(first.type).name));
  const Matmul matmul{.type = first.type,
                        .left = first.left ? &fragments(unit, threads, asked, code) : nullptr,
                        .a = Matrix::decode(first.a, first.type, first.transposed_a, rows),
                        .b = Matrix::decode(first.b, first.type, first.transposed_b, first.n),
                        .adds = first.adds,
                        .group = static_cast<int>(unit.closed.size()),
                        .sums = &accumulators(unit, threads, asked, code)};
  matmul.sums->group = matmul.group;
  matmul.sums->code = code;
  if (!matmul.left) check(matmul.a, threads, unit, code);
  check(matmul.b, threads, unit, code);
  unit.matmuls.push_back(matmul);
}

/// Returns the accumulators of a wgmma in flight, or takes new ones from the registers.
MatrixUnits::Accumulators& MatrixUnits::accumulators(Unit& unit, std::span<Thread> threads,
                                                     std::span<const Wgmma> asked, Code code) {
  const int n = asked[0].n;
  const bool integer = operand_info(asked[0].type).integer;
  for (Accumulators& open : unit.open) {
    bool same = open.n == n, apart = true;
    for (std::size_t i = 0; i < group_size; ++i) {
      same &= open.registers[i] == asked[i].d;
      apart &= !overlap(open.registers[i], open.n, asked[i].d, n);
    }
    if (same && open.integer == integer) return open;
    if (same) block_.refuse(threads[0], code, "passes registers to wgmma that a wgmma in flight sums in another type");
    if (!apart) block_.refuse(threads[0], code, "passes registers to wgmma that overlap those of a wgmma in flight");
  }
  if (!unit.fenced)
    block_.refuse(threads[0], code, "passes registers to wgmma that it may have accessed, with no wgmma_fence since");
  Accumulators& made = unit.open.emplace_back();
  made.n = n;
  made.integer = integer;
  made.sums.resize(static_cast<std::size_t>(rows * n));
  for (int t = 0; t < group_size; ++t) {
    const auto i = static_cast<std::size_t>(t);
    unsigned* const d = made.registers[i] = asked[i].d;
    for (int r = 0; r < n / 2; ++r) made.sums[place_of(t, r, n)] = d[r];
    std::fill_n(d, n / 2, poisoned);
    threads[i].lent.push_back({d, d + n / 2});
  }
  return made;
}

/// The same for a left operand. Accesses to the registers before the wait see poison.
MatrixUnits::Fragments& MatrixUnits::fragments(Unit& unit, std::span<Thread> threads, std::span<const Wgmma> asked,
                                               Code code) {
  const int group = static_cast<int>(unit.closed.size());
  for (Fragments& open : unit.left) {
    bool same = true, apart = true;
    for (std::size_t i = 0; i < group_size; ++i) {
      same &= open.registers[i] == asked[i].left;
      apart &= open.registers[i] + pairs_of_left <= asked[i].left || asked[i].left + pairs_of_left <= open.registers[i];
    }
    if (!same && !apart)
      block_.refuse(threads[0], code, "passes registers to wgmma that overlap those of a wgmma in flight");
    if (!same) continue;
    for (std::size_t i = 0; i < group_size; ++i)
      if (std::any_of(asked[i].left, asked[i].left + pairs_of_left, [](unsigned pair) { return pair != poisoned; }))
        block_.refuse(threads[i], code, "wrote registers of a left operand while a wgmma in flight owned them");
    open.group = group;
    open.code = code;
    return open;
  }
  if (!unit.fenced)
    block_.refuse(threads[0], code, "passes registers to wgmma that it may have accessed, with no wgmma_fence since");
  Fragments& made = unit.left.emplace_back();
  made.group = group;
  made.code = code;
  for (std::size_t i = 0; i < group_size; ++i) {
    unsigned* const left = made.registers[i] = asked[i].left;
    std::copy_n(left, pairs_of_left, made.pairs[i].begin());
    std::fill_n(left, pairs_of_left, poisoned);
    threads[i].lent.push_back({left, left + pairs_of_left});
  }
  return made;
}

/// Each thread checks a part of the matrix, so all threads must know of the writes to it.
void MatrixUnits::check(const Matrix& matrix, std::span<Thread> threads, const Unit& unit, Code code) {
  if (matrix.row_chunks == 0)
    block_.refuse(threads[0], code, "passes a matrix descriptor to wgmma with an unsupported layout");
  for (int i = 0; i < matrix.chunks(); ++i)
    block_.offset_in_shared(threads[static_cast<std::size_t>(i % group_size)],
                            block_.shared_memory() + matrix.address(i), core_row, core_row, Use::read, code, unit.id);
}

void MatrixUnits::make_first(Unit& unit) {
  const Matmul matmul = unit.matmuls.front();
  unit.matmuls.pop_front();
  switch (matmul.type) {
    case emulated_f16:
      return multiply(matmul, f16_operand);
    case emulated_bf16:
      return multiply(matmul, bf16_operand);
    case emulated_tf32:
      return multiply(matmul, tf32_operand);
    case emulated_f8e4m3:
      return multiply(matmul, f8e4m3_operand);
    case emulated_f8e5m2:
      return multiply(matmul, f8e5m2_operand);
    case emulated_i8:
      return multiply(matmul, i8_operand);
    case emulated_u8:
      return multiply(matmul, u8_operand);
  }
}

template <class Number>
void MatrixUnits::multiply(const Matmul& matmul, Number (*operand)(std::uint32_t bits)) {
  const int n = matmul.sums->n, bytes = operand_info(matmul.type).bytes, depth = 2 * core_row / bytes;
  std::vector<Number> a(static_cast<std::size_t>(rows * depth)), b(static_cast<std::size_t>(depth * n));
  const auto put_a = [&](int k, int m, Number x) { a[static_cast<std::size_t>(m * depth + k)] = x; };
  const auto put_b = [&](int k, int column, Number x) { b[static_cast<std::size_t>(k * n + column)] = x; };
  const auto read = [&](const Matrix& matrix, const auto& put) {
    for (int i = 0; i < matrix.chunks(); ++i) {
      for (int j = 0; j < matrix.in_chunk; ++j) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, block_.shared_memory() + matrix.address(i) + j * bytes, static_cast<std::size_t>(bytes));
        put(matrix.k(i, j), matrix.along(i, j), operand(bits));
      }
    }
  };
  if (matmul.left) {
    // A register holds neighbors along k; its row is that of accumulators 2 r and 2 r + 1.
    const int packed = 4 / bytes;
    const std::uint32_t all_bits = ~0u >> (32 - 8 * bytes);
    for (int t = 0; t < group_size; ++t)
      for (int r = 0; r < pairs_of_left; ++r)
        for (int p = 0; p < packed; ++p) {
          const unsigned pair = matmul.left->pairs[static_cast<std::size_t>(t)][static_cast<std::size_t>(r)];
          put_a((r / 2 * 4 + t % 4) * packed + p, row_of(t, 2 * r), operand(pair >> p * 8 * bytes & all_bits));
        }
  } else {
    read(matmul.a, put_a);
  }
  read(matmul.b, put_b);
  if (!matmul.adds) std::ranges::fill(matmul.sums->sums, 0u);
  add_product(a, b, static_cast<std::size_t>(n), matmul.sums->sums);
}

void MatrixUnits::commit(std::span<Thread> threads) { unit_of(threads[0]).closed.push_back(block_.order().tick()); }

void MatrixUnits::wait(std::span<Thread> threads, int pending) {
  Unit& unit = unit_of(threads[0]);
  const int over = static_cast<int>(unit.closed.size()) - pending;
  if (over <= 0) return;
  while (!unit.matmuls.empty() && unit.matmuls.front().group < over) make_first(unit);
  for (const Thread& thread : threads)
    block_.order().finish(thread.index, unit.id, unit.closed[static_cast<std::size_t>(over - 1)]);
  hand_back(unit, unit.open, over, threads);
  hand_back(unit, unit.left, over, threads);
}

/// Returns registers to the threads, except those used by groups from `over` on.
template <class Registers>
void MatrixUnits::hand_back(Unit& unit, std::list<Registers>& open, int over, std::span<Thread> threads) {
  for (auto at = open.begin(); at != open.end();) {
    if (at->group >= over) {
      ++at;
      continue;
    }
    hand_back(*at, threads);
    unit.fenced = false;
    at = open.erase(at);
  }
}

void MatrixUnits::hand_back(const Accumulators& sums, std::span<Thread> threads) {
  for (int t = 0; t < group_size; ++t) {
    const auto i = static_cast<std::size_t>(t);
    unsigned* const d = sums.registers[i];
    for (int r = 0; r < sums.n / 2; ++r) {
      if (d[r] != poisoned)
        block_.refuse(threads[i], sums.code,
                      fmt::format("wrote register {} of an accumulator while its wgmma was in flight", r));
      d[r] = sums.sums[place_of(t, r, sums.n)];
    }
    std::erase_if(threads[i].lent, [&](const Lent& lent) { return lent.begin == d; });
  }
}

void MatrixUnits::hand_back(const Fragments& left, std::span<Thread> threads) {
  for (std::size_t i = 0; i < group_size; ++i) {
    unsigned* const pairs = left.registers[i];
    for (int r = 0; r < pairs_of_left; ++r) {
      if (pairs[r] != poisoned)
        block_.refuse(threads[i], left.code,
                      fmt::format("wrote register {} of a left operand while its wgmma was in flight", r));
      pairs[r] = left.pairs[i][static_cast<std::size_t>(r)];
    }
    std::erase_if(threads[i].lent, [&](const Lent& lent) { return lent.begin == pairs; });
  }
}

int MatrixUnits::under_way() const {
  return static_cast<int>(
      std::ranges::count_if(units_, [](const auto& unit) { return !unit.second.matmuls.empty(); }));
}

void MatrixUnits::make(int which) {
  for (auto& [group, unit] : units_)
    if (!unit.matmuls.empty() && which-- == 0) return make_first(unit);
}

}  // namespace tessera::internal::emulator
