#include "jit/options/own_folders.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

/// The folder of the shared library that contains this code; the program's folder, if the code is linked into the
/// program.
fs::path own_folder() {
  Dl_info here{};
  link_map* map = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(&own_folder), &here, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      !map || !map->l_name || !*map->l_name)
    return program_folder();
  std::error_code unknown;
  return fs::canonical(map->l_name, unknown).parent_path();
}

}  // namespace

fs::path program_folder() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path();
}

std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& folder : {own_folder(), program_folder(), program_folder() / TESSERA_BIN_TO_LIB,
                                 program_folder().filename() == "tessera" ? program_folder() / ".." : program_folder(),
                                 fs::path(TESSERA_LIBDIR)}) {
    fs::path normal = (folder / "").lexically_normal().parent_path();
    if (std::ranges::find(folders, normal) == folders.end()) folders.push_back(std::move(normal));
  }
  return folders;
}

fs::path build_folder() {
  for (fs::path folder = program_folder(); folder.has_relative_path(); folder = folder.parent_path()) {
    std::ifstream cache(folder / "CMakeCache.txt");
    for (std::string line; std::getline(cache, line);)
      if (line.starts_with("tessera_SOURCE_DIR:")) return folder;
  }
  return {};
}

}  // namespace tessera::internal
