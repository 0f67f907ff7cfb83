// A model in the memory of a device: its weights and its kernels.
#pragma once
#include <memory>
#include <thread>
#include <vector>

#include "model/network_kernels.hpp"
#include "model/untyped.hpp"

namespace tessera::internal {

/// The matrices and the vectors of a model have so many elements.
struct WeightCounts {
  WeightCounts(const Gpt2Config& config, bool has_own_head) {
    const std::int64_t width = config.width, inner = config.inner;
    matrices = (config.vocab * (has_own_head ? 2 : 1) + config.positions) * width;
    vectors = 2 * width;
    for (int i = 0; i < config.layers; ++i) {
#define LAYER_VECTOR(member, file_name, size, initial) vectors += size;
#define LAYER_MATRIX(member, file_name, rows, columns) matrices += std::int64_t{rows} * (columns);
#include "model/layer_weights.def"
    }
  }
  std::int64_t matrices = 0, vectors = 0;
};

/// Throws OutOfMemory if the device has less memory than `what` takes.
void require_memory(const Device& device, std::int64_t bytes, std::string_view what, std::string_view remedy);

/// The weights of a layer; see layer_weights.def.
template <Element W>
struct Block {
#define LAYER_VECTOR(member, file_name, size, initial) Tensor<f32, 1> member;
#define LAYER_MATRIX(member, file_name, rows, columns) Tensor<W, 2> member;
#include "model/layer_weights.def"
};

template <Element P, Element W>
class TypedNetwork final : public Gpt2::Network {
 public:
  TypedNetwork(const Device& device, const Checkpoint& checkpoint, bool batch_invariant, const Gpt2::Progress& progress,
               const FirstUse& first)
      : TypedNetwork(device, checkpoint.config, batch_invariant, checkpoint.head != checkpoint.wte) {
    const WeightLoader loader(device, checkpoint.file, progress);
    const auto matrix = [&](const StoredTensor* stored) { return loader.load<W, 2>(*stored); };
    const auto vector = [&](const StoredTensor* stored) { return loader.load<f32, 1>(*stored); };
    wte = matrix(checkpoint.wte), wpe = matrix(checkpoint.wpe);
    head = checkpoint.head == checkpoint.wte ? wte : matrix(checkpoint.head);
    ln_f_weight = vector(checkpoint.ln_f_weight), ln_f_bias = vector(checkpoint.ln_f_bias);
    for (const Checkpoint::Layer& layer : checkpoint.layers) {
      Block<W>& block = blocks.emplace_back();
#define LAYER_VECTOR(member, file_name, size, initial) block.member = vector(layer.member);
#define LAYER_MATRIX(member, file_name, rows, columns) block.member = loader.load<W, 2>(*layer.member, along_k_);
#include "model/layer_weights.def"
    }
    begin_warm_up(first);
    loader.finish();
    device.stream().synchronize();
  }

  TypedNetwork(const Device& device, const Gpt2Config& config, bool batch_invariant, std::uint64_t seed,
               const FirstUse& first)
      : TypedNetwork(device, config, batch_invariant, false) {
    WeightMaker make(device, seed);
    const std::int64_t width = config.width, inner = config.inner;
    wte = head = make.matrix<W>(config.vocab, width);
    wpe = make.matrix<W>(config.positions, width);
    ln_f_weight = make.vector(width, 1), ln_f_bias = make.vector(width, 0);
    for (int i = 0; i < config.layers; ++i) {
      Block<W>& block = blocks.emplace_back();
#define LAYER_VECTOR(member, file_name, size, initial) block.member = make.vector(size, initial);
#define LAYER_MATRIX(member, file_name, rows, columns) block.member = make.matrix<W>(rows, columns, along_k_);
#include "model/layer_weights.def"
    }
    begin_warm_up(first);
    make.finish();
    device.stream().synchronize();
  }

  std::unique_ptr<Session::State> session(std::shared_ptr<const Network> self, int batch, int capacity) const override;

  bool is_on_gpu() const { return target_.gpu; }
  bool is_batch_invariant() const { return target_.batch_invariant; }
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

  Tensor<W, 2> wte, wpe, head;
  Tensor<f32, 1> ln_f_weight, ln_f_bias;
  std::vector<Block<W>> blocks;

 private:
  TypedNetwork(const Device& device, const Gpt2Config& config, bool batch_invariant, bool has_own_head)
      : Network(with_memory(device, config, has_own_head), config),
        target_{.gpu = device.info().arch.has_value(),
                .wgmma = matmul_target(device).has_wgmma(),
                .operands = element_type<P>,
                .width = config.width,
                .head_width = config.head_width(),
                .inner = config.inner,
                .shared_bytes = device.info().arch ? device.info().arch->shared_bytes() : 0,
                .spare_registers = has_spare_registers(device),
                .seen = config.positions / 2,
                .batch_invariant = batch_invariant},
        along_k_(has_decode_kernels(target_)),
        kernels_(config, target_),
        decode_kernels_(has_few_sequences() ? std::optional<DecodeKernels<P, W>>(
                                                  std::in_place, config, decode_tiles(target_), part_key_tiles(target_))
                                            : std::nullopt),
        batch_kernels_(has_few_sequences()
                           ? std::optional<BatchKernels<P, W>>(std::in_place, config, decode_tiles(target_))
                           : std::nullopt),
        by_rows_(device, config, target_, along_k_) {}

  /// Do steps of few sequences have kernels of their own?
  bool has_few_sequences() const { return along_k_ && !target_.batch_invariant; }

  static const Device& with_memory(const Device& device, const Gpt2Config& config, bool has_own_head) {
    const WeightCounts counts(config, has_own_head);
    require_memory(device,
                   counts.matrices * static_cast<std::int64_t>(sizeof(W)) +
                       counts.vectors * static_cast<std::int64_t>(sizeof(f32)),
                   "the weights of the model",
                   sizeof(W) > 2 ? "weights in 16 bits take half" : "a smaller model takes less");
    return device;
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
