// Continues a text with a GPT-2 model: generate "Once upon a time"
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "common/program.hpp"
#include "graph/error.hpp"
#include "model/stop_text.hpp"
#include "model/utf8.hpp"

using namespace tessera;

namespace {

using Ids = std::vector<std::int32_t>;

struct Settings {
  ModelOptions model;
  std::optional<std::string> prompt, file;
  std::optional<Ids> prompt_ids;
  std::uint32_t new_tokens = 200;
  std::optional<float> temperature, top_p, repetition_penalty;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stops;
  bool print_ids = false, no_display_prompt = false, quiet = false;
};

constexpr Sampling fallback{.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .repetition_penalty = 1};

Settings parse(CommandLine& line) {
  Settings settings;
  const auto sampled = [](const char* what, auto value) {
    return fmt::format("{}\n[generation_config.json of the model, else {}]", what, value);
  };
  line.option("-p,--prompt,prompt", settings.prompt, "TEXT", "The text to continue; put it in quotes");
  line.option("-f,--file", settings.file, "FILE",
              "Reads the prompt from a file, or stdin if it is -; one newline\nat its end is dropped");
  line.option("--prompt-ids", settings.prompt_ids, "IDS", "The prompt as token ids: 1,2,3");
  line.option("-n,--max-new-tokens", settings.new_tokens, "N",
              fmt::format("At most so many new tokens [{}]", settings.new_tokens));
  line.option("--temp,--temperature", settings.temperature, "T",
              sampled("0: always the most probable token; above 1: bolder", fallback.temperature));
  line.option("--top-k", settings.top_k, "K", sampled("Only the K most probable tokens; 0: all", fallback.top_k));
  line.option("--top-p", settings.top_p, "P",
              sampled("Only the most probable tokens that make up P; 1: all", fallback.top_p));
  line.option("--repeat-penalty,--repetition-penalty", settings.repetition_penalty, "R",
              sampled("Above 1: tokens of the text so far are less likely; 1: off", fallback.repetition_penalty));
  line.option("-s,--seed", settings.seed, "N",
              "Same seed, same text [a random one, printed]; the seed of the\nweights of --preset too [0]");
  line.option("--stop", settings.stops, "TEXT", "Ends before this text; may be repeated");
  line.flag("--print-ids", settings.print_ids,
            "Prints ids instead of text: of the prompt and all new tokens,\non one line with blanks between");
  line.flag("--no-display-prompt", settings.no_display_prompt, "Prints the continuation only");
  settings.model.declare(line);
  line.flag("-q,--quiet", settings.quiet, "No device, seed and timings on stderr");
  line.footer(
      "The text goes to stdout as it is made, everything else to stderr. It ends at the model's end token, a stop\n"
      "text, --max-new-tokens or the model's context. An empty prompt starts from the model's first token.\n"
      "A text that begins with a dash comes after --. With --print-ids, a stop text's ids are printed.\n"
      "Order of the sampling steps, as in transformers: repetition penalty, temperature, top-k, top-p.");
  line.parse();
  line.at_most_one({"--prompt", "--file", "--prompt-ids"});
  line.at_most_one({"--model", "--preset"});

  if (settings.model.preset) {
    if (!settings.prompt_ids) throw Error("a --preset has no tokenizer; give its prompt as --prompt-ids 1,2,3");
    if (!settings.stops.empty()) throw Error("a --preset has no tokenizer and makes no text for --stop to be met in");
    settings.print_ids = true;
  }
  return settings;
}

/// Options before the model's own wishes, those before the program's.
Sampling sampling_of(const Settings& settings, const GenerationDefaults& wishes) {
  const auto set = [](auto& value, const auto& wish) {
    if (wish) value = static_cast<std::remove_reference_t<decltype(value)>>(*wish);
  };
  Sampling sampling = fallback;
  set(sampling.temperature, wishes.temperature);
  if (wishes.do_sample == false) sampling.temperature = 0;
  set(sampling.top_k, wishes.top_k);
  set(sampling.top_p, wishes.top_p);
  set(sampling.repetition_penalty, wishes.repetition_penalty);
  try {
    check(sampling);
  } catch (const Error& error) {
    throw Error(fmt::format("generation_config.json of the model: {}", error.what()));
  }
  set(sampling.temperature, settings.temperature);
  set(sampling.top_k, settings.top_k);
  set(sampling.top_p, settings.top_p);
  set(sampling.repetition_penalty, settings.repetition_penalty);
  sampling.seed = settings.seed ? *settings.seed : std::random_device{}();
  check(sampling);
  return sampling;
}

std::string prompt_text(const Settings& settings) {
  if (!settings.file) return settings.prompt.value_or("");
  std::string text = read_input(*settings.file);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Ids prompt_of(const Settings& settings, const std::optional<Tokenizer>& tokenizer, const Gpt2Config& config) {
  const Ids ids = settings.prompt_ids ? *settings.prompt_ids : tokenizer->encode(prompt_text(settings));
  if (ids.size() > static_cast<std::size_t>(config.positions))
    throw Error(fmt::format("the prompt has {} tokens, the model holds {}; shorten it", ids.size(), config.positions));
  return ids;
}

/// What the model was taught that a text begins with; GPT-2 has one token for that and for the end.
std::int32_t first_token(const Gpt2Config& config) {
  if (!config.bos && !config.eos) throw Error("the prompt is empty, and the model has no token to begin with");
  return config.bos ? *config.bos : *config.eos;
}

/// Prints tokens as they come, as text or as ids. With a tokenizer, ids are made into text as well, unseen, to meet the
/// stop texts.
class Output {
 public:
  Output(const Tokenizer* tokenizer, const Settings& settings)
      : tokenizer_(tokenizer), ids_(settings.print_ids), stop_(settings.stops) {}

  void prompt(const Ids& ids, bool shown) {
    std::string text;  // whole characters: one that the prompt ends within is completed by the first new tokens
    for (const std::int32_t id : ids) {
      if (ids_ && shown) print_id(id);
      if (tokenizer_) text += utf8_.push(tokenizer_->bytes_of(id));
    }
    if (!ids_ && shown) print(text);
  }
  void token(std::int32_t id, bool end) {
    if (ids_) print_id(id);
    if (tokenizer_ && !end) pass(utf8_.push(tokenizer_->bytes_of(id)));
  }
  bool stopped() const { return stop_.found(); }
  void finish() {
    pass(utf8_.finish());
    if (!ids_) print(stop_.finish());
    print("\n");
  }

 private:
  void print_id(std::int32_t id) { print(fmt::format("{}{}", std::exchange(separator_, " "), id)); }
  void pass(std::string_view text) {
    const std::string certain = stop_.push(text);
    if (!ids_) print(certain);
  }

  const Tokenizer* tokenizer_;
  bool ids_;
  Utf8Stream utf8_;
  StopText stop_;
  const char* separator_ = "";
};

/// Milliseconds and tokens of each stage.
struct Timings {
  double load = 0, prompt = 0, evaluate = 0, sample = 0;
  std::size_t prompt_tokens = 0, evaluated = 0, sampled = 0;

  void note_all(double total) const {
    const auto stage = [](std::string_view name, double ms, std::size_t tokens) {
      std::string rate;
      if (tokens > 0) {
        const double each = ms / static_cast<double>(tokens);
        rate =
            fmt::format(" / {:5} tokens ({:8.3f} ms per token, {:9.2f} tokens per second)", tokens, each, 1e3 / each);
      }
      note(fmt::format("{:>12} = {:9.2f} ms{}", name, ms, rate));
    };
    stage("load", load, 0);
    stage("prompt eval", prompt, prompt_tokens);
    stage("eval", evaluate, evaluated);
    stage("sample", sample, sampled);
    stage("total", total, prompt_tokens + sampled);
  }
};

/// Sums up the time of the device. It is read when the work is done, so that no work waits for a clock.
class DeviceClock {
 public:
  explicit DeviceClock(Stream stream) : stream_(std::move(stream)) {}

  template <class Work>
  void time(double& sum, Work&& work) {
    const Event begin = stream_.record();
    work();
    spans_.push_back({sum, begin, stream_.record()});
  }
  /// Adds all that was timed to the sums; waits for it.
  void read() {
    for (const Span& span : spans_) span.sum += span.end.milliseconds_since(span.begin);
    spans_.clear();
  }

 private:
  struct Span {
    double& sum;
    Event begin, end;
  };
  Stream stream_;
  std::vector<Span> spans_;
};

void generate(CommandLine& line) {
  const Stopwatch total;
  const Settings settings = parse(line);
  const OpenModel opened = open_model(settings.model, settings.seed.value_or(0));
  const Gpt2& model = opened.model;
  const Gpt2Config& config = model.config();
  const Sampling sampling = sampling_of(settings, opened.defaults);

  const bool as_text = !settings.print_ids || !settings.stops.empty();
  std::optional<Tokenizer> tokenizer;
  if (as_text || !settings.prompt_ids) tokenizer = Tokenizer::open(settings.model.path());
  Ids prompt = prompt_of(settings, tokenizer, config);
  const bool shown = !settings.no_display_prompt && (!prompt.empty() || settings.print_ids);
  if (prompt.empty()) prompt.push_back(first_token(config));
  Output output(as_text ? &*tokenizer : nullptr, settings);

  Ids ends = opened.defaults.eos;
  if (ends.empty() && config.eos) ends.push_back(*config.eos);
  const std::size_t space = static_cast<std::size_t>(config.positions) - prompt.size();
  const std::size_t most = std::min<std::size_t>(settings.new_tokens, space);
  Session session(model, 1, static_cast<int>(prompt.size() + most));

  DeviceClock clock(model.device().stream());
  Timings timings{.load = total.milliseconds(), .prompt_tokens = prompt.size()};
  clock.time(timings.prompt, [&] { session.append({&prompt, 1}); });
  clock.read();
  if (!settings.quiet) note(fmt::format("device: {}\nseed: {}", describe(model.device()), sampling.seed));
  output.prompt(prompt, shown);
  bool ended = false;
  while (timings.sampled < most) {
    Ids next;
    try {
      clock.time(timings.sample, [&] { next = session.sample(sampling); });
    } catch (const Error&) {
      output.finish();  // the error gets a line of its own
      throw;
    }
    ++timings.sampled;
    const bool end = std::ranges::find(ends, next.front()) != ends.end();
    output.token(next.front(), end);
    clock.read();
    ended = end || output.stopped();
    if (ended || timings.sampled == most) break;
    clock.time(timings.evaluate, [&] { session.append({&next, 1}); });
    ++timings.evaluated;
  }
  output.finish();

  if (!ended && most < settings.new_tokens)
    note(fmt::format("the context of {} tokens is full, after {} of {} new ones", config.positions, most,
                     settings.new_tokens));
  if (!settings.quiet) timings.note_all(total.milliseconds());
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "generate", "Continues a text with a GPT-2 model.", generate);
}
