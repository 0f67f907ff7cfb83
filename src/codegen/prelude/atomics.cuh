// The address of an element as a 32- or 64-bit word.
template <class T>
__device__ inline auto* word_at(T* element) {
  if constexpr (sizeof(T) == 8)
    return reinterpret_cast<u64*>(element);
  else
    return reinterpret_cast<u32*>(element);
}

// The bits of an element as a word.
template <class T>
__device__ inline auto word_of(T x) {
  return *word_at(&x);
}

// The element with these bits.
template <class T, class Word>
__device__ inline T of_word(Word word) {
  return *reinterpret_cast<T*>(&word);
}

// Atomic add; returns the old value. Integers wrap, so they are added as unsigned words.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_add(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = of_word<T>(relaxed_add<Scope>(word_at(to), word_of(x)));
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic add of floats; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope>
__device__ inline float atomic_add(float* to, float x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const float old = relaxed_add<Scope>(to, x);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic add of doubles; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope>
__device__ inline double atomic_add(double* to, double x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const double old = relaxed_add<Scope>(to, x);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic maximum of integers; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_max(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = relaxed_max<Scope>(to, x);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic maximum of floats, ignoring NaN; returns the old value. A compare-and-swap loop, as there is no instruction
// for it.
template <class Order = Relaxed, class Scope = DeviceScope>
__device__ inline float atomic_max(float* to, float x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  u32 guess = 0, word = relaxed_load<Scope>(word_at(to));
  do {
    guess = word;
    word = relaxed_compare_exchange<Scope>(word_at(to), guess, word_of(fmaxf(of_word<float>(guess), x)));
  } while (word != guess);
  const float old = of_word<float>(word);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic maximum of doubles, ignoring NaN; returns the old value. A compare-and-swap loop, as there is no instruction
// for it.
template <class Order = Relaxed, class Scope = DeviceScope>
__device__ inline double atomic_max(double* to, double x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  u64 guess = 0, word = relaxed_load<Scope>(word_at(to));
  do {
    guess = word;
    word = relaxed_compare_exchange<Scope>(word_at(to), guess, word_of(fmax(of_word<double>(guess), x)));
  } while (word != guess);
  const double old = of_word<double>(word);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic minimum of integers; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_min(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = relaxed_min<Scope>(to, x);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic minimum of floats, ignoring NaN; returns the old value. A compare-and-swap loop, as there is no instruction
// for it.
template <class Order = Relaxed, class Scope = DeviceScope>
__device__ inline float atomic_min(float* to, float x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  u32 guess = 0, word = relaxed_load<Scope>(word_at(to));
  do {
    guess = word;
    word = relaxed_compare_exchange<Scope>(word_at(to), guess, word_of(fminf(of_word<float>(guess), x)));
  } while (word != guess);
  const float old = of_word<float>(word);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic minimum of doubles, ignoring NaN; returns the old value. A compare-and-swap loop, as there is no instruction
// for it.
template <class Order = Relaxed, class Scope = DeviceScope>
__device__ inline double atomic_min(double* to, double x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  u64 guess = 0, word = relaxed_load<Scope>(word_at(to));
  do {
    guess = word;
    word = relaxed_compare_exchange<Scope>(word_at(to), guess, word_of(fmin(of_word<double>(guess), x)));
  } while (word != guess);
  const double old = of_word<double>(word);
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic bitwise and; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_and(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = of_word<T>(relaxed_and<Scope>(word_at(to), word_of(x)));
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic bitwise or; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_or(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = of_word<T>(relaxed_or<Scope>(word_at(to), word_of(x)));
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic bitwise exclusive or; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_xor(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = of_word<T>(relaxed_xor<Scope>(word_at(to), word_of(x)));
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic exchange; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_exchange(T* to, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old = of_word<T>(relaxed_exchange<Scope>(word_at(to), word_of(x)));
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}

// Atomic compare-and-swap: stores x if the element has the bits of `expected`; returns the old value.
template <class Order = Relaxed, class Scope = DeviceScope, class T>
__device__ inline T atomic_compare_exchange(T* to, T expected, T x) {
  if constexpr (Order::releases) fence_memory<Scope>();
  const T old =
      of_word<T>(relaxed_compare_exchange<Scope>(word_at(to), word_of(expected), word_of(x)));
  if constexpr (Order::acquires) fence_memory<Scope>();
  return old;
}
