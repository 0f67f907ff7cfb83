// Lesson 7: GPT-2 (Radford et al., 2019) as an expression of tensors, beside the model written in kernels: both compute
// the logits of the same text, with the weights of the small model that comes with Tessera.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <tessera/model.hpp>
#include <tessera/tensors.hpp>
#include "common/program.hpp"
#include "lesson.hpp"

using namespace tessera;

struct Layer {
  Tensor<f32, 1> norm1, shift1, qkv_bias, project_bias, norm2, shift2, up_bias, down_bias;
  Tensor<f32, 2> qkv, project, up, down;
};
struct Gpt2 {
  std::int64_t heads;
  Tensor<f32, 2> embedding, positions;
  std::vector<Layer> layers;
  Tensor<f32, 1> norm, shift;

  /// A layer: x [batch, tokens, width].
  Lazy<f32, 3> apply(const Layer& layer, const Lazy<f32, 3>& x) const {
    const std::int64_t batch = x.extent(0), tokens = x.extent(1), width = x.extent(2);
    const auto all = x.layer_norm(layer.norm1, layer.shift1).linear(layer.qkv, layer.qkv_bias);
    const auto head_parts = [&](std::int64_t i) {
      return all.slice(2, i * width, width).reshape({batch, tokens, heads, width / heads}).permute({0, 2, 1, 3});
    };
    const auto seen = head_parts(0).attention(head_parts(1), head_parts(2), {.causal = true});
    const auto joined = seen.permute({0, 2, 1, 3}).reshape({batch, tokens, width});
    const auto h = x + joined.linear(layer.project, layer.project_bias);
    const auto normed = h.layer_norm(layer.norm2, layer.shift2);
    return h + normed.linear(layer.up, layer.up_bias).gelu_tanh().linear(layer.down, layer.down_bias);
  }
  /// Logits [batch, tokens, vocabulary] at each position of ids [batch, tokens].
  Lazy<f32, 3> operator()(const Lazy<i32, 2>& ids) const {
    Lazy<f32, 3> x = tessera::embedding(ids, embedding) + tile(positions).slice(0, 0, ids.extent(1));
    for (const Layer& layer : layers) x = apply(layer, x);
    return x.layer_norm(norm, shift).linear(embedding.transposed());
  }
};

/// A weight of the checkpoint, in f32.
template <int R>
Tensor<f32, R> weight(const Device& device, const SafeTensors& file, const std::string& name) {
  const StoredTensor* stored = file.find("transformer." + name);
  if (!stored || stored->shape.size() != R || stored->type != StoredType::f16)
    throw Error("the checkpoint has no f16 tensor of " + std::to_string(R) + " axes called transformer." + name);
  std::array<std::int64_t, R> extents;
  for (std::size_t axis = 0; axis < R; ++axis) extents[axis] = static_cast<std::int64_t>(stored->shape[axis]);
  const std::vector<std::byte> bytes = file.read(*stored);
  const Tensor<f16, R> half(device, extents);
  half.copy_from(std::span(reinterpret_cast<const f16*>(bytes.data()), bytes.size() / sizeof(f16)));
  return tile(half).template cast<f32>().run();
}
Gpt2 load(const Device& device, const std::filesystem::path& folder, int layers, int heads) {
  const auto file = SafeTensors::open(folder / "model.safetensors");
  const auto vector = [&](const std::string& name) { return weight<1>(device, file, name); };
  const auto matrix = [&](const std::string& name) { return weight<2>(device, file, name); };
  Gpt2 model{heads, matrix("wte.weight"), matrix("wpe.weight"), {}, vector("ln_f.weight"), vector("ln_f.bias")};
  for (int i = 0; i < layers; ++i) {
    const std::string h = "h." + std::to_string(i) + ".";
    model.layers.push_back({vector(h + "ln_1.weight"), vector(h + "ln_1.bias"), vector(h + "attn.c_attn.bias"),
                            vector(h + "attn.c_proj.bias"), vector(h + "ln_2.weight"), vector(h + "ln_2.bias"),
                            vector(h + "mlp.c_fc.bias"), vector(h + "mlp.c_proj.bias"),
                            matrix(h + "attn.c_attn.weight"), matrix(h + "attn.c_proj.weight"),
                            matrix(h + "mlp.c_fc.weight"), matrix(h + "mlp.c_proj.weight")});
  }
  return model;
}

int main(int argc, char** argv) {
  const std::filesystem::path folder = internal::shipped_model();
  const std::vector<std::int32_t> text{45, 112, 7, 3001, 260, 17, 98, 1024, 5};
  const auto ids_on = [&](const Device& device) {
    auto ids = device.tensor<i32>({1, static_cast<std::int64_t>(text.size())});
    ids.copy_from(text);
    return ids;
  };
  const auto kernels = [&] {
    const Device device = Device::cpu();
    const Lazy<f32, 3> logits = load(device, folder, 6, 4)(tile(ids_on(device)));
    std::string text = logits.describe(Arch::sm_90a);
    for (const auto& kernel : logits.kernels(Arch::sm_90a)) text += "\n" + to_string(kernel->traced());
    return text;
  };
  return run_lesson(argc, argv, "07_gpt2", kernels, [&] {
    const Device device = Device::best();
    const std::vector<f32> logits = load(device, folder, 6, 4)(tile(ids_on(device))).run().to_vector();
    Session session(Model(device, Checkpoint::open(folder)), 1, 64);
    session.append(std::vector<std::vector<std::int32_t>>{text});
    const std::vector<f32> expected = session.all_logits();
    double error = 0, squares = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double difference = std::abs(static_cast<double>(logits[i]) - expected[i]);
      if (!(difference <= error)) error = std::isnan(difference) ? inf : difference;
      squares += static_cast<double>(expected[i]) * expected[i];
    }
    const double relative = error / std::sqrt(squares / static_cast<double>(logits.size())), allowed = 1e-4;
    std::printf("07_gpt2: max error %.1e of the logits' root mean square (allowed %.0e)\n", relative, allowed);
    return logits.size() == expected.size() && relative <= allowed;
  });
}
