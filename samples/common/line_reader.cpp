#include "common/line_reader.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "common/program.hpp"
#include "graph/error.hpp"
#ifdef TESSERA_HAS_LIBEDIT
#include <histedit.h>
#include <langinfo.h>
#endif

namespace tessera {

#ifdef TESSERA_HAS_LIBEDIT
struct LineReader::Editor {
  Editor() {
    // What is typed is UTF-8, whatever the locale says of it.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
    edit = ::el_init("generate", stdin, stderr, stderr);
    lines = ::history_init();
    if (!edit || !lines) throw Error("libedit cannot begin to edit lines on this terminal");
    HistEvent event;
    ::history(lines, &event, H_SETSIZE, 1000);
    ::history(lines, &event, H_SETUNIQUE, 1);
    ::el_set(edit, EL_CLIENTDATA, this);
    ::el_set(edit, EL_PROMPT, +[](EditLine*) { return const_cast<char*>("> "); });
    ::el_set(edit, EL_EDITOR, "emacs");
    ::el_set(edit, EL_SIGNAL, 1);  // a program that is stopped, a terminal that changes its size
    ::el_set(edit, EL_HIST, ::history, lines);
    // While a line is typed Ctrl-C is a key like others, not a signal that might come a moment too early or late.
    ::el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
    ::el_set(edit, EL_ADDFN, "interrupt", "Take back the line", &Editor::interrupt);
    ::el_set(edit, EL_ADDFN, "suspend", "Stop the program", &Editor::suspend);
    ::el_set(edit, EL_BIND, "^C", "interrupt", nullptr);
    ::el_set(edit, EL_BIND, "^Z", "suspend", nullptr);
  }
  ~Editor() {
    if (lines) ::history_end(lines);
    if (edit) ::el_end(edit);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  static unsigned char interrupt(EditLine* edit, int) {
    void* self = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &self);
    static_cast<Editor*>(self)->interrupted = true;
    return CC_EOF;
  }

  static unsigned char suspend(EditLine*, int) {
    ::kill(0, SIGTSTP);  // the job, as the terminal would
    return CC_REFRESH;
  }

  Got next(std::string& line) {
    interrupted = false;
    int size = 0;
    errno = 0;
    const char* const typed = ::el_gets(edit, &size);
    if (!typed || size <= 0) {
      interrupted = interrupted || (size < 0 && errno == EINTR);
      std::fputs(interrupted ? "^C\n" : "\n", stderr);
      return interrupted ? Got::interrupt : Got::end;
    }
    line.assign(typed, static_cast<std::size_t>(size));
    if (line.ends_with('\n')) line.pop_back();
    HistEvent event;
    if (!line.empty()) ::history(lines, &event, H_ENTER, line.c_str());
    return Got::line;
  }

  EditLine* edit = nullptr;
  History* lines = nullptr;
  bool interrupted = false;
};
#else
struct LineReader::Editor {
  Got next(std::string&) { return Got::end; }
};
#endif

LineReader::LineReader() : terminal_(::isatty(0) && ::isatty(2)) {
#ifdef TESSERA_HAS_LIBEDIT
  if (terminal_) editor_ = std::make_unique<Editor>();
#endif
}
LineReader::~LineReader() = default;

LineReader::Got LineReader::next(std::string& line) {
  line.clear();
  return editor_ ? editor_->next(line) : next_of_stream(line);
}

LineReader::Got LineReader::next_of_stream(std::string& line) {
  constexpr std::size_t most = std::size_t{1} << 28;
  if (terminal_) std::fputs("> ", stderr);
  for (int c = 0; (c = std::getc(stdin)) != '\n';) {
    if (c == EOF && std::ferror(stdin)) {
      const int error = errno;
      std::clearerr(stdin);
      if (error != EINTR) throw Error("cannot read stdin: " + std::generic_category().message(error));
      line.clear();
      if (terminal_) std::fputs("\n", stderr);
      return Got::interrupt;
    }
    if (c == EOF) {
      if (terminal_) std::fputs("\n", stderr);
      return line.empty() ? Got::end : Got::line;
    }
    if (line.size() == most) throw Error("stdin has a line of more than 256 MiB; that is no text");
    line += static_cast<char>(c);
  }
  return Got::line;
}

}  // namespace tessera
