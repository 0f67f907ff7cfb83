// One step of the Adam optimizer (Kingma and Ba, 2015), in place: for one tensor, and for all tensors of a model in one
// launch.
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

struct Rates {
  Scalar<f32> rate, correction1, correction2;
};

// Updates `size` elements from tile i on.
struct AdamUpdate {
  int size;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  void operator()(InOut<f32, 1> parameters, In<f32, 1> gradients, InOut<f32, 1> means, InOut<f32, 1> squares,
                  Rates rates, Index i) const {
    Tile p = load(parameters, {i}, {size}), g = load(gradients, {i}, {size});
    Tile m = load(means, {i}, {size}), v = load(squares, {i}, {size});
    Tile mean = beta1 * m + (1 - beta1) * g, square = beta2 * v + (1 - beta2) * g * g;
    store(means, {i}, mean);
    store(squares, {i}, square);
    store(parameters, {i}, p - rates.rate * (mean / rates.correction1) / (sqrt(square / rates.correction2) + eps));
  }
};

auto adam(AdamUpdate update) {
  return kernel("adam", [=](InOut<f32, 1> parameters, In<f32, 1> gradients, InOut<f32, 1> means, InOut<f32, 1> squares,
                            Scalar<f32> rate, Scalar<f32> correction1, Scalar<f32> correction2) {
    same_extents(parameters, gradients);
    same_extents(parameters, means);
    same_extents(parameters, squares);
    Index i = blocks(cdiv(parameters.extent(0), update.size));
    update(parameters, gradients, means, squares, {rate, correction1, correction2}, i);
  });
}

// A tensor has as many blocks as it has tiles; a block finds its tensor by counting them.
template <int most>
auto multi_tensor_adam(AdamUpdate update) {
  return kernel("multi_tensor_adam", [=](List<InOut<f32, 1>, most> parameters, List<In<f32, 1>, most> gradients,
                                         List<InOut<f32, 1>, most> means, List<InOut<f32, 1>, most> squares,
                                         Scalar<f32> rate, Scalar<f32> correction1, Scalar<f32> correction2) {
    const auto tiles = [&](const auto& tensor) { return Index(cdiv(parameters[tensor].extent(0), update.size)); };
    Var all = constant<i32>(0);
    for (int tensor = 0; tensor < most; ++tensor) {
      same_extents(parameters[tensor], gradients[tensor]);
      same_extents(parameters[tensor], means[tensor]);
      same_extents(parameters[tensor], squares[tensor]);
      all = all + tiles(tensor);
    }
    Var tensor = constant<i32>(0);
    Var i = blocks(all);
    while_([&] { return i >= tiles(tensor); }, [&] {
      i = i - tiles(tensor);
      tensor = tensor + 1;
    });
    const Index at = tensor;
    update(parameters[at], gradients[at], means[at], squares[at], {rate, correction1, correction2}, i);
  });
}

namespace {

// The parameters of a model, and the same in double precision.
class Model {
 public:
  Model(const Device& device, const std::vector<std::int64_t>& counts) : device_(device) {
    for (const std::int64_t count : counts) {
      const auto values = normal_values(count, static_cast<unsigned>(count));
      const std::vector<f32> zeros(static_cast<std::size_t>(count));
      parameters.push_back(tensor_of(device, {count}, values));
      means.push_back(tensor_of(device, {count}, zeros));
      squares.push_back(tensor_of(device, {count}, zeros));
      expected_.emplace_back(values.begin(), values.end());
      m_.emplace_back(count), v_.emplace_back(count);
    }
  }
  // Calls launch(gradients, rate, correction1, correction2) three times.
  template <class Launch>
  void train(const AdamUpdate& adam, const Launch& launch) {
    const double rate = 1e-3;
    for (int t = 1; t <= 3; ++t) {
      const double correction1 = 1 - std::pow(adam.beta1, t), correction2 = 1 - std::pow(adam.beta2, t);
      std::vector<Tensor<f32, 1>> gradients;
      for (std::size_t k = 0; k < parameters.size(); ++k) {
        const auto g = normal_values(parameters[k].size(), static_cast<unsigned>(100 * t + k));
        gradients.push_back(tensor_of(device_, {parameters[k].size()}, g));
        for (std::size_t i = 0; i < g.size(); ++i) {
          double &m = m_[k][i], &v = v_[k][i];
          m = adam.beta1 * m + (1 - adam.beta1) * g[i];
          v = adam.beta2 * v + (1 - adam.beta2) * g[i] * g[i];
          expected_[k][i] -= rate * (m / correction1) / (std::sqrt(v / correction2) + adam.eps);
        }
      }
      launch(gradients, rate, correction1, correction2);
    }
  }
  double largest_error() const {
    double worst = 0;
    for (std::size_t k = 0; k < parameters.size(); ++k)
      worst = std::max(worst, gallery::largest_error(parameters[k], expected_[k]));
    return worst;
  }

  std::vector<Tensor<f32, 1>> parameters, means, squares;

 private:
  const Device& device_;
  std::vector<std::vector<double>> expected_, m_, v_;
};

}  // namespace

const Example adam_example("adam", 1e-6, [](const Device& device) {
  const AdamUpdate update{.size = 1024};
  const auto step = adam(update);
  Model model(device, {10007});
  model.train(update, [&](const auto& gradients, double rate, double correction1, double correction2) {
    launch(device.stream(), step, model.parameters[0], gradients[0], model.means[0], model.squares[0], rate,
           correction1, correction2);
  });
  return model.largest_error();
});

const Example multi_tensor_adam_example("multi_tensor_adam", 1e-6, [](const Device& device) {
  const AdamUpdate update{.size = 256};
  const auto step = multi_tensor_adam<16>(update);
  Model model(device, {10007, 1, 256, 0, 300, 511, 70});
  model.train(update, [&](const auto& gradients, double rate, double correction1, double correction2) {
    launch(device.stream(), step, model.parameters, gradients, model.means, model.squares, rate, correction1,
           correction2);
  });
  return model.largest_error();
});

}  // namespace gallery
