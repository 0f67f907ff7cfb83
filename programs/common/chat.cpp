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

constexpr std::string_view conversation_help =
    "A line is a message to the model, which answers. Ctrl-C stops the answer; at the prompt it discards the line, and "
    "twice it quits.\n"
    "When the context is full, the oldest messages are left out.\n";
constexpr std::string_view text_help =
    "A line is appended to the text as it is, so begin it with a blank if it begins a new word. Then the model "
    "continues.\n"
    "An empty line lets it continue. Ctrl-C stops the text; at the prompt it discards the line, and twice it quits.\n";
constexpr std::string_view commands =
    "  /temp T   temperature from now on; 0: always the most probable token\n"
    "  /seed N   seed from now on\n"
    "  /reset    clears the text and starts over\n"
    "  /quit     quits, as Ctrl-D does\n"
    "  //...     a text that begins with /";

class Chat {
 public:
  Chat(const TextOptions& options, const Model& model, const Model* drafter, const Tokenizer& tokenizer,
       Conversation* conversation, GenerationParams params, Interrupt& interrupt, Timings& timings)
      : options_(options),
        model_(model),
        tokenizer_(tokenizer),
        conversation_(conversation),
        course_(std::move(params)),
        text_(model, 1, model.config().positions, timings, drafter),
        interrupt_(interrupt) {}

  /// From now on, prints a line of --- between answers, because the lines that they answer are not visible.
  void separate_answers() { separates_ = true; }

  void begin(const Beginning& beginning) {
    if (conversation_) {
      if (beginning.text.empty()) return;
      take_message(beginning.text);
      answer({});
    } else if (!beginning.ids.empty()) {
      text_.append(0, beginning.ids, course_);
      answer(options_.no_display_prompt ? Ids() : beginning.ids);
    }
  }

  enum class Then { wait, answer, leave };
  /// Executes a line. Throws Error, and changes nothing, if the line is invalid.
  Then take(std::string line) {
    if (line.starts_with("//")) {
      line.erase(0, 1);
    } else if (line.starts_with("/")) {
      return command(line);
    }
    if (conversation_) {
      if (line.empty()) return Then::wait;
      take_message(std::move(line));
      return Then::answer;
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
      if (conversation_ && conversation_->messages().back().role == "user") conversation_->remove_last();
      note(printable(message_of_failure()));
    }
  }

 private:
  /// Adds a message of the user. Throws Error, and changes nothing, if it is too long.
  void take_message(std::string content) {
    conversation_->add("user", std::move(content));
    try {
      const auto context = static_cast<std::size_t>(model_.config().positions);
      const auto [ids, left_out] = conversation_->prompt(context, course_.new_tokens);
      text_.replace(0, ids);
      if (left_out > 0)
        confirm(fmt::format("the oldest {} messages are left out: the context has {} tokens", left_out, context));
    } catch (const Error&) {
      conversation_->remove_last();
      throw;
    }
  }

  void write_answer(const Ids& shown) {
    std::vector<OutputText> written;
    OutputText& one = written.emplace_back(&tokenizer_, options_.stops, course_.new_tokens);
    if (!shown.empty()) one.begin(shown);
    if (conversation_) one.begin_answer();
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
    if (conversation_) conversation_->add("assistant", one.text);
    if (one.ending == Ending::context && conversation_)
      note(fmt::format("the context of {} tokens is full, and the answer ends here", model_.config().positions));
    if (one.ending == Ending::context && !conversation_)
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
      note(fmt::format("{}{}", conversation_ ? conversation_help : text_help, commands));
    } else if (name == "/reset") {
      text_.clear(0);
      if (conversation_) conversation_->clear();
      confirm(conversation_ ? "The conversation is cleared." : "The text is cleared.");
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
  Conversation* conversation_;
  GenerationParams course_;
  Generation text_;
  Interrupt& interrupt_;
  bool separates_ = false, answered_ = false;
};

}  // namespace

void chat(const TextOptions& options, const Model& model, const Model* drafter, const Tokenizer& tokenizer,
          Conversation* conversation, GenerationParams params, const Beginning& begin, Interrupt& interrupt,
          Timings& timings) {
  Chat turns(options, model, drafter, tokenizer, conversation, std::move(params), interrupt, timings);
  LineReader lines(interrupt);
  if (!lines.is_terminal()) turns.separate_answers();
  if (lines.is_terminal() && !options.quiet)
    note(fmt::format("A line {}; /help lists the commands, Ctrl-D quits.",
                     conversation ? "is a message to the model" : "continues the text"));
  turns.begin(begin);
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
      then = turns.take(line);
    } catch (const Error& error) {
      note(printable(error.what()));
    }
    if (then == Chat::Then::leave) return;
    if (then == Chat::Then::answer) turns.answer({});
  }
}

}  // namespace tessera::internal
