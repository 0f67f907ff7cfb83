#include "common/chat.hpp"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>

#include "common/line_reader.hpp"
#include "common/output_text.hpp"
#include "common/progress.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

namespace {

constexpr std::string_view help =
    "A line is appended to the text as it is, so begin it with a blank if it begins a new word. Then the model "
    "continues.\n"
    "An empty line lets it continue. Ctrl-C stops the text; at the prompt it discards the line, and twice it quits.\n"
    "  /temp T   temperature from now on; 0: always the most probable token\n"
    "  /seed N   seed from now on\n"
    "  /reset    clears the text and starts over\n"
    "  /quit     quits, as Ctrl-D does\n"
    "  //...     a text that begins with /";

class Chat {
 public:
  Chat(const TextOptions& options, const Model& model, const Model* drafter, const Tokenizer& tokenizer,
       GenerationParams params, Interrupt& interrupt, Timings& timings)
      : options_(options),
        model_(model),
        tokenizer_(tokenizer),
        course_(std::move(params)),
        text_(model, 1, model.config().positions, timings, drafter),
        interrupt_(interrupt) {}

  /// From now on, prints a line of --- between answers, because the lines that they answer are not visible.
  void separate_answers() { separates_ = true; }

  void begin(const Ids& text) {
    if (text.empty()) return;
    text_.append(0, text, course_);
    answer(options_.no_display_prompt ? Ids() : text);
  }

  enum class Then { wait, answer, leave };
  /// Executes a line. Throws Error, and changes nothing, if the line is invalid.
  Then take(std::string line) {
    if (line.starts_with("//")) {
      line.erase(0, 1);
    } else if (line.starts_with("/")) {
      return command(line);
    }
    const TextPlace place = text_.is_empty(0) ? TextPlace::beginning : TextPlace::continuation;
    text_.append(0, tokenizer_.encode(line, place), course_);
    if (text_.is_empty(0)) text_.append(0, {first_token(model_.config())}, course_);
    if (!text_.can_continue(0)) throw Error("the model has ended the text; type a continuation, or /reset");
    return Then::answer;
  }

  /// Lets the model continue, after printing the tokens `shown`. A failure is reported and ends only this answer.
  void answer(const Ids& shown) {
    if (separates_ && std::exchange(answered_, true)) print("---\n");
    try {
      write_answer(shown);
    } catch (const OutputError&) {
      throw;
    } catch (const std::exception&) {
      note(printable(message_of_failure()));
    }
  }

 private:
  void write_answer(const Ids& shown) {
    std::vector<OutputText> written;
    OutputText& one = written.emplace_back(&tokenizer_, options_.stops, course_.new_tokens);
    if (!shown.empty()) one.begin(shown);
    interrupt_.rearm();
    std::optional<ProgressLine> compiling(std::in_place, compile_progress);
    const auto begin = [&] {
      if (!compiling) return;
      compiling.reset();
      print(one.prompt);
    };
    try {
      generate_tokens(text_, course_, written, interrupt_, [&](std::size_t, std::int32_t, std::string_view part) {
        begin();
        print(part);
      });
    } catch (const Error&) {
      if (!compiling) print("\n");  // so that the error gets its own line
      throw;
    }
    begin();
    print(one.finish() + "\n");
    interrupt_.rearm();
    if (one.ending == Ending::context)
      note(fmt::format("the context of {} tokens is full; /reset starts over, and --context-shift lets it continue",
                       model_.config().positions));
  }

  /// Confirms the effect of a command.
  void confirm(const std::string& what) const {
    if (!options_.quiet) note(what);
  }

  Then command(const std::string& line) {
    const std::size_t blank = line.find(' ');
    const std::string name = line.substr(0, blank), value = blank == line.npos ? "" : line.substr(blank + 1);
    if (name == "/quit") return Then::leave;
    if (name == "/help") {
      note(help);
    } else if (name == "/reset") {
      text_.clear(0);
      confirm("The text is cleared.");
    } else if (name == "/temp" || name == "/seed") {
      Sampling changed = course_.sampling;
      if (name == "/seed") {
        convert(value, changed.seed);
      } else {
        convert(value, changed.temperature);
      }
      check(changed);
      course_.sampling = changed;
      confirm(name == "/seed" ? fmt::format("seed: {}", changed.seed)
                              : fmt::format("temperature: {}", changed.temperature));
    } else {
      throw Error(fmt::format("there is no command {}; /help lists them, and // begins a text with /", name));
    }
    return Then::wait;
  }

  const TextOptions& options_;
  const Model& model_;
  const Tokenizer& tokenizer_;
  GenerationParams course_;
  Generation text_;
  Interrupt& interrupt_;
  bool separates_ = false, answered_ = false;
};

}  // namespace

void chat(const TextOptions& options, const Model& model, const Model* drafter, const Tokenizer& tokenizer,
          GenerationParams params, const Ids& text, Interrupt& interrupt, Timings& timings) {
  Chat conversation(options, model, drafter, tokenizer, std::move(params), interrupt, timings);
  LineReader lines(interrupt);
  if (!lines.is_terminal()) conversation.separate_answers();
  if (lines.is_terminal() && !options.quiet) note("A line continues the text; /help lists the commands, Ctrl-D quits.");
  conversation.begin(text);
  std::string line;
  for (bool interrupted = false;;) {
    const Stopwatch waiting;
    const LineReader::Got got = lines.next(line);
    timings.waited += waiting.milliseconds();
    if (got == LineReader::Got::end || (got == LineReader::Got::interrupt && interrupted)) return;
    interrupted = got == LineReader::Got::interrupt;
    if (interrupted) {
      interrupt.rearm();
      if (lines.is_terminal()) note("Press Ctrl-C again, or Ctrl-D, to quit.");
      continue;
    }
    auto then = Chat::Then::wait;
    try {
      then = conversation.take(line);
    } catch (const Error& error) {
      note(printable(error.what()));
    }
    if (then == Chat::Then::leave) return;
    if (then == Chat::Then::answer) conversation.answer({});
  }
}

}  // namespace tessera::internal
