#include "common/text_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "jit/options/log.hpp"
#include "jit/profile/profiler.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/stop_text.hpp"

namespace tessera::internal {

namespace {

constexpr Sampling fallback{.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .repetition_penalty = 1};

void check_together(const TextOptions& options) {
  StopText(options.stops);
  const auto refuse = [](bool given, const char* what) {
    if (given) throw Error(what);
  };
  if (options.model.preset) {
    refuse(options.interactive, "a --preset has no tokenizer, and -i reads and prints text");
    refuse(options.batch.has_value(), "a --preset has no tokenizer, and the prompts of --batch are text");
    refuse(!options.prompt_ids, "a --preset has no tokenizer; give its prompt as --prompt-ids 1,2,3");
    refuse(!options.stops.empty(), "a --preset has no tokenizer and generates no text in which --stop could match");
  }
  if (options.interactive) {
    refuse(options.json || options.batch, "-i is interactive; --json and --batch exclude it");
    refuse(options.samples > 1, "-i continues one text; --samples excludes it");
    refuse(options.print_ids, "-i prints text; --print-ids excludes it");
    refuse(options.file == "-", "-i takes lines from stdin; read the prompt from a file");
  }
  if (options.chat) {
    refuse(options.model.preset.has_value(), "a --preset has no tokenizer, and --chat reads and prints text");
    refuse(options.prompt_ids.has_value(), "--chat takes messages, which are text; --prompt-ids excludes it");
    refuse(options.context_shift, "--chat leaves out the oldest messages; --context-shift excludes it");
    refuse(options.interactive && options.messages, "--messages is a whole conversation; -i excludes it");
    refuse(options.system && options.messages, "--messages has its own system message; --system excludes it");
  } else {
    refuse(options.system.has_value(), "--system requires --chat");
    refuse(options.chat_template.has_value(), "--chat-template requires --chat");
    refuse(options.messages.has_value(), "--messages requires --chat");
  }
  if (options.batch) {
    refuse(options.print_ids, "--batch prints JSON, which has the ids; --print-ids excludes it");
    refuse(options.no_display_prompt,
           "--batch prints JSON, which has the prompt in its own field; --no-display-prompt excludes it");
  }
  refuse(options.json && options.print_ids, "--json has the ids; --print-ids excludes it");
  refuse(options.samples == 0, "--samples is 0; it must be at least 1");
  refuse(options.samples > 65536, "--samples is above 65536");
  refuse(options.batch_size == 0, "--batch-size is 0; it must be at least 1");
  refuse(options.batch_size > 65536, "--batch-size is above 65536");
  refuse(options.lookup > 64, "--lookup is above 64");
  refuse(options.draft_tokens && (*options.draft_tokens < 1 || *options.draft_tokens > 64),
         "--draft-tokens is not in 1 to 64");
  refuse(options.draft_tokens && !options.draft, "--draft-tokens requires --draft");
  const bool is_for_one = !options.batch && options.samples == 1;
  refuse(options.lookup > 0 && !is_for_one, "--lookup is for one text; --batch and --samples exclude it");
  refuse(options.draft && !is_for_one, "--draft is for one text; --batch and --samples exclude it");
  refuse(options.keep && !options.context_shift, "--keep requires --context-shift");
  refuse(options.keep && *options.keep < -1, "--keep is a number of tokens, or -1 for the whole prompt");
}

}  // namespace

TextOptions TextOptions::parse(CommandLine& line) {
  TextOptions options;
  const auto sampled = [](const char* what, auto value) {
    return fmt::format("{}\n[generation_config.json of the model, else {}]", what, value);
  };
  line.option("-p,--prompt,prompt", options.prompt, "TEXT",
              "The text to continue, in quotes. Without it, the prompt is read from\nstdin, if that is a pipe or a "
              "file. \"\" is an empty prompt");
  line.option("-f,--file", options.file, "FILE",
              "Reads the prompt from a file, or from stdin if FILE is -; one newline\nat its end is dropped");
  line.option("--prompt-ids", options.prompt_ids, "IDS", "The prompt as token ids: 1,2,3");
  line.flag("-i,--interactive", options.interactive,
            "Continues the text after each line that you type; /help there\nlists commands, Ctrl-C stops the text");
  line.flag("--chat", options.chat,
            "The prompt, or each line of -i or --batch, is a message to a chat\nmodel, and its answer is printed");
  line.option("--system", options.system, "TEXT", "--chat: the system message [that of the model's template]");
  line.option("--chat-template", options.chat_template, "NAME",
              "--chat: the format of the conversation [that of the model's template,\nif it is known]");
  line.option("--messages", options.messages, "FILE",
              "--chat: a conversation, as JSON [{\"role\": \"user\", \"content\": \"...\"},\n...], whose last message is "
              "answered; - is stdin");
  line.option("--batch", options.batch, "FILE",
              "Reads one prompt per line from a file, or from stdin if FILE is -;\nprints one JSON object per line, in "
              "the same order");
  line.option("--samples", options.samples, "N", fmt::format("Number of texts for each prompt [{}]", options.samples));
  line.option("--batch-size", options.batch_size, "N",
              fmt::format("Number of texts that run at a time, of --batch and --samples [{}]", options.batch_size));
  line.option("-n,--max-new-tokens", options.new_tokens, "N",
              sampled("Maximum number of new tokens", GenerationParams().new_tokens));
  line.option("--temp,--temperature", options.temperature, "T",
              sampled("0: always the most probable token; above 1: more varied", fallback.temperature));
  line.option("--top-k", options.top_k, "K", sampled("Only the K most probable tokens; 0: all", fallback.top_k));
  line.option("--top-p", options.top_p, "P",
              sampled("Only the most probable tokens whose probabilities sum to P; 1: all", fallback.top_p));
  line.option("--min-p", options.min_p, "P",
              sampled("Only tokens at least P times as probable as the best; 0: all", fallback.min_p));
  line.option("--repeat-penalty,--repetition-penalty", options.repetition_penalty, "R",
              sampled("Above 1: tokens of the text so far are less likely; 1: off", fallback.repetition_penalty));
  line.option("-s,--seed", options.seed, "N",
              "The same seed gives the same text [random, and printed]; also the\nseed of the weights of --preset [0]");
  line.option("--stop", options.stops, "TEXT", "Ends before this text; may be repeated");
  line.flag("--context-shift", options.context_shift,
            "When the context is full, continues without the older half of the\ntext; otherwise the text ends there");
  line.option("--keep", options.keep, "N", "--context-shift keeps the first N tokens; -1: the prompt [0]");
  line.option("--lookup", options.lookup, "N",
              "Drafts of N tokens, where the text repeats itself, are verified at\nonce, while that is faster; 0: none "
              "[0]");
  line.option("--draft", options.draft, "DIR",
              "Drafts by a smaller model with the same vocabulary, verified as\nthose of --lookup; a folder or a name, "
              "as of --model");
  line.option("--draft-tokens", options.draft_tokens, "N",
              fmt::format("Tokens of each draft of --draft [{}]", default_draft));
  line.option(
      "--profile", options.profile, "FILE.json",
      "Writes a trace of launches, compilations and tokens, which Perfetto\nopens; table: prints kernels by time "
      "instead; inside:KERNEL: what its\nroles do and wait for; as TESSERA_PROFILE");
  line.flag("--json", options.json, "Prints one JSON object per text, and nothing else on stdout");
  line.flag("--print-ids", options.print_ids,
            "Prints ids instead of text, for the prompt and all new tokens, on one\nline, separated by blanks");
  line.flag("--no-display-prompt", options.no_display_prompt, "Prints the continuation only");
  options.model.declare(line);
  line.flag("-q,--quiet", options.quiet, "Prints no device, seed and timings on stderr");
  line.footer(
      "The text is printed to stdout as it is generated, everything else to stderr. It ends at the model's end token,\n"
      "a stop text, --max-new-tokens, the context or Ctrl-C (status 130; a second kills the program). An empty\n"
      "prompt starts from the model's first token. A text that begins with a dash comes after --. With --print-ids, a\n"
      "stop text's ids are printed. --samples prints a line of --- between texts. docs/programs.md describes -i, "
      "--batch\n"
      "and JSON.\n"
      "Order of the sampling steps, as in transformers: repetition penalty, temperature, top-k, top-p, min-p.");
  line.parse();
  if (options.profile) profile::start(*options.profile, "--profile");
  line.at_most_one({"--prompt", "--file", "--prompt-ids", "--batch", "--messages"});
  line.at_most_one({"--model", "--preset"});
  line.at_most_one({"--lookup", "--draft"});
  check_together(options);
  const bool has_prompt = options.prompt || options.file || options.prompt_ids || options.batch || options.messages;
  if (!has_prompt && !options.interactive && ::isatty(0))
    line.refuse(
        "there is no prompt; give a text in quotes, or pipe one to stdin. \"\" is an empty prompt, and with -i "
        "you and the model write in turns");
  if (options.model.preset && !options.json) options.print_ids = true;
  return options;
}

Sampling TextOptions::sampling(const GenerationDefaults& wishes) const {
  const auto set = [](auto& value, const auto& wish) {
    if (wish) value = static_cast<std::remove_reference_t<decltype(value)>>(*wish);
  };
  Sampling sampling = fallback;
  set(sampling.temperature, wishes.temperature);
  if (wishes.do_sample == false) sampling.temperature = 0;
  set(sampling.top_k, wishes.top_k);
  set(sampling.top_p, wishes.top_p);
  set(sampling.min_p, wishes.min_p);
  set(sampling.repetition_penalty, wishes.repetition_penalty);
  try {
    check(sampling);
  } catch (const Error& error) {
    throw Error(fmt::format("generation_config.json of the model: {}", error.what()));
  }
  set(sampling.temperature, temperature);
  set(sampling.top_k, top_k);
  set(sampling.top_p, top_p);
  set(sampling.min_p, min_p);
  set(sampling.repetition_penalty, repetition_penalty);
  sampling.seed = seed ? *seed : std::random_device{}();
  check(sampling);
  return sampling;
}

GenerationParams TextOptions::params(const OpenModel& opened) const {
  const TransformerConfig& config = opened.model.config();
  GenerationParams params{
      .sampling = sampling(opened.defaults), .ends = opened.defaults.eos, .context_shift = context_shift};
  if (params.ends.empty()) params.ends = config.eos;
  const GenerationDefaults& wishes = opened.defaults;
  if (new_tokens || wishes.max_new_tokens) {
    params.new_tokens = new_tokens.value_or(static_cast<std::uint32_t>(wishes.max_new_tokens.value_or(0)));
  } else if (wishes.max_length && !interactive) {
    params.max_length = static_cast<std::size_t>(*wishes.max_length);
  }
  if (!wishes.ignored.empty())
    log_warn(
        fmt::format("generation_config.json of the model has {}, with which transformers would generate a different "
                    "text; Tessera ignores this",
                    fmt::join(wishes.ignored, ", ")));
  if (context_shift && config.positions < 2)
    throw Error("--context-shift needs a model with a context of 2 tokens or more");
  if (keep && *keep > config.positions - 2)
    throw Error(fmt::format("--keep {} leaves no text to shift in a context of {} tokens; keep at most {}", *keep,
                            config.positions, config.positions - 2));
  params.draft_tokens = drafted();
  if (params.draft_tokens > 0 && params.sampling.repetition_penalty != 1)
    throw Error(fmt::format("{} cannot verify drafts with a repetition penalty; set --repeat-penalty 1",
                            draft ? "--draft" : "--lookup"));
  if (keep != -1) params.keep = static_cast<std::size_t>(keep.value_or(0));
  return params;
}

FirstUse TextOptions::first_use(const GenerationDefaults& wishes, const Tokenizer* tokenizer) const {
  const std::uint32_t texts = batch ? batch_size : std::min(samples, batch_size);
  FirstUse first{.batch = interactive ? 1 : static_cast<int>(texts), .lengths = {}, .sampling = sampling(wishes)};
  std::size_t tokens = 0;
  if (prompt_ids) tokens = prompt_ids->size();
  if (prompt && !prompt_ids && tokenizer) tokens = tokenizer->encode(*prompt, TextPlace::beginning).size();
  if (tokens > 1) first.lengths.push_back(static_cast<int>(tokens));
  first.lengths.push_back(1);
  if (drafted() > 0) first.lengths.push_back(static_cast<int>(drafted()) + 1);
  return first;
}

std::optional<OpenModel> TextOptions::open_drafter(const Model& of) const {
  if (!draft) return {};
  ModelOptions smaller = model;
  smaller.folder = draft, smaller.preset = {};
  OpenModel drafter = open_model(smaller, 0);
  const int vocab = of.config().vocab, own = drafter.model.config().vocab;
  if (own != vocab)
    throw Error(
        fmt::format("--draft {}: its vocabulary has {} tokens, that of the model {}; a draft model must share it",
                    printable(*draft), own, vocab));
  return drafter;
}

}  // namespace tessera::internal
