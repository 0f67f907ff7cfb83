// A while_ without an end.
#include "catch.hpp"
#include "emulated_device.hpp"
#include "support.hpp"
#include "tessera/tessera.hpp"

using namespace tessera::internal;

TEST_CASE("the emulator reports a while_ that does not end", "[emulator]") {
  const auto k = kernel("endless", [](InOut<i32, 1> x) {
    Var n = constant<i32>(1);
    while_([&] { return n > 0; }, [&] { n = n % 7 + 1; });
    store(x, {0}, reshape(n, {1}));
  });
  Device device = emulated_device();
  const Tensor<i32, 1> x = device.tensor<i32>({1});
  const std::string said = error_of([&] { launch(device.stream(), k, x); });
  CHECK(said.find("a while_ goes on after 1048576 rounds") != said.npos);
}
