#include "common/decode.hpp"

#include "common/program.hpp"

namespace tessera::bench {
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
    next(), next();  // the prompt, and a first token, with which the session takes its memory for the others
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

}  // namespace

Row decode(const Gpt2Config& config, Compute compute, int cached) {
  const double width = config.width, inner = config.inner;
  const double weights = config.layers * (4 * width * width + 2 * width * inner) + config.vocab * width;
  const bool narrow = compute == Compute::bf16;
  Row row{.op = "decode", .type = narrow ? "bf16" : "f32", .shape = {1, cached}, .work = (narrow ? 2 : 4) * weights};
  row.bytes = row.work;
  row.make = [=](const Device& device, const Turns& turns) {
    return std::make_unique<Decoding>(device, config, compute, cached, turns.calls);
  };
  return row;
}

}  // namespace tessera::bench
