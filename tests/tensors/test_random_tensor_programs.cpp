#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/tensor_programs.hpp"
#include "tessera/tensors/run.hpp"

namespace test_random_tensor_programs {
using namespace tessera::internal;

TEST_CASE("random tensor programs compute what the reference does, fused and op by op", "[tensors]") {
  const Device& device = test_device();
  const Seeds seeds(400);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("TESSERA_TEST_SEED=" << seed << " TESSERA_TEST_GRAPHS=1");
    RandomProgram program = random_tensor_program(device, seed);
    std::string wrong, kernels;
    try {
      kernels = describe_lazy(program.results);
      wrong = compare_results(program, run_lazy(program.results), 1e-3);
      if (wrong.empty() && seed % 4 == 0) {
        wrong = compare_results(program, run_lazy(program.results, nullptr, false), 1e-3);
        if (!wrong.empty()) wrong = "op by op: " + wrong;
      }
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    INFO(kernels << lazy_text(program.results));
    CHECK(wrong == "");
  }
}

}  // namespace test_random_tensor_programs
