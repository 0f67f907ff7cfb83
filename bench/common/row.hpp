// What is measured: rows, and the work behind each.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/tessera.hpp"

namespace tessera::bench {

/// What bounds a row: memory traffic, or the multiply-adds of a type.
enum class Resource : std::uint8_t { memory, bf16, tf32, f32 };

/// Work that is set up and can be timed again and again. It takes turns with the peer, which does the same.
class Workload {
 public:
  virtual ~Workload() = default;
  /// One turn: milliseconds of a call.
  virtual double turn() = 0;
  /// Milliseconds of a call that the host launches, rather than a graph; nothing if turn() is that already.
  virtual std::optional<double> launched() = 0;
  /// Of what the calls left behind, against a reference in f64: the largest error of some sampled elements, over the
  /// root mean square of their references. Infinite if any element at all was not written or is not finite. Nothing
  /// where there is no reference.
  virtual std::optional<double> error() = 0;
};

/// How a row is laid out over memory and time, on both sides.
struct Turns {
  int sets = 2;    ///< of buffers, used one after another, so that no call finds its data in the L2 cache
  int calls = 20;  ///< of a turn; a multiple of sets
};

struct Row {
  std::string op, type;             ///< what is computed, and in which element type: what the peer is told
  std::string form = {};            ///< of the same op: "nk" of gemm, the right factor being [n,k]
  std::vector<std::int64_t> shape;  ///< copy, gelu [n]; layer_norm [rows,width]; gemm, linear_gelu [m,n,k];
                                    ///< attention [batch,positions,heads,head width]; decode [batch,cached]
  Resource resource = Resource::memory;
  double work = 0;     ///< of a call: bytes that must be moved, or floating-point operations
  double bytes = 0;    ///< of memory that a call uses
  double allowed = 0;  ///< the largest Workload::error() that is right
  std::function<std::unique_ptr<Workload>(const Device&, const Turns&)> make = {};

  /// "gemm-bf16-4096x4096x4096", "gemm-bf16-4096x4096x4096-nk"
  std::string name() const;
};

/// All rows; or, `small`, the same on extents that a CPU does at once, to try out the program itself.
std::vector<Row> rows(bool small);

}  // namespace tessera::bench
