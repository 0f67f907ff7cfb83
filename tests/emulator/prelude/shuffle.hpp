template <class T>
__device__ inline T shuffle_xor(T x, int mask) {
  return emulated::shuffle("shuffle_xor", x, emulated_thread_index() % 32 ^ mask);
}

template <class T>
__device__ inline T shuffle(T x, int lane) {
  return emulated::shuffle("shuffle", x, lane);
}

template <class T>
__device__ inline T shuffle_up(T x, int delta) {
  const int lane = emulated_thread_index() % 32;
  return emulated::shuffle("shuffle_up", x, lane < delta ? lane : lane - delta);
}
