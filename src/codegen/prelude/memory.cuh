// Converts an element of a tensor to the type that it is computed in.
template <class T>
__device__ inline T from_memory(T x) {
  return x;
}

// f16 is computed in f32.
__device__ inline float from_memory(f16 x) { return f16_value(x.bits); }

// bf16 is computed in f32.
__device__ inline float from_memory(bf16 x) { return bf16_value(x.bits); }

// pred is computed as bool; any byte but 0 is true.
__device__ inline bool from_memory(pred x) { return x.bits != 0; }

// i8 is computed in i32.
__device__ inline int from_memory(i8 x) { return x; }

// i16 is computed in i32.
__device__ inline int from_memory(i16 x) { return x; }

// u8 is computed in i32.
__device__ inline int from_memory(u8 x) { return x; }

// u16 is computed in i32.
__device__ inline int from_memory(u16 x) { return x; }

// Converts a value to an element of a tensor; narrow integers keep the low bits.
template <class T, class Value>
__device__ inline T to_memory(Value x) {
  return static_cast<T>(x);
}

// To f16, rounding to nearest even.
template <>
__device__ inline f16 to_memory<f16>(float x) {
  return {f16_bits(x)};
}

// To bf16, rounding to nearest even.
template <>
__device__ inline bf16 to_memory<bf16>(float x) {
  return {bf16_bits(x)};
}

// To pred, 0 or 1.
template <>
__device__ inline pred to_memory<pred>(bool x) {
  return {static_cast<u8>(x)};
}

// Packs two floats as neighboring f16 elements.
__device__ inline u32 pair_to_memory(f16, float low, float high) { return pack_f16(low, high); }

// Packs two floats as neighboring bf16 elements.
__device__ inline u32 pair_to_memory(bf16, float low, float high) { return pack_bf16(low, high); }

// Packs two integers, wrapped to i16, into a word.
__device__ inline u32 pack_i16(int low, int high) {
  return (static_cast<u32>(low) & 0xffffu) | static_cast<u32>(high) << 16;
}

// Packs two integers, wrapped to u16, into a word.
__device__ inline u32 pack_u16(int low, int high) { return pack_i16(low, high); }

// Packs two integers as neighboring i16 elements.
__device__ inline u32 pair_to_memory(i16, int low, int high) { return pack_i16(low, high); }

// Packs two integers as neighboring u16 elements.
__device__ inline u32 pair_to_memory(u16, int low, int high) { return pack_u16(low, high); }

// N elements for one access of 1, 2, 4, 8 or 16 bytes.
template <class T, int N>
struct Vector {
  alignas(N * sizeof(T)) T elements[N];
};

// Loads N elements and converts them to the type that they are computed in, with accesses of 16 bytes if there are that
// many. `from` is aligned to the access.
template <int N, class T, class Value>
__device__ inline void load_vector(Value* out, const T* from) {
  constexpr int count = N * sizeof(T) < 16 ? N : 16 / static_cast<int>(sizeof(T));
  for (int i = 0; i < N; i += count) {
    const Vector<T, count> vector = *reinterpret_cast<const Vector<T, count>*>(from + i);
    for (int j = 0; j < count; ++j) out[i + j] = from_memory(vector.elements[j]);
  }
}

// Element i of a tensor's words, in the type that it is computed in.
template <class T>
__device__ inline auto in_words(T, const u32* words, int i) {
  return from_memory(reinterpret_cast<const T*>(words)[i]);
}

// bf16 to float in one instruction; extracting the 16 bits first would take two.
__device__ inline float in_words(bf16, const u32* words, int i) {
  return float_of(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
}

// Reads N elements, 16 bytes at most, of a tensor that the kernel only reads, in the type that they are computed in;
// zeros if not `inside`. `from` is aligned to the access.
template <int N, class T, class Value>
__device__ inline void read_input(Value* out, const T* from, bool inside) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4];
  load_input<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// The same with padding instead of zeros. The padding is in the registers before the load and is not selected after it:
// otherwise the compiler waits for each load separately where all elements depend on one condition.
template <int N, class T, class Value>
__device__ inline void read_input(Value* out, const T* from, bool inside, Value padding) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4] = {};
  for (int i = 0; i < N; ++i) reinterpret_cast<T*>(words)[i] = to_memory<T>(padding);
  load_input_over<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// The same for one element.
template <class T>
__device__ inline auto read_input(const T* from, bool inside) {
  decltype(from_memory(T())) out[1];
  read_input<1>(out, from, inside);
  return out[0];
}

// The same for one element, with padding.
template <class T, class Value>
__device__ inline Value read_input(const T* from, bool inside, Value padding) {
  Value out[1];
  read_input<1>(out, from, inside, padding);
  return out[0];
}

// Stores N values, 16 bytes, to a tensor with one access if `inside`, even where the compiler would store them one by
// one. `to` is aligned to 16 bytes.
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

// Like read_input, but loads stay in program order.
template <int N, class T, class Value>
__device__ inline void read_no_hoist(Value* out, const T* from, bool inside) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4] = {};
  load_no_hoist<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// The same with padding instead of zeros.
template <int N, class T, class Value>
__device__ inline void read_no_hoist(Value* out, const T* from, bool inside, Value padding) {
  constexpr int bytes = N * sizeof(T);
  alignas(16) u32 words[(bytes + 3) / 4] = {};
  for (int i = 0; i < N; ++i) reinterpret_cast<T*>(words)[i] = to_memory<T>(padding);
  load_no_hoist<bytes>(words, from, inside);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// The same for one element.
template <class T>
__device__ inline auto read_no_hoist(const T* from, bool inside) {
  decltype(from_memory(T())) out[1];
  read_no_hoist<1>(out, from, inside);
  return out[0];
}

// The same for one element, with padding.
template <class T, class Value>
__device__ inline Value read_no_hoist(const T* from, bool inside, Value padding) {
  Value out[1];
  read_no_hoist<1>(out, from, inside, padding);
  return out[0];
}

// Like read_no_hoist for 16 bytes, with an L2 cache policy.
template <int N, class T, class Value>
__device__ inline void read_evict_last(Value* out, const T* from, bool inside, u64 priority) {
  static_assert(N * sizeof(T) == 16);
  alignas(16) u32 words[4] = {};
  load_evict_last(words, from, inside, priority);
  for (int i = 0; i < N; ++i) out[i] = in_words(T(), words, i);
}

// Converts N values and stores them to a tensor, with accesses of 16 bytes if there are that many. `to` is aligned to
// the access.
template <int N, class T, class Value>
__device__ inline void store_vector(T* to, const Value* in) {
  constexpr int count = N * sizeof(T) < 16 ? N : 16 / static_cast<int>(sizeof(T));
  for (int i = 0; i < N; i += count) {
    // Packed in pairs, or the compiler may store each element separately. Data stored as words may be read as elements:
    // this relies on a compiler without type-based alias analysis.
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

// Converts N values and stores them, 16 bytes at most, where other threads may store at the same time; for each element
// one of the values remains. `to` is aligned to the access.
template <int N, class T, class Value>
__device__ inline void scatter_vector(T* to, const Value* in) {
  constexpr int bytes = N * sizeof(T);
  if constexpr (bytes < 4) {
    for (int i = 0; i < N; ++i) scatter_element(to + i, to_memory<T>(in[i]));
  } else {
    alignas(16) u32 words[bytes / 4];
    if constexpr (sizeof(T) == 2) {
      for (int i = 0; i < N / 2; ++i) words[i] = pair_to_memory(T(), in[2 * i], in[2 * i + 1]);
    } else {
      for (int i = 0; i < N; ++i) reinterpret_cast<T*>(words)[i] = to_memory<T>(in[i]);
    }
    scatter_words<bytes / 4>(to, words);
  }
}
