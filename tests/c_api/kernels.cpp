// A second library of kernels, besides that of samples/python: one kernel for each kind of parameter, and one that
// cannot be traced.
#include <tessera/c/export.hpp>

using namespace tessera;

auto add_numbers() {
  return kernel("add_numbers", [](InOut<i64, 1> x, Scalar<i32> a, Scalar<u64> b, Scalar<f64> c) {
    Index i = blocks(cdiv(x.extent(0), 32));
    Tile before = load(x, {i}, {32});
    store(x, {i},
          before + cast<i64>(constant<i32>(0) + a) + bitcast<i64>(constant<u64>(0) + b) +
              cast<i64>(constant<f64>(0) + c));
  });
}
template <class T>
auto give(const char* name) {
  return kernel(name, [](Out<T, 1> y, Scalar<T> number) { store(y, {0}, full<T>({1}, 0) + number); });
}
auto broken() {
  return kernel("broken", [](In<f32, 1> x, Out<f32, 1>) { (void)load(x, {0}, {32}); });
}

auto add_lists() {
  return kernel("add_lists", [](List<In<f32, 2>, 3> xs, Optional<In<f32, 2>> more, Out<f32, 2> y) {
    Var sum = load(more, {0, 0}, {8, 64});
    for (Index i : range(xs.size())) sum = sum + load(xs[i], {0, 0}, {8, 64});
    store(y, {0, 0}, sum);
  });
}

TESSERA_EXPORT_KERNEL(add_lists, add_lists())
TESSERA_EXPORT_KERNEL(add_numbers, add_numbers())
TESSERA_EXPORT_KERNEL(broken, broken())
TESSERA_EXPORT_KERNEL(give_i32, give<i32>("give_i32"))
TESSERA_EXPORT_KERNEL(give_u32, give<u32>("give_u32"))
TESSERA_EXPORT_KERNEL(give_i64, give<i64>("give_i64"))
TESSERA_EXPORT_KERNEL(give_u64, give<u64>("give_u64"))
TESSERA_EXPORT_KERNEL(give_f32, give<f32>("give_f32"))
TESSERA_EXPORT_KERNEL(give_f64, give<f64>("give_f64"))
