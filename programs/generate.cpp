// Continues texts with a language model: generate "Once upon a time"
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/chat.hpp"
#include "common/output_text.hpp"
#include "common/program.hpp"
#include "common/progress.hpp"
#include "common/text_options.hpp"
#include "jit/compile/compiler.hpp"
#include "tessera/graph/error.hpp"

using namespace tessera::internal;
using Json = nlohmann::ordered_json;

namespace {

constexpr int status_of_wrong_texts = 1, status_of_interrupt = 130;  // like a process killed by SIGINT

std::string without_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

/// The prompt: from an option, otherwise from a pipe, otherwise empty.
std::string prompt_text(const TextOptions& options) {
  if (options.file) return without_newline(read_input(*options.file));
  if (options.prompt) return *options.prompt;
  return options.interactive || ::isatty(0) ? "" : without_newline(read_input("-"));
}

struct Prompt {
  std::string text{};
  Ids ids{};
  bool is_empty = false;  ///< `ids` may still have the model's first token
  std::string error{};    ///< why the prompt cannot be continued
};

/// One text to generate from a prompt.
struct Job {
  const Prompt* prompt;
  std::size_t number, sample;  ///< index of the prompt, and of the text among its samples
  bool is_wrong() const { return !prompt->error.empty(); }
};

/// The text of a job and, if it failed, the error that ended it early.
struct Made {
  OutputText written;
  std::string error{};
};

/// The whole program except -i.
class Generator {
 public:
  Generator(const TextOptions& options, const OpenModel& opened, const Model* drafter, const Tokenizer* tokenizer,
            GenerationParams params, Timings& timings)
      : options_(options),
        model_(opened.model),
        config_(opened.model.config()),
        drafter_(drafter),
        tokenizer_(tokenizer),
        course_(std::move(params)),
        timings_(timings) {}

  /// Throws Error unless the prompt fits into the model. An empty prompt becomes the model's first token, unless the
  /// text `begins_later`.
  Prompt prompt(std::string text, const std::optional<Ids>& ids = {}, bool begins_later = false) const {
    Prompt prompt{.text = std::move(text)};
    if (ids) {
      prompt.ids = *ids;
    } else if (!prompt.text.empty() || !begins_later) {
      prompt.ids = tokenizer_->encode(prompt.text, TextPlace::beginning);
    }
    check_vocabulary(prompt.ids, config_);
    if (prompt.ids.size() > static_cast<std::size_t>(config_.positions))
      throw Error(fmt::format("the prompt has {} tokens, the model's context {}; shorten it", prompt.ids.size(),
                              config_.positions));
    prompt.is_empty = prompt.ids.empty();
    if (prompt.is_empty && !begins_later) prompt.ids.push_back(first_token(config_));
    course_.most(prompt.ids.size());
    return prompt;
  }

  /// One prompt per line. An error in a prompt is stored in its place.
  std::vector<Prompt> prompts(std::string_view lines) const {
    std::vector<Prompt> prompts;
    while (!lines.empty()) {
      std::string line(lines.substr(0, lines.find('\n')));
      lines.remove_prefix(std::min(line.size() + 1, lines.size()));
      if (line.ends_with('\r')) line.pop_back();
      try {
        prompts.push_back(prompt(line));
      } catch (const std::exception&) {
        prompts.push_back({.text = line, .error = message_of_failure()});
      }
    }
    return prompts;
  }

  /// Continues all prompts, several at a time, and prints the results in order. Returns the exit status.
  int run(const std::vector<Prompt>& prompts, const Interrupt& interrupt) {
    std::vector<Job> jobs;
    for (std::size_t number = 0; number < prompts.size(); ++number)
      for (std::size_t sample = 0; sample < options_.samples; ++sample)
        jobs.push_back({&prompts[number], number, sample});
    streams_ = jobs.size() == 1 && !prints_json();
    for (std::span<const Job> rest = jobs; !rest.empty();) {
      const std::span<const Job> group = next_group(rest);
      run(group, interrupt);
      rest = interrupt.heard() ? std::span<const Job>() : rest.subspan(group.size());
    }
    if (last_) {
      (*last_)["timings"] = timings();
      print_json(*last_);
    }
    if (!decode_.why_not.empty() && !options_.quiet) note(decode_.why_not);
    if (interrupt.heard()) return status_of_interrupt;
    return failed_ || std::ranges::any_of(jobs, &Job::is_wrong) ? status_of_wrong_texts : 0;
  }

 private:
  bool prints_json() const { return options_.json || options_.batch; }

  /// The next jobs to run together: a batch, and the wrong prompts in between, which do not count.
  std::span<const Job> next_group(std::span<const Job> jobs) const {
    std::size_t count = 0;
    for (std::size_t texts = 0; count < jobs.size(); ++count)
      if (!jobs[count].is_wrong() && ++texts > options_.batch_size) break;
    return jobs.first(count);
  }

  void run(std::span<const Job> group, const Interrupt& interrupt) {
    std::vector<Job> jobs;
    std::ranges::copy_if(group, std::back_inserter(jobs), [](const Job& job) { return !job.is_wrong(); });
    const std::vector<Made> made = jobs.empty() ? std::vector<Made>() : made_of(jobs, interrupt);
    auto next = made.begin();
    for (const Job& job : group) {
      if (prints_json()) {
        Json object = job.is_wrong() ? object_of(job) : object_of(job, *next++);
        if (options_.batch) {
          print_json(object);
        } else {
          if (last_) print_json(*last_);
          last_ = std::move(object);
        }
      } else if (!streams_) {
        if (job.sample > 0 && !options_.print_ids) print("---\n");
        print(shown_prompt(job, next->written));
        for (const std::int32_t id : next->written.ids)
          if (options_.print_ids) print(with_separator(id));
        if (!options_.print_ids) print(next->written.text);
        print("\n");
        if (!next->error.empty()) note(fmt::format("sample {}: {}", job.sample, printable(next->error)));
        separator_ = "", ++next;
      }
    }
  }

  /// Continues the texts together. If that fails, continues each half of them separately, so that in the end a failure
  /// concerns a single text.
  std::vector<Made> made_of(std::span<const Job> jobs, const Interrupt& interrupt) {
    std::vector<OutputText> written;
    for (const Job& job : jobs)
      written.emplace_back(tokenizer_, options_.stops, course_.most(job.prompt->ids.size())).begin(job.prompt->ids);
    std::string error;
    try {
      continue_texts(jobs, written, interrupt);
    } catch (const std::exception&) {
      if (streams_) throw;
      error = message_of_failure();
    }
    if (!error.empty() && jobs.size() > 1) {
      std::vector<Made> made = made_of(jobs.first(jobs.size() / 2), interrupt);
      std::ranges::move(made_of(jobs.subspan(jobs.size() / 2), interrupt), std::back_inserter(made));
      return made;
    }
    std::vector<Made> made;
    for (OutputText& one : written) {
      const std::string held = one.finish();
      if (streams_) print(options_.print_ids ? "\n" : held + "\n");
      if (!error.empty()) one.ending = Ending::failure, failed_ = true;
      made.push_back({std::move(one), error});
    }
    const OutputText& first = made[0].written;
    if (streams_ && first.ending == Ending::context)
      note(fmt::format("the context of {} tokens is full, after {} of {} new ones", config_.positions, first.ids.size(),
                       first.most));
    return made;
  }

  void continue_texts(std::span<const Job> jobs, std::vector<OutputText>& written, const Interrupt& interrupt) {
    std::size_t capacity = 0;
    for (const Job& job : jobs)
      capacity = std::max(capacity, job.prompt->ids.size() + course_.most(job.prompt->ids.size()));
    capacity = std::min(capacity + course_.draft_tokens, static_cast<std::size_t>(config_.positions));
    std::optional<ProgressLine> compiling(std::in_place, compile_progress);
    Generation texts(model_, jobs.size(), static_cast<int>(capacity), timings_, drafter_);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      texts.append(i, jobs[i].prompt->ids, course_);
      texts.set_stream(i, static_cast<std::int64_t>(jobs[i].sample));
    }
    const auto begin = [&] {
      if (!compiling) return;
      compiling.reset();
      if (streams_) print(shown_prompt(jobs[0], written[0]));
    };
    try {
      generate_tokens(texts, course_, written, interrupt, [&](std::size_t, std::int32_t id, std::string_view part) {
        begin();
        if (streams_) print(options_.print_ids ? with_separator(id) : part);
      });
    } catch (const Error&) {
      if (streams_ && !compiling) print("\n");  // so that the error gets its own line
      throw;
    }
    begin();
    decode_ = texts.decode_report();
  }

  std::string with_separator(std::int32_t id) { return fmt::format("{}{}", std::exchange(separator_, " "), id); }

  /// The prompt as text or ids, if it is to be shown.
  std::string shown_prompt(const Job& job, const OutputText& written) {
    std::string shown;
    if (options_.no_display_prompt) return shown;
    if (!options_.print_ids) return job.prompt->is_empty ? shown : written.prompt;
    for (const std::int32_t id : job.prompt->ids) shown += with_separator(id);
    return shown;
  }

  Json object_of(const Job& job) const {
    Json object;
    if (options_.batch) object["index"] = job.number;
    if (options_.samples > 1) object["sample"] = job.sample;
    if (tokenizer_) object["prompt"] = job.prompt->text;
    if (job.is_wrong()) object["error"] = job.prompt->error;
    return object;
  }

  Json object_of(const Job& job, const Made& made) const {
    const OutputText& written = made.written;
    Json object = object_of(job);
    if (tokenizer_ && options_.prompt_ids) object["prompt"] = job.prompt->is_empty ? "" : written.prompt;
    object["prompt_ids"] = job.prompt->ids;
    if (tokenizer_) {
      object["text"] = written.text;
      object["replaced_invalid_utf8"] = written.replaced();
    }
    object["ids"] = written.ids;
    object["ended_by"] = name(*written.ending);
    if (!made.error.empty()) object["error"] = made.error;
    object["seed"] = course_.sampling.seed;
    object["model"] = options_.model.preset ? *options_.model.preset : options_.model.path().string();
    object["dtype"] = options_.model.dtype;
    object["device"] = model_.device().name();
    return object;
  }

  Json timings() const {
    const CompileTimes compile = compile_times();
    return {{"decode", name(decode_.form)},
            {"why_not_decode", decode_.why_not},
            {"why_general_kernels", decode_.why_general},
            {"load_ms", timings_.load},
            {"compile_ms", compile.milliseconds},
            {"compiled_kernels", compile.compiled},
            {"cached_kernels", compile.cached},
            {"prompt_ms", timings_.prompt},
            {"prompt_tokens", timings_.prompt_tokens},
            {"eval_ms", timings_.evaluate},
            {"eval_tokens", timings_.evaluated},
            {"sample_ms", timings_.sample},
            {"sample_tokens", timings_.sampled},
            {"draft_ms", timings_.draft},
            {"draft_tokens", timings_.drafted},
            {"accepted_tokens", timings_.accepted},
            {"total_ms", timings_.total_milliseconds()}};
  }

  /// Prints the object on one line. Invalid UTF-8, as in paths and wrong prompts, becomes U+FFFD.
  static void print_json(const Json& object) {
    print(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  const TextOptions& options_;
  const Model& model_;
  const TransformerConfig& config_;
  const Model* drafter_;
  const Tokenizer* tokenizer_;
  GenerationParams course_;
  Timings& timings_;
  bool streams_ = false;  // the only text is printed while it is generated
  const char* separator_ = "";
  DecodeReport decode_;       // of the latest texts
  std::optional<Json> last_;  // held until the timings are known
  bool failed_ = false;       // did a text fail?
};

int generate(CommandLine& line) {
  Timings timings;
  const TextOptions options = TextOptions::parse(line);
  std::optional<Tokenizer> tokenizer;
  const auto open_tokenizer = [&] {
    if (!tokenizer && !options.model.preset && !(options.print_ids && options.stops.empty() && options.prompt_ids))
      tokenizer = Tokenizer::open(options.model.path());
  };
  const auto first_use = [&](const GenerationDefaults& defaults) {
    open_tokenizer();
    return options.first_use(defaults, tokenizer ? &*tokenizer : nullptr);
  };
  const OpenModel opened = open_model(options.model, options.seed.value_or(0), first_use);
  const GenerationParams params = options.params(opened);
  open_tokenizer();

  const std::optional<OpenModel> drafter = options.open_drafter(opened.model);
  const Model* const of_drafts = drafter ? &drafter->model : nullptr;

  Generator generator(options, opened, of_drafts, tokenizer ? &*tokenizer : nullptr, params, timings);
  std::vector<Prompt> prompts;
  if (options.batch)
    prompts = generator.prompts(read_input(*options.batch));
  else
    prompts.push_back(
        generator.prompt(options.prompt_ids ? "" : prompt_text(options), options.prompt_ids, options.interactive));
  timings.loaded();
  Interrupt interrupt;
  if (!options.quiet) note(fmt::format("device: {}\nseed: {}", describe(opened.model.device()), params.sampling.seed));

  int status = 0;
  if (!options.interactive)
    status = generator.run(prompts, interrupt);
  else
    chat(options, opened.model, of_drafts, *tokenizer, params, prompts[0].ids, interrupt, timings);
  if (!options.quiet) note(timings.text());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  const int failed = run_program(argc, argv, "generate", "Continues texts with a language model.",
                                 [&](CommandLine& line) { status = generate(line); });
  return failed ? failed : status;
}
