// A transformer on a device: its weights and its kernels. Sequences grow in sessions of it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/jit/device.hpp"
#include "tessera/model/checkpoint.hpp"
#include "tessera/model/sampling.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The element type of matmul operands; accumulators are f32. With tf32, activations are f32 in memory; with bf16,
/// activations and weights are bf16. Otherwise weights keep their type in memory.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // GCC takes a scoped name to hide the type of that name
enum class Compute : std::uint8_t { f32, tf32, bf16 };
#pragma GCC diagnostic pop
/// "f32", "tf32" or "bf16"; Error otherwise.
Compute parse_compute(std::string_view text);

/// The form in which the launches of a step of one token run. All forms give the same bits.
enum class DecodeForm : std::uint8_t {
  /// Graph or persistent, whichever is faster: measured once for a model's kernels and a GPU, and kept beside compiled
  /// kernels; on the CPU, plain.
  automatic,
  plain,       ///< one launch after another
  graph,       ///< a CUDA graph; on the CPU, plain
  persistent,  ///< one persistent kernel (Sequence::persistent), or a graph if there can be none
};
/// "auto", "plain", "graph" or "persistent"; Error otherwise.
DecodeForm parse_decode_form(std::string_view text);
std::string_view name(DecodeForm form);

/// How a model computes.
struct Computation {
  Computation(Compute of = Compute::f32, bool invariant = false, DecodeForm form = DecodeForm::automatic)
      : type(of), batch_invariant(invariant), decode(form) {}
  Compute type;
  /// The logits of a text have the same bits whatever else is in the batch, and however the text was divided into calls
  /// of append(). Steps take longer: sums have the order that suits many rows. With tf32 and weights of 16 bits,
  /// all_logits() may differ from logits() in the last bits.
  bool batch_invariant;
  DecodeForm decode;
};

class Session;

/// The first steps that a model will be used for.
struct FirstUse {
  int batch = 1;  ///< sequences of the session
  /// Tokens of the longest sequence in each append(), in order: {128, 1} for a prompt of 128 and further tokens.
  std::vector<int> lengths;
  std::optional<Sampling> sampling = Sampling();  ///< follows the first append(); none: no token is sampled
};

/// A model ready to run: weights on a device, kernels traced. Immutable; sessions may share it.
class Model {
 public:
  /// Called while weights are read, with the part of the file read so far: increasing, above 0 and at most 1.
  using Progress = std::function<void(double)>;

  /// Reads the weights of a checkpoint into memory of the device; the file is not needed afterwards. On a GPU the
  /// kernels of `first`, if it has lengths, are compiled meanwhile, by threads of the model that may work on after the
  /// constructor returns and stop when the model ends. A session waits only for the kernels that it needs, and reports
  /// their errors. Error as check(), or if the checkpoint's config was changed so that it needs other weights;
  /// OutOfMemory, before anything is allocated, if the device has too little.
  Model(const Device& device, const Checkpoint& checkpoint, Computation = {}, const Progress& = {},
        const FirstUse& first = {});
  /// Random weights: matrices with standard deviation 0.02, norms the identity. Same seed, same model.
  Model(const Device& device, const TransformerConfig& config, std::uint64_t seed, Computation = {},
        const FirstUse& first = {});

  const TransformerConfig& config() const;
  const Device& device() const;

  class Network;

 private:
  friend class Session;
  std::shared_ptr<const Network> network_;
};

}  // namespace internal
}  // namespace tessera
