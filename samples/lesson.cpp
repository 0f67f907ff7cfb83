#include "lesson.hpp"

#include "common/program.hpp"

using namespace tessera::internal;

int tessera::run_lesson(int argc, char** argv, const std::string& name, const std::function<std::string()>& graph,
                        const std::function<bool()>& check) {
  bool right = true;
  const int status = run_program(argc, argv, name, "A lesson: its source explains it.", [&](CommandLine& line) {
    bool print_graph = false;
    line.flag("--print", print_graph, "Prints the graph of the lesson's kernel, and nothing is run");
    line.parse();
    if (!print_graph) right = check();
    print(print_graph ? graph() : "");  // also flushes the output of check(), and fails if stdout could not be written
  });
  return status != 0 ? status : right ? 0 : 1;
}
