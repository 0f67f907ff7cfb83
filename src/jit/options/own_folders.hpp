// Where the files that come with Tessera may be: libraries and programs that a process opens or runs at run time.
#pragma once
#include <filesystem>
#include <vector>

namespace tessera::internal {

/// The folder of this process's program.
std::filesystem::path program_folder();

/// In order: the folder of the library (or program) that Tessera is linked into, that of the program, the one where an
/// installation has its libraries relative to the program, lib for a program in lib/tessera,
/// and the library folder that Tessera was configured with. Each once.
std::vector<std::filesystem::path> own_folders();

/// The build folder of Tessera that contains the program; empty if there is none.
std::filesystem::path build_folder();

}  // namespace tessera::internal
