#include "tessera/model/gpt2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "jit/launch/matmul_tiles.hpp"
#include "model/decode_kernels.hpp"
#include "model/tiles.hpp"
#include "model/weights.hpp"

namespace tessera::internal {

using Tokens = std::span<const std::vector<std::int32_t>>;

Compute parse_compute(std::string_view text) {
  if (text == "f32") return Compute::f32;
  if (text == "tf32") return Compute::tf32;
  if (text == "bf16") return Compute::bf16;
  throw Error(fmt::format("'{}' is not a type to compute in; choose f32, tf32 or bf16", text));
}

/// The model, independent of its element types.
class Gpt2::Network {
 public:
  Network(Device device, Gpt2Config config) : device_(std::move(device)), config_(std::move(config)) {}
  virtual ~Network() = default;
  virtual std::unique_ptr<Session::State> session(std::shared_ptr<const Network> self, int batch,
                                                  int capacity) const = 0;
  const Device& device() const { return device_; }
  const Gpt2Config& config() const { return config_; }

 private:
  Device device_;
  Gpt2Config config_;
};

/// The sequences of a session, as far as they do not depend on element types.
class Session::State {
 public:
  State(const Gpt2Config& config, int batch, int capacity)
      : lengths_(static_cast<std::size_t>(batch)), capacity_(capacity) {
    if (batch < 1) throw Error(fmt::format("a session has at least 1 sequence, not {}", batch));
    if (capacity < 1 || capacity > config.positions)
      throw Error(fmt::format("{} positions are requested; the model supports 1 to {}", capacity, config.positions));
  }
  virtual ~State() = default;
  // A step has three parts: prepare() may fail and changes nothing; compute() changes activations, logits and unused
  // parts of the cache; commit() makes the tokens part of the text.
  virtual void prepare(Tokens tokens, int longest) = 0;
  virtual void compute() = 0;
  virtual void commit() = 0;
  virtual std::vector<std::int32_t> sample(const Sampling& sampling, const std::vector<std::int64_t>& keys) = 0;
  virtual void clear(int sequence) = 0;
  virtual std::vector<float> logits() const = 0;
  virtual std::vector<float> all_logits() = 0;
  virtual std::vector<float> log_probabilities(std::span<const float> logits,
                                               std::span<const std::int32_t> targets) = 0;

  std::vector<int> lengths_;
  int capacity_;
  bool runs_ahead_ = false;
};

namespace {

using kernels::Activation;

/// The kernels of one family, each made on first use of its tiles.
template <class K>
class ByTiles {
 public:
  explicit ByTiles(K (*make)(MatmulTiles)) : make_(make) {}
  const K& operator[](const MatmulTiles& tiles) {
    auto& made = kernels_[{tiles.m, tiles.n, tiles.k}];
    if (!made) made.emplace(make_(tiles));
    return *made;
  }

 private:
  K (*make_)(MatmulTiles);
  std::map<std::array<int, 3>, std::optional<K>> kernels_;
};

/// The kernels of the matmuls for a number of rows.
template <Element P, Element W>
struct Matmuls {
  decltype(kernels::linear<P, W>({})) qkv;
  decltype(kernels::linear_gelu<P, W>({})) up;
  decltype(kernels::linear_residual<P, W>({})) project, down;
  decltype(kernels::lm_head<P, W>({})) head;
};

template <Element W>
struct Block {
  Tensor<f32, 1> ln_1_weight, ln_1_bias, attn_bias, proj_bias, ln_2_weight, ln_2_bias, fc_bias, out_bias;
  Tensor<W, 2> attn_weight, proj_weight, fc_weight, out_weight;
};

constexpr int logits_per_part = 512;  // one CTA finds the largest of so many
int parts_of(int vocab) { return (vocab + logits_per_part - 1) / logits_per_part; }

template <Element P, Element W>
class TypedNetwork final : public Gpt2::Network {
  using A = Activation<P>;

 public:
  TypedNetwork(const Device& device, const Checkpoint& checkpoint, const Gpt2::Progress& progress)
      : TypedNetwork(device, checkpoint.config) {
    const WeightLoader loader(device, checkpoint.file, progress);
    const auto matrix = [&](const StoredTensor* stored) { return loader.load<W, 2>(*stored); };
    const auto weights = [&](const StoredTensor* stored) { return loader.load<W, 2>(*stored, along_k_); };
    const auto vector = [&](const StoredTensor* stored) { return loader.load<f32, 1>(*stored); };
    wte = matrix(checkpoint.wte), wpe = matrix(checkpoint.wpe);
    head = checkpoint.head == checkpoint.wte ? wte : matrix(checkpoint.head);
    ln_f_weight = vector(checkpoint.ln_f_weight), ln_f_bias = vector(checkpoint.ln_f_bias);
    for (const Checkpoint::Layer& layer : checkpoint.layers) {
      Block<W> block;
      block.ln_1_weight = vector(layer.ln_1_weight), block.ln_1_bias = vector(layer.ln_1_bias);
      block.attn_weight = weights(layer.attn_weight), block.attn_bias = vector(layer.attn_bias);
      block.proj_weight = weights(layer.proj_weight), block.proj_bias = vector(layer.proj_bias);
      block.ln_2_weight = vector(layer.ln_2_weight), block.ln_2_bias = vector(layer.ln_2_bias);
      block.fc_weight = weights(layer.fc_weight), block.fc_bias = vector(layer.fc_bias);
      block.out_weight = weights(layer.out_weight), block.out_bias = vector(layer.out_bias);
      blocks.push_back(std::move(block));
    }
    device.stream().synchronize();
  }

  TypedNetwork(const Device& device, const Gpt2Config& config, std::uint64_t seed) : TypedNetwork(device, config) {
    WeightMaker make(device, seed);
    const std::int64_t c = config.width, inner = config.inner;
    const auto weights = [&](std::int64_t k, std::int64_t n) { return make.matrix<W>(k, n, along_k_); };
    wte = head = make.matrix<W>(config.vocab, c);
    wpe = make.matrix<W>(config.positions, c);
    ln_f_weight = make.vector(c, 1), ln_f_bias = make.vector(c, 0);
    for (int i = 0; i < config.layers; ++i) {
      Block<W> block;
      block.ln_1_weight = make.vector(c, 1), block.ln_1_bias = make.vector(c, 0);
      block.attn_weight = weights(c, 3 * c), block.attn_bias = make.vector(3 * c, 0);
      block.proj_weight = weights(c, c), block.proj_bias = make.vector(c, 0);
      block.ln_2_weight = make.vector(c, 1), block.ln_2_bias = make.vector(c, 0);
      block.fc_weight = weights(c, inner), block.fc_bias = make.vector(inner, 0);
      block.out_weight = weights(inner, c), block.out_bias = make.vector(c, 0);
      blocks.push_back(std::move(block));
    }
    device.stream().synchronize();
  }

  std::unique_ptr<Session::State> session(std::shared_ptr<const Network> self, int batch, int capacity) const override;

  /// The kernels of the matmuls for so many rows, made on first use.
  Matmuls<P, W> products(std::int64_t rows) const {
    const std::int64_t c = this->config().width, inner = this->config().inner;
    const auto tiles = [&](std::int64_t n, std::int64_t k, MatmulFamily family = MatmulFamily::plain) {
      return choose<P>(family, {rows, n, k, along_k_}, this->device());
    };
    std::lock_guard lock(mutex_);
    return {linear_[tiles(3 * c, c)], linear_gelu_[tiles(inner, c, MatmulFamily::activated)],
            linear_residual_[tiles(c, c, MatmulFamily::residual)],
            linear_residual_[tiles(c, inner, MatmulFamily::residual)],
            head_[choose<P>(MatmulFamily::plain, {rows, this->config().vocab, c, true}, this->device())]};
  }

  /// The kernels of a decode step of one sequence.
  struct DecodeKernels {
    DecodeKernels(const Gpt2Config& config, const DecodeTiles& tiles)
        : parts(tiles.parts),
          qkv(kernels::decode_qkv<P, W>(config.width, tiles.columns)),
          part(kernels::decode_part<P>(config.heads, config.head_width(), tiles.parts, tiles.keys)),
          project(kernels::decode_project<P, W>(config.heads, config.head_width(), tiles.parts, tiles.project)),
          up(config.gelu == Gelu::exact ? kernels::decode_exact_up<P, W>(config.width, tiles.columns)
                                        : kernels::decode_up<P, W>(config.width, tiles.columns)),
          down(kernels::decode_down<P, W>(config.inner, tiles.down)),
          head(kernels::decode_head<P, W>(config.width, tiles.head, tiles.rounds)) {}
    int parts;
    decltype(kernels::decode_qkv<P, W>(0, 0)) qkv;
    decltype(kernels::decode_part<P>(0, 0, 0, 0)) part;
    decltype(kernels::decode_project<P, W>(0, 0, 0, 0)) project;
    decltype(kernels::decode_up<P, W>(0, 0)) up;
    decltype(kernels::decode_down<P, W>(0, 0)) down;
    decltype(kernels::decode_head<P, W>(0, 0, 0)) head;
  };

  struct Kernels {
    Kernels(const Gpt2Config& config, const TileTarget& target)
        : embed(kernels::embed<W>(config.width, copy_rows(target))),
          one_norm(kernels::layer_norm<A>(config.width, norm_rows(target))),
          last_norm(kernels::last_norm<A>(config.width)),
          append_cache(kernels::append_cache<A>(config.width, copy_rows(target))),
          attention(kernels::attention<P>(config.heads, config.head_width(), attention_tiles(target).queries,
                                          attention_tiles(target).keys)),
          decode_attention(kernels::decode_attention<P>(config.heads, config.head_width(), decode_keys(target))),
          greedy_parts(kernels::greedy_parts(config.vocab, logits_per_part)),
          greedy_token(kernels::greedy_token(parts_of(config.vocab))),
          sample(kernels::sample(config.vocab)),
          advance(kernels::advance(64)),
          log_probability(kernels::log_probability(config.vocab)),
          fill(kernels::fill<u8>(elements_per_block)),
          fill_positions(kernels::fill<i32>(64)) {}
    decltype(kernels::embed<W>(0, 0)) embed;
    decltype(kernels::layer_norm<A>(0, 0)) one_norm;
    decltype(kernels::last_norm<A>(0)) last_norm;
    decltype(kernels::append_cache<A>(0, 0)) append_cache;
    decltype(kernels::attention<P>(0, 0, 0, 0)) attention;
    decltype(kernels::decode_attention<P>(0, 0, 0)) decode_attention;
    decltype(kernels::greedy_parts(0, 0)) greedy_parts;
    decltype(kernels::greedy_token(0)) greedy_token;
    decltype(kernels::sample(0)) sample;
    decltype(kernels::advance(0)) advance;
    decltype(kernels::log_probability(0)) log_probability;
    decltype(kernels::fill<u8>(0)) fill;
    decltype(kernels::fill<i32>(0)) fill_positions;
  };
  const Kernels& kernels() const { return kernels_; }
  /// If a decode step of one sequence has kernels of its own.
  const std::optional<DecodeKernels>& decode_kernels() const { return decode_kernels_; }

  Tensor<W, 2> wte, wpe, head;
  Tensor<f32, 1> ln_f_weight, ln_f_bias;
  std::vector<Block<W>> blocks;

 private:
  TypedNetwork(const Device& device, const Gpt2Config& config)
      : Network(device, config),
        target_{.gpu = device.info().arch.has_value(),
                .wgmma = matmul_target(device).has_wgmma(),
                .operands = element_type<P>,
                .width = config.width,
                .head_width = config.head_width(),
                .inner = config.inner,
                .seen = config.positions / 2},
        along_k_(has_decode_kernels(target_)),
        kernels_(config, target_),
        decode_kernels_(along_k_ ? std::optional<DecodeKernels>(std::in_place, config, decode_tiles(target_))
                                 : std::nullopt),
        linear_gelu_(config.gelu == Gelu::exact ? kernels::linear_exact_gelu<P, W> : kernels::linear_gelu<P, W>) {}

  TileTarget target_;
  bool along_k_;  // weights [K,N] of matmuls are contiguous along K
  Kernels kernels_;
  std::optional<DecodeKernels> decode_kernels_;
  mutable std::mutex mutex_;
  mutable ByTiles<decltype(Matmuls<P, W>::qkv)> linear_{kernels::linear<P, W>};
  mutable ByTiles<decltype(Matmuls<P, W>::up)> linear_gelu_;
  mutable ByTiles<decltype(Matmuls<P, W>::down)> linear_residual_{kernels::linear_residual<P, W>};
  mutable ByTiles<decltype(Matmuls<P, W>::head)> head_{kernels::lm_head<P, W>};
};

template <Element P, Element W>
class TypedState final : public Session::State {
  using A = Activation<P>;

 public:
  TypedState(std::shared_ptr<const Gpt2::Network> owner, const TypedNetwork<P, W>& network, int batch, int capacity)
      : State(network.config(), batch, capacity),
        owner_(std::move(owner)),
        network_(network),
        kernels_(network.kernels()),
        stream_(network.device().stream()),
        past_(device(), {batch}),
        count_(device(), {batch}),
        token_(device(), {batch}),
        keys_(device(), {batch}),
        best_tokens_(device(), {batch, parts_of(config().vocab)}),
        best_scores_(device(), {batch, parts_of(config().vocab)}),
        pinned_(device().pinned(static_cast<std::size_t>(batch) * sizeof(i32))),
        seen_(device(), {batch, config().vocab}),
        last_(device(), {batch, config().width}),
        last_products_(network.products(batch)) {
    for (int i = 0; i < config().layers; ++i) {
      key_cache_.emplace_back(device(), std::array<std::int64_t, 3>{batch, capacity, config().width});
      value_cache_.emplace_back(device(), std::array<std::int64_t, 3>{batch, capacity, config().width});
    }
    runs_ahead_ = !device().shares_host_memory();
    launch(stream_, kernels_.fill, seen_.reshaped(std::array{seen_.size()}), 0.0f);
    launch(stream_, kernels_.fill_positions, past_, 0.0f);
  }

  void prepare(Tokens tokens, int longest) override {
    const std::int64_t batch = past_.size();
    std::vector<std::int32_t> padded(static_cast<std::size_t>(batch * longest), 0), counts;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      std::copy(tokens[b].begin(), tokens[b].end(), padded.begin() + static_cast<std::ptrdiff_t>(b) * longest);
      counts.push_back(static_cast<std::int32_t>(tokens[b].size()));
    }
    if (!step_ || step_->length != longest) step_ = std::make_unique<Step>(*this, batch, longest);
    ids_ = std::move(padded), counts_ = std::move(counts);
  }

  void compute() override {
    // While a text is generated, nothing is copied from the host: the tokens are those of the last sample.
    const bool is_computed = std::exchange(computed_ahead_, false) && step_->length == 1 && ids_ == on_device_.token &&
                             counts_ == on_device_.count;
    if (is_computed) return step_.swap(ahead_);
    if (step_->length > 1)
      step_->ids.copy_from(ids_);
    else
      upload(ids_, token_, on_device_.token);
    upload(counts_, count_, on_device_.count);
    if (step_->length == 1 && step_->runs++ == 1) record(*step_);
    run(*step_);
  }

  void commit() override { step_->launches.run(stream_, last_launch(*step_), last_launch(*step_) + 1); }

  std::vector<std::int32_t> sample(const Sampling& sampling, const std::vector<std::int64_t>& keys) override {
    on_device_.token.clear();  // unknown until the sample is done
    computed_ahead_ = false;
    const Tensor<f32, 2>& logits = step_->logits;
    if (sampling.temperature == 0) {
      launch(stream_, kernels_.greedy_parts, logits, seen_, best_tokens_, best_scores_, sampling.repetition_penalty);
      launch(stream_, kernels_.greedy_token, best_tokens_, best_scores_, token_);
    } else {
      upload(keys, keys_, on_device_.keys);
      launch(stream_, kernels_.sample, logits, seen_, past_, keys_, token_, sampling.repetition_penalty,
             sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p);
    }
    std::vector<std::int32_t> sampled(static_cast<std::size_t>(token_.size()));
    const std::size_t bytes = sampled.size() * sizeof(i32);
    stream_.copy(pinned_.get(), token_.data(), bytes);
    const Event chosen = stream_.record();
    compute_ahead();
    chosen.synchronize();
    std::memcpy(sampled.data(), pinned_.get(), bytes);
    on_device_.token = sampled;
    return sampled;
  }

  void clear(int sequence) override {
    computed_ahead_ = false;
    launch(stream_, kernels_.fill, seen_.slice(0, sequence, 1).reshaped(std::array{seen_.extent(1)}), 0.0f);
    launch(stream_, kernels_.fill_positions, past_.slice(0, sequence, 1), 0.0f);
  }

  std::vector<float> logits() const override { return step_->logits.to_vector(); }

  std::vector<float> all_logits() override {
    const std::int64_t batch = past_.size(), rows = batch * step_->length;
    launch(stream_, kernels_.one_norm, step_->x.reshaped(std::array<std::int64_t, 2>{rows, config().width}),
           network_.ln_f_weight, network_.ln_f_bias, step_->normed, config().epsilon);
    Tensor<f32, 2> all(device(), {rows, config().vocab});
    launch(stream_, step_->products.head, step_->normed, network_.head, all);
    return all.to_vector();
  }

  std::vector<float> log_probabilities(std::span<const float> logits, std::span<const std::int32_t> targets) override {
    const auto rows = static_cast<std::int64_t>(targets.size());
    Tensor<f32, 2> scores(device(), {rows, config().vocab});
    Tensor<i32, 1> wanted(device(), {rows});
    Tensor<f32, 1> result(device(), {rows});
    scores.copy_from(logits);
    wanted.copy_from(targets);
    launch(stream_, kernels_.log_probability, scores, wanted, result);
    return result.to_vector();
  }

 private:
  const Device& device() const { return network_.device(); }
  const Gpt2Config& config() const { return network_.config(); }

  /// The results of decode_part().
  struct AttentionParts {
    Tensor<f32, 4> y;
    Tensor<f32, 3> top, norm;
  };
  /// For a step of so many rows; none if it has no kernels of its own.
  std::optional<AttentionParts> attention_parts(std::int64_t rows) const {
    const auto& fused = network_.decode_kernels();
    if (rows > 1 || !fused) return {};
    const std::int64_t parts = fused->parts, heads = config().heads;
    return AttentionParts{Tensor<f32, 4>(device(), {1, parts, heads, config().head_width()}),
                          Tensor<f32, 3>(device(), {1, parts, heads}), Tensor<f32, 3>(device(), {1, parts, heads})};
  }

  /// The activations and launches of one forward pass; kept for the next pass of the same length.
  struct Step {
    Step(const TypedState& session, std::int64_t batch, std::int64_t positions)
        : length(static_cast<int>(positions)),
          products(session.network_.products(batch * positions)),
          ids(length == 1 ? session.token_.reshaped(std::array{batch, positions})
                          : Tensor<i32, 2>(session.device(), {batch, positions})),
          x(session.device(), {batch, positions, session.config().width}),
          qkv(session.device(), {batch, positions, 3 * static_cast<std::int64_t>(session.config().width)}),
          attended(session.device(), {batch, positions, session.config().width}),
          normed(session.device(), {batch * positions, session.config().width}),
          inner(session.device(), {batch * positions, session.config().inner}),
          logits(session.device(), {batch, session.config().vocab}),
          attention(session.attention_parts(batch * positions)),
          launches(attention ? session.fused_launches(*this) : session.launches(*this)) {}
    int length;
    Matmuls<P, W> products;
    Tensor<i32, 2> ids;
    Tensor<f32, 3> x;
    Tensor<A, 3> qkv, attended;
    Tensor<A, 2> normed, inner;
    Tensor<f32, 2> logits;
    std::optional<AttentionParts> attention;  // of a step that has kernels of its own
    Sequence launches;
    std::optional<CapturedGraph> graph;  // of all launches but the last
    int runs = 0;
  };

  /// Records the launches of a step that is repeated, so that one launch on the host takes their place. The device's
  /// stream may be in use by other threads, whose launches would be recorded, too.
  void record(Step& step) const {
    if (device().shares_host_memory()) return;
    const Stream own = device().new_stream();
    step.graph = own.capture([&] { step.launches.run(own, 0, last_launch(step)); });
  }
  void run(const Step& step) const {
    if (step.graph)
      stream_.launch(*step.graph);
    else
      step.launches.run(stream_, 0, last_launch(step));
  }

  /// Begins the step that appends the tokens just chosen, before the host knows them: most callers append them. The
  /// step leaves no trace unless compute() takes it over, since it has activations and logits of its own.
  void compute_ahead() try {
    constexpr std::int64_t most = 16;  // for more sequences, the host's time matters less than the memory
    const bool is_ready = step_->graph || (step_->length == 1 && device().shares_host_memory());
    if (!runs_ahead_ || !is_ready || past_.size() > most) return;
    for (std::size_t b = 0; b < lengths_.size(); ++b)
      if (lengths_[b] + on_device_.count[b] > capacity_) return;
    if (!ahead_) ahead_ = std::make_unique<Step>(*this, past_.size(), 1);
    if (step_->graph && !ahead_->graph) record(*ahead_);
    run(*ahead_);
    computed_ahead_ = true;
  } catch (const Error&) {
    computed_ahead_ = false;  // append() begins the step, and reports what is wrong
  }

  /// The launches of a forward pass (prefill, or a decode step if length is 1). The last one makes its tokens part of
  /// the text.
  Sequence launches(const Step& step) const {
    const std::int64_t batch = past_.size(), width = config().width;
    const auto& products = step.products;
    const float epsilon = config().epsilon, scale = 1.0f / std::sqrt(static_cast<float>(config().head_width()));
    const auto rows = [&](const auto& tensor, std::int64_t columns) {
      return tensor.reshaped(std::array{batch * step.length, columns});
    };
    const auto x = rows(step.x, width);
    const auto qkv = rows(step.qkv, 3 * width);
    const auto attended = rows(step.attended, width);

    Sequence made(device());
    made.add(kernels_.embed, step.ids, past_, network_.wte, network_.wpe, step.x);
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      const Tensor<A, 3>&keys = key_cache_[i], &values = value_cache_[i];
      made.add(kernels_.one_norm, x, block.ln_1_weight, block.ln_1_bias, step.normed, epsilon);
      made.add(products.qkv, step.normed, block.attn_weight, block.attn_bias, qkv);
      made.add(kernels_.append_cache, step.qkv, past_, count_, keys, values);
      if (step.length == 1)
        made.add(kernels_.decode_attention, step.qkv, keys, values, past_, count_, step.attended, scale);
      else
        made.add(kernels_.attention, step.qkv, keys, values, past_, count_, step.attended, scale);
      made.add(products.project, attended, block.proj_weight, block.proj_bias, x);
      made.add(kernels_.one_norm, x, block.ln_2_weight, block.ln_2_bias, step.normed, epsilon);
      made.add(products.up, step.normed, block.fc_weight, block.fc_bias, step.inner);
      made.add(products.down, step.inner, block.out_weight, block.out_bias, x);
    }
    made.add(kernels_.last_norm, step.x, count_, network_.ln_f_weight, network_.ln_f_bias, last_, epsilon);
    made.add(last_products_.head, last_, network_.head, step.logits);
    made.add(kernels_.advance, step.ids, count_, seen_, past_);
    return made;
  }

  /// The same for one new position of one sequence.
  Sequence fused_launches(const Step& step) const {
    const std::int64_t width = config().width;
    const auto& fused = *network_.decode_kernels();
    const AttentionParts& attention = *step.attention;
    const float epsilon = config().epsilon, scale = 1.0f / std::sqrt(static_cast<float>(config().head_width()));
    const auto x = step.x.reshaped(std::array<std::int64_t, 2>{1, width});
    const auto q = last_;

    Sequence made(device());
    made.add(kernels_.embed, step.ids, past_, network_.wte, network_.wpe, step.x);
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block<W>& block = network_.blocks[i];
      const Tensor<A, 3>&keys = key_cache_[i], &values = value_cache_[i];
      made.add(fused.qkv, x, block.ln_1_weight, block.ln_1_bias, block.attn_weight, block.attn_bias, past_, count_, q,
               keys, values, epsilon);
      made.add(fused.part, q, keys, values, past_, count_, attention.y, attention.top, attention.norm, scale);
      made.add(fused.project, attention.y, attention.top, attention.norm, block.proj_weight, block.proj_bias, x);
      made.add(fused.up, x, block.ln_2_weight, block.ln_2_bias, block.fc_weight, block.fc_bias, step.inner, epsilon);
      made.add(fused.down, step.inner, block.out_weight, block.out_bias, x);
    }
    made.add(fused.head, x, network_.ln_f_weight, network_.ln_f_bias, network_.head, step.logits, epsilon);
    made.add(kernels_.advance, step.ids, count_, seen_, past_);
    return made;
  }
  static std::size_t last_launch(const Step& step) { return step.launches.launches().size() - 1; }

  /// Copies values to the device, unless they are there already.
  template <class T>
  static void upload(const std::vector<T>& values, const Tensor<T, 1>& to, std::vector<T>& there) {
    if (values == there) return;
    there.clear();
    to.copy_from(values);
    there = values;
  }

  std::shared_ptr<const Gpt2::Network> owner_;
  const TypedNetwork<P, W>& network_;
  const typename TypedNetwork<P, W>::Kernels& kernels_;
  Stream stream_;
  Tensor<i32, 1> past_, count_, token_;
  Tensor<i64, 1> keys_;         // of the random number generator
  Tensor<i32, 2> best_tokens_;  // of each part of the logits
  Tensor<f32, 2> best_scores_;
  std::shared_ptr<void> pinned_;            // the host's copy of token_
  std::vector<std::int32_t> ids_, counts_;  // of the current step
  struct {
    std::vector<std::int32_t> token, count;
    std::vector<std::int64_t> keys;
  } on_device_;  // values known to be in token_, count_ and keys_
  Tensor<u8, 2> seen_;
  Tensor<A, 2> last_;
  std::vector<Tensor<A, 3>> key_cache_, value_cache_;
  Matmuls<P, W> last_products_;
  std::unique_ptr<Step> step_;   // of the last append()
  std::unique_ptr<Step> ahead_;  // the same for the next token
  bool computed_ahead_ = false;  // ahead_ has the tokens that sample() chose
};

template <Element P, Element W>
std::unique_ptr<Session::State> TypedNetwork<P, W>::session(std::shared_ptr<const Network> self, int batch,
                                                            int capacity) const {
  return std::make_unique<TypedState<P, W>>(std::move(self), *this, batch, capacity);
}

// The common element type of all matrices; f32, to which they are converted, if they differ.
StoredType common_type(const Checkpoint& checkpoint) {
  for (const StoredTensor* stored : {checkpoint.wpe, checkpoint.head})
    if (stored->type != checkpoint.wte->type) return StoredType::f32;
  for (const Checkpoint::Layer& layer : checkpoint.layers)
    for (const StoredTensor* stored : {layer.attn_weight, layer.proj_weight, layer.fc_weight, layer.out_weight})
      if (stored->type != checkpoint.wte->type) return StoredType::f32;
  return checkpoint.wte->type;
}

}  // namespace

Gpt2::Gpt2(const Device& device, const Checkpoint& checkpoint, Compute compute, const Progress& progress) {
  const auto make = [&]<Element P>() -> std::shared_ptr<const Network> {
    switch (common_type(checkpoint)) {
      case StoredType::f16:
        return std::make_shared<TypedNetwork<P, f16>>(device, checkpoint, progress);
      case StoredType::bf16:
        return std::make_shared<TypedNetwork<P, bf16>>(device, checkpoint, progress);
      default:
        return std::make_shared<TypedNetwork<P, f32>>(device, checkpoint, progress);
    }
  };
  switch (compute) {
    case Compute::f32:
      network_ = make.template operator()<f32>();
      break;
    case Compute::tf32:
      network_ = make.template operator()<tf32>();
      break;
    case Compute::bf16:
      network_ = std::make_shared<TypedNetwork<bf16, bf16>>(device, checkpoint, progress);
      break;
  }
}

Gpt2::Gpt2(const Device& device, const Gpt2Config& config, std::uint64_t seed, Compute compute) {
  check(config);
  switch (compute) {
    case Compute::f32:
      network_ = std::make_shared<TypedNetwork<f32, f32>>(device, config, seed);
      break;
    case Compute::tf32:
      network_ = std::make_shared<TypedNetwork<tf32, f32>>(device, config, seed);
      break;
    case Compute::bf16:
      network_ = std::make_shared<TypedNetwork<bf16, bf16>>(device, config, seed);
      break;
  }
}

const Gpt2Config& Gpt2::config() const { return network_->config(); }
const Device& Gpt2::device() const { return network_->device(); }

Session::Session(const Gpt2& model, int batch, int capacity)
    : state_(model.network_->session(model.network_, batch, capacity)), config_(model.config()) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

void Session::require_not_lost() const {
  if (lost_) throw Error("the session is lost, since a change of its text failed; make a new one");
}

void Session::require_logits() const {
  require_not_lost();
  if (!appended_.empty()) return;
  throw Error(failed_ ? "there are no logits, since the last append failed; append its tokens again"
                      : "there are no logits yet; append tokens first");
}

void Session::append(std::span<const std::vector<std::int32_t>> tokens) {
  require_not_lost();
  if (tokens.size() != state_->lengths_.size())
    throw Error(
        fmt::format("tokens for {} sequences are given to a session of {}", tokens.size(), state_->lengths_.size()));
  std::size_t longest = 0;
  for (std::size_t b = 0; b < tokens.size(); ++b) {
    for (const std::int32_t id : tokens[b])
      if (id < 0 || id >= config_.vocab)
        throw Error(fmt::format("token {} is not in the vocabulary, which has 0 to {}", id, config_.vocab - 1));
    const std::size_t length = static_cast<std::size_t>(state_->lengths_[b]) + tokens[b].size();
    if (length > static_cast<std::size_t>(state_->capacity_))
      throw Error(
          fmt::format("the text has {} tokens, there is room for {}; shorten the prompt", length, state_->capacity_));
    longest = std::max(longest, tokens[b].size());
  }
  if (longest == 0) throw Error("there are no tokens to append; give at least one");
  std::vector<bool> appended;
  for (const auto& sequence : tokens) appended.push_back(!sequence.empty());
  state_->prepare(tokens, static_cast<int>(longest));
  appended_.clear(), failed_ = true;
  state_->compute();
  lost_ = true;
  state_->commit();
  for (std::size_t b = 0; b < tokens.size(); ++b) state_->lengths_[b] += static_cast<int>(tokens[b].size());
  appended_.swap(appended), failed_ = lost_ = false;
}

std::vector<std::int32_t> Session::sample(const Sampling& sampling, std::span<const std::int64_t> streams) {
  check(sampling);
  require_logits();
  if (!streams.empty() && streams.size() != state_->lengths_.size())
    throw Error(
        fmt::format("{} streams are given to a session of {} sequences", streams.size(), state_->lengths_.size()));
  std::vector<std::int64_t> keys;
  for (std::size_t b = 0; b < state_->lengths_.size(); ++b) {
    const std::uint64_t stream = streams.empty() ? b : static_cast<std::uint64_t>(streams[b]);
    // Multiples of the golden ratio in 61 bits keep neighboring streams apart.
    keys.push_back(static_cast<std::int64_t>(sampling.seed + stream * 0x1E3779B97F4A7C15));
  }
  std::vector<std::int32_t> tokens = state_->sample(sampling, keys);
  for (std::size_t b = 0; b < tokens.size(); ++b)
    if (appended_[b] && tokens[b] < 0)
      throw Error("the model's logits are not finite; check its weights and the type of computation");
  return tokens;
}

void Session::run_ahead(bool ahead) { state_->runs_ahead_ = ahead; }

void Session::clear(int sequence) {
  require_not_lost();
  const std::size_t index = index_of(sequence);
  lost_ = true;
  state_->clear(sequence);
  state_->lengths_[index] = 0;
  if (!appended_.empty()) appended_[index] = false;
  if (std::ranges::find(appended_, true) == appended_.end()) appended_.clear();
  lost_ = false;
}

std::vector<float> Session::logits() const {
  require_logits();
  return state_->logits();
}
std::vector<float> Session::all_logits() {
  require_logits();
  return state_->all_logits();
}
std::vector<float> Session::log_probabilities(std::span<const float> logits, std::span<const std::int32_t> targets) {
  for (const std::int32_t id : targets)
    if (id < 0 || id >= config_.vocab)
      throw Error(fmt::format("token {} is not in the vocabulary, which has 0 to {}", id, config_.vocab - 1));
  if (logits.size() != targets.size() * static_cast<std::size_t>(config_.vocab))
    throw Error(fmt::format("{} logits are given for {} tokens of a vocabulary of {}", logits.size(), targets.size(),
                            config_.vocab));
  return state_->log_probabilities(logits, targets);
}
std::size_t Session::index_of(int sequence) const {
  const std::size_t count = state_->lengths_.size();
  if (sequence < 0 || static_cast<std::size_t>(sequence) >= count)
    throw Error(fmt::format("there is no sequence {} in a session of {}", sequence, count));
  return static_cast<std::size_t>(sequence);
}
int Session::length(int sequence) const { return state_->lengths_[index_of(sequence)]; }
int Session::capacity() const { return state_->capacity_; }

}  // namespace tessera::internal
