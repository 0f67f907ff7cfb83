// A row whose kernels are not written: a function of tensors, compiled by compile().
#pragma once
#include <memory>
#include <tuple>
#include <utility>

#include "common/program.hpp"
#include "common/typed.hpp"
#include "tessera/tensors.hpp"

namespace tessera::internal::bench {

/// An input of a program: normal random numbers or, of an integer type, numbers in [0, limit).
template <class T, int R>
struct Input {
  using Element = T;
  static constexpr int rank = R;
  std::array<std::int64_t, R> extents;
  float deviation = 1;
  std::int64_t limit = 0;
  float mean = 0;
  float (*element)(const Normal&, std::size_t) = nullptr;  ///< if set, element i, from these numbers

  Tensor<T, R> make(const Device& device, std::size_t seed) const {
    const Normal normal(seed, deviation, mean);
    if (limit == 0 && !element) return tensor_of<T, R>(device, extents, normal);
    const Tensor<T, R> tensor(device, extents);
    std::vector<T> values(static_cast<std::size_t>(tensor.size()));
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(element ? element(normal, i)
                                         : static_cast<float>(random() % static_cast<std::uint64_t>(limit)));
    tensor.copy_from(values);
    return tensor;
  }
  double bytes() const {
    double bytes = sizeof(T);
    for (const std::int64_t extent : extents) bytes *= static_cast<double>(extent);
    return bytes;
  }
};

template <class T, int R>
void for_each_result(const Tensor<T, R>& result, const auto& work) {
  work(result);
}
template <class... Result>
void for_each_result(const std::tuple<Result...>& results, const auto& work) {
  std::apply([&](const auto&... result) { (work(result), ...); }, results);
}
/// The function's launches, recorded, over sets of arguments; it is checked against itself with a kernel for each op.
template <class F, class... A>
class TensorWorkload final : public Workload {
 public:
  TensorWorkload(const Device& device, const Turns& turns, const F& function, const A&... arguments)
      : function_(function), compiled_(compile(function)) {
    for (int set = 0; set < turns.sets; ++set)
      sets_.push_back([&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::tuple(arguments.make(device, static_cast<std::size_t>(set) * 100 + I)...);
      }(std::index_sequence_for<A...>()));
    const Stopwatch watch;
    launch(device.stream(), 0);
    device.stream().synchronize();
    first_ = watch.milliseconds();
    for (const auto& set : sets_) {
      sequences_.push_back(std::apply([&](const auto&... argument) { return compiled_.sequence(argument...); }, set));
      for_each_result(sequences_.back().results, []<class T, int R>(const Tensor<T, R>& result) {
        result.copy_from(std::vector<T>(static_cast<std::size_t>(result.size()), poison<T>()));
      });
    }
    captured_.emplace(
        device, turns,
        [this](const Stream& stream, int set) { sequences_[static_cast<std::size_t>(set)].sequence.run(stream); },
        [] { return 0.0; }, [this](const Stream& stream, int set) { launch(stream, set); });
  }

  double turn() override { return captured_->turn(); }
  std::optional<double> launched() override { return captured_->launched(); }
  std::optional<double> first() const override { return first_; }
  std::optional<double> error() override {
    const auto alone = std::apply(
        [&](const auto&... argument) {
      const auto results = function_(tile(argument)...);
      return run_lazy(detail::LazyResults<std::remove_const_t<decltype(results)>>::nodes(results), nullptr, false);
        },
        sets_.back());
    double worst = 0;
    std::size_t i = 0;
    for_each_result(sequences_.back().results, [&]<class T, int R>(const Tensor<T, R>& result) {
      const std::vector<T> expected = Tensor<T, R>(alone[i++]).to_vector();
      worst = std::max(worst, error_of(result, [&](std::int64_t at) {
                         return static_cast<double>(static_cast<float>(expected[static_cast<std::size_t>(at)]));
                       }));
    });
    return worst;
  }

 private:
  using Function = decltype(compile(std::declval<F>()));
  using Sequences =
      decltype(std::declval<Function>().sequence(std::declval<Tensor<typename A::Element, A::rank>>()...));
  void launch(const Stream& stream, int set) {
    std::apply([&](const auto&... argument) { compiled_.on(stream, argument...); },
               sets_[static_cast<std::size_t>(set)]);
  }

  F function_;
  Function compiled_;
  std::vector<std::tuple<Tensor<typename A::Element, A::rank>...>> sets_;
  std::vector<Sequences> sequences_;
  std::optional<Captured> captured_;
  double first_ = 0;
};

/// The row of a function of Lazy<T, R>... that returns a Lazy or a std::tuple of them. Its bytes are those of the
/// arguments: what no fusion can save.
template <class F, class... A>
Row tensor_row(std::string op, std::string type, std::vector<std::int64_t> shape, const F& function,
               const A&... arguments) {
  const double bytes = (arguments.bytes() + ...);
  Row row{.op = std::move(op),
          .type = std::move(type),
          .group = "tensors",
          .shape = std::move(shape),
          .work = bytes,
          .bytes = bytes,
          .allowed = 4e-2};  // both sides round intermediate results of bf16, at different places
  row.make = [=](const Device& device, const Turns& turns) {
    return std::make_unique<TensorWorkload<F, A...>>(device, turns, function, arguments...);
  };
  return row;
}

}  // namespace tessera::internal::bench
