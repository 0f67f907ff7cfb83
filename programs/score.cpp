// Log-probability and perplexity of a text under a model: score "Once upon a time"
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "common/generation.hpp"
#include "common/program.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/safetensors.hpp"

using namespace tessera::internal;

namespace {

using nlohmann::json;

struct Settings {
  ModelOptions model;
  std::optional<std::string> text, file, logits;
  std::optional<Ids> ids;
  std::optional<std::uint32_t> stride;
  std::uint64_t seed = 0;
  bool json = false, quiet = false;
};

Settings parse(CommandLine& line) {
  Settings settings;
  line.option("-t,--text,text", settings.text, "TEXT",
              "The text, in quotes. Without it, the text is read from stdin, if that\nis a pipe or a file");
  line.option("-f,--file", settings.file, "FILE", "Reads the text from a file, or from stdin if FILE is -");
  line.option("--ids", settings.ids, "IDS", "The text as token ids: 1,2,3");
  line.option("--stride", settings.stride, "N",
              "Distance in tokens between the windows over a text longer than the\nmodel's context [half the context]");
  line.option("--logits", settings.logits, "FILE",
              "Writes a safetensors file with one F32 tensor, logits\n[tokens, vocabulary]");
  line.flag("--json", settings.json, "Prints one JSON object");
  settings.model.declare(line);
  line.option("-s,--seed", settings.seed, "N", "Seed of the weights of --preset [0]");
  line.flag("-q,--quiet", settings.quiet, "Prints no device and timings on stderr");
  line.footer(
      "A text that begins with a dash comes after --.\n"
      "Prints a line for each token: index, id, text in quotes, log-probability, separated by tabs; control "
      "characters\n"
      "and parts of a character are printed as \\xNN. Then 'total', the sum, and 'perplexity', exp of the negated "
      "mean.\n"
      "'-' marks a missing value: the first token has no log-probability, ids without a tokenizer have no text.\n\n"
      "A text longer than the model's context is scored in windows of that length, each --stride tokens after the\n"
      "previous one. A window scores the tokens that no earlier window covers, so that each of them has at least the\n"
      "context minus --stride tokens before it. --logits has the rows of logits that were used: row i predicts token\n"
      "i + 1.");
  line.parse();
  line.at_most_one({"--text", "--file", "--ids"});
  line.at_most_one({"--model", "--preset"});
  if (settings.model.preset && !settings.ids) throw Error("a --preset has no tokenizer; give the text as --ids 1,2,3");
  return settings;
}

/// The model's tokenizer; not needed if the text is given as ids.
std::optional<Tokenizer> tokenizer_of(const Settings& settings) {
  if (settings.model.preset) return {};
  std::error_code absent;
  const auto has = [&](const char* file) { return std::filesystem::exists(settings.model.path() / file, absent); };
  if (settings.ids && !has("tokenizer.json") && !has("vocab.json")) return {};
  return Tokenizer::open(settings.model.path());
}

void write_logits(const std::string& path, const std::vector<float>& logits, std::uint64_t tokens) {
  static_assert(std::endian::native == std::endian::little);
  const TensorBytes tensor{.name = "logits",
                           .type = StoredType::f32,
                           .shape = {tokens, logits.size() / tokens},
                           .bytes = std::as_bytes(std::span(logits))};
  write_safetensors(path, {&tensor, 1});
}

/// Tokens [begin, end) of a text, of which [scored, end) are scored.
struct Window {
  std::size_t begin, scored, end;
};

/// As in Hugging Face's guide to the perplexity of fixed-length models: each window begins a stride after the previous
/// one, and scores the tokens that no earlier window covers.
std::vector<Window> windows_of(std::size_t tokens, std::size_t context, std::size_t stride) {
  std::vector<Window> windows{{0, 0, std::min(tokens, context)}};
  while (windows.back().end < tokens) {
    const Window& last = windows.back();
    windows.push_back({last.begin + stride, last.end, std::min(last.begin + stride + context, tokens)});
  }
  return windows;
}

std::vector<Window> windows_of(const Settings& settings, const TransformerConfig& config, const Ids& ids) {
  check_vocabulary(ids, config);  // before any token is scored
  const auto context = static_cast<std::size_t>(config.positions);
  if (context < 2 && ids.size() > context)
    throw Error(
        fmt::format("the model's context is 1 token, so no token has another before it; a text of {} tokens "
                    "cannot be scored",
                    ids.size()));
  const std::size_t stride = settings.stride.value_or(static_cast<std::uint32_t>(config.positions / 2));
  // The windows must overlap, because the first token of a window cannot be scored.
  if (context > 1 && (settings.stride || ids.size() > context) && (stride < 1 || stride >= context))
    throw Error(
        fmt::format("--stride {}: it must be 1 to {}; the model's context is {} tokens", stride, context - 1, context));
  return windows_of(ids.size(), context, stride);
}

/// The results of a window: the log-probabilities of its scored tokens, except the first token of the text, and the
/// logits used for them. The last window also has the logits at the last token, which predict no token of the text.
struct Scores {
  std::vector<float> log_probabilities, logits;
};

Scores scores_of(const Model& model, const Ids& ids, const Window& window) {
  // The logits at a token predict the next one.
  const std::size_t first = window.scored == 0 ? 0 : window.scored - 1;
  const auto part = [&](std::size_t from, std::size_t to) { return Ids(ids.data() + from, ids.data() + to); };
  Session session(model, 1, static_cast<int>(window.end - window.begin));
  const Ids context = part(window.begin, first), scored = part(first, window.end);
  if (!context.empty()) session.append({&context, 1});
  session.append({&scored, 1});
  Scores scores{.log_probabilities = {}, .logits = session.all_logits()};
  const auto vocab = static_cast<std::size_t>(model.config().vocab);
  if (scored.size() > 1)
    scores.log_probabilities = session.log_probabilities(std::span(scores.logits).first(scores.logits.size() - vocab),
                                                         std::span(scored).subspan(1));
  if (window.end < ids.size()) scores.logits.resize(scores.logits.size() - vocab);
  return scores;
}

/// Prints the scores as they are computed.
class Report {
 public:
  Report(const Settings& settings, const std::optional<Tokenizer>& tokenizer)
      : json_(settings.json), tokenizer_(tokenizer) {}

  void token(std::int32_t id, std::optional<float> log_probability) {
    sum_ += log_probability.value_or(0);
    if (json_) {
      json entry{{"id", id}, {"text", nullptr}, {"logprob", nullptr}};
      if (tokenizer_) entry["text"] = tokenizer_->bytes_of(id);
      if (log_probability) entry["logprob"] = *log_probability;
      tokens_.push_back(std::move(entry));
    } else {
      const std::string text = tokenizer_ ? fmt::format("\"{}\"", printable(tokenizer_->bytes_of(id))) : "-";
      const std::string value = log_probability ? fmt::format("{:.6f}", *log_probability) : "-";
      lines_ += fmt::format("{}\t{}\t{}\t{}\n", count_, id, text, value);
    }
    ++count_;
  }
  /// Prints the lines of the tokens so far.
  void print_lines() { print(std::exchange(lines_, {})); }

  void finish(const Device& device, double load_ms, double score_ms) {
    std::optional<double> perplexity;
    if (count_ > 1) perplexity = std::exp(-sum_ / static_cast<double>(count_ - 1));
    if (!json_) {
      return print(
          fmt::format("total\t{:.6f}\nperplexity\t{}\n", sum_, perplexity ? fmt::format("{:.6f}", *perplexity) : "-"));
    }
    json object{{"total", sum_}, {"perplexity", nullptr}, {"tokens", std::move(tokens_)}, {"device", device.name()}};
    if (perplexity) object["perplexity"] = *perplexity;
    object["timings"] = {{"load_ms", load_ms}, {"score_ms", score_ms}};
    // Parts of a character become U+FFFD.
    print(object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  }

 private:
  bool json_;
  const std::optional<Tokenizer>& tokenizer_;
  std::string lines_;
  json tokens_ = json::array();
  std::size_t count_ = 0;
  double sum_ = 0;
};

void score(CommandLine& line) {
  const Stopwatch total;
  const Settings settings = parse(line);
  std::string text;
  if (!settings.ids) {
    text = given_text(settings.text, settings.file);
    if (text.empty())
      line.refuse("the text is empty; there is nothing to score. Give a text in quotes, or pipe one to stdin");
  }
  const Model model = open_model(settings.model, settings.seed).model;
  const std::optional<Tokenizer> tokenizer = tokenizer_of(settings);
  const Ids ids = settings.ids ? *settings.ids : tokenizer->encode(text);
  if (ids.empty()) throw Error("the text is empty; there is nothing to score");
  const std::vector<Window> windows = windows_of(settings, model.config(), ids);

  const double load_ms = total.milliseconds();
  Report report(settings, tokenizer);
  std::vector<float> logits;
  report.token(ids.front(), {});
  for (const Window& window : windows) {
    const Scores scores = scores_of(model, ids, window);
    if (settings.logits) logits.insert(logits.end(), scores.logits.begin(), scores.logits.end());
    const std::size_t first = std::max<std::size_t>(window.scored, 1);
    for (std::size_t i = 0; i < scores.log_probabilities.size(); ++i)
      report.token(ids[first + i], scores.log_probabilities[i]);
    if (!settings.logits) report.print_lines();
  }
  if (settings.logits) write_logits(*settings.logits, logits, ids.size());
  report.print_lines();
  report.finish(model.device(), load_ms, total.milliseconds() - load_ms);
  if (!settings.quiet)
    note(fmt::format("device: {}\ntotal = {:.2f} ms / {} tokens", describe(model.device()), total.milliseconds(),
                     ids.size()));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "score", "Log-probabilities and perplexity of a text under a language model.", score);
}
