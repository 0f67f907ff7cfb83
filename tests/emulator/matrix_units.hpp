// The tensor cores as used by warp groups (PTX ISA, "wgmma"): asynchronous matmuls of matrices in shared memory, or of
// one in registers and one in shared memory. They take effect at arbitrary times.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <span>
#include <vector>

#include "emulator/machine.hpp"
#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class Block;

inline constexpr int group_size = 128;

/// A wgmma as issued by one thread of its warp group. d[64,n] = or += a[64,16] b[16,n]; for tf32 k is 8, for types of 8
/// bits 32.
struct Wgmma {
  EmulatedOperand type{};
  int n = 0;
  bool transposed_a = false, transposed_b = false;  ///< the matrix in memory is M- or N-major: its rows are k
  unsigned* d = nullptr;                            ///< registers of d, each an f32, or an i32 for integers
  unsigned* left = nullptr;    ///< registers of a, each with two elements or one tf32; null: a is in memory
  std::uint64_t a = 0, b = 0;  ///< descriptors
  bool adds = false;
  /// Compares all but the registers, whose addresses differ between threads.
  bool same(const Wgmma& other) const;
};

/// A matrix in shared memory, decoded from its descriptor (PTX ISA, "Matrix Descriptor Format"): 32 bytes of k by
/// `other`.
struct Matrix {
  std::uint32_t start = 0, leading = 0, stride = 0;  ///< bytes
  std::uint32_t row_chunks = 0;                      ///< per swizzled row; 0: unsupported mode
  bool transposed = false;
  int other = 0;
  int in_chunk = 8;  ///< elements

  static constexpr int transposed_k = 16;  ///< k of a transposed matrix, whose elements have 16 bits

  static Matrix decode(std::uint64_t descriptor, EmulatedOperand type, bool transposed, int other);
  int chunks() const { return 2 * other; }
  /// Address of the 16-byte chunk `i`; its element j has position k(i, j) along k and along(i, j) across.
  std::uint32_t address(int i) const;
  int k(int i, int j) const { return transposed ? i % transposed_k : i % 2 * in_chunk + j; }
  int along(int i, int j) const { return transposed ? i / transposed_k * 8 + j : i / 2; }
};

/// wgmma units of a CTA, one per warp group. `threads` are all 128 threads of a warp group, in order.
class MatrixUnits {
 public:
  explicit MatrixUnits(Block& block) : block_(block) {}

  void fence(std::span<Thread> threads);
  /// Starts a wgmma. Its registers must not be used until a wait covers it.
  void start(std::span<Thread> threads, std::span<const Wgmma> asked, Code code);
  void commit(std::span<Thread> threads);
  void wait(std::span<Thread> threads, int pending);

  /// Number of warp groups that have a wgmma to execute next.
  int under_way() const;
  void make(int which);

 private:
  struct Accumulators {
    std::array<unsigned*, group_size> registers;
    int n;
    bool integer;                ///< i32 instead of f32
    int group;                   ///< of the last wgmma
    Code code;                   ///< where it was issued
    std::vector<unsigned> sums;  ///< the bits of [64, n]
  };
  /// A left operand in registers: the registers of each thread, and their contents.
  struct Fragments {
    std::array<unsigned*, group_size> registers;
    std::array<std::array<unsigned, 4>, group_size> pairs;
    int group;  ///< of the last wgmma
    Code code;  ///< where it was issued
  };
  struct Matmul {
    EmulatedOperand type;
    const Fragments* left;  ///< null: a is in shared memory
    Matrix a, b;
    bool adds;
    int group;
    Accumulators* sums;
  };
  struct Unit {
    int id = 0;  ///< unit number in the CTA's order
    bool fenced = false;
    std::deque<Matmul> matmuls{};
    std::list<Accumulators> open{};
    std::list<Fragments> left{};
    std::vector<std::uint32_t> closed{};  ///< time at which each group was committed
  };

  Unit& unit_of(const Thread& thread);
  Accumulators& accumulators(Unit& unit, std::span<Thread> threads, std::span<const Wgmma> asked, Code code);
  Fragments& fragments(Unit& unit, std::span<Thread> threads, std::span<const Wgmma> asked, Code code);
  void check(const Matrix& matrix, std::span<Thread> threads, const Unit& unit, Code code);
  void make_first(Unit& unit);
  template <class Number>
  void multiply(const Matmul& matmul, Number (*operand)(std::uint32_t bits));
  void hand_back(const Accumulators& sums, std::span<Thread> threads);
  void hand_back(const Fragments& left, std::span<Thread> threads);
  template <class Registers>
  void hand_back(Unit& unit, std::list<Registers>& open, int over, std::span<Thread> threads);

  Block& block_;
  std::map<int, Unit> units_;  ///< by warp group
};

}  // namespace tessera::internal::emulator
