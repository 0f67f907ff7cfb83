// Rows that got slower since an earlier run.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera::internal::bench {

/// Figures of an earlier run, as bench wrote them.
class Earlier {
 public:
  /// Throws Error if the file does not exist or holds something else.
  explicit Earlier(const std::filesystem::path& file);
  /// Lines on the rows that take more than 3 % longer than they did on the same kind of device, and on how many rows
  /// both runs have.
  std::string compare(const nlohmann::json& results) const;

 private:
  std::string file_;
  nlohmann::json results_;
};

}  // namespace tessera::internal::bench
