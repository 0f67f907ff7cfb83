// Temporary folders under TMPDIR in which kernels are compiled.
#pragma once
#include <filesystem>
#include <string_view>

#include "jit/options/files.hpp"

namespace tessera::internal::emulator {

/// A new folder that only this user can access; removed with its contents. The first one in a process also removes
/// those of processes that were killed. Throws Error that names TMPDIR.
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
  Descriptor lock_;  // held while the folder is in use
};

/// Writes a text to a new file under TMPDIR, or over the one that this process wrote before, for users to read. Returns
/// its path.
std::filesystem::path keep_for_users(std::string_view text);

}  // namespace tessera::internal::emulator
