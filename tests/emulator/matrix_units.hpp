// The matrix units of warp groups (PTX ISA, "wgmma"): products of matrices in shared memory, or of one in registers and
// one there, at moments of their own.
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

/// A product as one thread of its warp group asks for it. d[64,n] = or += a[64,16] b[16,n]; of tf32 8 of k.
struct Wgmma {
  EmulatedOperand type{};
  int n = 0;
  bool transposed_a = false, transposed_b = false;  ///< rows of the matrix in memory run along k
  float* d = nullptr;
  unsigned* left = nullptr;    ///< registers of a, two elements in each or a tf32; null: it is in memory
  std::uint64_t a = 0, b = 0;  ///< descriptors
  bool adds = false;
  /// The same but for the registers, whose addresses are each thread's own.
  bool same(const Wgmma& other) const;
};

/// A matrix in shared memory, decoded from its descriptor (PTX ISA, "Matrix Descriptor Format"): 32 bytes of k by
/// `other`.
struct Matrix {
  std::uint32_t start = 0, leading = 0, stride = 0;  ///< bytes
  std::uint32_t row_chunks = 0;                      ///< of a swizzled row; 0: no such mode
  bool transposed = false;
  int other = 0;
  int in_chunk = 8;  ///< elements

  static Matrix decode(std::uint64_t descriptor, EmulatedOperand type, bool transposed, int other);
  int chunks() const { return 2 * other; }
  /// Where chunk `i` of 16 bytes lies; element j of it belongs to k and other(i, j).
  std::uint32_t address(int i) const;
  int k(int i, int j) const { return transposed ? i % 16 : i % 2 * in_chunk + j; }
  int along(int i, int j) const { return transposed ? i / 16 * 8 + j : i / 2; }
};

/// The warp groups' units of a block. Threads come in a warp group's order, all 128 of them.
class MatrixUnits {
 public:
  explicit MatrixUnits(Block& block) : block_(block) {}

  void fence(std::span<Thread> threads);
  /// Starts a product. Until a wait covers it, nobody may use the registers.
  void start(std::span<Thread> threads, std::span<const Wgmma> asked, Code code);
  void commit(std::span<Thread> threads);
  void wait(std::span<Thread> threads, int pending);

  /// Products that are to be made next, one for each warp group that has any.
  int under_way() const;
  void make(int which);

 private:
  struct Accumulators {
    std::array<float*, group_size> registers;
    int n;
    int group;                ///< of the last product
    Code code;                ///< where that was asked for
    std::vector<float> sums;  ///< [64, n]
  };
  /// A left operand in registers: those of each thread, and what they hold.
  struct Fragments {
    std::array<unsigned*, group_size> registers;
    std::array<std::array<unsigned, 4>, group_size> pairs;
    int group;  ///< of the last product
    Code code;  ///< where that was asked for
  };
  struct Matmul {
    EmulatedOperand type;
    const Fragments* left;  ///< null: a
    Matrix a, b;
    bool adds;
    int group;
    Accumulators* sums;
  };
  struct Unit {
    int id = 0;  ///< in the block's order
    bool fenced = false;
    std::deque<Matmul> matmuls{};
    std::list<Accumulators> open{};
    std::list<Fragments> left{};
    std::vector<std::uint32_t> closed{};  ///< when each group was
  };

  Unit& unit_of(const Thread& thread);
  Accumulators& accumulators(Unit& unit, std::span<Thread> threads, std::span<const Wgmma> asked, Code code);
  Fragments& fragments(Unit& unit, std::span<Thread> threads, std::span<const Wgmma> asked, Code code);
  void check(const Matrix& matrix, std::span<Thread> threads, const Unit& unit, Code code);
  void make_first(Unit& unit);
  void hand_back(const Accumulators& sums, std::span<Thread> threads);
  void hand_back(const Fragments& left, std::span<Thread> threads);
  template <class Registers>
  void hand_back(Unit& unit, std::list<Registers>& open, int over, std::span<Thread> threads);

  Block& block_;
  std::map<int, Unit> units_;  ///< by warp group
};

}  // namespace tessera::internal::emulator
