// Faults planted in plans, which the plan verifier must report.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "support/catch.hpp"

using Plant = std::function<void(tessera::internal::codegen::Plan&)>;

struct PlantedFault {
  const char* name;
  Plant plant;
  const char* says;  ///< part of one of the verifier's messages
};

/// Plants a fault in a plan; one of the verifier's messages must contain `says`.
inline void check_reported(tessera::internal::codegen::Plan plan, const Plant& plant, std::string_view says) {
  REQUIRE_NOTHROW(plant(plan));
  const std::vector<std::string> found = violations(plan);
  INFO(fmt::format("found:\n  {}", fmt::join(found, "\n  ")));
  CHECK(std::ranges::any_of(found, [&](const std::string& one) { return one.find(says) != one.npos; }));
}

/// Each fault is planted alone, in a plan that has none.
inline void check_reported(const tessera::internal::codegen::Plan& right, std::span<const PlantedFault> faults) {
  REQUIRE(violations(right) == std::vector<std::string>{});
  for (const PlantedFault& fault : faults) {
    INFO(fault.name);
    check_reported(right, fault.plant, fault.says);
  }
}
