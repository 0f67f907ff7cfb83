// The main function of the lessons.
#pragma once
#include <functional>
#include <string>

namespace tessera {

/// Runs a lesson from its command line. With --print, prints the string that graph() returns; otherwise runs check(),
/// which returns whether the lesson's results are correct. Returns the exit status: 0 on success, 1 if the results are
/// wrong, 2 after printing "name: error: ..." to stderr for any other error: an unknown option, an Error, or a stdout
/// that cannot be written.
int run_lesson(int argc, char** argv, const std::string& name, const std::function<std::string()>& graph,
               const std::function<bool()>& check);

}  // namespace tessera
