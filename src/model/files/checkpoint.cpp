#include "tessera/model/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "jit/options/log.hpp"
#include "model/files/families.hpp"
#include "model/files/gguf_config.hpp"
#include "model/files/input_file.hpp"
#include "model/rotary.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/safetensors.hpp"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

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
      "a model is a folder with config.json, model.safetensors, vocab.json and merges.txt, or a .gguf file";
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

/// Finds weights by name and collects everything that is wrong, to report it at once.
class WeightList {
 public:
  WeightList(const StoredFile& file, const TransformerConfig& config, const FamilyNames& names)
      : file_(file), config_(config), names_(names) {}

  /// The tensor `name`, with or without the prefix; null if there is none.
  const StoredTensor* find(const std::string& name) const {
    const StoredTensor* found = file_.find(std::string(names_.prefix) + name);
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
    const bool in_blocks = elements_of_block(found->type) > 1 && shape.size() > 1;
    if (found->type != StoredType::f32 && found->type != StoredType::f16 && found->type != StoredType::bf16 &&
        !in_blocks) {
      mistyped_.push_back(fmt::format("{} {}", found->name, tessera::internal::name(found->type)));
    }
    return found;
  }

  /// The parts of a layer's weight [rows, columns], or of a vector [columns]. `names` are those of the family.
  StoredParts take_weight(const std::string& prefix, const FamilyNames::Layer::Parts& names,
                          std::optional<std::int32_t> rows, std::int32_t columns) {
    const FamilyNames::Layer& all = names_.weights;
    if (&names == &all.qkv || &names == &all.qkv_bias) return take_qkv(prefix, names, rows);
    if (&names == &all.query_norm || &names == &all.key_norm) return take_head_norm(prefix, names, columns);
    return take_parts(prefix, names, rows, columns);
  }

  /// Throws Error unless all weights were found and well formed, and none are left over.
  void finish(std::string_view described_by) const {
    std::vector<std::string> extra;
    for (const StoredTensor& tensor : file_.tensors()) {
      if (!taken_.contains(&tensor) && !is_ignored(tensor.name)) extra.push_back(in_quotes(tensor.name));
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
      throw Error(fmt::format("{} does not hold the weights of the model that {} describes{}",
                              in_quotes(file_.path().native()), described_by, faults));
    }
  }

 private:
  /// Is it no weight, by its name, or by its ending behind a layer's prefix?
  bool is_ignored(std::string_view name) const {
    if (std::ranges::find(names_.ignored_beside_layers, name) != names_.ignored_beside_layers.end()) return true;
    if (name.starts_with(names_.prefix)) name.remove_prefix(names_.prefix.size());
    const std::string_view before = names_.layer.substr(0, names_.layer.find('{'));
    const std::string_view after = names_.layer.substr(names_.layer.find('}') + 1);
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    if (digits == 0 || !name.starts_with(after)) return false;
    return std::ranges::find(names_.ignored, name.substr(after.size())) != names_.ignored.end();
  }

  /// Gate and up, or one tensor of all.
  StoredParts take_parts(const std::string& prefix, const FamilyNames::Layer::Parts& names,
                         std::optional<std::int32_t> rows, std::int32_t columns) {
    StoredParts parts;
    for (const std::string_view name : names)
      parts.push_back({take(prefix + std::string(name), shape_of(rows, columns / static_cast<int>(names.size())))});
    return parts;
  }

  /// The parts of QKV, or of its bias: queries, keys and values, whose heads have the order of memory.
  StoredParts take_qkv(const std::string& prefix, const FamilyNames::Layer::Parts& names,
                       std::optional<std::int32_t> rows) {
    const bool is_one = names.size() == 1, is_in_order = !config_.is_rotary() || order_of_head(config_).size() == 1;
    if (is_one && !names_.qkv_by_head && is_in_order) return take_parts(prefix, names, rows, config_.qkv_width());
    StoredParts parts;
    const std::int64_t width = config_.head_width();
    std::int64_t heads_before = 0;  // in one tensor of all
    for (const std::int64_t which : {0, 1, 2}) {
      const std::int32_t heads = which == 0 ? config_.heads : config_.key_heads();
      StoredPart part;
      if (is_one)
        part.tensor =
            which == 0 ? take(prefix + std::string(names[0]), shape_of(rows, config_.qkv_width())) : parts[0].tensor;
      else
        part.tensor = take(prefix + std::string(names[static_cast<std::size_t>(which)]),
                           shape_of(rows, heads * config_.head_width()));
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t first = (names_.qkv_by_head ? 3 * head + which : heads_before + head) * width;
        if (which == 2)
          append(part.rows, {first, width});
        else
          append_head(part.rows, first);
      }
      if (is_one) heads_before += heads;
      parts.push_back(std::move(part));
    }
    return parts;
  }

  /// The same for the norms of queries or keys, of one head or of all.
  StoredParts take_head_norm(const std::string& prefix, const FamilyNames::Layer::Parts& names, std::int32_t columns) {
    StoredParts parts = take_parts(prefix, names, {}, columns);
    for (StoredPart& part : parts)
      for (std::int32_t first = 0; first < columns; first += config_.head_width()) append_head(part.rows, first);
    return parts;
  }

  Extents shape_of(std::optional<std::int32_t> rows, std::int32_t columns) const {
    Extents shape{static_cast<std::uint64_t>(columns)};
    if (rows) shape.insert(names_.is_out_in ? shape.end() : shape.begin(), static_cast<std::uint64_t>(*rows));
    return shape;
  }
  static void append(std::vector<StoredRun>& rows, StoredRun run) {
    if (run.count == 0) return;
    if (!rows.empty() && rows.back().first + rows.back().count == run.first)
      rows.back().count += run.count;
    else
      rows.push_back(run);
  }
  void append_head(std::vector<StoredRun>& rows, std::int64_t first) const {
    for (const StoredRun& run : order_of_head(config_)) append(rows, {first + run.first, run.count});
  }

  const StoredFile& file_;
  const TransformerConfig& config_;
  const FamilyNames& names_;
  std::unordered_set<const StoredTensor*> taken_;
  std::vector<std::string> missing_, misshapen_, mistyped_;
};

/// Do they have the same type and the same bytes?
bool are_equal(const StoredFile& file, const StoredTensor& a, const StoredTensor& b) {
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
  const StoredTensor *embedding, *head;
  Embeddings(WeightList& weights, const FamilyNames& names, const TransformerConfig& config, const Extents& shape) {
    const std::string embedding_name(names.embedding), head_name(names.head);
    const bool has_head = weights.find(head_name), only_head = has_head && !weights.find(embedding_name);
    embedding = weights.take(only_head && config.tied ? head_name : embedding_name, shape);
    head = has_head ? weights.take(head_name, shape) : embedding;
  }

  /// To be called when both are known to be well formed.
  void tie(const StoredFile& file, const FamilyNames& names, const TransformerConfig& config) {
    if (embedding == head) {
      if (!config.tied) {
        log_warn(fmt::format("{} has no {}, though tie_word_embeddings is false in config.json; the head is {}",
                             in_quotes(file.path().native()), names.head, embedding->name));
      }
    } else if (config.tied) {
      if (are_equal(file, *embedding, *head)) {
        head = embedding;
      } else {
        log_warn(
            fmt::format("{} has {} and {}, which differ, though tie_word_embeddings is true in config.json or "
                        "missing; both are used, as in transformers 5. If this is intended, set "
                        "tie_word_embeddings to false",
                        in_quotes(file.path().native()), embedding->name, head->name));
      }
    }
  }
};

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
  const std::optional<fs::path> gguf = gguf_at(path);
  const auto opened = [&] {
    if (gguf) {
      const Gguf file = Gguf::open(*gguf);
      GgufModel model = read_gguf_config(file);
      return std::pair(Checkpoint{.config = std::move(model.config), .defaults = {}, .file = file, .layers = {}},
                       std::move(model.names));
    }
    require_model_folder(path);
    TransformerConfig config = read_config(path);
    const FamilyNames& names = names_of(config.family);
    return std::pair(Checkpoint{.config = std::move(config),
                                .defaults = read_generation_config(path),
                                .file = open_weights(path),
                                .layers = {}},
                     names);
  };
  auto [model, names] = opened();
  if (model.file.tensors().empty()) {
    throw Error(fmt::format("{} holds no weights", in_quotes(model.file.path().native())));
  }

  const TransformerConfig& c = model.config;
  const auto vocab = static_cast<std::uint64_t>(c.vocab), width = static_cast<std::uint64_t>(c.width);
  model.is_out_in = names.is_out_in;
  WeightList weights(model.file, c, names);
  Embeddings embeddings(weights, names, c, {vocab, width});
  if (!c.is_rotary()) {
    const auto rows = static_cast<std::uint64_t>(c.positions + c.position_offset);
    model.positions = {weights.take(std::string(names.positions), {rows, width}), {{c.position_offset, c.positions}}};
  }
  for (std::int32_t i = 0; i < c.layers; ++i) {
    const std::string prefix = fmt::format(fmt::runtime(names.layer), i);
    Checkpoint::Layer& layer = model.layers.emplace_back();
#define LAYER_VECTOR(member, size, initial, is_stored) \
  if (is_stored) layer.member = weights.take_weight(prefix, names.weights.member, {}, size);
#define LAYER_MATRIX(member, rows, columns) \
  layer.member = weights.take_weight(prefix, names.weights.member, rows, columns);
#include "model/layer_weights.def"
  }
  model.last_norm = weights.take(std::string(names.last_norm), {width});
  if (c.norm == Norm::layer) model.last_norm_bias = weights.take(std::string(names.last_norm_bias), {width});
  weights.finish(gguf ? "its metadata" : "config.json");
  embeddings.tie(model.file, names, c);
  model.embedding = embeddings.embedding, model.head = embeddings.head;
  model.config.tied = model.head == model.embedding;
  return model;
}

}  // namespace tessera::internal
