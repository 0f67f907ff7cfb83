#include "common/model_rows.hpp"

#include <fmt/format.h>

#include "common/program.hpp"
#include "tessera/model/session.hpp"

namespace tessera::internal::bench {
namespace {

using Prompts = std::vector<std::vector<std::int32_t>>;

/// The peer's tokens are the same.
Prompts equal_prompts(const TransformerConfig& config, int batch, int length) {
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(config.vocab));
  return Prompts(static_cast<std::size_t>(batch), prompt);
}

/// A model, sequences in it, and the calls of a turn.
struct ModelSetup {
  TransformerConfig config;
  Compute compute;
  int batch, length;
  std::string size = {};  // suffix of the row's name
};

class ModelWorkload : public Workload {
 public:
  ModelWorkload(const Device& device, const ModelSetup& setup, int calls)
      : setup_(setup), calls_(calls), model_(device, setup.config, 0, setup.compute) {}
  std::optional<double> launched() override { return {}; }
  std::optional<double> error() override { return {}; }

 protected:
  ModelSetup setup_;
  int calls_;
  Model model_;
};

class Decoding final : public ModelWorkload {
 public:
  using ModelWorkload::ModelWorkload;

  double turn() override {
    // A session allocates its memory and records its graphs in its first single-token steps, which are not timed.
    constexpr int untimed = 5;
    Prompts tokens = equal_prompts(setup_.config, setup_.batch, setup_.length - untimed);
    Session session(model_, setup_.batch, setup_.length + calls_);
    const auto next = [&] {
      session.append(tokens);
      const std::vector<std::int32_t> sampled = session.sample(Sampling());
      for (std::size_t b = 0; b < sampled.size(); ++b) tokens[b].assign(1, sampled[b]);
    };
    next();  // the prompts
    for (int i = 0; i < untimed; ++i) next();
    const Stopwatch watch;
    for (int i = 0; i < calls_; ++i) next();
    return watch.milliseconds() / calls_;
  }
};

/// Prompts in a session that is kept and emptied before each call, as the peer keeps its memory.
class Prompting : public ModelWorkload {
 public:
  Prompting(const Device& device, const ModelSetup& setup, int calls)
      : ModelWorkload(device, setup, calls), session_(model_, setup.batch, setup.length) {}

  double turn() override {
    constexpr int untimed = 3;  // a session allocates memory in its first call, and records a graph in its second
    const Prompts prompts = equal_prompts(setup_.config, setup_.batch, setup_.length);
    double milliseconds = 0;
    for (int i = -untimed; i < calls_; ++i) {
      for (int sequence = 0; sequence < setup_.batch; ++sequence) session_.clear(sequence);
      model_.device().stream().synchronize();
      const Stopwatch watch;
      session_.append(prompts);
      finish();
      if (i >= 0) milliseconds += watch.milliseconds();
    }
    return milliseconds / calls_;
  }

 protected:
  virtual void finish() = 0;

  Session session_;
};

class Prefilling final : public Prompting {
 public:
  using Prompting::Prompting;

 private:
  void finish() override { session_.sample(Sampling()); }
};

class Forwarding final : public Prompting {
 public:
  Forwarding(const Device& device, const ModelSetup& setup, int calls) : Prompting(device, setup, calls) {
    const std::int64_t columns = (setup.config.vocab + 63) / 64 * 64;  // rows of a multiple of 128 bytes
    const std::int64_t rows = static_cast<std::int64_t>(setup.batch) * setup.length;
    if (setup.compute == Compute::bf16)
      halves_ = Tensor<bf16, 2>(device, {rows, columns});
    else
      logits_ = Tensor<f32, 2>(device, {rows, columns});
  }

 private:
  void finish() override {
    if (setup_.compute == Compute::bf16)
      session_.all_logits(halves_);
    else
      session_.all_logits(logits_);
    model_.device().stream().synchronize();
  }

  // One of these, in the peer's type.
  Tensor<f32, 2> logits_;
  Tensor<bf16, 2> halves_;
};

struct TypeOfModel {
  std::string_view name;
  Resource resource;
  double bytes;  // of a weight, and of an element of the cache
};
TypeOfModel type_of(Compute compute) {
  switch (compute) {
    case Compute::f32:
      return {"f32", Resource::f32, 4};
    case Compute::tf32:
      return {"tf32", Resource::tf32, 4};
    case Compute::bf16:
      break;
  }
  return {"bf16", Resource::bf16, 2};
}

// Number of weights that a position reads, without those of the logits.
double weights_of(const TransformerConfig& config) {
  const double width = config.width;
  return config.layers * width * (config.qkv_width() + config.query_width() + config.up_width() + config.inner);
}
double weights_of_logits(const TransformerConfig& config) { return static_cast<double>(config.vocab) * config.width; }

// Operations of prompts, and of logits at so many positions of each.
double operations(const ModelSetup& setup, int logits) {
  const double positions = static_cast<double>(setup.batch) * setup.length;
  // Half of all pairs of positions are attended, by keys and by values.
  const double attention = 2.0 * setup.config.layers * positions * setup.length * setup.config.query_width();
  return 2 * positions * weights_of(setup.config) + attention +
         2.0 * setup.batch * logits * weights_of_logits(setup.config);
}

template <class W>
Row model_row(std::string op, const ModelSetup& setup) {
  const TransformerConfig& config = setup.config;
  const TypeOfModel type = type_of(setup.compute);
  Row row{.op = std::move(op),
          .type = std::string(type.name),
          .form = setup.size,
          .shape = {setup.batch, setup.length},
          .details = {config.layers, config.width, config.heads, config.vocab, config.positions},
          .resource = type.resource};
  row.bytes = type.bytes * (weights_of(config) + weights_of_logits(config));
  row.make = [=](const Device& device, const Turns& turns) { return std::make_unique<W>(device, setup, turns.calls); };
  return row;
}

Row prefill(const ModelSetup& setup) {
  Row row = model_row<Prefilling>("prefill", setup);
  row.work = operations(setup, 1);
  return row;
}

Row decode(const ModelSetup& setup) {
  Row row = model_row<Decoding>("decode", setup);
  row.resource = Resource::memory;
  row.layers = setup.config.layers;
  row.bytes +=
      type_of(setup.compute).bytes * 2 * setup.config.layers * setup.config.key_width() * setup.batch * setup.length;
  row.work = row.bytes;
  return row;
}

Row forward(const ModelSetup& setup) {
  Row row = model_row<Forwarding>("logits", setup);
  row.group = "forward";
  row.work = operations(setup, setup.length);
  return row;
}

TransformerConfig gpt_of(int layers, int width, int heads) {
  TransformerConfig config = preset("gpt2");
  config.layers = layers, config.width = width, config.heads = heads, config.inner = 4 * width;
  return config;
}

}  // namespace

std::vector<Row> model_rows(bool small) {
  constexpr Compute bf16 = Compute::bf16;
  std::vector<Row> rows;
  const auto add_decode =
      [&](int cached, std::initializer_list<int> batches, std::initializer_list<std::string_view> sizes) {
    for (const std::string_view size : sizes)
      for (const int batch : batches)
        rows.push_back(decode(
            {preset(size.empty() ? "gpt2" : fmt::format("gpt2-{}", size)), bf16, batch, cached, std::string(size)}));
  };
  if (small) {
    for (const int batch : {1, 2}) rows.push_back(decode({preset("nano"), bf16, batch, 8}));
    rows.push_back(prefill({preset("nano"), bf16, 2, 16}));
  } else {
    add_decode(256, {1}, {"", "medium", "large", "xl"});
    add_decode(1003, {1}, {"", "xl"});  // the 20 steps of a turn fill the cache
    add_decode(256, {8, 64, 256}, {"", "xl"});
    rows.push_back(prefill({preset("gpt2"), bf16, 8, 1024}));
  }

  struct Size {
    std::string_view name;
    int layers, width, heads;
  };
  std::vector<Size> sizes{{"nano", 3, 48, 3}, {"small", 6, 384, 6}, {"medium", 8, 512, 8}};
  std::vector<int> batches{1, 4, 8, 16}, lengths{64, 128, 256};
  if (small) sizes.resize(1), batches = {1, 2}, lengths = {4, 8};
  for (const Compute compute : {bf16, Compute::tf32})
    for (const Size& size : sizes)
      for (const int batch : batches)
        for (const int length : lengths)
          rows.push_back(
              forward({gpt_of(size.layers, size.width, size.heads), compute, batch, length, std::string(size.name)}));
  return rows;
}

}  // namespace tessera::internal::bench
