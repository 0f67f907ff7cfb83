// The kernels of the lessons. A lesson is a program of one file, so that it can be read as a whole; here each is
// included in a namespace of its own, with its main renamed. The headers that lessons include come first.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "lesson.hpp"
#include "tessera/tessera.hpp"

#define main lesson_main
namespace lesson1 {
#include "01_vector_add.cpp"
}
namespace lesson2 {
#include "02_softmax.cpp"
}
namespace lesson3 {
#include "03_layer_norm.cpp"
}
namespace lesson4 {
#include "04_linear_gelu.cpp"
}
namespace lesson5 {
#include "05_flash_attention.cpp"
}
#undef main
