// Included first by the emulated text: CUDA keywords and functions on a CPU.
#pragma once
#include "machine.hpp"

// Everything is inlined into the kernel, so that the outermost frame of any address in the code is the author's line.
#define __device__ __attribute__((always_inline))
#define __global__ __attribute__((noinline, noclone))
#define __launch_bounds__(...)
#define __grid_constant__

// Functions that NVRTC has built in and kernels use. With <math.h>, the text would take three times as long to compile.
extern "C" {
float expf(float);
float exp2f(float);
float logf(float);
float tanhf(float);
float sqrtf(float);
float fabsf(float);
float copysignf(float, float);
float fminf(float, float);
float fmaxf(float, float);
float fmaf(float, float, float);
}
// Overloads: CUDA has a function for each real type.
#define REAL_FUNCTION(name)                                                \
  __device__ inline float name(float x) { return __builtin_##name##f(x); } \
  __device__ inline double name(double x) { return __builtin_##name(x); }
REAL_FUNCTION(exp)
REAL_FUNCTION(log)
REAL_FUNCTION(sqrt)
REAL_FUNCTION(fabs)
REAL_FUNCTION(expm1)
REAL_FUNCTION(log2)
REAL_FUNCTION(log10)
REAL_FUNCTION(log1p)
REAL_FUNCTION(asin)
REAL_FUNCTION(acos)
REAL_FUNCTION(atan)
REAL_FUNCTION(sinh)
REAL_FUNCTION(cosh)
REAL_FUNCTION(erf)
REAL_FUNCTION(erfc)
REAL_FUNCTION(cbrt)
REAL_FUNCTION(floor)
REAL_FUNCTION(ceil)
REAL_FUNCTION(trunc)
REAL_FUNCTION(rint)
#undef REAL_FUNCTION
#define REAL_FUNCTION(name)                                                            \
  __device__ inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
  __device__ inline double name(double x, double y) { return __builtin_##name(x, y); }
REAL_FUNCTION(pow)
REAL_FUNCTION(atan2)
REAL_FUNCTION(copysign)
REAL_FUNCTION(fmax)
#undef REAL_FUNCTION
__device__ inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__device__ inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
__device__ inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
__device__ inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
// The prelude has its own for f32.
__device__ inline double fmin(double x, double y) { return __builtin_fmin(x, y); }
__device__ inline double exp2(double x) { return __builtin_exp2(x); }
__device__ inline double sin(double x) { return __builtin_sin(x); }
__device__ inline double cos(double x) { return __builtin_cos(x); }
__device__ inline double tan(double x) { return __builtin_tan(x); }
__device__ inline double tanh(double x) { return __builtin_tanh(x); }
__device__ inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

// Used by the bodies in prelude/.
namespace emulated {

template <class T>
__device__ inline T shuffle(const char* what, T x, int source) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &x, sizeof x);
  bits = emulated_shuffle(what, bits, source);
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

__device__ inline unsigned short f16_bits(float x) {
  return __builtin_bit_cast(unsigned short, static_cast<_Float16>(x));
}

__device__ inline unsigned short bf16_bits(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  return static_cast<unsigned short>(x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__device__ inline EmulatedWord word_like(float) { return emulated_float; }
__device__ inline EmulatedWord word_like(double) { return emulated_double; }
__device__ inline EmulatedWord word_like(int) { return emulated_int; }
__device__ inline EmulatedWord word_like(unsigned) { return emulated_unsigned; }
__device__ inline EmulatedWord word_like(long long) { return emulated_long; }
__device__ inline EmulatedWord word_like(unsigned long long) { return emulated_unsigned_long; }

template <class T>
__device__ inline T atomic(EmulatedAtomic op, int scope, T* to, T x, T expected) {
  T old{};
  emulated_atomic(op, word_like(x), scope, to, &x, &expected, &old);
  return old;
}

#define UNCHECKED __attribute__((no_sanitize("thread")))

struct Cells {
  const unsigned long long* next;
  template <class T>
  UNCHECKED T take() {
    T value;
    __builtin_memcpy(&value, next, sizeof value);
    next += (sizeof value + 7) / 8;
    return value;
  }
};

template <class... Parameters>
struct Call {
  UNCHECKED Call(void (*kernel)(Parameters...), Parameters... parameters) { kernel(parameters...); }
};

/// Calls the kernel with the cells of each parameter: one for each 8 bytes.
template <class... Parameters>
UNCHECKED void call(void (*kernel)(Parameters...), Cells cells) {
  Call<Parameters...>{kernel, cells.take<Parameters>()...};  // braces: evaluated from left to right
}

template <class... Parameters>
constexpr int parameters(void (*)(Parameters...)) {
  return sizeof...(Parameters);
}

}  // namespace emulated

/// The symbols that the emulator looks up for kernel `index`.
#define ENTRY(index, name)                                                            \
  extern "C" EXPORTED UNCHECKED void enter_##index(const unsigned long long* cells) { \
    emulated::call(kernel_##index::name, {cells});                                    \
  }                                                                                   \
  extern "C" EXPORTED const int parameters_##index = emulated::parameters(kernel_##index::name);
#define EXPORTED __attribute__((visibility("default")))
