// The measured rows, and the work of each.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tessera.hpp"

namespace tessera::internal::bench {

/// The resource that bounds a row: memory traffic, or the multiply-adds of a type.
enum class Resource : std::uint8_t { memory, f16, bf16, tf32, f32, eight_bits };

/// Work that is set up once and can be timed repeatedly. It alternates with the peer, which does the same work.
class Workload {
 public:
  virtual ~Workload() = default;
  /// One turn: milliseconds per call.
  virtual double turn() = 0;
  /// Milliseconds per call that the host launches, rather than a graph; nothing if turn() is that already.
  virtual std::optional<double> launched() = 0;
  /// The largest error of some sampled elements of the results against an f64 reference, relative to the root mean
  /// square of their references. Infinite if any element at all was not written or is not finite. Nothing if there is
  /// no reference.
  virtual std::optional<double> error() = 0;
  /// Milliseconds of the first call in this process: tracing, generating code, compiling what the cache lacks. Nothing
  /// if it is not measured.
  virtual std::optional<double> first() const { return {}; }
  /// Milliseconds of CPU time per call, of all cores together, in the median of the turns; nothing on a GPU.
  virtual std::optional<double> cpu() { return {}; }
};

/// A row's buffers and calls, on both sides.
struct Turns {
  int sets = 2;    ///< of buffers, used in rotation, so that no call finds its data in the L2 cache
  int calls = 20;  ///< per turn; a multiple of sets
};

using MakeWorkload = std::function<std::unique_ptr<Workload>(const Device&, const Turns&)>;
/// The same work done in another way.
struct Alternative {
  std::string name;
  MakeWorkload make;
  std::string launch = {};  ///< how CTAs share k: "none", or "cluster" or "stream_k" with SplitKLaunch's numbers
};

struct Row {
  std::string op, type;             ///< the op and its element type, as sent to the peer
  std::string form = {};            ///< variant of an op: "nk" of gemm, with the right operand [n,k], and "kn" of gemv,
                                    ///< with the matrix [k,n]; "tensor" and "row" of scaled_mm, by what has scales of
                                    ///< its own, and "_fast" where the peer does not promote; "eager" and "lt" of
                                    ///< linear_gelu, against one of the peer's ways, and "cupy" of gelu, against
                                    ///< CuPy; "causal", "full", "gqa", "packed" (gqa whose heads are rows
                                    ///< of a tile), "window" and "cached" of attention; the size of a model, empty
                                    ///< for that of gpt2
  std::string group = {};           ///< "sweep": measured only when a pattern that begins with it is given
  std::vector<std::int64_t> shape;  ///< copy, sum, histogram [n]; gelu, cumsum [n] or any; sort, layer_norm and others
                                    ///< on rows [rows,width]; csr_* [rows,nonzeros]; mandelbrot, bilinear
                                    ///< [height,width]; gemv [n,k]; gemm, linear_* [m,n,k]; grouped_mm
                                    ///< [m,n,k,experts]; attention [batch,positions,heads,head width], for gqa
                                    ///< and packed followed by key-value heads;
                                    ///< decode [batch,cached]; prefill, logits [batch,length]
  std::vector<std::int64_t> details = {};  ///< the peer gets them after the shape: grouped_mm's rows of each expert;
                                           ///< layers, width, heads, vocabulary and positions of a model
  Resource resource = Resource::memory;
  double work = 0;     ///< per call: bytes that must be moved, or floating-point operations
  double bytes = 0;    ///< of memory that a call uses
  int layers = 0;      ///< of decode, whose figures include the exposed time of a layer
  double allowed = 0;  ///< the largest Workload::error() that passes
  bool tiled = false;  ///< does it use RowSettings::tiles?
  MakeWorkload make = {};
  /// If set, the peer is not another program, but the fastest of these and of ours.
  std::function<std::vector<Alternative>(const Device&)> alternatives = {};
  /// If set, the row is measured on the CPU, and the peer is a plain loop on one core: ours, and the loop.
  std::function<std::pair<std::unique_ptr<Workload>, std::unique_ptr<Workload>>(const Device&)> beside_loop = {};

  /// "gemm-bf16-4096x4096x4096", "sweep-gemm-bf16-4096x4096x4096-nk"
  std::string name() const;
};

struct RowSettings {
  bool small = false;                     ///< the same with extents that a CPU can do fast: tests the program itself
  std::optional<MatmulTiles> tiles = {};  ///< of the matmuls; without it choose() chooses
  std::uint64_t seed = 1;                 ///< of random extents
};
/// All rows, those of groups last.
std::vector<Row> rows(const RowSettings& settings);

}  // namespace tessera::internal::bench
