// Weights of a model in the memory of a device: read from a file or random, with the layout that its kernels want.
#pragma once
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>

#include "model/decode_kernels.hpp"
#include "tessera/model/safetensors.hpp"

namespace tessera::internal {

constexpr int elements_per_block = 4096;  // in kernels that read or write memory once

/// Prefers large pages: reading a file into them is four times as fast, and later accesses need fewer TLB entries. The
/// memory is newly allocated. It does no harm if it does not begin and end with whole pages, or if there are none.
inline void prefer_large_pages(std::span<std::byte> memory) {
  constexpr std::uintptr_t large = std::uintptr_t{1} << 21;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory.data()) + large - 1) / large * large;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size()) / large * large;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

/// Weights [K,N], copied so that they are contiguous along K.
template <Element To, Element From>
Tensor<To, 2> transposed(const Tensor<From, 2>& weights, const Stream& stream) {
  static const auto& transpose = *new auto(kernels::transpose_weights<To, From>(64, 64));
  const Tensor<To, 2> result(weights.device(), {weights.extent(1), weights.extent(0)});
  launch(stream, transpose, weights, result);
  return result.transposed();
}

/// Reads weights into device memory and converts them to the requested element type.
class WeightLoader {
 public:
  using Progress = std::function<void(double)>;

  WeightLoader(const Device& device, const SafeTensors& file, const Progress& progress)
      : device_(device), stream_(device.stream()), file_(file), progress_(progress) {
    if (!device.shares_host_memory()) pinned_ = device.pinned(pinned_bytes);
    for (const StoredTensor& stored : file.tensors()) size_ += stored.size;
  }

  /// `along_k`: weights [K,N], which are stored row by row, are contiguous along K afterwards.
  template <Element T, int R>
  Tensor<T, R> load(const StoredTensor& stored, bool along_k = false) const {
    typename Tensor<T, R>::Extents extents{};
    for (std::size_t i = 0; i < R; ++i) extents[i] = static_cast<std::int64_t>(stored.shape[i]);
    const auto from = [&]<Element From>() -> Tensor<T, R> {
      const Tensor<From, 1> flat = bring<From>(stored);
      if constexpr (R == 2)
        if (along_k) return transposed<T>(flat.reshaped(extents), stream_);
      return as<T, R>(flat, extents);
    };
    switch (stored.type) {
      case StoredType::f32:
        return from.template operator()<f32>();
      case StoredType::f16:
        return from.template operator()<f16>();
      case StoredType::bf16:
        return from.template operator()<bf16>();
      default:
        throw Error(fmt::format("weight '{}' is {}; supported are F32, F16 and BF16", stored.name,
                                tessera::internal::name(stored.type)));
    }
  }

 private:
  template <Element From>
  Tensor<From, 1> bring(const StoredTensor& stored) const {
    const Tensor<From, 1> weights(device_, {static_cast<std::int64_t>(stored.size / sizeof(From))});
    const std::span to = std::as_writable_bytes(std::span(weights.data(), static_cast<std::size_t>(weights.size())));
    if (device_.shares_host_memory()) {
      prefer_large_pages(to);
      file_.read(stored, to);
      count(to.size());
      return weights;
    }
    for (std::size_t at = 0; at < to.size(); at += pinned_bytes) {
      const std::span part(static_cast<std::byte*>(pinned_.get()), std::min(pinned_bytes, to.size() - at));
      file_.read(stored, part, at);
      device_.copy_in(to.data() + at, part.data(), part.size());
      count(part.size());
    }
    return weights;
  }

  template <Element T, int R, Element From>
  Tensor<T, R> as(const Tensor<From, 1>& flat, const typename Tensor<T, R>::Extents& extents) const {
    if constexpr (std::same_as<T, From>) {
      return flat.reshaped(extents);
    } else {
      static const auto& convert = *new auto(kernels::convert<T, From>(elements_per_block));
      Tensor<T, 1> result(device_, {flat.size()});
      launch(stream_, convert, flat, result);
      return result.reshaped(extents);
    }
  }

  void count(std::uint64_t bytes) const {
    read_ += bytes;
    if (progress_) progress_(static_cast<double>(read_) / static_cast<double>(size_));
  }

  static constexpr std::size_t pinned_bytes = std::size_t{1} << 24;

  Device device_;
  Stream stream_;
  const SafeTensors& file_;
  const Progress& progress_;
  std::uint64_t size_ = 0;
  mutable std::uint64_t read_ = 0;
  std::shared_ptr<void> pinned_;  // staging buffer for a device that cannot read host memory
};

/// Generates weights: the same for a seed on every device.
class WeightMaker {
 public:
  WeightMaker(const Device& device, std::uint64_t seed) : device_(device), stream_(device.stream()), seed_(seed) {}

  template <Element W>
  Tensor<W, 2> matrix(std::int64_t rows, std::int64_t columns, bool along_k = false) {
    static const auto& random = *new auto(kernels::random_weights<W>(elements_per_block));
    Tensor<W, 1> weights(device_, {rows * columns});
    // Each tensor has its own key: multiples of the golden ratio in 64 bits keep neighboring seeds apart.
    launch(stream_, random, weights, 0.02f, static_cast<std::int64_t>(seed_ + 0x9E3779B97F4A7C15ull * ++made_));
    const Tensor<W, 2> made = weights.reshaped(std::array{rows, columns});
    return along_k ? transposed<W>(made, stream_) : made;
  }
  Tensor<f32, 1> vector(std::int64_t size, float value) {
    static const auto& fill = *new auto(kernels::fill<f32>(elements_per_block));
    Tensor<f32, 1> weights(device_, {size});
    launch(stream_, fill, weights, value);
    return weights;
  }

 private:
  Device device_;
  Stream stream_;
  std::uint64_t seed_, made_ = 0;
};

}  // namespace tessera::internal
