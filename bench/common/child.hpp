// Another program, spoken to line by line.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal::bench {

class Child {
 public:
  /// Starts argv[0], which is looked for in PATH; its stderr is ours. Throws Error if it cannot be started.
  explicit Child(const std::vector<std::string>& argv);
  Child(const Child&) = delete;
  /// Closes its stdin, and waits for its end.
  ~Child();

  void write_line(std::string_view line);
  /// The next line of its stdout. Throws Error if it ends first, or says nothing for so long.
  std::string read_line(std::chrono::seconds patience = std::chrono::seconds(300));

 private:
  [[noreturn]] void gone(std::string_view how) const;

  std::string name_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  std::string read_;  // and not yet given
};

}  // namespace tessera::internal::bench
