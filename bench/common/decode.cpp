#include "common/decode.hpp"

#include "common/program.hpp"

namespace tessera::internal::bench {
namespace {

class Decoding final : public Workload {
 public:
  Decoding(const Device& device, const Gpt2Config& config, Compute compute, int cached, int calls)
      : model_(device, config, 0, compute), cached_(cached), calls_(calls) {}

  double turn() override {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(cached_ - 1));
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(model_.config().vocab));
    Session session(model_, 1, cached_ + calls_);
    const auto next = [&] {
      session.append({&tokens, 1});
      tokens = session.sample(Sampling());
    };
    next(), next();  // the prompt, and a first token, for which the session allocates all its memory
    const Stopwatch watch;
    for (int i = 0; i < calls_; ++i) next();
    return watch.milliseconds() / calls_;
  }
  std::optional<double> launched() override { return {}; }
  std::optional<double> error() override { return {}; }

 private:
  Gpt2 model_;
  int cached_, calls_;
};

class Prefilling final : public Workload {
 public:
  Prefilling(const Device& device, const Gpt2Config& config, Compute compute, int batch, int length, int calls)
      : model_(device, config, 0, compute), batch_(batch), length_(length), calls_(calls) {}

  double turn() override {
    std::vector<std::int32_t> prompt(static_cast<std::size_t>(length_));
    for (std::size_t i = 0; i < prompt.size(); ++i)
      prompt[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(model_.config().vocab));
    const std::vector prompts(static_cast<std::size_t>(batch_), prompt);
    double milliseconds = 0;
    for (int i = 0; i <= calls_; ++i) {
      Session session(model_, batch_, length_);
      const Stopwatch watch;
      session.append(prompts);
      session.sample(Sampling());
      if (i > 0) milliseconds += watch.milliseconds();
    }
    return milliseconds / calls_;
  }
  std::optional<double> launched() override { return {}; }
  std::optional<double> error() override { return {}; }

 private:
  Gpt2 model_;
  int batch_, length_, calls_;
};

// Number of weights that a position reads, without those of the logits.
double weights_of(const Gpt2Config& config) {
  const double width = config.width, inner = config.inner;
  return config.layers * (4 * width * width + 2 * width * inner);
}

}  // namespace

Row prefill(const Gpt2Config& config, Compute compute, int batch, int length) {
  const bool narrow = compute == Compute::bf16;
  const double positions = static_cast<double>(batch) * length;
  // Half of all pairs of positions are attended, by keys and by values.
  const double attention = 2.0 * config.layers * positions * length * config.width;
  Row row{.op = "prefill",
          .type = narrow ? "bf16" : "f32",
          .shape = {batch, length},
          .resource = narrow ? Resource::bf16 : Resource::f32,
          .work = 2 * positions * weights_of(config) + attention + 2.0 * batch * config.vocab * config.width};
  row.bytes = (narrow ? 2 : 4) * weights_of(config);
  row.make = [=](const Device& device, const Turns& turns) {
    return std::make_unique<Prefilling>(device, config, compute, batch, length, turns.calls);
  };
  return row;
}

Row decode(const Gpt2Config& config, Compute compute, int cached) {
  const double weights = weights_of(config) + static_cast<double>(config.vocab) * config.width;
  const bool narrow = compute == Compute::bf16;
  Row row{.op = "decode", .type = narrow ? "bf16" : "f32", .shape = {1, cached}, .work = (narrow ? 2 : 4) * weights};
  row.bytes = row.work;
  row.make = [=](const Device& device, const Turns& turns) {
    return std::make_unique<Decoding>(device, config, compute, cached, turns.calls);
  };
  return row;
}

}  // namespace tessera::internal::bench
