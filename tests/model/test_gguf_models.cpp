// Models in GGUF files have the logits of the same models in folders: names, metadata, the order of rows.
#include <fmt/format.h>

#include <cstring>
#include <map>

#include "model/files/families.hpp"
#include "model/files/gguf_config.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/golden_model.hpp"
#include "support/support.hpp"
#include "tessera/model/gguf.hpp"

namespace test_gguf_models {

using namespace tessera::internal;
using namespace test_golden;

namespace {

/// A model as llama.cpp's converter writes it, from its folder.
class Converted {
 public:
  explicit Converted(const Checkpoint& model)
      : model_(model), from_(names_of(model.config.family)), to_(gguf_names(from_)) {
    write_metadata();
    add(model.embedding, to_.embedding);
    add(model.positions.tensor, to_.positions);
    add(model.last_norm, to_.last_norm, model.config.norm_offset);
    add(model.last_norm_bias, to_.last_norm_bias);
    if (!model.config.tied) add(model.head, to_.head);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const Checkpoint::Layer& layer = model.layers[i];
#define LAYER_VECTOR(member, ...) add(layer.member, to_.weights.member, i, #member);
#define LAYER_MATRIX(member, ...) add(layer.member, to_.weights.member, i, #member);
#include "model/layer_weights.def"
    }
  }
  void write(const std::filesystem::path& path) const {
    std::vector<TensorBytes> tensors;
    for (const Stored& stored : tensors_)
      tensors.push_back({stored.name, StoredType::f32, stored.shape, std::as_bytes(std::span(stored.values))});
    write_gguf(path, metadata_, tensors);
  }

 private:
  struct Stored {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
  };

  void set(std::string_view key, double value) { entry(key, GgufType::f32, value); }
  void set(std::string_view key, std::int32_t value) { entry(key, GgufType::u32, static_cast<std::uint64_t>(value)); }
  void set(std::string_view key, std::string value) { entry(key, GgufType::string, std::move(value)); }
  void entry(std::string_view key, GgufType type, GgufValue value) {
    metadata_.push_back({fmt::format("{}.{}", from_.gguf.architecture, key), type, std::move(value)});
  }

  void write_metadata() {
    const TransformerConfig& config = model_.config;
    metadata_.push_back({"general.architecture", GgufType::string, std::string(from_.gguf.architecture)});
    for (const auto& [key, member] : gguf_sizes) {
      const std::int32_t value = member == &TransformerConfig::key_value_heads ? config.key_heads()
                                 : member == &TransformerConfig::head_size     ? config.head_width()
                                                                               : config.*member;
      set(key, value);
    }
    set(config.norm == Norm::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
        static_cast<double>(config.epsilon));
    if (config.family == Family::gpt_neox) entry("use_parallel_residual", GgufType::boolean, config.parallel);
    if (config.window > 0) set("attention.sliding_window", config.window);
    if (config.score_cap > 0) set("attn_logit_softcapping", static_cast<double>(config.score_cap));
    if (config.logit_cap > 0) set("final_logit_softcapping", static_cast<double>(config.logit_cap));
    if (!config.is_rotary()) return;
    set("rope.dimension_count", config.rotated_width());
    set("rope.freq_base", config.rotary_base);
    const RotaryScaling& scaling = config.rotary_scaling;
    if (scaling.kind == RotaryScaling::Kind::none) return;
    const bool is_yarn = scaling.kind == RotaryScaling::Kind::yarn;
    set("rope.scaling.type", is_yarn ? "yarn" : "linear");
    set("rope.scaling.factor", scaling.factor);
    if (is_yarn) set("rope.scaling.original_context_length", static_cast<std::int32_t>(scaling.positions));
  }

  std::vector<float> values_of(const StoredTensor& stored) const {
    const auto read = [&]<class T>(T) {
      std::vector<T> raw(stored.size / sizeof(T));
      model_.file.read(stored, std::as_writable_bytes(std::span(raw)));
      std::vector<float> values;
      for (const T& value : raw) values.push_back(static_cast<float>(value));
      return values;
    };
    return stored.type == StoredType::f32 ? read(float()) : stored.type == StoredType::f16 ? read(f16()) : read(bf16());
  }

  void add(const StoredTensor* stored, std::string_view name, float offset = 0) {
    if (!stored) return;
    Stored& tensor = tensors_.emplace_back(std::string(name), stored->shape, values_of(*stored));
    for (float& value : tensor.values) value += offset;
  }
  void add(const StoredParts& parts, const FamilyNames::Layer::Parts& names, std::size_t layer,
           std::string_view weight) {
    const bool is_norm = weight.ends_with("norm");
    if (parts.empty()) return;
    if (from_.qkv_by_head && weight.starts_with("qkv")) {
      add(parts[0].tensor, fmt::format("blk.{}.{}", layer, names.at(0)));
      return heads_apart(tensors_.back());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      REQUIRE(parts[i].rows.size() <= 1);  // they are in the order of the file
      add(parts[i].tensor, fmt::format("blk.{}.{}", layer, names.at(i)), is_norm ? model_.config.norm_offset : 0);
      Stored& tensor = tensors_.back();
      if (tensor.shape.size() == 2 && !model_.is_out_in) transpose(tensor);
      if (weight.starts_with("qkv") && i < 2 && parts.size() == 3 && from_.gguf.neighbors) interleave(tensor);
    }
  }
  /// All queries, then all keys, then all values.
  void heads_apart(Stored& tensor) const {
    const auto d = static_cast<std::size_t>(model_.config.head_width());
    const std::size_t columns = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
    const auto heads = static_cast<std::size_t>(model_.config.heads);
    const std::vector<float> before = tensor.values;
    for (std::size_t which = 0; which < 3; ++which)
      for (std::size_t head = 0; head < heads; ++head)
        std::memcpy(&tensor.values[(which * heads + head) * d * columns], &before[(3 * head + which) * d * columns],
                    d * columns * sizeof(float));
  }
  static void transpose(Stored& tensor) {
    const std::uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
    std::vector<float> turned(tensor.values.size());
    for (std::uint64_t i = 0; i < rows; ++i)
      for (std::uint64_t j = 0; j < columns; ++j) turned[j * rows + i] = tensor.values[i * columns + j];
    tensor.values = std::move(turned);
    tensor.shape = {columns, rows};
  }
  /// Elements i and i + d / 2 of a head become neighbors.
  void interleave(Stored& tensor) const {
    const auto d = static_cast<std::size_t>(model_.config.head_width());
    const std::size_t columns = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
    const std::vector<float> before = tensor.values;
    for (std::size_t row = 0; row < tensor.shape[0]; ++row) {
      const std::size_t head = row / d, i = row % d, from = head * d + i / 2 + (i % 2 ? d / 2 : 0);
      std::memcpy(&tensor.values[row * columns], &before[from * columns], columns * sizeof(float));
    }
  }

  const Checkpoint& model_;
  const FamilyNames& from_;
  const FamilyNames to_;
  std::vector<GgufEntry> metadata_;
  std::vector<Stored> tensors_;
};

}  // namespace

TEST_CASE("a model in a GGUF file has the logits of its folder", "[model][gguf]") {
  for (const char* const name :
       {"mini-192", "llama-odd", "llama-biases", "families/mistral", "families/qwen2", "families/qwen3",
        "families/gemma2", "families/gemma3", "families/olmo2", "families/pythia", "families/gpt-neox"}) {
    INFO(name);
    Golden golden(name);
    const TempDir folder;
    Converted(golden.checkpoint).write(folder / "model.gguf");
    const Checkpoint found = Checkpoint::open(folder / "model.gguf");
    // Metadata does not have these: they are what llama.cpp takes for models of the family.
    TransformerConfig& config = golden.checkpoint.config;
    config.activation = found.config.activation, config.attention_scale = found.config.attention_scale;
    config.local_layers = found.config.local_layers, config.local_rotary_base = found.config.local_rotary_base;
    if (config.family == Family::qwen2) config.window = 0;
    CHECK(found.config.window == config.window);
    const auto logits = [&](const Checkpoint& checkpoint) {
      const Model model(test_device(), checkpoint, Compute::f32);
      Session session(model, 1, 16);
      session.append(std::vector<Tokens>{{golden.prompts[0].begin(), golden.prompts[0].begin() + 16}});
      return session.all_logits();
    };
    CHECK(relative_difference(logits(found), logits(golden.checkpoint)) <= 1e-6);
  }
}

}  // namespace test_gguf_models
