// Helpers of tests that run plans in the emulator.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "emulator/emulator.hpp"
#include "support/catch.hpp"
#include "tessera/graph/argument.hpp"

/// A tensor whose elements are in memory in order, without gaps.
template <class T>
tessera::internal::Argument dense_argument(std::vector<T>& values, std::initializer_list<std::int64_t> extents) {
  tessera::internal::Argument dense{.data = values.data()};
  std::ranges::copy(extents, dense.extent.begin());
  std::int64_t stride = 1;
  for (std::size_t axis = extents.size(); axis-- > 0; stride *= dense.extent[axis]) dense.stride[axis] = stride;
  return dense;
}

/// The report on a plan with a planted fault: a message must contain `says`; if that is empty, the results must be
/// wrong without any message.
inline void check_found(const tessera::internal::Report& report, std::string_view says, bool wrong_results) {
  INFO(report.text());
  CHECK(report.clean() == says.empty());
  CHECK((says.empty() ? wrong_results : report.text().find(says) != std::string::npos));
}
