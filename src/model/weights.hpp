// Weights of a model in the memory of a device: read from a file or random, with the layout that its kernels want.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/decode_kernels.hpp"
#include "model/unpack_kernels.hpp"
#include "tessera/model/checkpoint.hpp"

namespace tessera::internal {

constexpr int elements_per_block = 4096;  // in kernels that read or write memory once

/// Memory for weights [rows, columns], contiguous along the rows or the columns.
template <Element T>
Tensor<T, 2> empty_weights(const Device& device, const std::array<std::int64_t, 2>& extents, bool along_rows) {
  return along_rows ? Tensor<T, 2>(device, {extents[1], extents[0]}).transposed() : Tensor<T, 2>(device, extents);
}

/// Copies weights [K,N] to others that are contiguous along K.
template <Element To, Element From>
void copy_transposed(const Tensor<From, 2>& weights, const Tensor<To, 2>& result, const Stream& stream) {
  static const auto& transpose = *new auto(kernels::transpose_weights<To, From>(64, 64));
  launch(stream, transpose, weights, result.transposed());
}

inline void fill_with(const Tensor<f32, 1>& weights, float value, const Stream& stream) {
  static const auto& fill = *new auto(kernels::fill<f32>(elements_per_block));
  launch(stream, fill, weights, value);
}

inline void add_to(const Tensor<f32, 1>& weights, float value, const Stream& stream) {
  static const auto& add = *new auto(kernels::add(elements_per_block));
  launch(stream, add, weights, value);
}

/// Reads weights into device memory and converts them to the requested element type. load() reserves the memory, and
/// finish() fills it, so that kernels that use it can be compiled meanwhile.
class WeightLoader {
 public:
  using Progress = std::function<void(double)>;

  WeightLoader(const Device& device, const StoredFile& file, const Progress& progress)
      : device_(device), stream_(device.stream()), file_(file), progress_(progress) {
    if (!device.shares_host_memory()) pinned_ = device.pinned(pinned_bytes);
    for (const StoredTensor& stored : file.tensors()) size_ += stored.size;
  }

  /// A matrix of a file, or some of its rows.
  template <Element T>
  Tensor<T, 2> load(const StoredPart& part) const {
    const Tensor<T, 2> result(device_, {rows_of(part), columns_of(part)});
    read_later(part, result);
    return result;
  }

  /// A matrix [rows,columns] of parts that are side by side, each stored as [K,N], or as [N,K] if it `is_out_in`; it is
  /// contiguous along K in memory if it is `along_k`. Only files with [N,K] have several parts.
  template <Element T>
  Tensor<T, 2> matrix(const StoredParts& parts, std::int64_t rows, std::int64_t columns, bool is_out_in,
                      bool along_k) const {
    const Tensor<T, 2> result = empty_weights<T>(device_, {rows, columns}, along_k);
    std::int64_t at = 0;
    for (const StoredPart& part : parts) {
      const std::array stored{rows_of(part), columns_of(part)};
      const std::int64_t wide = stored[is_out_in ? 0 : 1];
      const Tensor<T, 2> to = result.slice(1, at, wide);
      // A view with the file's extents. Its rows are dense, so that it is read as it is, or its columns are.
      const Tensor<T, 2> in_order = is_out_in ? to.transposed() : to;
      at += wide;
      if (is_out_in == along_k)
        read_later(part, in_order);
      else
        transpose_later(part, stored, in_order);
    }
    return result;
  }

  /// The same for a vector, with `offset` added to all that a file has; without parts it is all `initial`.
  Tensor<f32, 1> vector(const StoredParts& parts, std::int64_t size, float initial, float offset = 0) const {
    const Tensor<f32, 1> result(device_, {size});
    if (parts.empty() && size > 0) fills_.push_back([=, this] { fill_with(result, initial, stream_); });
    std::int64_t at = 0;
    for (const StoredPart& part : parts) {
      const std::int64_t count = rows_of(part);
      read_later(part, result.slice(0, at, count));
      at += count;
    }
    if (offset != 0 && !parts.empty()) fills_.push_back([=, this] { add_to(result, offset, stream_); });
    return result;
  }

  /// Reads what was loaded so far, in that order.
  void finish() const {
    for (const auto& fill : std::exchange(fills_, {})) fill();
  }

 private:
  static std::int64_t rows_of(const StoredPart& part) {
    if (part.rows.empty()) return static_cast<std::int64_t>(part->shape[0]);
    std::int64_t count = 0;
    for (const StoredRun& run : part.rows) count += run.count;
    return count;
  }
  /// Elements of a row: 1 for a vector.
  static std::int64_t columns_of(const StoredPart& part) {
    return part->shape.size() > 1 ? static_cast<std::int64_t>(part->shape[1]) : 1;
  }

  /// Calls with_type<From>() for the type in the file.
  static void dispatch(const StoredTensor& stored, const auto& with_type) {
    switch (stored.type) {
      case StoredType::f32:
        return with_type.template operator()<f32>();
      case StoredType::f16:
        return with_type.template operator()<f16>();
      case StoredType::bf16:
        return with_type.template operator()<bf16>();
      default:
        throw Error(fmt::format("weight '{}' is {}; supported are F32, F16 and BF16", stored.name,
                                tessera::internal::name(stored.type)));
    }
  }

  /// Fills a dense tensor whose elements are in the order of the part's rows.
  template <Element T, int R>
  void read_later(const StoredPart& part, const Tensor<T, R>& result) const {
    if (is_packed(part)) {
      fills_.push_back([=, this] { unpack_into(part, result.reshaped(std::array{result.size()})); });
      return;
    }
    dispatch(*part.tensor, [&]<Element From>() {
      fills_.push_back([=, this] { fill<From>(part, result.reshaped(std::array{result.size()})); });
    });
  }

  /// The same for a tensor of these extents that is dense along its columns, not along its rows as the file is.
  template <Element T>
  void transpose_later(const StoredPart& part, const std::array<std::int64_t, 2>& extents,
                       const Tensor<T, 2>& result) const {
    if (is_packed(part)) {
      fills_.push_back([=, this] {
        const Tensor<T, 2> values(device_, extents);
        unpack_into(part, values.reshaped(std::array{values.size()}));
        copy_transposed(values, result, stream_);
      });
      return;
    }
    dispatch(*part.tensor, [&]<Element From>() {
      fills_.push_back([=, this] { copy_transposed(bring<From>(part).reshaped(extents), result, stream_); });
    });
  }

  static bool is_packed(const StoredPart& part) { return elements_of_block(part->type) > 1; }

  /// Brings the blocks of a part to the device, and fills a dense tensor with their values.
  template <Element T>
  void unpack_into(const StoredPart& part, const Tensor<T, 1>& result) const {
    const std::int64_t elements = elements_of_block(part->type), size = bits(part->type) / 8;
    const std::int64_t blocks = result.size() / elements;
    const Tensor<u8, 1> packed(device_, {blocks * size});
    read(part, packed);
    static const auto& kernels_by_type = *new auto(kernels::unpack_kernels<T>(elements_per_block));
    launch(stream_, kernels_by_type.at(part->type), packed.reshaped(std::array{blocks, size}),
           result.reshaped(std::array{blocks, elements}));
  }

  template <Element From>
  Tensor<From, 1> bring(const StoredPart& part) const {
    const Tensor<From, 1> weights(device_, {rows_of(part) * columns_of(part)});
    read(part, weights);
    return weights;
  }

  template <Element From>
  void read(const StoredPart& part, const Tensor<From, 1>& weights) const {
    const std::span to = std::as_writable_bytes(std::span(weights.data(), static_cast<std::size_t>(weights.size())));
    if (device_.shares_host_memory()) {
      read_bytes(part, 0, to);
      count(to.size());
      return;
    }
    for (std::size_t at = 0; at < to.size(); at += pinned_bytes) {
      const std::span bytes(static_cast<std::byte*>(pinned_.get()), std::min(pinned_bytes, to.size() - at));
      read_bytes(part, at, bytes);
      device_.copy_in(to.data() + at, bytes.data(), bytes.size());
      count(bytes.size());
    }
  }

  /// Bytes of the part, of its rows in their order, from `at` on.
  void read_bytes(const StoredPart& part, std::uint64_t at, std::span<std::byte> to) const {
    if (part.rows.empty()) return file_.read(*part.tensor, to, at);
    const std::uint64_t rows = part->shape[0], row = part->size / rows;
    for (const StoredRun& run : part.rows) {
      const std::uint64_t size = static_cast<std::uint64_t>(run.count) * row;
      if (at < size && !to.empty()) {
        const std::size_t bytes = std::min<std::size_t>(to.size(), size - at);
        file_.read(*part.tensor, to.first(bytes), static_cast<std::uint64_t>(run.first) * row + at);
        to = to.subspan(bytes), at += bytes;
      }
      at -= std::min(at, size);
    }
  }

  template <Element From, Element T>
  void fill(const StoredPart& part, const Tensor<T, 1>& result) const {
    if constexpr (std::same_as<T, From>) {
      read(part, result);
    } else {
      static const auto& convert = *new auto(kernels::convert<T, From>(elements_per_block));
      launch(stream_, convert, bring<From>(part), result);
    }
  }

  void count(std::uint64_t bytes) const {
    read_ += bytes;
    if (progress_) progress_(static_cast<double>(read_) / static_cast<double>(size_));
  }

  static constexpr std::size_t pinned_bytes = std::size_t{1} << 24;

  Device device_;
  Stream stream_;
  const StoredFile& file_;
  const Progress& progress_;
  std::uint64_t size_ = 0;
  mutable std::uint64_t read_ = 0;
  mutable std::vector<std::function<void()>> fills_;
  std::shared_ptr<void> pinned_;  // staging buffer for a device that cannot read host memory
};

/// Generates weights: the same for a seed on every device. finish() fills what the other functions reserved.
class WeightMaker {
 public:
  WeightMaker(const Device& device, std::uint64_t seed) : device_(device), stream_(device.stream()), seed_(seed) {}

  template <Element W>
  Tensor<W, 2> matrix(std::int64_t rows, std::int64_t columns, bool along_k = false) {
    // Each tensor has its own key: multiples of the golden ratio in 64 bits keep neighboring seeds apart.
    const auto key = static_cast<std::int64_t>(seed_ + 0x9E3779B97F4A7C15ull * ++made_);
    const std::array extents{rows, columns};
    const Tensor<W, 2> result = empty_weights<W>(device_, extents, along_k);
    fills_.push_back([=, this] {
      static const auto& random = *new auto(kernels::random_weights<W>(elements_per_block));
      const Tensor<W, 2> by_rows = along_k ? Tensor<W, 2>(device_, extents) : result;
      launch(stream_, random, by_rows.reshaped(std::array{by_rows.size()}), 0.02f, key);
      if (along_k) copy_transposed(by_rows, result, stream_);
    });
    return result;
  }
  Tensor<f32, 1> vector(std::int64_t size, float value) {
    const Tensor<f32, 1> weights(device_, {size});
    if (size > 0) fills_.push_back([=, this] { fill_with(weights, value, stream_); });
    return weights;
  }
  void finish() {
    for (const auto& fill : std::exchange(fills_, {})) fill();
  }

 private:
  Device device_;
  Stream stream_;
  std::uint64_t seed_, made_ = 0;
  std::vector<std::function<void()>> fills_;
};

}  // namespace tessera::internal
