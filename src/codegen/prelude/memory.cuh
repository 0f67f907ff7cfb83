// An element of a tensor as it is computed with.
template <class T>
__device__ inline T from_memory(T x) {
  return x;
}

// An f16 is computed with as a float.
__device__ inline float from_memory(f16 x) { return f16_value(x.bits); }

// A bf16 is computed with as a float.
__device__ inline float from_memory(bf16 x) { return bf16_value(x.bits); }

// An f8e4m3 is computed with as a float.
__device__ inline float from_memory(f8e4m3 x) { return f8e4m3_value(x.bits); }

// An f8e5m2 is computed with as a float.
__device__ inline float from_memory(f8e5m2 x) { return f8e5m2_value(x.bits); }

// An i8 is computed with as an int.
__device__ inline int from_memory(i8 x) { return x; }

// An i16 is computed with as an int.
__device__ inline int from_memory(i16 x) { return x; }

// A u8 is computed with as an int.
__device__ inline int from_memory(u8 x) { return x; }

// A u16 is computed with as an int.
__device__ inline int from_memory(u16 x) { return x; }

// A value as an element of a tensor; of narrow integers the low bits.
template <class T, class Value>
__device__ inline T to_memory(Value x) {
  return static_cast<T>(x);
}

// To f16, rounded to nearest even.
template <>
__device__ inline f16 to_memory<f16>(float x) {
  return {f16_bits(x)};
}

// To bf16, rounded to nearest even.
template <>
__device__ inline bf16 to_memory<bf16>(float x) {
  return {bf16_bits(x)};
}

// To f8e4m3, rounded to nearest even and saturated.
template <>
__device__ inline f8e4m3 to_memory<f8e4m3>(float x) {
  return {static_cast<u8>(f8e4m3_bits(x))};
}

// To f8e5m2, rounded to nearest even and saturated.
template <>
__device__ inline f8e5m2 to_memory<f8e5m2>(float x) {
  return {static_cast<u8>(f8e5m2_bits(x))};
}

// Two floats as neighbours in a tensor of f16.
__device__ inline u32 pair_to_memory(f16, float low, float high) { return pack_f16(low, high); }

// Two floats as neighbours in a tensor of bf16.
__device__ inline u32 pair_to_memory(bf16, float low, float high) { return pack_bf16(low, high); }

// Two integers wrapped to i16, side by side.
__device__ inline u32 pack_i16(int low, int high) {
  return (static_cast<u32>(low) & 0xffffu) | static_cast<u32>(high) << 16;
}

// Two integers wrapped to u16, side by side.
__device__ inline u32 pack_u16(int low, int high) { return pack_i16(low, high); }

// Two integers as neighbours in a tensor of i16.
__device__ inline u32 pair_to_memory(i16, int low, int high) { return pack_i16(low, high); }

// Two integers as neighbours in a tensor of u16.
__device__ inline u32 pair_to_memory(u16, int low, int high) { return pack_u16(low, high); }

// N elements that one access moves: 1, 2, 4, 8 or 16 bytes.
template <class T, int N>
struct Vector {
  alignas(N * sizeof(T)) T elements[N];
};

// N elements of a tensor as they are computed with, 16 bytes an access if there are as many; `from` is a multiple of
// that.
template <int N, class T, class Value>
__device__ inline void load_vector(Value* out, const T* from) {
  constexpr int count = N * sizeof(T) < 16 ? N : 16 / static_cast<int>(sizeof(T));
  for (int i = 0; i < N; i += count) {
    const Vector<T, count> vector = *reinterpret_cast<const Vector<T, count>*>(from + i);
    for (int j = 0; j < count; ++j) out[i + j] = from_memory(vector.elements[j]);
  }
}

// Element i of a tensor's words as it is computed with.
template <class T>
__device__ inline auto in_words(T, const u32* words, int i) {
  return from_memory(reinterpret_cast<const T*>(words)[i]);
}

// A bf16 by one instruction, which takes two where it is cut out first.
__device__ inline float in_words(bf16, const u32* words, int i) {
  return float_of(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
}

// N elements of a tensor that the kernel only reads, 16 bytes at most, as they are computed with; zeros where not
// `inside`. `from` is a multiple of that.
template <int N, class T, class Value>
__device__ inline void read_input(Value* out, const T* from, bool inside) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4];
  load_input<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// The same with padding in place of zeros. It is there before the load, and not chosen behind it: else the compiler
// waits for each load by itself, where all elements depend on one condition.
template <int N, class T, class Value>
__device__ inline void read_input(Value* out, const T* from, bool inside, Value padding) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4] = {};
  for (int i = 0; i < N; ++i) reinterpret_cast<T*>(words)[i] = to_memory<T>(padding);
  load_input_over<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// One element.
template <class T>
__device__ inline auto read_input(const T* from, bool inside) {
  decltype(from_memory(T())) out[1];
  read_input<1>(out, from, inside);
  return out[0];
}

// One element, or the padding.
template <class T, class Value>
__device__ inline Value read_input(const T* from, bool inside, Value padding) {
  Value out[1];
  read_input<1>(out, from, inside, padding);
  return out[0];
}

// N values of 16 bytes into a tensor by one access, if `inside`, also where the compiler would store them one by one;
// `to` is a multiple of that.
template <int N, class T, class Value>
__device__ inline void store_whole(T* to, const Value* in, bool inside) {
  static_assert(N * sizeof(T) == 16);
  alignas(16) u32 words[4];
  if constexpr (sizeof(T) == 2) {
    for (int i = 0; i < 4; ++i) words[i] = pair_to_memory(T(), in[2 * i], in[2 * i + 1]);
  } else {
    for (int i = 0; i < N; ++i) reinterpret_cast<T*>(words)[i] = to_memory<T>(in[i]);
  }
  store_words(to, words, inside);
}

// As read_input, in the order of the text.
template <int N, class T, class Value>
__device__ inline void read_no_hoist(Value* out, const T* from, bool inside) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4] = {};
  load_no_hoist<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// The same with padding in place of zeros.
template <int N, class T, class Value>
__device__ inline void read_no_hoist(Value* out, const T* from, bool inside, Value padding) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4] = {};
  for (int i = 0; i < N; ++i) reinterpret_cast<T*>(words)[i] = to_memory<T>(padding);
  load_no_hoist<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// One element.
template <class T>
__device__ inline auto read_no_hoist(const T* from, bool inside) {
  decltype(from_memory(T())) out[1];
  read_no_hoist<1>(out, from, inside);
  return out[0];
}

// One element, or the padding.
template <class T, class Value>
__device__ inline Value read_no_hoist(const T* from, bool inside, Value padding) {
  Value out[1];
  read_no_hoist<1>(out, from, inside, padding);
  return out[0];
}

// As read_no_hoist, 16 bytes, with a priority in the L2 cache.
template <int N, class T, class Value>
__device__ inline void read_evict_last(Value* out, const T* from, bool inside, u64 priority) {
  static_assert(N * sizeof(T) == 16);
  alignas(16) u32 words[4] = {};
  load_evict_last(words, from, inside, priority);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// N values into a tensor, 16 bytes an access if there are as many; `to` is a multiple of that.
template <int N, class T, class Value>
__device__ inline void store_vector(T* to, const Value* in) {
  constexpr int count = N * sizeof(T) < 16 ? N : 16 / static_cast<int>(sizeof(T));
  for (int i = 0; i < N; i += count) {
    // In pairs, or the compiler may store each element by itself. What is stored as words may be read as elements: this
    // counts on a compiler that does not tell them apart by type.
    if constexpr (sizeof(T) == 2 && count > 1) {
      Vector<u32, count / 2> vector;
      for (int j = 0; j < count; j += 2) vector.elements[j / 2] = pair_to_memory(T(), in[i + j], in[i + j + 1]);
      *reinterpret_cast<Vector<u32, count / 2>*>(to + i) = vector;
    } else {
      Vector<T, count> vector;
      for (int j = 0; j < count; ++j) vector.elements[j] = to_memory<T>(in[i + j]);
      *reinterpret_cast<Vector<T, count>*>(to + i) = vector;
    }
  }
}
