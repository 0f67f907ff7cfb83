// Captures stderr, which warnings are written to.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "support/support.hpp"

/// The text that `action` writes to stderr.
template <class Action>
std::string stderr_of(Action&& action) {
  const TempDir folder;
  const std::filesystem::path path = folder / "stderr";
  std::fflush(stderr);
  const int before = ::dup(2), file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(file, 2);
  try {
    action();
  } catch (...) {
    ::dup2(before, 2);
    throw;
  }
  std::fflush(stderr);
  ::dup2(before, 2);
  for (const int opened : {before, file}) ::close(opened);
  return read_text(path);
}

/// The same for an action that writes at most one line, without the newline.
template <class Action>
std::string line_of(Action&& action) {
  std::string text = stderr_of(action);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}
