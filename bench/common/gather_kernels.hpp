// Kernels with element-wise addressing or data-dependent loop counts, as their author would write them.
#pragma once
#include "tessera/tessera.hpp"

namespace tessera::internal::bench {

/// y = A x for a matrix A in CSR form, one CTA per row, `width` nonzeros at a time.
inline auto csr_rows_kernel(int width) {
  return kernel("csr_rows",
                [=](In<i32, 1> offsets, In<i32, 1> columns, In<f32, 1> values, In<f32, 1> x, Out<f32, 1> y) {
    require(offsets.extent(0) == y.extent(0) + 1, "where each row begins, and where the last one ends");
    same_extents(columns, values);
    Index row = blocks(y.extent(0));
    Index begin = item(load(offsets, {row}, {1})), end = item(load(offsets, {row + 1}, {1}));
    auto row_columns = columns.slice(0, begin, end - begin);
    auto row_values = values.slice(0, begin, end - begin);
    Var sums = zeros<f32>({width});
    for (Index k : range(cdiv(end - begin, width))) {
      Tile column = load(row_columns, {k}, {width}, -1);
      sums += load(row_values, {k}, {width}) * gather(x, {column});
    }
    store(y, {row}, sum(sums, 0));
  });
}

/// The same, one lane for each of `rows` rows, for as many iterations as the longest of them needs.
inline auto csr_lanes_kernel(int rows) {
  return kernel("csr_lanes",
                [=](In<i32, 1> offsets, In<i32, 1> columns, In<f32, 1> values, In<f32, 1> x, Out<f32, 1> y) {
    require(offsets.extent(0) == y.extent(0) + 1, "where each row begins, and where the last one ends");
    same_extents(columns, values);
    Index block = blocks(cdiv(y.extent(0), rows));
    Tile begin = load(offsets, {block}, {rows});
    Tile count = load(offsets.slice(0, 1, y.extent(0)), {block}, {rows}) - begin;
    Var sums = zeros<f32>({rows});
    for (Index k : range(item(max(count, axis(0))))) {
      Tile at = where(k < count, begin + k, -1);
      Tile column = gather(columns, {at}, -1);
      sums += gather(values, {at}) * gather(x, {column});
    }
    store(y, {block}, sums);
  });
}

/// For how many iterations z = z^2 + c stays within a circle of 2, at most `rounds`, for c = left + j step + i (top + i
/// step).
inline auto mandelbrot_kernel(int height, int width, int rounds) {
  return kernel("mandelbrot", [=](Out<i32, 2> count, Scalar<f32> left, Scalar<f32> top, Scalar<f32> step) {
    auto [block_y, block_x] = blocks(cdiv(count.extent(0), height), cdiv(count.extent(1), width));
    Tile c_x = left + step * cast<f32>(block_x * width + iota({1, width}, 1));
    Tile c_y = top + step * cast<f32>(block_y * height + iota({height, 1}, 0));
    Var x = zeros<f32>({height, width}), y = zeros<f32>({height, width});
    Var n = zeros<i32>({height, width});
    Var round = constant<i32>(0);
    while_([&] { return (round < rounds) & item(any(x * x + y * y <= 4)); },
           [&] {
      Tile xx = x * x, yy = y * y;
      Tile inside = xx + yy <= 4;
      y = where(inside, 2 * x * y + c_y, y);
      x = where(inside, xx - yy + c_x, x);
      n += cast<i32>(inside);
      round += 1;
    });
    store(count, {block_y, block_x}, n);
  });
}

/// Resizes an image [height,width,3], from the four pixels around each.
inline auto bilinear_kernel(int height, int width) {
  return kernel("bilinear", [=](In<u8, 3> in, Out<u8, 3> out, Scalar<f32> scale_y, Scalar<f32> scale_x) {
    require((in.extent(2) == 3) & (out.extent(2) == 3), "three colors");
    auto [block_y, block_x] = blocks(cdiv(out.extent(0), height), cdiv(out.extent(1), width));
    Tile y = (cast<f32>(block_y * height + iota({height, 1, 1}, 0)) + 0.5) * scale_y - 0.5;
    Tile x = (cast<f32>(block_x * width + iota({1, width, 1}, 1)) + 0.5) * scale_x - 0.5;
    Tile top = floor(y), left = floor(x);
    Tile color = iota({1, 1, 3}, 2);
    Tile share_y = y - top, share_x = x - left;
    Tile y0 = clamp(cast<i32>(top), 0, in.extent(0) - 1), y1 = clamp(cast<i32>(top) + 1, 0, in.extent(0) - 1);
    Tile x0 = clamp(cast<i32>(left), 0, in.extent(1) - 1), x1 = clamp(cast<i32>(left) + 1, 0, in.extent(1) - 1);
    const auto row = [&](const auto& at) {
      Tile a = cast<f32>(gather(in, {at, x0, color})), b = cast<f32>(gather(in, {at, x1, color}));
      return a + share_x * (b - a);
    };
    Tile above = row(y0), below = row(y1);
    store(out, {block_y, block_x, 0}, cast<u8>(above + share_y * (below - above) + 0.5));
  });
}

/// Counts, in each block of `size` keys, those that have the digit 0, 1, ..., 255 from bit `shift` on: counts
/// [256,blocks].
inline auto count_digits_kernel(int size, int shift) {
  return kernel("count_digits", [=](In<u32, 1> keys, Out<i32, 2> counts) {
    Index block = blocks(cdiv(keys.extent(0), size));
    require((counts.extent(0) == 256) & (counts.extent(1) == cdiv(keys.extent(0), size)), "counts of each block");
    Tile digit = cast<i32>(load(keys, {block}, {size}) >> shift & 255);
    Tile there = iota({size}, 0) < keys.extent(0) - block * size;
    store(counts, {0, block}, reshape(histogram(where(there, digit, -1), 256), {256, 1}));
  });
}

/// Where the keys of a block with a digit go, relative to their positions in the block's own order: the exclusive sums
/// of counts [256,blocks], digit by digit, minus those of the block's lower digits.
inline auto digit_offsets_kernel(int most_blocks) {
  return kernel("digit_offsets", [=](In<i32, 2> counts, Out<i32, 2> offsets) {
    same_extents(counts, offsets);
    require(counts.extent(1) <= most_blocks, "as many blocks as fit in a tile");
    Tile count = load(counts, {0, 0}, {256, most_blocks});
    Tile ahead = cumsum(reshape(count, {256 * most_blocks}), 0, {.exclusive = true});
    Tile lower = cumsum(count, 0, {.exclusive = true});
    store(offsets, {0, 0}, reshape(ahead, {256, most_blocks}) - lower);
  });
}

/// Keys sorted by one digit, stably.
inline auto spread_digits_kernel(int size, int shift) {
  return kernel("spread_digits", [=](In<u32, 1> keys, In<i32, 2> offsets, Out<u32, 1> sorted) {
    same_extents(keys, sorted);
    Index block = blocks(cdiv(keys.extent(0), size));
    Tile place = iota({size}, 0);
    Tile there = place < keys.extent(0) - block * size;
    Tile digit = where(there, cast<i32>(load(keys, {block}, {size}) >> shift & 255), 256);
    auto [in_order, from] = sort_with_index(digit, 0);
    Tile part = broadcast(block, {size}), at = block * size + from;
    Tile to = where(in_order < 256, gather(offsets, {in_order, part}) + place, -1);
    scatter(sorted, {to}, gather(keys, {at}));
  });
}

/// y = x transposed, by square tiles.
inline auto transposed_kernel(int size) {
  return kernel("transposed", [=](In<f32, 2> x, Out<f32, 2> y) {
    require((x.extent(0) == y.extent(1)) & (x.extent(1) == y.extent(0)), "extents exchanged");
    auto [i, j] = blocks(cdiv(y.extent(0), size), cdiv(y.extent(1), size));
    store(y, {i, j}, load(x.permute({1, 0}), {i, j}, {size, size}));
  });
}

}  // namespace tessera::internal::bench
