// The parts that readers of formats share: the content of a StoredFile, errors about a file, and files that are no weights at
// all.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/stored.hpp"

namespace tessera::internal {

struct StoredFile::Content {
  explicit Content(std::filesystem::path from) : path(std::move(from)) {}
  std::filesystem::path path;
  std::vector<InputFile> files;
  std::vector<StoredTensor> tensors;
  std::vector<std::uint32_t> by_name;  // indices of tensors, as index_names() makes them
};

/// Throws an Error about one file, always in the same form.
struct Refusal {
  std::string about;
  template <class... Args>
  [[noreturn]] void operator()(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(about + ": " + fmt::format(format, std::forward<Args>(args)...));
  }
};

inline Refusal not_valid(const std::filesystem::path& path, std::string_view format) {
  return {fmt::format("{} is not a valid {} file", in_quotes(path.native()), format)};
}

/// The order of `tensors` by name; names must be unique.
template <class Tensors>
std::vector<std::uint32_t> index_names(const Tensors& tensors, const Refusal& refuse) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].name < tensors[b].name; });
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](auto a, auto b) { return tensors[a].name == tensors[b].name; });
  if (twice != order.end()) refuse("tensor {} occurs twice", in_quotes(tensors[*twice].name));
  return order;
}

/// Recognizes other formats that users pass by mistake, by the beginning of the file. To be called only for a file that
/// is known not to have the expected format: the first bytes of an archive could also be the length of a header.
void refuse_other_formats(std::string_view start, const Refusal& refuse);

}  // namespace tessera::internal
