// The main function of a lesson.
#pragma once
#include <functional>
#include <string>

namespace tessera {

/// Prints what graph() gives, if the command line is --print, or else runs check(), which says whether the lesson's
/// results are right. Returns the exit status: 0; 1 if they are not; 2 after "name: error: ..." on stderr for anything
/// else that is wrong: an option that there is not, an Error, a stdout that takes nothing.
int run_lesson(int argc, char** argv, const std::string& name, const std::function<std::string()>& graph,
               const std::function<bool()>& check);

}  // namespace tessera
