// Helpers that make a printed program a test of its own.
#pragma once
#include <vector>

#include "fuzz/trial.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "tessera/tessera.hpp"

namespace tessera::internal::fuzz {

/// Launches the kernel on the test's device, and without passes on the CPU; both results must be allowed by the
/// reference, or the launch must be rejected if that is right.
inline void check(const Graph& graph, std::uint64_t seed, const std::vector<Given>& given) {
  const Trial trial(graph, given, seed);
  for (const auto& failure : {trial.check_on(test_device()), trial.check_without_passes()}) {
    if (failure) FAIL_CHECK(failure->kind << "\n" << failure->text);
  }
  SUCCEED();
}

}  // namespace tessera::internal::fuzz

using namespace tessera::internal;
using tessera::internal::fuzz::check;
using tessera::internal::fuzz::Fill;
