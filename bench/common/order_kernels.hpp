// Kernels that sort, count, and scan, as their author would write them.
#pragma once
#include "tessera/tessera.hpp"

namespace tessera::internal::bench {

/// Sorts each row of x [n,width], and returns the elements' original positions.
inline auto sort_kernel(int width, int rows) {
  return kernel("sort", [=](In<f32, 2> x, Out<f32, 2> y, Out<i32, 2> at) {
    same_extents(x, y, at);
    Index some = blocks(cdiv(x.extent(0), rows));
    auto [value, index] = sort_with_index(load(x, {some, 0}, {rows, width}), 1);
    store(y, {some, 0}, value);
    store(at, {some, 0}, index);
  });
}

/// counts = 0.
inline auto clear_kernel() {
  return kernel("clear", [](Out<i32, 1> counts) {
    Index block = blocks(cdiv(counts.extent(0), 1024));
    store(counts, {block}, zeros<i32>({1024}));
  });
}

/// Adds to counts [256] how often each number occurs in x; `parts` CTAs take parts of `size` in turn. Each accumulates
/// its counts until no part is left.
inline auto histogram_kernel(int size, int parts) {
  return kernel("histogram", [=](In<u8, 1> x, InOut<i32, 1> counts) {
    // With 32 warps and one CTA per multiprocessor, all read and then all count: 2^28 numbers take 0.164 ms on an H200,
    // instead of 0.119.
    hints({.warps = 8});
    require(counts.extent(0) == 256, "a count for each number of 8 bits");
    require(x.extent(0) % size == 0, "whole parts, so that what is beyond x is not counted");
    Index block = blocks(parts);
    Var sum = zeros<i32>({256});
    for (Index part : range(block, x.extent(0) / size, parts))
      sum += histogram(cast<i32>(load(x, {part}, {size})), 256);
    atomic_add(counts, {0}, sum);
  });
}

/// y = the inclusive sums of x, in one pass, by decoupled look-back (Merrill and Garland, 2016), 32 parts at a time.
/// `next` [1] and `words`, one for each part of `size`, must be 0 before.
inline auto running_sum_kernel(int size) {
  return kernel("running_sum", [=](In<f32, 1> x, Out<f32, 1> y, InOut<i32, 1> next, InOut<u64, 1> words) {
    // Warps wait for one another at each barrier: 2^26 elements take 0.226 ms with CTAs of 32 warps on an H200, 0.143
    // with these.
    hints({.warps = 4});
    same_extents(x, y);
    require(words.extent(0) == cdiv(x.extent(0), size), "a word for each part");
    constexpr int window = 32, sum_of_part = 1, sum_up_to_part = 2;
    const auto told = [](int what, const auto& sum) {
      return cast<u64>(bitcast<u32>(sum)) | full<u64>({1}, std::int64_t{what} << 32);
    };
    [[maybe_unused]] Index block = blocks(words.extent(0));
    Tile taken = atomic_add(next, {0}, full<i32>({1}, 1));
    Index part = item(taken);
    Tile own = load(x, {part}, {size}), sums = cumsum(own, 0), all = sum(own, 0);
    atomic_exchange(words, {part}, told(sum_of_part, all));
    Var before = zeros<f32>({1});
    Var at = part - 1;
    while_([&] { return at >= 0; }, [&] {
      Tile place = at - iota({window}, 0);  // the nearest first; those below 0 do not exist
      Tile word = atomic_or(words, {place}, zeros<u64>({window}));
      Tile what = where(place < 0, sum_up_to_part, cast<i32>(word >> 32));
      // The parts nearer than the first that has reported nothing, up to and including the first whose prefix is known.
      Tile open = cumsum(where(what == 0, 1, 0), 0);
      Tile known = cumsum(where(what == sum_up_to_part, 1, 0), 0, {.exclusive = true});
      Tile taken_in = (open == 0) & (known == 0);
      before += sum(where(taken_in, bitcast<f32>(cast<u32>(word)), 0), 0);
      Index read = item(sum(cast<i32>(taken_in), 0));
      Index done = item(max(where(taken_in & (what == sum_up_to_part), 1, 0), axis(0)));
      at = where(done > 0, -1, at - read);
    });
    atomic_exchange(words, {part}, told(sum_up_to_part, before + all));
    store(y, {part}, before + sums);
  });
}

}  // namespace tessera::internal::bench
