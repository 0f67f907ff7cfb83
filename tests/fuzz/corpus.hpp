// What a printed program needs to be a test of its own.
#pragma once
#include <vector>

#include "api/tessera.hpp"
#include "catch.hpp"
#include "devices.hpp"
#include "fuzz/trial.hpp"

namespace tessera::fuzz {

/// Launches the kernel on the test's device, and without passes on the CPU; both must leave what the reference allows,
/// or refuse the launch if that is right.
inline void check(const Graph& graph, std::uint64_t seed, const std::vector<Given>& given) {
  const Trial trial(graph, given, seed);
  for (const auto& failure : {trial.check_on(test_device()), trial.check_without_passes()}) {
    if (failure) FAIL_CHECK(failure->kind << "\n" << failure->text);
  }
  SUCCEED();
}

}  // namespace tessera::fuzz

using namespace tessera;
using tessera::fuzz::check;
using tessera::fuzz::Fill;
