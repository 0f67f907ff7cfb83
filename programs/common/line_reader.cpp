#include "common/line_reader.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "common/program.hpp"
#include "tessera/graph/error.hpp"
#ifdef TESSERA_HAS_LIBEDIT
#include <histedit.h>
#include <langinfo.h>
#endif

namespace tessera::internal {

#ifdef TESSERA_HAS_LIBEDIT
struct LineReader::Editor {
  Editor() {
    // The input is UTF-8, whatever the locale is.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
    edit = ::el_init("generate", stdin, stderr, stderr);
    lines = ::history_init();
    if (!edit || !lines) throw Error("libedit cannot edit lines on this terminal");
    HistEvent event;
    ::history(lines, &event, H_SETSIZE, 1000);
    ::history(lines, &event, H_SETUNIQUE, 1);
    ::el_set(edit, EL_CLIENTDATA, this);
    ::el_set(edit, EL_PROMPT, +[](EditLine*) { return const_cast<char*>("> "); });
    ::el_set(edit, EL_EDITOR, "emacs");
    ::el_set(edit, EL_SIGNAL, 1);  // handles stops of the program and size changes of the terminal
    ::el_set(edit, EL_HIST, ::history, lines);
    // While a line is typed, Ctrl-C is an ordinary key and not a signal, which could come a moment too early or too
    // late.
    ::el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
    ::el_wset(edit, EL_ADDFN, L"interrupt", L"Discard the line", &Editor::interrupt);  // el_set would leak the names
    ::el_wset(edit, EL_ADDFN, L"suspend", L"Stop the program", &Editor::suspend);
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
    ::kill(0, SIGTSTP);  // the whole job, as the terminal would
    return CC_REFRESH;
  }

  Got next(std::string& line, const Interrupt& interrupt) {
    ::el_set(edit, EL_PREP_TERM, 1);  // before the prompt, not after it
    interrupted = interrupt.heard();
    int size = 0;
    errno = 0;
    const char* const typed = interrupted ? nullptr : ::el_gets(edit, &size);
    if (!typed || size <= 0) {
      ::el_set(edit, EL_PREP_TERM, 0);
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
  Got next(std::string&, const Interrupt&) { return Got::end; }
};
#endif

LineReader::LineReader(const Interrupt& interrupt) : interrupt_(interrupt), terminal_(::isatty(0) && ::isatty(2)) {
#ifdef TESSERA_HAS_LIBEDIT
  if (terminal_) editor_ = std::make_unique<Editor>();
#endif
}
LineReader::~LineReader() = default;

LineReader::Got LineReader::next(std::string& line) {
  if (editor_) return editor_->next(line, interrupt_);
  const Got got = next_of_stream(line);
  if (got != Got::line) return got;
  if (line.ends_with('\r')) line.pop_back();
  if (std::exchange(first_, false) && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
  return got;
}

LineReader::Got LineReader::next_of_stream(std::string& line) {
  constexpr std::size_t most = std::size_t{1} << 28;
  if (terminal_) std::fputs("> ", stderr);
  for (std::size_t searched = 0;;) {
    const std::size_t end = held_.find('\n', searched);
    if (end != held_.npos) {
      line = held_.substr(0, end);
      held_.erase(0, end + 1);
      return Got::line;
    }
    searched = held_.size();
    if (searched > most) throw Error("stdin has a line of more than 256 MiB; that is not text");
    if (!interrupt_.wait_for_input(0)) {
      held_.clear();
      if (terminal_) std::fputs("\n", stderr);
      return Got::interrupt;
    }
    held_.resize(searched + (std::size_t{1} << 16));
    const ssize_t size = ::read(0, held_.data() + searched, held_.size() - searched);
    held_.resize(searched + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (size < 0 && errno != EINTR && errno != EAGAIN)
      throw Error("cannot read stdin: " + std::generic_category().message(errno));
    if (size != 0) continue;
    if (terminal_) std::fputs("\n", stderr);
    line = std::exchange(held_, {});
    return line.empty() ? Got::end : Got::line;
  }
}

}  // namespace tessera::internal
