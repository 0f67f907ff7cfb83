// What is measured: rows, and the work behind each.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tessera.hpp"

namespace tessera::internal::bench {

/// What bounds a row: memory traffic, or the multiply-adds of a type.
enum class Resource : std::uint8_t { memory, f16, bf16, tf32, f32, i8 };

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
  /// Milliseconds of CPU time of a call, of all cores together, in the median of the turns; nothing on a GPU.
  virtual std::optional<double> cpu() { return {}; }
};

/// How a row is laid out over memory and time, on both sides.
struct Turns {
  int sets = 2;    ///< of buffers, used one after another, so that no call finds its data in the L2 cache
  int calls = 20;  ///< of a turn; a multiple of sets
};

using MakeWorkload = std::function<std::unique_ptr<Workload>(const Device&, const Turns&)>;
/// The same work done in another way.
struct Alternative {
  std::string name;
  MakeWorkload make;
};

struct Row {
  std::string op, type;             ///< what is computed, and in which element type: what the peer is told
  std::string form = {};            ///< of the same op: "nk" of gemm, the right factor being [n,k], and "kn" of gemv,
                                    ///< the matrix being [k,n]; "eager" and "lt" of linear_gelu, against one way of
                                    ///< the peer's, and "cupy" of gelu, against CuPy; "causal", "full", "gqa" and
                                    ///< "window" of attention
  std::string group = {};           ///< "sweep": measured only when asked for by a pattern that begins so
  std::vector<std::int64_t> shape;  ///< copy, sum, histogram [n]; gelu, cumsum [n] or any; sort, layer_norm and others
                                    ///< of rows [rows,width]; csr_* [rows,nonzeros]; mandelbrot, bilinear
                                    ///< [height,width]; gemv [n,k]; gemm, linear_* [m,n,k]; attention
                                    ///< [batch,positions,heads,head width], of gqa heads of keys and values behind;
                                    ///< decode [batch,cached]; prefill [batch,length]
  Resource resource = Resource::memory;
  double work = 0;     ///< of a call: bytes that must be moved, or floating-point operations
  double bytes = 0;    ///< of memory that a call uses
  double allowed = 0;  ///< the largest Workload::error() that is right
  bool tiled = false;  ///< are its tiles RowSettings::tiles?
  MakeWorkload make = {};
  /// If it is there, not a program beside is the peer, but the fastest of these and of ours.
  std::function<std::vector<Alternative>(const Device&)> alternatives = {};
  /// If it is there, the row is measured on the CPU, and the peer is a plain loop on one core: ours, and the loop.
  std::function<std::pair<std::unique_ptr<Workload>, std::unique_ptr<Workload>>(const Device&)> beside_loop = {};

  /// "gemm-bf16-4096x4096x4096", "sweep-gemm-bf16-4096x4096x4096-nk"
  std::string name() const;
};

struct RowSettings {
  bool small = false;  ///< the same on extents that a CPU does at once: tries out the program itself
  std::optional<MatmulTiles> tiles = {};   ///< of the products; else choose()'s
  std::uint64_t seed = 1;                  ///< of random extents
};
/// All rows, those of groups behind.
std::vector<Row> rows(const RowSettings& settings);

}  // namespace tessera::internal::bench
