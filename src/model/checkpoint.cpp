#include "tessera/model/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <unordered_set>

#include "jit/options/log.hpp"
#include "model/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "transformer.";
using Extents = std::vector<std::uint64_t>;

bool is_missing(const fs::path& path) {
  std::error_code ignored;
  return fs::status(path, ignored).type() == fs::file_type::not_found;
}

constexpr std::string_view weights_name = "model.safetensors", index_name = "model.safetensors.index.json";

/// True if the weights are in several files with an index, false if they are in one file.
bool has_shards(const fs::path& folder) { return !is_missing(folder / index_name); }

/// Advice about a missing file.
std::string_view advice_about(const fs::path& folder, std::string_view name, std::string_view otherwise) {
  std::error_code ignored;
  if (fs::is_symlink(folder / name, ignored)) return "it is a broken link; download it again";
  if (name != weights_name) return otherwise;
  if (!is_missing(folder / "pytorch_model.bin")) return "there is a pytorch_model.bin; convert it to safetensors";
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename().native();
    if (file.starts_with("model-0") && file.ends_with(".safetensors"))
      return "there are weights in several files, but no model.safetensors.index.json; download it, too";
  }
  return otherwise;
}

/// Tells a user who named something else what a model folder is.
void require_model_folder(const fs::path& folder) {
  constexpr std::string_view expected =
      "a model is a folder with config.json, model.safetensors, vocab.json and merges.txt";
  std::error_code ignored;
  if (is_missing(folder)) throw Error(fmt::format("{}: no such folder; {}", in_quotes(folder.native()), expected));
  if (fs::is_regular_file(folder, ignored)) {
    throw Error(fmt::format("{} is a file; {}", in_quotes(folder.native()), expected));
  }
  for (const std::string_view name : {std::string_view("config.json"), weights_name}) {
    if (!is_missing(folder / name) || (name == weights_name && has_shards(folder))) continue;
    throw Error(
        fmt::format("{}: no such file; {}", in_quotes((folder / name).native()), advice_about(folder, name, expected)));
  }
}

SafeTensors open_weights(const fs::path& folder) {
  if (is_missing(folder / weights_name)) return SafeTensors::open_shards(folder / index_name);
  if (has_shards(folder)) {
    log_warn(fmt::format("{} has {} as well as {}; the single file is used, as in transformers",
                         in_quotes(folder.native()), weights_name, index_name));
  }
  return SafeTensors::open(folder / weights_name);
}

/// h.N.attn.bias and h.N.attn.masked_bias: the causal mask and its value, which older versions of transformers saved.
bool is_mask(std::string_view name) {
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (!name.starts_with("h.")) return false;
  name.remove_prefix(2);
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits > 0 && (name.substr(digits) == ".attn.bias" || name.substr(digits) == ".attn.masked_bias");
}

/// Finds weights by name and collects everything that is wrong, to report it at once.
class WeightList {
 public:
  explicit WeightList(const SafeTensors& file) : file_(file) {}

  /// The tensor `name`, with or without the prefix; null if there is none.
  const StoredTensor* find(const std::string& name) const {
    const StoredTensor* found = file_.find(std::string(prefix) + name);
    return found ? found : file_.find(name);
  }

  /// The same for a tensor that must exist, with this shape and a supported type.
  const StoredTensor* take(const std::string& name, const Extents& shape) {
    const StoredTensor* found = find(name);
    if (!found) {
      missing_.push_back(name);
      return nullptr;
    }
    taken_.insert(found);
    if (found->shape != shape) {
      misshapen_.push_back(
          fmt::format("{} [{}], not [{}]", found->name, fmt::join(found->shape, ", "), fmt::join(shape, ", ")));
    }
    if (found->type != StoredType::f32 && found->type != StoredType::f16 && found->type != StoredType::bf16) {
      mistyped_.push_back(fmt::format("{} {}", found->name, tessera::internal::name(found->type)));
    }
    return found;
  }

  /// Throws Error unless all weights were found and well formed, and none are left over.
  void finish() const {
    std::vector<std::string> extra;
    for (const StoredTensor& tensor : file_.tensors()) {
      if (!taken_.contains(&tensor) && !is_mask(tensor.name)) extra.push_back(in_quotes(tensor.name));
    }
    std::string faults;
    const auto report = [&](std::string_view what, const std::vector<std::string>& names) {
      constexpr std::size_t most = 8;
      if (names.empty()) return;
      const auto shown = std::span(names).first(std::min(names.size(), most));
      faults += fmt::format("; {}: {}", what, fmt::join(shown, ", "));
      if (names.size() > most) faults += fmt::format(" and {} more", names.size() - most);
    };
    report("missing", missing_);
    report("unknown", extra);
    report("of the wrong shape", misshapen_);
    report("of a type other than F32, F16 and BF16", mistyped_);
    if (!faults.empty()) {
      throw Error(fmt::format("{} does not hold the weights of the model that config.json describes{}",
                              in_quotes(file_.path().native()), faults));
    }
  }

 private:
  const SafeTensors& file_;
  std::unordered_set<const StoredTensor*> taken_;
  std::vector<std::string> missing_, misshapen_, mistyped_;
};

/// Do they have the same type and the same bytes?
bool are_equal(const SafeTensors& file, const StoredTensor& a, const StoredTensor& b) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20;  // bytes compared at a time
  if (a.type != b.type || a.size != b.size) return false;
  std::vector<std::byte> part_a, part_b;
  for (std::uint64_t at = 0; at < a.size; at += most) {
    part_a.resize(std::min(most, a.size - at)), part_b.resize(part_a.size());
    file.read(a, part_a, at), file.read(b, part_b, at);
    if (part_a != part_b) return false;
  }
  return true;
}

/// Token embedding and head, tied as in transformers 5: a tied model may store the matrix under either name; if both
/// exist and differ, both are used, whatever config.json says.
struct Embeddings {
  const StoredTensor *wte, *head;
  Embeddings(WeightList& weights, const Gpt2Config& config, const Extents& shape) {
    const std::string embedding_name = "wte.weight", head_name = "lm_head.weight";
    const bool has_head = weights.find(head_name), only_head = has_head && !weights.find(embedding_name);
    wte = weights.take(only_head && config.tied ? head_name : embedding_name, shape);
    head = has_head ? weights.take(head_name, shape) : wte;
  }

  /// To be called when both are known to be well formed.
  void tie(const SafeTensors& file, const Gpt2Config& config) {
    if (wte == head) {
      if (!config.tied) {
        log_warn(
            fmt::format("{} has no lm_head.weight, though tie_word_embeddings is false in config.json; the head is {}",
                        in_quotes(file.path().native()), wte->name));
      }
    } else if (config.tied) {
      if (are_equal(file, *wte, *head)) {
        head = wte;
      } else {
        log_warn(
            fmt::format("{} has {} and {}, which differ, though tie_word_embeddings is true in config.json or "
                        "missing; both are used, as in transformers 5. If this is intended, set "
                        "tie_word_embeddings to false",
                        in_quotes(file.path().native()), wte->name, head->name));
      }
    }
  }
};

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder) {
  require_model_folder(folder);
  Checkpoint model{.config = read_config(folder),
                   .defaults = read_generation_config(folder),
                   .file = open_weights(folder),
                   .layers = {}};
  if (model.file.tensors().empty()) {
    throw Error(fmt::format("{} holds no weights", in_quotes(model.file.path().native())));
  }

  const auto vocab = static_cast<std::uint64_t>(model.config.vocab);
  const auto positions = static_cast<std::uint64_t>(model.config.positions);
  const auto width = static_cast<std::uint64_t>(model.config.width);
  const auto inner = static_cast<std::uint64_t>(model.config.inner);
  WeightList weights(model.file);
  Embeddings embeddings(weights, model.config, {vocab, width});
  model.wpe = weights.take("wpe.weight", {positions, width});
  for (std::int32_t i = 0; i < model.config.layers; ++i) {
    const auto take = [&](std::string_view name, const Extents& shape) {
      return weights.take(fmt::format("h.{}.{}", i, name), shape);
    };
    Checkpoint::Layer& layer = model.layers.emplace_back();
#define LAYER_VECTOR(member, file_name, size, initial) layer.member = take(file_name, {size});
#define LAYER_MATRIX(member, file_name, rows, columns) layer.member = take(file_name, {rows, columns});
#include "model/layer_weights.def"
  }
  model.ln_f_weight = weights.take("ln_f.weight", {width});
  model.ln_f_bias = weights.take("ln_f.bias", {width});
  weights.finish();
  embeddings.tie(model.file, model.config);
  model.wte = embeddings.wte, model.head = embeddings.head;
  return model;
}

}  // namespace tessera::internal
