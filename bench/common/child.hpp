// A child process that exchanges lines of text.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "jit/options/process.hpp"

namespace tessera::internal::bench {

class Child {
 public:
  /// Starts argv[0], searched in PATH; it inherits stderr. Throws Error if it cannot be started.
  explicit Child(const std::vector<std::string>& argv);
  Child(const Child&) = delete;
  /// Closes its stdin and waits for it to exit.
  ~Child();

  void write_line(std::string_view line);
  /// The next line of its stdout. Throws Error if it exits first or prints nothing for that long.
  std::string read_line(std::chrono::seconds patience = std::chrono::seconds(300));

 private:
  [[noreturn]] void gone(std::string_view how) const;

  std::string name_;
  Process process_;
};

}  // namespace tessera::internal::bench
