// Remarks: what became of a kernel's statements, and why not more. docs/speed.md has the table of the first test.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/remarks.hpp"
#include "jit/compile/compiler.hpp"
#include "support/catch.hpp"
#include "support/compiling.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_remarks {

using namespace tessera::internal;

namespace {

/// The line of the statement that a test expects a remark for: `at = __LINE__` stands on it.
unsigned at = 0;

struct Attention {
  int m, n, d;
  /// The number of keys: loaded from a tensor, or computed from that.
  enum { loaded, computed } length = loaded;
  bool causal = false;
};

/// q [heads, tokens, d], k and v [heads, keys, d].
Graph attention(const Attention& of) {
  return kernel("attention", [=](In<bf16, 3> q, In<bf16, 3> k, In<bf16, 3> v, In<i32, 1> positions,
                                 tessera::internal::Out<bf16, 3> o, Scalar<f32> scale) {
           const auto [bm, bn, d, length, causal] = of;
           const bool panels = d % 64 == 0;
           auto [m, head] = blocks(cdiv(q.extent(1), bm), q.extent(0));
           if (!panels) at = __LINE__ + 1;
           Tile qs = squeeze(load(q, {head, m, 0}, {1, bm, d}), 0);
           Tile rows = m * bm + iota({bm, 1}, 0);
           Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
           Tile count = length == Attention::loaded ? Tile(item(load(positions, {0}, {1})))
                                                    : Tile(item(max(load(positions, {0}, {64}), axis(0))) + 1);
           if (length == Attention::computed) at = __LINE__ + 1;
           for (Index j : range(cdiv(count, bn))) {
             Tile ks = squeeze(load(k, {head, j, 0}, {1, bn, d}), 0), vs = squeeze(load(v, {head, j, 0}, {1, bn, d}), 0);
             Tile keys = j * bn + iota({1, bn}, 1);
             Tile seen = causal ? Tile(keys <= rows + (count - q.extent(1))) : Tile(keys < count);
             if (length == Attention::loaded && panels) at = __LINE__ + 1;
             Tile s = where(seen, mma(qs, transpose(ks)) * (scale * log2e), -inf);
             Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), shrink = exp2(top - hi);
             norm = norm * shrink + sum(p, 1);
             acc = mma(cast<bf16>(p), vs, acc * shrink);
             top = hi;
           }
           Tile total = causal ? Tile(where(norm == 0.0f, 1.0f, norm)) : Tile(norm);
           store(o, {head, m, 0}, expand_dims(cast<bf16>(acc / total), 0));
         })
      .executable()
      .graph();
}

/// Query heads side by side, q [tokens, heads, d], of which `group` share keys and values [keys, kv heads, d]: packed,
/// their rows are tokens and heads by a reshape; otherwise q is stored as [kv heads, tokens * group, d].
Graph packed_attention(int bm, int bn, int d, int group) {
  return kernel("packed_attention", [=](In<bf16, 3> q, In<bf16, 3> k, In<bf16, 3> v,
                                        tessera::internal::Out<bf16, 3> o, Scalar<f32> scale) {
           auto [m, head] = blocks(cdiv(q.extent(0), bm / group), k.extent(0));
           Tile tile = load(q, {m, head, 0}, {bm / group, group, d});
           Tile qs = reshape(tile, {bm, d});
           Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
           for (Index j : range(cdiv(k.extent(1), bn))) {
             Tile ks = squeeze(load(k, {head, j, 0}, {1, bn, d}), 0), vs = squeeze(load(v, {head, j, 0}, {1, bn, d}), 0);
             at = __LINE__ + 1;
             Tile s = where(j * bn + iota({1, bn}, 1) < k.extent(1), mma(qs, transpose(ks)) * (scale * log2e), -inf);
             Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), shrink = exp2(top - hi);
             norm = norm * shrink + sum(p, 1);
             acc = mma(cast<bf16>(p), vs, acc * shrink);
             top = hi;
           }
           if (group == 3) at = __LINE__ + 1;
           store(o, {m, head, 0}, reshape(cast<bf16>(acc / norm), {bm / group, group, d}));
         })
      .executable()
      .graph();
}
Graph laid_out_attention(int bm, int bn, int d, int group) {
  return kernel("laid_out_attention", [=](In<bf16, 3> q, In<bf16, 3> k, In<bf16, 3> v,
                                          tessera::internal::Out<bf16, 3> o, Scalar<f32> scale, Scalar<i32> past) {
           auto [m, head] = blocks(cdiv(q.extent(1), bm), q.extent(0));
           Tile qs = squeeze(load(q, {head, m, 0}, {1, bm, d}), 0);
           Tile tokens = past + (m * bm + iota({bm, 1}, 0)) / group;
           Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
           for (Index j : range(cdiv(past + (m + 1) * (bm / group), bn))) {
             Tile ks = squeeze(load(k, {head, j, 0}, {1, bn, d}), 0), vs = squeeze(load(v, {head, j, 0}, {1, bn, d}), 0);
             at = __LINE__ + 1;
             Tile s = where(j * bn + iota({1, bn}, 1) <= tokens, mma(qs, transpose(ks)) * (scale * log2e), -inf);
             Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), shrink = exp2(top - hi);
             norm = norm * shrink + sum(p, 1);
             acc = mma(cast<bf16>(p), vs, acc * shrink);
             top = hi;
           }
           store(o, {head, m, 0}, expand_dims(cast<bf16>(acc / norm), 0));
         })
      .executable()
      .graph();
}

/// x w with activations and weights of i8 or of pairs of 4-bit numbers.
Graph weights_of_i8(int bm, int bn, int bk) {
  return kernel("weights_of_i8", [=](In<bf16, 2> x, In<i8, 2> w, In<f32, 1> scale, tessera::internal::Out<bf16, 2> y) {
           auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
           Var sums = zeros<f32>({bm, bn});
           for (Index k : range(cdiv(x.extent(1), bk))) {
             Tile ws = load(w, {k, n}, {bk, bn});
             at = __LINE__ + 1;
             sums = mma(load(x, {m, k}, {bm, bk}), cast<bf16>(ws), sums);
           }
           store(y, {m, n}, cast<bf16>(sums * load(scale, {n}, {bn})));
         })
      .executable()
      .graph();
}
Graph weights_of_four_bits(int bm, int bn, int bk) {
  return kernel("weights_of_four_bits", [=](In<bf16, 2> x, In<u8, 2> w, In<f32, 2> scale,
                                            tessera::internal::Out<bf16, 2> y) {
           auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
           Var sums = zeros<f32>({bm, bn});
           for (Index k : range(cdiv(x.extent(1), bk))) {
             Tile pairs = cast<i32>(load(w, {k, n}, {bk / 2, bn}));
             Tile ws = interleave(pairs & 15, pairs >> 4, 0) - 8;
             Tile weights = cast<f32>(ws) * load(scale, {k, n}, {1, bn});
             at = __LINE__ + 1;
             sums = mma(load(x, {m, k}, {bm, bk}), cast<bf16>(weights), sums);
           }
           store(y, {m, n}, cast<bf16>(sums));
         })
      .executable()
      .graph();
}

/// The four gates of an LSTM, each a matmul of the input and one of the state.
Graph lstm(int bm, int bn, int bk) {
  return kernel("lstm", [=](In<bf16, 2> x, In<bf16, 2> h, In<bf16, 3> w, In<bf16, 3> u, In<f32, 2> c,
                            tessera::internal::Out<f32, 2> c_out, tessera::internal::Out<bf16, 2> h_out) {
           auto [m, n] = blocks(cdiv(c.extent(0), bm), cdiv(c.extent(1), bn));
           std::vector<Var<f32, 2>> gates;
           for (int gate = 0; gate < 4; ++gate) gates.push_back(Var(zeros<f32>({bm, bn})));
           for (Index k : range(cdiv(x.extent(1), bk)))
             for (int gate = 0; gate < 4; ++gate)
               gates[gate] = mma(load(x, {m, k}, {bm, bk}), squeeze(load(w, {gate, k, n}, {1, bk, bn}), 0), gates[gate]);
           at = __LINE__ + 3;
           for (Index k : range(cdiv(h.extent(1), bk)))
             for (int gate = 0; gate < 4; ++gate)
               gates[gate] = mma(load(h, {m, k}, {bm, bk}), squeeze(load(u, {gate, k, n}, {1, bk, bn}), 0), gates[gate]);
           Tile cell = sigmoid(gates[1]) * load(c, {m, n}, {bm, bn}) + sigmoid(gates[0]) * tanh(gates[2]);
           store(c_out, {m, n}, cell);
           store(h_out, {m, n}, cast<bf16>(sigmoid(gates[3]) * tanh(cell)));
         })
      .executable()
      .graph();
}

template <class T = bf16>
Graph matmul(int bm, int bn, int bk, const Hints& wanted = {}, bool residual = false) {
  return kernel("product", [=](In<T, 2> a, In<T, 2> b, In<T, 2> z, tessera::internal::Out<T, 2> y) {
           if (!(wanted == Hints{})) hints(wanted);
           auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
           Var sums = residual ? Var(cast<f32>(load(z, {m, n}, {bm, bn}))) : Var(zeros<f32>({bm, bn}));
           for (Index k : range(cdiv(a.extent(1), bk))) {
             at = __LINE__ + 1;
             sums = mma(load(a, {m, k}, {bm, bk}), load(b, {k, n}, {bk, bn}), sums);
           }
           store(y, {m, n}, cast<T>(sums));
         })
      .executable()
      .graph();
}

/// One query row per head, for 16 heads that share keys and values; each CTA takes a part of the keys.
Graph decode(int rows, int keys, int d, const Hints& wanted) {
  const auto k = kernel("decode", [=](In<bf16, 3> q, In<bf16, 3> k, In<bf16, 3> v, tessera::internal::Out<f32, 3> o,
                                      Scalar<f32> scale) {
    if (!(wanted == Hints{})) hints(wanted);
    Index head = blocks(q.extent(0));
    Tile qs = squeeze(load(q, {head, 0, 0}, {1, rows, d}), 0);
    Var top = full<f32>({rows, 1}, -1e30), norm = zeros<f32>({rows, 1}), acc = zeros<f32>({rows, d});
    for (Index j : range(cdiv(k.extent(1), keys))) {
      Tile ks = squeeze(load(k, {head, j, 0}, {1, keys, d}), 0), vs = squeeze(load(v, {head, j, 0}, {1, keys, d}), 0);
      at = __LINE__ + 1;
      Tile s = where(j * keys + iota({1, keys}, 1) < k.extent(1), mma(qs, transpose(ks)) * (scale * log2e), -inf);
      Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), shrink = exp2(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<bf16>(p), vs, acc * shrink);
      top = hi;
    }
    store(o, {head, 0, 0}, expand_dims(acc / norm, 0));
  });
  return k.executable().graph();
}

KernelSource source_for(const Graph& graph, Arch arch, const std::function<void(Variant&)>& change = {}) {
  Variant variant = dense_variant(graph);
  if (change) change(variant);
  return generate(graph, variant, arch, {.verify = true});
}

constexpr auto passed = Remark::Status::passed, missed = Remark::Status::missed, analysis = Remark::Status::analysis;

/// The remarks of a kind and a status.
std::vector<Remark> of(const std::vector<Remark>& remarks, std::string_view kind, Remark::Status status) {
  std::vector<Remark> found;
  for (const Remark& remark : remarks)
    if (remark.kind == kind && remark.status == status) found.push_back(remark);
  return found;
}
std::string all(const std::vector<Remark>& remarks) { return to_string(std::span(remarks)); }

/// The page's row of a kernel: the kind of its matmuls, its warps, memory, and the remark that explains it.
std::string row(const std::string& name, Arch arch, const KernelSource& source, const Remark& why) {
  const bool wgmma = !of(source.remarks, "wgmma", passed).empty();
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |", name, arch.name(), wgmma ? "wgmma" : "mma.sync",
                     source.threads / 32, source.shared_bytes / 1024, (source.workspace_bytes + 1023) / 1024,
                     fmt::format("{} {}: {}", why.status == passed ? "passed" : "missed", why.kind, why.message));
}

}  // namespace

TEST_CASE("remarks explain attention, matmuls and decoding as docs/speed.md has it", "[plan]") {
  struct Case {
    std::string name;
    Arch arch;
    std::function<Graph()> graph;
    std::string_view kind;
    Remark::Status status;
    std::string_view message;  ///< its beginning
    bool in_workspace = false;
  };
  const Arch hopper = Arch::sm_90a, blackwell = Arch::parse("sm_100a");
  const Hints wide{.warps = 8};
  const Case cases[] = {
      {"attention 128x64, d = 64, lengths loaded", hopper, [] { return attention({128, 64, 64}); }, "wgmma", passed,
       "128x64x64 bf16, then 128x64x64 bf16 by wgmma, 1 consumer group of 2 warp groups"},
      {"attention 64x64, d = 128", hopper, [] { return attention({64, 64, 128}); }, "wgmma", passed,
       "64x64x128 bf16, then "},
      {"attention 128x128, d = 128", hopper, [] { return attention({128, 128, 128}); }, "wgmma", passed,
       "128x128x128 bf16, then "},
      {"attention 128x64, d = 256", hopper, [] { return attention({128, 64, 256}); }, "wgmma", passed,
       "128x64x256 bf16, then "},
      {"attention 128x64, d = 96", hopper, [] { return attention({128, 64, 96}); }, "wgmma", missed,
       "[128,96] bf16 cannot be divided into panels of 8 rows of 128 bytes"},
      {"attention 64x32, d = 128", hopper, [] { return attention({64, 32, 128}); }, "wgmma", missed,
       "no fused wgmma schedule for tiles of [64,128] x [128,32]"},
      {"attention, a loop to max(positions) + 1", hopper, [] { return attention({128, 64, 64, Attention::computed}); },
       "wgmma", missed, "the loop's trip count depends on 'max' of "},
      {"attention, groups of 4 heads reshaped to rows, 64x64, d = 128", hopper,
       [] { return packed_attention(64, 64, 128, 4); }, "wgmma", passed, "64x64x128 bf16, then "},
      {"attention, groups of 4 heads reshaped to rows, 128x128, d = 128", hopper,
       [] { return packed_attention(128, 128, 128, 4); }, "wgmma", passed, "128x128x128 bf16, then "},
      {"attention, groups of 3 heads reshaped to rows, 192x64, d = 128", hopper,
       [] { return packed_attention(192, 64, 128, 3); }, "wgmma", missed,
       "threads exchange elements of tiles, for the reshape of [192,128] to [64,3,128]", true},
      {"attention, q in memory as rows, 64x64, d = 128", hopper, [] { return laid_out_attention(64, 64, 128, 4); },
       "wgmma", passed, "64x64x128 bf16, then "},
      {"weights of i8, 128x128x64", hopper, [] { return weights_of_i8(128, 128, 64); }, "wgmma", passed,
       "128x128x64 bf16 by wgmma, 2 consumer groups of 1 warp group"},
      {"weights of 4 bits, 128x128x64", hopper, [] { return weights_of_four_bits(128, 128, 64); }, "wgmma", passed,
       "128x128x64 bf16 by wgmma, 1 consumer group of 2 warp groups"},
      {"LSTM, 4 matmuls in each of 2 loops, 64x64x64", hopper, [] { return lstm(64, 64, 64); }, "wgmma", missed,
       "the kernel has several matmuls, which differ"},
      {"matmul 256x256x64", hopper, [] { return matmul(256, 256, 64); }, "wgmma", missed,
       "[256,256] accumulators do not fit in registers", true},
      {"decoding, 16 rows by 128 keys, d = 64", hopper, [] { return decode(16, 128, 64, {}); }, "mma.sync", passed,
       "[16,64] x [64,128] of bf16, 1 x 4 warps"},
      {"the same, with a hint of 8 warps", hopper, [&] { return decode(16, 128, 64, wide); }, "mma.sync", passed,
       "[16,64] x [64,128] of bf16, 1 x 8 warps"},
      {"the same, with 16 keys", hopper, [&] { return decode(16, 16, 64, wide); }, "mma.sync", passed,
       "[16,64] x [64,16] of bf16, 1 x 1 warps"},
      {"causal attention 128x32, d = 128", blackwell, [] { return attention({128, 32, 128, Attention::loaded, true}); },
       "registers", missed, "a tile is too large for registers and takes", true},
      {"the same", Arch::sm_80, [] { return attention({128, 32, 128, Attention::loaded, true}); }, "mma.sync", passed,
       "[128,128] x [128,32] of bf16"},
      {"causal attention 128x16, d = 128", blackwell, [] { return attention({128, 16, 128, Attention::loaded, true}); },
       "mma.sync", passed, "[128,128] x [128,16] of bf16"},
  };
  const std::string page = read_text(TESSERA_SOURCE_DIR "/docs/speed.md");
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const Graph graph = one.graph();
    const unsigned line = at;
    const KernelSource source = source_for(graph, one.arch);
    INFO(all(source.remarks));
    const std::vector<Remark> found = of(source.remarks, one.kind, one.status);
    REQUIRE(!found.empty());
    CHECK(found[0].message.starts_with(one.message));
    if (one.kind != "registers") CHECK(found[0].line == line);
    CHECK(found[0].file == __FILE__);
    CHECK((source.workspace_bytes > 0) == one.in_workspace);
    CHECK(source.slow.empty() == !one.in_workspace);
    // The warning names the largest tile.
    std::int64_t largest = 0;
    for (const Remark& remark : of(source.remarks, "registers", missed))
      largest = std::max<std::int64_t>(largest, std::stoll(remark.message.substr(remark.message.find("takes ") + 6)));
    CHECK((!one.in_workspace || source.slow.find(fmt::format("takes {} bytes", largest)) != std::string::npos));
    const std::string expected = row(one.name, one.arch, source, found[0]);
    INFO(expected);
    CHECK(page.find(expected) != std::string::npos);
  }
}

namespace {

/// Is there exactly one remark of that kind and status with this in its message?
bool says(const std::vector<Remark>& remarks, std::string_view kind, Remark::Status status, std::string_view message) {
  return std::ranges::count_if(of(remarks, kind, status), [&](const Remark& remark) {
           return remark.message.find(message) != std::string::npos;
         }) == 1;
}

}  // namespace

TEST_CASE("remarks name the copies of operands, and why they are not wider", "[plan]") {
  const Graph graph = matmul(64, 64, 64);
  const std::vector<Remark> old = source_for(graph, Arch::sm_80).remarks;
  INFO(all(old));
  CHECK(says(old, "mma.sync", passed, "[64,64] x [64,64] of bf16, "));
  CHECK(says(old, "cp.async", passed, "parameter 1 is copied, 16 bytes at a time"));
  CHECK(says(old, "cp.async", passed, "parameter 2 is copied, 16 bytes at a time"));
  CHECK(says(old, "shared", analysis, "[64,64] of bf16 takes "));
  CHECK(says(old, "vector", passed, "parameter 4 is written by accesses of 16 bytes"));
  CHECK(of(old, "wgmma", missed).empty());
  CHECK(of(old, "tma", passed).empty());
  CHECK(of(old, "pdl", missed).empty());
  const auto apart = [](int bytes) {
    return [=](Variant& variant) {
      variant.tensors[0].alignment = variant.tensors[0].row_alignment = static_cast<std::int8_t>(bytes);
      variant.tensors[0].tma_addressable = false;
    };
  };
  CHECK(says(source_for(graph, Arch::sm_80, apart(4)).remarks, "cp.async", missed,
             "parameter 1 is copied, 4 bytes at a time and not 16, as its address and strides are only multiples of 4 "
             "bytes"));
  CHECK(says(source_for(graph, Arch::sm_80, apart(2)).remarks, "cp.async", missed,
             "parameter 1 is copied through registers, 2 bytes at a time, as its address and strides are only "
             "multiples"));

  const std::vector<Remark> roles = source_for(graph, Arch::sm_90a).remarks;
  INFO(all(roles));
  CHECK(says(roles, "wgmma", passed, "64x64x64 bf16 by wgmma, 2 consumer groups"));
  CHECK(says(roles, "wgmma", passed, "[64,64] x [64,64] of bf16"));
  CHECK(says(roles, "tma", passed, "parameter 1 is loaded in boxes of [64,64]"));
  CHECK(says(roles, "tma", passed, "parameter 2 is loaded in boxes of [64,64]"));
  CHECK(says(roles, "tma", passed, "parameter 4 is stored in boxes of [64,64]"));
  CHECK(says(roles, "pdl", passed, "programmatic dependent launch"));
  CHECK(of(roles, "split-k", missed).empty());
  const std::vector<Remark> by_threads = source_for(graph, Arch::sm_90a, apart(8)).remarks;
  INFO(all(by_threads));
  CHECK(says(by_threads, "tma", missed,
             "parameter 1 is copied by threads, as its address and strides are only multiples of 8"));
  CHECK(says(by_threads, "pdl", missed, "threads of a warp-specialized kernel read a tensor"));
}

TEST_CASE("remarks say whether split-K is used, and why not", "[plan]") {
  const auto few = [](Variant& variant) { variant.split_k = SplitK::cluster; };
  const auto remarks = [&](const Graph& graph, Arch arch = Arch::sm_90a) { return source_for(graph, arch, few).remarks; };
  CHECK(says(remarks(matmul(64, 64, 64)), "split-k", passed, "a cluster divides"));
  CHECK(of(remarks(matmul(64, 64, 64)), "split-k", missed).empty());
  CHECK(says(source_for(matmul(64, 64, 64), Arch::sm_90a, [](Variant& v) { v.split_k = SplitK::stream_k; }).remarks,
             "split-k", passed, "stream-K"));
  CHECK(says(remarks(matmul(64, 64, 64, {}, true)), "split-k", missed, "the accumulators start from a tile"));
  CHECK(says(remarks(matmul(32, 64, 64)), "split-k", missed, "split-K needs a warp-specialized kernel"));
}

TEST_CASE("remarks name SIMT matmuls of f32, and the tiles for few rows", "[plan]") {
  const std::vector<Remark> f32s = source_for(matmul<f32>(64, 64, 32), Arch::sm_90a).remarks;
  CHECK(says(f32s, "mma.sync", missed, "tensor cores take f16, bf16, tf32, i8 and u8"));
  CHECK(says(source_for(matmul<f32>(4, 64, 32), Arch::sm_90a).remarks, "fma", analysis,
             "so few rows are memory-bound"));
  const std::vector<Remark> newer = source_for(matmul(64, 64, 64), Arch::parse("sm_100a")).remarks;
  CHECK(says(newer, "mma.sync", passed, "wgmma needs sm_90a"));
}

TEST_CASE("remarks give the width of accesses to tensors, and why they are not wider", "[plan]") {
  const auto moved = [](int first, int columns) {
    return kernel("moved", [=](In<f32, 2> x, In<i32, 1> rows, tessera::internal::Out<f32, 2> y) {
             Index row = blocks(y.extent(0));
             Tile some = gather(x.slice(1, first, 4096), load(rows, {row}, {1}), {0}, {columns});
             store(y, {row, 0}, some);
           })
        .executable()
        .graph();
  };
  const std::vector<Remark> sliced = source_for(moved(1, 1024), Arch::sm_80).remarks;
  INFO(all(sliced));
  CHECK(says(sliced, "vector", missed,
             "parameter 1 is read by accesses of 4 bytes and not 16, as a slice along the contiguous axis"));

  const Graph copy = kernel("copy", [](In<f32, 2> x, tessera::internal::Out<f32, 2> y) {
                       auto [i, j] = blocks(cdiv(x.extent(0), 32), cdiv(x.extent(1), 32));
                       at = __LINE__ + 1;
                       Tile xs = load(x, {i, j}, {32, 32});
                       store(y, {i, j}, xs);
                     })
                         .executable()
                         .graph();
  const auto x_is = [&](const std::function<void(TensorClass&)>& change) {
    return source_for(copy, Arch::sm_90a, [&](Variant& variant) { change(variant.tensors[0]); }).remarks;
  };
  const std::vector<Remark> dense = x_is([](TensorClass&) {});
  INFO(all(dense));
  CHECK(says(dense, "vector", passed, "parameter 1 is read by accesses of 16 bytes"));
  CHECK(of(dense, "vector", passed)[0].line == at);
  CHECK(says(x_is([](TensorClass& x) { x.row_alignment = 4; }), "vector", missed,
             "parameter 1 is read by accesses of 4 bytes and not 16, as its rows are only a multiple of 4 bytes"));
  CHECK(says(x_is([](TensorClass& x) { x.contiguous_axis = -1; }), "vector", missed,
             "as the tensor has no contiguous axis"));
  CHECK(says(source_for(kernel("narrow", [](In<f32, 1> x, tessera::internal::Out<f32, 1> y) {
                          Index i = blocks(cdiv(x.extent(0), 6));
                          store(y, {i}, load(x, {i}, {6}));
                        })
                            .executable()
                            .graph(),
                        Arch::sm_80)
                 .remarks,
             "vector", missed,
             "parameter 1 is read by accesses of 8 bytes and not 16, as the tile has 24 bytes of a row"));
}

TEST_CASE("remarks name exchanges between threads and the warps that reductions cross", "[plan]") {
  const auto made = kernel("made", [](In<f32, 2> x, tessera::internal::Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, 4096});
    at = __LINE__ + 1;
    Tile all = sum(xs, 1);
    store(y, {row, 0}, reshape(transpose(reshape(xs / all, {64, 64})), {1, 4096}));
  });
  const std::vector<Remark> remarks = made.remarks(Arch::sm_90a);
  INFO(all(remarks));
  const std::vector<Remark> crossing = of(remarks, "exchange", analysis);
  REQUIRE(crossing.size() == 1);
  CHECK(crossing[0].message == "'sum' crosses warps, through shared memory");
  CHECK(crossing[0].line == at);
  CHECK(says(remarks, "exchange", missed, "'reshape' moves 16384 bytes between threads, through shared memory"));
  CHECK(of(remarks, "launch", analysis).size() == 1);
  CHECK(std::ranges::is_sorted(remarks, {}, &Remark::line));
}

TEST_CASE("notes of a plan are remarks", "[plan]") {
  const Graph graph = matmul(32, 64, 64, {.warps = 1});
  Variant variant = dense_variant(graph);
  const codegen::Plan plan = codegen::make_plan(graph, variant, Arch::sm_90a, {.verify = true});
  CHECK(notes(plan) == std::vector<std::string>{"not warp-specialized: no wgmma schedule for tiles of [32,64] x [64,64]",
                                                "hint ignored: 1 warps; its tiles need 4"});
  const std::string text = to_string(plan);
  for (const std::string& note : notes(plan)) CHECK(text.find("note: " + note + '\n') != text.npos);
}

TEST_CASE("remarks have a text and JSON", "[plan]") {
  const std::vector<Remark> remarks = {
      {.file = "a \"b\"\\c.cpp", .line = 3, .status = missed, .kind = "wgmma", .message = "a\nb"},
      {.file = "", .line = 0, .status = analysis, .kind = "launch", .message = "64 threads"}};
  CHECK(to_string(remarks[0]) == "a \"b\"\\c.cpp:3: missed wgmma: a\nb");
  CHECK(to_string(std::span(remarks).subspan(1)) == "analysis launch: 64 threads\n");
  const nlohmann::json json = nlohmann::json::parse(to_json(remarks));
  REQUIRE(json.size() == 2);
  CHECK(json[0] == nlohmann::json{{"file", "a \"b\"\\c.cpp"},
                                  {"line", 3},
                                  {"status", "missed"},
                                  {"kind", "wgmma"},
                                  {"message", "a\nb"}});
  CHECK(json[1]["status"] == "analysis");
  CHECK(nlohmann::json::parse(to_json({})).empty());
}

TEST_CASE("docs/speed.md lists exactly the kinds of remarks that exist", "[plan]") {
  const std::string page = read_text(TESSERA_SOURCE_DIR "/docs/speed.md");
  namespace kind = codegen::remark_kind;
  for (const std::string_view one : {kind::launch, kind::wgmma, kind::mma_sync, kind::fma, kind::tma, kind::cp_async,
                                     kind::vector, kind::split_k, kind::exchange, kind::registers, kind::shared,
                                     kind::pdl, kind::hint})
    CHECK(page.find(fmt::format("| `{}` |", one)) != page.npos);
}

// The page's lists of kernels that use wgmma.
TEST_CASE("matmuls and fused matmuls of the extents that docs/speed.md lists use wgmma", "[plan]") {
  const std::string page = read_text(TESSERA_SOURCE_DIR "/docs/speed.md");
  const auto goes = [](const Graph& graph) {
    return !of(source_for(graph, Arch::sm_90a).remarks, "wgmma", passed).empty();
  };
  std::string rows, widths, depths;
  const auto add = [](std::string& list, int one) { list += (list.empty() ? "" : ", ") + std::to_string(one); };
  for (int m = 16; m <= 320; m += 16)
    if (goes(matmul(m, 128, 64))) add(rows, m);
  for (int n = 16; n <= 320; n += 16)
    if (goes(matmul(64, n, 64))) add(widths, n);
  for (int k = 16; k <= 320; k += 16)
    if (goes(matmul(64, 64, k))) add(depths, k);
  const std::string of_matmul = fmt::format("| a matmul in a loop | {} | {} | {} |", rows, widths, depths);
  INFO(of_matmul);
  CHECK(page.find(of_matmul) != page.npos);
  rows.clear(), widths.clear(), depths.clear();
  for (int m = 16; m <= 256; m += 16)
    if (goes(attention({m, 64, 64}))) add(rows, m);
  for (int n = 16; n <= 272; n += 16)
    if (goes(attention({64, n, 64}))) add(widths, n);
  for (int d = 16; d <= 320; d += 16)
    if (goes(attention({64, 64, d}))) add(depths, d);
  const std::string of_fused_matmul = fmt::format("| attention | {} | {} keys | d = {} |", rows, widths, depths);
  INFO(of_fused_matmul);
  CHECK(page.find(of_fused_matmul) != page.npos);
}

TEST_CASE("warps follow from tiles as docs/speed.md has it", "[plan]") {
  const std::string page = read_text(TESSERA_SOURCE_DIR "/docs/speed.md");
  const auto scaled = [](int rows, int columns) {
    return kernel("scaled", [=](In<f32, 2> x, tessera::internal::Out<f32, 2> y) {
             auto [i, j] = blocks(cdiv(x.extent(0), rows), cdiv(x.extent(1), columns));
             store(y, {i, j}, load(x, {i, j}, {rows, columns}) * 2.0f);
           })
        .executable()
        .graph();
  };
  const auto normed = [](int rows, int columns) {
    return kernel("normed", [=](In<f32, 2> x, tessera::internal::Out<f32, 2> y) {
             Index i = blocks(cdiv(x.extent(0), rows));
             Tile xs = load(x, {i, 0}, {rows, columns});
             store(y, {i, 0}, xs * rsqrt(sum(xs * xs, 1) / columns + 1e-5f));
           })
        .executable()
        .graph();
  };
  struct Case {
    std::string_view name;
    Arch arch;
    Graph graph;
  };
  for (const auto& [name, arch, graph] : std::initializer_list<Case>{
           {"matmul 64x64 of bf16", Arch::sm_80, matmul(64, 64, 64)},
           {"matmul 128x128 of bf16", Arch::sm_80, matmul(128, 128, 64)},
           {"matmul 128x256 of bf16", Arch::sm_80, matmul(128, 256, 64)},
           {"matmul 64x64 of f32", Arch::sm_80, matmul<f32>(64, 64, 32)},
           {"matmul 128x128 of f32", Arch::sm_80, matmul<f32>(128, 128, 32)},
           {"attention of 16 rows", Arch::sm_80, attention({16, 64, 64})},
           {"attention of 64 rows", Arch::sm_80, attention({64, 64, 64})},
           {"attention of 128 rows", Arch::sm_80, attention({128, 64, 64})},
           {"matmul 128x128 of bf16", Arch::sm_90a, matmul(128, 128, 64)},
           {"matmul 128x256 of bf16", Arch::sm_90a, matmul(128, 256, 64)},
           {"attention of 64 rows", Arch::sm_90a, attention({64, 64, 64})},
           {"attention of 192 rows", Arch::sm_90a, attention({192, 64, 64})},
           {"elementwise, 1024 of f32", Arch::sm_80, scaled(1, 1024)},
           {"elementwise, 64x64 of f32", Arch::sm_80, scaled(64, 64)},
           {"a row of 4096 of f32 and its sum", Arch::sm_80, normed(1, 4096)},
           {"4 rows of 1024 of f32 and their sums", Arch::sm_80, normed(4, 1024)}}) {
    const std::string row = fmt::format("| {} | {} | {} |", name, arch.name(), source_for(graph, arch).threads / 32);
    INFO(row);
    CHECK(page.find(row) != page.npos);
  }
}

TEST_CASE("a kernel's report is known without NVRTC except for NVRTC's own figures", "[jit]") {
  const auto options = [] {
    return read_options([](std::string_view name) { return name == "TESSERA_CACHE_DIR" ? "off" : ""; });
  };
  const Graph graph = matmul(256, 256, 64);
  const KernelSource source = source_for(graph, Arch::sm_80);
  Compiler without(options(), std::chrono::seconds(60), +[]() -> const Nvrtc& { throw Error("there is no NVRTC"); });
  const KernelInfo some = without.info(source, Arch::sm_80);
  CHECK(some.threads == source.threads);
  CHECK(some.shared_bytes == source.shared_bytes);
  CHECK(some.workspace_bytes == source.workspace_bytes);
  CHECK(some.workspace_bytes > 0);
  CHECK(!some.registers);
  CHECK(!some.spill_load_bytes);
  CHECK(!some.instructions);
  CHECK(some.why_not_compiled == "there is no NVRTC");
  if (!nvrtc_here()) return;
  const auto doubled = kernel("doubled", [](In<f32, 1> x, tessera::internal::Out<f32, 1> y) {
    Index i = blocks(cdiv(x.extent(0), 256));
    store(y, {i}, load(x, {i}, {256}) * 2.0f);
  });
  const KernelInfo all = doubled.info(Arch::sm_80);
  CHECK(all.why_not_compiled.empty());
  CHECK(all.registers.value() > 4);
  CHECK(all.spill_store_bytes == 0);
  CHECK(all.spill_load_bytes == 0);
  CHECK(all.stack_bytes == 0);
  CHECK(all.instructions.value() > 8);
  CHECK(all.workspace_bytes == 0);
  const KernelInfo newer = without.info(source, Arch{99, 0, 0});
  CHECK(!newer.registers);
}

TEST_CASE("remarks are dumped as text and as JSON, and stats have the workspace", "[jit]") {
  const TempDir folder;
  Compiler compiler(read_options([&](std::string_view name) {
    return name == "TESSERA_CACHE_DIR"  ? "off"
           : name == "TESSERA_DUMP"     ? "remarks,remarks-json"
           : name == "TESSERA_DUMP_DIR" ? folder.path().string()
                                        : std::string();
  }));
  const KernelSource source = source_for(matmul(64, 64, 64), Arch::sm_90a);
  compiler.dump(source, Arch::sm_90a);
  int texts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string text = read_text(entry.path()), name = entry.path().filename().string();
    ++texts;
    if (name.ends_with(".remarks.json"))
      CHECK(nlohmann::json::parse(text).size() == source.remarks.size());
    else
      CHECK((name.ends_with(".remarks") && text == all(source.remarks)));
  }
  CHECK(texts == 2);
  CHECK(compiler.texts(source, Arch::sm_90a, {"remarks"})[0] == all(source.remarks));
  if (!nvrtc_here()) return;
  const KernelSource slow = source_for(packed_attention(64, 64, 128, 4), Arch::sm_80);
  CHECK(compiler.texts(slow, Arch::sm_80, {"stats"})[0].find(
            fmt::format("{} bytes of workspace a block", slow.workspace_bytes)) != std::string::npos);
}

TEST_CASE("the alternatives that docs/speed.md suggests use wgmma", "[plan]") {
  const auto goes = [](const Graph& graph) {
    const std::vector<Remark> remarks = source_for(graph, Arch::sm_90a).remarks;
    INFO(all(remarks));
    CHECK(!of(remarks, "wgmma", passed).empty());
    CHECK(of(remarks, "wgmma", missed).empty());
    CHECK(of(remarks, "registers", missed).empty());
  };
  goes(matmul(128, 256, 64));
  goes(matmul(256, 128, 64));
  goes(attention({128, 64, 128}));
  // One loop over [x h] for all gates of an LSTM.
  goes(kernel("lstm", [](In<bf16, 2> xh, In<bf16, 3> wu, In<f32, 2> c, tessera::internal::Out<f32, 2> c_out) {
         auto [m, n] = blocks(cdiv(c.extent(0), 64), cdiv(c.extent(1), 64));
         std::vector<Var<f32, 2>> gates;
         for (int gate = 0; gate < 4; ++gate) gates.push_back(Var(zeros<f32>({64, 64})));
         for (Index k : range(cdiv(xh.extent(1), 64)))
           for (int gate = 0; gate < 4; ++gate)
             gates[gate] =
                 mma(load(xh, {m, k}, {64, 64}), squeeze(load(wu, {gate, k, n}, {1, 64, 64}), 0), gates[gate]);
         store(c_out, {m, n},
               sigmoid(gates[1]) * load(c, {m, n}, {64, 64}) +
                   sigmoid(gates[0]) * tanh(gates[2]) * sigmoid(gates[3]));
       })
           .executable()
           .graph());
  // A left operand that is computed, and a loop with a scalar trip count of at least one.
  goes(kernel("computed", [](In<f32, 2> x, In<f32, 1> scale, In<bf16, 2> w, tessera::internal::Out<bf16, 2> y,
                             Scalar<i32> iterations) {
         auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
         Var sums = zeros<f32>({128, 128});
         for (Index k : range(maximum(iterations, 1)))
           sums = mma(cast<bf16>(load(x, {m, k}, {128, 64}) * load(scale, {k}, {64})), load(w, {k, n}, {64, 128}), sums);
         store(y, {m, n}, cast<bf16>(sums));
       })
           .executable()
           .graph());
  // f32 that is multiplied as tf32, both operands contiguous along k.
  goes(kernel("rounded", [](In<f32, 2> x, In<f32, 2> w, tessera::internal::Out<f32, 2> y) {
         auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
         Var sums = zeros<f32>({128, 128});
         for (Index k : range(cdiv(x.extent(1), 32)))
           sums = mma(cast<tf32>(load(x, {m, k}, {128, 32})), transpose(cast<tf32>(load(w, {n, k}, {128, 32}))), sums);
         store(y, {m, n}, sums);
       })
           .executable()
           .graph());
}

}  // namespace test_remarks
