// 32 random bits: word `index` of the Philox 4x32-10 stream of `key`; both are taken as unsigned.
__device__ inline int random_bits(i64 key, i64 index) {
  const u64 position = static_cast<u64>(index), block = position >> 2;
  u32 c0 = static_cast<u32>(block), c1 = static_cast<u32>(block >> 32), c2 = 0, c3 = 0;
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(static_cast<u64>(key) >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = static_cast<u32>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<u32>(p1);
    c2 = static_cast<u32>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<u32>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const u32 low = position & 1 ? c1 : c0, high = position & 1 ? c3 : c2;
  return static_cast<int>(position & 2 ? high : low);
}

// Uniform in (0, 1): the upper 23 random bits, at the midpoint of their interval.
__device__ inline float random_uniform(i64 key, i64 index) {
  const u32 bits = static_cast<u32>(random_bits(key, index)) >> 9;
  return (static_cast<float>(static_cast<int>(bits)) + 0.5f) * 1.1920928955078125e-7f;
}
