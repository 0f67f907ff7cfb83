// Perplexity of a text in chunks, as llama-perplexity measures it: perplexity -f wiki.test.raw
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "common/generation.hpp"
#include "common/program.hpp"
#include "tessera/graph/error.hpp"

using namespace tessera::internal;
using Json = nlohmann::ordered_json;

namespace {

struct Settings {
  ModelOptions model;
  std::optional<std::string> file;
  std::optional<Ids> ids;
  std::optional<std::uint32_t> context, chunks;
  std::uint32_t batch = 1;
  std::uint64_t seed = 0;
  bool json = false, quiet = false;
};

Settings parse(CommandLine& line) {
  Settings settings;
  line.option("-f,--file", settings.file, "FILE",
              "The text. Without it, the text is read from stdin, if that is a pipe or a\nfile");
  line.option("--ids", settings.ids, "IDS", "The text as token ids: 1,2,3");
  line.option("-c,--ctx-size", settings.context, "N",
              "Tokens of a chunk [512, or the model's context if that is shorter]");
  line.option("--chunks", settings.chunks, "N", "Measures only the first N chunks [all]");
  line.option("-b,--batch", settings.batch, "N", "Chunks side by side [1]");
  line.flag("--json", settings.json, "Prints one JSON object");
  settings.model.declare(line);
  line.option("-s,--seed", settings.seed, "N", "Seed of the weights of --preset [0]");
  line.flag("-q,--quiet", settings.quiet, "Prints no device and timings on stderr");
  line.footer(
      "The text is cut into chunks of --ctx-size tokens, without overlap; what is left at the end does not count. In\n"
      "each chunk the tokens of the second half are predicted, all but its first, from those before them in the "
      "chunk.\n"
      "Prints the perplexity up to each chunk, [1]12.3,[2]11.9,..., and at the end that of all with its standard "
      "error,\n"
      "as llama-perplexity does. score predicts every token of a text, from overlapping windows.");
  line.parse();
  line.at_most_one({"--file", "--ids"});
  line.at_most_one({"--model", "--preset"});
  if (settings.model.preset && !settings.ids) throw Error("a --preset has no tokenizer; give the text as --ids 1,2,3");
  if (settings.batch < 1 || settings.batch > 4096) throw Error("--batch: it must be 1 to 4096");
  if (settings.chunks == 0u) throw Error("--chunks 0: it must be 1 or more");
  return settings;
}

/// The sums of negative log-probabilities and of their squares.
struct Sums {
  double first = 0, second = 0;
  std::size_t count = 0;

  void add(double log_probability) {
    first -= log_probability, second += log_probability * log_probability;
    ++count;
  }
  double perplexity() const { return std::exp(first / static_cast<double>(count)); }
  /// Standard error of the perplexity; 0 for one token.
  double error() const {
    const double mean = first / static_cast<double>(count);
    const double variance = second / static_cast<double>(count) - mean * mean;
    return variance > 0 && count > 1 ? std::sqrt(variance / static_cast<double>(count - 1)) * perplexity() : 0;
  }
};

/// Adds the predicted tokens of chunks that are computed side by side.
void add(Session& session, std::span<const Ids> chunks, std::vector<Sums>& after, Sums& sums) {
  const std::size_t context = chunks[0].size(), first = context / 2;
  for (std::size_t b = 0; b < chunks.size(); ++b) session.clear(static_cast<int>(b));
  session.append(chunks);
  const std::vector<float> logits = session.all_logits();
  const std::size_t vocab = logits.size() / (chunks.size() * context);
  for (std::size_t b = 0; b < chunks.size(); ++b) {
    const auto rows = std::span(logits).subspan((b * context + first) * vocab, (context - 1 - first) * vocab);
    for (const float value : session.log_probabilities(rows, std::span(chunks[b]).subspan(first + 1))) sums.add(value);
    after.push_back(sums);
  }
}

void measure(CommandLine& line) {
  const Stopwatch total;
  const Settings settings = parse(line);
  std::string text;
  if (!settings.ids) {
    text = given_text({}, settings.file);
    if (text.empty()) line.refuse("the text is empty; name a file, or pipe a text to stdin");
  }
  const Model model = open_model(settings.model, settings.seed).model;
  const TransformerConfig& config = model.config();
  const Ids ids = settings.ids ? *settings.ids : Tokenizer::open(settings.model.path()).encode(text, TextPlace::inner);
  check_vocabulary(ids, config);
  const std::size_t context = settings.context.value_or(static_cast<std::uint32_t>(std::min(512, config.positions)));
  if (context < 3 || context > static_cast<std::size_t>(config.positions))
    throw Error(fmt::format("--ctx-size {}: it must be 3 to {}, the model's context", context, config.positions));
  const std::size_t all = ids.size() / context;
  if (all == 0)
    throw Error(fmt::format("the text has {} tokens, and a chunk {}; give a longer text or a smaller --ctx-size",
                            ids.size(), context));
  const std::size_t count = std::min<std::size_t>(all, settings.chunks.value_or(static_cast<std::uint32_t>(all)));
  if (!settings.quiet)
    note(fmt::format("device: {}\n{} tokens, {} of {} chunks of {}", describe(model.device()), ids.size(), count, all,
                     context));

  Sums sums;
  std::vector<Sums> after;  // each chunk
  const std::size_t batch = std::min<std::size_t>(settings.batch, count);
  std::optional<Session> session;
  for (std::size_t chunk = 0; chunk < count;) {
    std::vector<Ids> chunks;
    for (; chunks.size() < batch && chunk < count; ++chunk) {
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(chunk * context);
      chunks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(context));
    }
    if (!session || chunks.size() < batch)
      session.emplace(model, static_cast<int>(chunks.size()), static_cast<int>(context));
    const std::size_t known = after.size();
    add(*session, chunks, after, sums);
    for (std::size_t i = known; !settings.json && i < after.size(); ++i)
      print(fmt::format("[{}]{:.4f},", i + 1, after[i].perplexity()));
  }
  if (settings.json) {
    Json object{{"perplexity", sums.perplexity()}, {"error", sums.error()},
                {"predicted", sums.count},         {"context", context},
                {"device", model.device().name()}, {"after_chunks", Json::array()}};
    for (const Sums& chunk : after) object["after_chunks"].push_back(chunk.perplexity());
    print(object.dump() + "\n");
  } else {
    print(fmt::format("\nFinal estimate: PPL = {:.4f} +/- {:.5f}\n", sums.perplexity(), sums.error()));
  }
  if (!settings.quiet) note(fmt::format("total = {:.2f} ms", total.milliseconds()));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "perplexity",
                     "Perplexity of a text under a language model, as llama-perplexity measures it.", measure);
}
