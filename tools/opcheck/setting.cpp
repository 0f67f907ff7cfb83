#include "opcheck/setting.hpp"

#include <fmt/format.h>

namespace tessera::internal::opcheck {

std::string text(Layout layout) {
  constexpr std::string_view names[] = {"dense", "padded", "strided", "transposed"};
  return std::string(names[static_cast<int>(layout)]);
}

std::string text(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += fmt::format("{}{}", text.empty() ? "" : ",", extent);
  return "[" + text + "]";
}

std::string Setting::name() const { return fmt::format("{} of {}, {}", to_string(tile), text(extents), text(layout)); }

std::vector<Setting> settings(Purpose purpose) {
  switch (purpose) {
    case Purpose::test:
      return {{{8, 64}, {16, 128}, Layout::dense},
              {{5, 33}, {13, 40}, Layout::padded},
              {{7, 1}, {9, 1}, Layout::strided},
              {{2, 1, 5}, {3, 2, 11}, Layout::transposed}};
    case Purpose::perf_cpu:
      return {{{4, 1024}, {1024, 1024}, Layout::dense}};
    case Purpose::perf_gpu:
      return {{{4, 1024}, {4096, 4096}, Layout::dense}};
  }
  return {};
}

}  // namespace tessera::internal::opcheck
