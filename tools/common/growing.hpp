// Kernels of any size: what they take, from tracing to the text, must grow no faster than they do.
#pragma once
#include <span>
#include <string_view>

#include "api/tessera.hpp"

namespace tessera {

struct Growing {
  std::string_view name;
  int size;  ///< in ops, or loops, that every stage is done with in some seconds
  void (*make)(int size, In<f32, 1> x, Out<f32, 1> y);

  Graph traced(int of_size) const {
    return trace_kernel("growing", [&](In<f32, 1> x, Out<f32, 1> y) { make(of_size, x, y); });
  }
};

std::span<const Growing> growing_kernels();

}  // namespace tessera
