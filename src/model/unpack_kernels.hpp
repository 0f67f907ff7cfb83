// Values of the block types of GGUF, as tiles of their bytes, and back. Layouts: ggml-common.h of ggml, block_q8_0 to
// block_q6_K, and the comments in ggml-quants.c (github.com/ggml-org/ggml). d and m are f16, and q the bits of an
// element, of which there are many.
//   Q8_0   d | 32 i8                              d q
//   Q4_0   d | 16 bytes                           d (q - 8)            bits 0 to 3 are elements 0 to 15, the others 16
//   Q4_1   d | m | 16 bytes                       d q + m              to 31
//   Q4_K   d | m | 12 bytes of scales | 128       (d s) q - (m t)      8 groups of 32 elements, with s and t of 6 bits;
//                                                                      groups 2 i and 2 i + 1 share 32 bytes
//   Q6_K   128 | 64 | 16 i8 of scales | d         (d s) (q - 32)       16 groups of 16 elements; 128 bytes have bits 0 to
//                                                                      3, the next 64 bits 4 and 5
#pragma once
#include <map>
#include <string>

#include "model/kernels.hpp"
#include "tessera/model/stored.hpp"

namespace tessera::internal::kernels {

namespace unpacking {

/// One f16 at byte `at` of each block: [n,1].
inline Tile<f32, 2> half_at(const auto& bytes, int at) {
  Tile low = cast<i32>(bytes(at, 1)), high = cast<i32>(bytes(at + 1, 1));
  return Tile(cast<f32>(bitcast<f16>(cast<u16>(low | (high << 8)))));
}
/// The bits 0 to 3 of some bytes, then 4 to 7: [n,count] -> [n,2 count].
inline Tile<i32, 2> nibbles(const Tile<i32, 2>& x, int n, int count) {
  Tile each = (reshape(x, {n, 1, count}) >> (iota({1, 2, 1}, 1) * 4)) & 15;
  return Tile(reshape(each, {n, 2 * count}));
}
inline Tile<f32, 2> of_q4_k(const auto& bytes, int n) {
  const auto scales_at = [&](int at) { return Tile(reshape(cast<i32>(bytes(at, 4)), {n, 1, 4})); };
  Tile a = scales_at(4), b = scales_at(8), c = scales_at(12);
  Tile upper = iota({1, 2, 1}, 1) == 1;  // groups 4 to 7
  Tile s = where(upper, (c & 15) | ((a >> 6) << 4), a & 63);
  Tile t = where(upper, (c >> 4) | ((b >> 6) << 4), b & 63);
  Tile scale = reshape(half_at(bytes, 0) * reshape(cast<f32>(s), {n, 8}), {n, 8, 1});
  Tile least = reshape(half_at(bytes, 2) * reshape(cast<f32>(t), {n, 8}), {n, 8, 1});
  Tile q = (reshape(cast<i32>(bytes(16, 128)), {n, 4, 1, 32}) >> (iota({1, 1, 2, 1}, 2) * 4)) & 15;
  return Tile(reshape(scale * reshape(cast<f32>(q), {n, 8, 32}) - least, {n, 256}));
}
inline Tile<f32, 2> of_q6_k(const auto& bytes, int n) {
  // Axes: halves of 128 elements; of these, the lower and the upper bits of the first bytes; two parts of 32.
  Tile upper = iota({1, 1, 2, 1, 1}, 2), part = iota({1, 1, 1, 2, 1}, 3);
  Tile low = (reshape(cast<i32>(bytes(0, 128)), {n, 2, 1, 2, 32}) >> (upper * 4)) & 15;
  Tile high = (reshape(cast<i32>(bytes(128, 64)), {n, 2, 1, 1, 32}) >> (upper * 4 + part * 2)) & 3;
  Tile q = cast<f32>((low | (high << 4)) - 32);
  Tile scale = half_at(bytes, 208) * cast<f32>(bitcast<i8>(bytes(192, 16)));
  return Tile(reshape(reshape(scale, {n, 16, 1}) * reshape(q, {n, 16, 16}), {n, 256}));
}

}  // namespace unpacking

/// The values [n,elements_of_block] of n blocks: equal, bit for bit, to gguf.quants.dequantize of the Python package
/// gguf. `bytes(begin, count)` is the tile [n,count], of u8, of these bytes of each block.
inline Tile<f32, 2> unpacked(StoredType type, const auto& bytes, int n) {
  using namespace unpacking;
  const auto nibbles_at = [&](int at) { return nibbles(Tile(cast<i32>(bytes(at, 16))), n, 16); };
  switch (type) {
    case StoredType::q8_0:
      return half_at(bytes, 0) * cast<f32>(bitcast<i8>(bytes(2, 32)));
    case StoredType::q4_0:
      return half_at(bytes, 0) * cast<f32>(nibbles_at(2) - 8);
    case StoredType::q4_1:
      return half_at(bytes, 0) * cast<f32>(nibbles_at(4)) + half_at(bytes, 2);
    case StoredType::q4_k:
      return of_q4_k(bytes, n);
    case StoredType::q6_k:
      return of_q6_k(bytes, n);
    default:
      throw InternalError("a type without blocks is unpacked");
  }
}

/// values [blocks,elements_of_block] of packed [blocks,bytes], `at_a_time` blocks in a CTA.
template <Element To>
auto unpack(StoredType type, int at_a_time) {
  const int size = bits(type) / 8, elements = elements_of_block(type);
  return kernel("unpack_" + std::string(name(type)), [=](In<u8, 2> packed, Out<To, 2> values) {
    require(packed.extent(1) == size, "blocks of the type's size");
    require(values.extent(1) == elements, "and as many elements");
    Index block = blocks(cdiv(values.extent(0), at_a_time));
    const auto bytes = [&](int begin, int count) {
      return Tile(load(packed.slice(1, begin, count), {block, 0}, {at_a_time, count}));
    };
    store(values, {block, 0}, cast<To>(unpacked(type, bytes, at_a_time)));
  });
}

/// The kernels of all block types, for CTAs of so many elements.
template <Element To>
auto unpack_kernels(int elements) {
  std::map<StoredType, decltype(unpack<To>(StoredType::q8_0, 1))> all;
  for (const StoredType type : {StoredType::q8_0, StoredType::q4_0, StoredType::q4_1, StoredType::q4_k, StoredType::q6_k})
    all.emplace(type, unpack<To>(type, elements / elements_of_block(type)));
  return all;
}

/// packed [blocks,34] in Q8_0 of values [blocks,32], rounded as gguf.quants.quantize of the Python package gguf does:
/// the largest value of a block becomes 127 or -127, and halves are rounded away from zero.
inline auto pack_q8_0(int at_a_time) {
  return kernel("pack_Q8_0", [=](In<f32, 2> values, Out<u8, 2> packed) {
    require(packed.extent(1) == 34, "blocks of the type's size");
    require(values.extent(1) == 32, "and as many elements");
    Index block = blocks(cdiv(values.extent(0), at_a_time));
    Tile x = load(values, {block, 0}, {at_a_time, 32});
    Tile d = max(abs(x), 1) / 127.0f;
    Tile scaled = x * where(d == 0.0f, 0.0f, 1.0f / d);
    Tile size = floor(abs(scaled)), up = where(abs(scaled) - size >= 0.5f, 1.0f, 0.0f);
    Tile q = cast<i32>(where(scaled < 0.0f, -(size + up), size + up));
    Tile half = cast<i32>(bitcast<u16>(cast<f16>(d)));
    store(packed.slice(1, 0, 1), {block, 0}, cast<u8>(half & 255));
    store(packed.slice(1, 1, 1), {block, 0}, cast<u8>(half >> 8));
    store(packed.slice(1, 2, 32), {block, 0}, bitcast<u8>(cast<i8>(q)));
  });
}

}  // namespace tessera::internal::kernels
