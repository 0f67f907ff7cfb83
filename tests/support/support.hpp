// Helpers of several tests: temporary folders, whole files, the text of an expected error, and the number of cases.
#pragma once
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/share.hpp"
#include "tessera/graph/error.hpp"

/// A new empty folder, removed with its contents.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

/// The text of the tessera::Error that `action` throws; a sentence that matches nothing if it throws none. Any other
/// exception passes through and fails the test.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const tessera::internal::Error& e) {
    return e.what();
  }
  return "(no error)";
}

/// Whether `text` is one line that contains all of `parts`.
inline bool says(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == text.npos) return false;
  }
  return text.find('\n') == text.npos;
}

/// Is the test's i-th kernel in the share that is compiled?
inline bool in_share(std::size_t i) {
  return (i * 0x9E3779B97F4A7C15u >> 32) % test_share(3) == 0;  // covers some of every row and column of a table
}
