// Where kernels are compiled: a folder under TMPDIR that lives no longer than that takes.
#pragma once
#include <filesystem>
#include <string_view>

#include "jit/options/files.hpp"

namespace tessera::internal::emulator {

/// A new folder for this user alone, removed with all that is in it. The first one of a process also removes those of
/// processes that were killed. Throws Error that names TMPDIR.
class WorkFolder {
 public:
  WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;  // held while it is in use
};

/// Writes a text to a new file under TMPDIR, or over the one that this process wrote before, and returns its path: what
/// users may look at.
std::filesystem::path keep_for_users(std::string_view text);

}  // namespace tessera::internal::emulator
