// A model in the memory of a device: its weights and its kernels.
#pragma once
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "model/network_kernels.hpp"
#include "model/rotary.hpp"
#include "model/untyped.hpp"

namespace tessera::internal {

/// The matrices and the vectors of a model in files have so many elements, and in memory so many more.
struct WeightCounts {
  WeightCounts(const TransformerConfig& c, bool has_own_head) {
    const std::int64_t width = c.width;
    matrices = std::int64_t{c.vocab} * (has_own_head ? 2 : 1) * width;
    vectors = (c.norm == Norm::layer ? 2 : 1) * width, filled = 2 * width - vectors;
    const int tables = c.window > 0 && c.local_rotary_base ? 2 : 1;
    if (c.is_rotary()) filled += std::int64_t{tables} * c.positions * c.head_width();
    if (!c.is_rotary()) matrices += c.positions * width;
    for (int i = 0; i < c.layers; ++i) {
#define LAYER_VECTOR(member, size, initial, is_stored) ((is_stored) ? vectors : filled) += (size);
#define LAYER_MATRIX(member, rows, columns) matrices += std::int64_t{rows} * (columns);
#include "model/layer_weights.def"
    }
  }
  std::int64_t matrices = 0, vectors = 0, filled = 0;
};

/// Throws OutOfMemory if the device has less memory than `what` takes.
void require_memory(const Device& device, std::int64_t bytes, std::string_view what, std::string_view remedy);

/// The weights of a layer; see layer_weights.def.
template <Element W>
struct Block {
#define LAYER_VECTOR(member, size, initial, is_stored) Tensor<f32, 1> member;
#define LAYER_MATRIX(member, rows, columns) Tensor<W, 2> member;
#include "model/layer_weights.def"
};

template <Element P, Element W>
class TypedNetwork final : public Model::Network {
 public:
  TypedNetwork(const Device& device, const Checkpoint& checkpoint, const Computation& computation,
               const Model::Progress& progress, const FirstUse& first)
      : TypedNetwork(device, checkpoint.config, computation, checkpoint.head != checkpoint.embedding) {
    const WeightLoader loader(device, checkpoint.file, progress);
    const TransformerConfig& c = config();
    embedding = loader.load<W>({checkpoint.embedding});
    if (c.position_encoding == PositionEncoding::learned) positions = loader.load<W>(checkpoint.positions);
    head = checkpoint.head == checkpoint.embedding ? embedding : loader.load<W>({checkpoint.head});
    const auto vector = [](const StoredTensor* stored) { return stored ? StoredParts{{stored}} : StoredParts{}; };
    last_norm = loader.vector(vector(checkpoint.last_norm), c.width, 1, c.norm_offset);
    last_norm_bias = loader.vector(vector(checkpoint.last_norm_bias), c.width, 0);
    for (const Checkpoint::Layer& layer : checkpoint.layers) {
      Block<W>& block = blocks.emplace_back();
// The vectors that are 1 at first are weights of norms.
#define LAYER_VECTOR(member, size, initial, is_stored) \
  block.member = loader.vector(layer.member, size, initial, (initial) * c.norm_offset);
#define LAYER_MATRIX(member, rows, columns) \
  block.member = loader.matrix<W>(layer.member, rows, columns, checkpoint.is_out_in, along_k_);
#include "model/layer_weights.def"
    }
    begin_warm_up(first);
    loader.finish();
    device.stream().synchronize();
  }

  TypedNetwork(const Device& device, const TransformerConfig& c, const Computation& computation, std::uint64_t seed,
               const FirstUse& first)
      : TypedNetwork(device, c, computation, !c.tied) {
    WeightMaker make(device, seed);
    embedding = make.matrix<W>(c.vocab, c.width);
    head = c.tied ? embedding : make.matrix<W>(c.vocab, c.width);
    if (c.position_encoding == PositionEncoding::learned) positions = make.matrix<W>(c.positions, c.width);
    last_norm = make.vector(c.width, 1), last_norm_bias = make.vector(c.width, 0);
    for (int i = 0; i < c.layers; ++i) {
      Block<W>& block = blocks.emplace_back();
#define LAYER_VECTOR(member, size, initial, is_stored) block.member = make.vector(size, initial);
#define LAYER_MATRIX(member, rows, columns) block.member = make.matrix<W>(rows, columns, along_k_);
#include "model/layer_weights.def"
    }
    begin_warm_up(first);
    make.finish();
    device.stream().synchronize();
  }

  std::unique_ptr<Session::State> session(std::shared_ptr<const Network> self, int batch, int capacity) const override;

  bool is_on_gpu() const { return target_.gpu; }
  bool is_batch_invariant() const { return target_.batch_invariant; }
  /// On a GPU, why steps of few sequences have no kernels of their own; empty: they have.
  std::string why_general() const {
    if (!target_.gpu || has_few_sequences()) return {};
    return along_k_ ? "results do not depend on the batch" : why_no_decode_kernels(target_);
  }
  /// Are the weights [K,N] of layers contiguous along K?
  bool is_along_k() const { return along_k_; }
  const Kernels<P, W>& kernels() const { return kernels_; }
  /// If decode steps of one sequence, and of a few, have kernels of their own.
  const std::optional<DecodeKernels<P, W>>& decode_kernels() const { return decode_kernels_; }
  const std::optional<BatchKernels<P, W>>& batch_kernels() const { return batch_kernels_; }
  RowKernels<P, W> row_kernels(std::int64_t rows) const { return by_rows_.for_rows(rows); }
  auto greedy_kernels(std::int64_t rows) const { return by_rows_.greedy_for_rows(rows); }
  template <Element L>
  auto head_kernel(std::int64_t rows) const {
    return by_rows_.template head_for_rows<L>(rows);
  }

  Tensor<W, 2> embedding, head;
  // One of the two: the positions' embeddings [P,C], or the cosines and sines of their angles, [P,d], in all layers, or
  // in those without a window and those with one.
  std::optional<Tensor<W, 2>> positions;
  std::optional<Tensor<f32, 2>> rotation, local_rotation;
  Tensor<f32, 1> last_norm, last_norm_bias;
  std::vector<Block<W>> blocks;

 private:
  TypedNetwork(const Device& device, const TransformerConfig& config, const Computation& computation, bool has_own_head)
      : Network(with_memory(device, config, has_own_head), config, computation.decode),
        target_{.gpu = device.info().arch.has_value(),
                .wgmma = matmul_target(device).has_wgmma(),
                .operands = element_type<P>,
                .width = config.width,
                .head_width = config.head_width(),
                .inner = config.inner,
                .query_width = config.query_width(),
                .key_width = config.key_width(),
                .rotary = config.is_rotary(),
                .separate_rotation = has_separate_rotation(config),
                .gated = config.gated,
                .shared_bytes = device.info().arch ? device.info().arch->shared_bytes() : 0,
                .spare_registers = has_spare_registers(device),
                .seen = config.positions / 2,
                .batch_invariant = computation.batch_invariant},
        along_k_(has_decode_kernels(target_)),
        kernels_(config, target_),
        decode_kernels_(has_few_sequences()
                            ? std::optional<DecodeKernels<P, W>>(std::in_place, config, decode_tiles(target_),
                                                                 part_key_tiles(target_), norm_tiles(target_, 1))
                            : std::nullopt),
        batch_kernels_(has_few_sequences()
                           ? std::optional<BatchKernels<P, W>>(std::in_place, config, decode_tiles(target_),
                                                               norm_tiles(target_, rows_of_block))
                           : std::nullopt),
        by_rows_(device, config, target_, along_k_) {
    if (!config.is_rotary()) return;
    rotation = local_rotation = rotation_of(device, config, false);
    if (config.window > 0 && config.local_rotary_base) local_rotation = rotation_of(device, config, true);
  }

  /// Do steps of few sequences have kernels of their own?
  bool has_few_sequences() const { return along_k_ && !target_.batch_invariant; }

  static const Device& with_memory(const Device& device, const TransformerConfig& config, bool has_own_head) {
    const WeightCounts counts(config, has_own_head);
    require_memory(device,
                   counts.matrices * static_cast<std::int64_t>(sizeof(W)) +
                       (counts.vectors + counts.filled) * static_cast<std::int64_t>(sizeof(f32)),
                   "the weights of the model",
                   sizeof(W) > 2 ? "weights in 16 bits take half" : "a smaller model takes less");
    return device;
  }
  static Tensor<f32, 2> rotation_of(const Device& device, const TransformerConfig& config, bool local) {
    const RotaryAngles angles = rotary_angles(config, local);
    const Tensor<f32, 2> result(device, {config.positions, config.head_width()});
    constexpr std::int64_t most = 4096;  // positions at a time
    for (std::int64_t first = 0; first < config.positions; first += most) {
      const std::int64_t count = std::min(config.positions - first, most);
      result.slice(0, first, count).copy_from(tessera::internal::rotation_of(angles, first, count));
    }
    return result;
  }
  static bool has_spare_registers(const Device& device) {
    const auto gpu = matmul_target(device).gpu;
    return !gpu || gpu->registers_more_for_matmuls == 0;
  }

  /// Compiles the kernels of the first steps while weights are loaded.
  void begin_warm_up(const FirstUse& first);

  TileTarget target_;
  bool along_k_;  // weights [K,N] of layers are contiguous along K
  Kernels<P, W> kernels_;
  std::optional<DecodeKernels<P, W>> decode_kernels_;
  std::optional<BatchKernels<P, W>> batch_kernels_;
  mutable KernelsByRows<P, W> by_rows_;
  std::jthread warm_up_;  // the last member: it uses the others
};

}  // namespace tessera::internal
