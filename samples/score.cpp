// How probable a model finds a text: score "Once upon a time"
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <span>

#include "common/program.hpp"
#include "graph/error.hpp"
#include "model/safetensors.hpp"

using namespace tessera;

namespace {

struct Settings {
  ModelOptions model;
  std::optional<std::string> text, file, logits;
  std::optional<std::vector<std::int32_t>> ids;
  std::uint64_t seed = 0;
  bool quiet = false;
};

Settings parse(CommandLine& line) {
  Settings settings;
  line.option("-t,--text,text", settings.text, "TEXT", "The text; put it in quotes");
  line.option("-f,--file", settings.file, "FILE", "Reads the text from a file, or stdin if it is -");
  line.option("--ids", settings.ids, "IDS", "The text as token ids: 1,2,3");
  line.option("--logits", settings.logits, "FILE",
              "Writes a safetensors file with one F32 tensor, logits\n[tokens, vocabulary]");
  settings.model.declare(line);
  line.option("-s,--seed", settings.seed, "N", "Of the weights of --preset [0]");
  line.flag("-q,--quiet", settings.quiet, "No device and timings on stderr");
  line.footer(
      "A text that begins with a dash comes after --.\n"
      "Prints a line for each token: index, id, text in quotes, log-probability, separated by tabs; control "
      "characters\n"
      "and parts of a character are written \\xNN. Then 'total', the sum, and 'perplexity', exp of minus the mean. "
      "'-'\n"
      "stands for what there is not: the first token has nothing before it, ids without a tokenizer have no text.");
  line.parse();
  line.at_most_one({"--text", "--file", "--ids"});
  line.at_most_one({"--model", "--preset"});
  if (!settings.text && !settings.file && !settings.ids)
    throw Error("there is nothing to score; give a text, or -f - to read stdin (see --help)");
  if (settings.model.preset && !settings.ids) throw Error("a --preset has no tokenizer; give the text as --ids 1,2,3");
  return settings;
}

/// The tokenizer of the model; ids need none.
std::optional<Tokenizer> tokenizer_of(const Settings& settings) {
  if (settings.model.preset) return {};
  std::error_code absent;
  if (settings.ids && !std::filesystem::exists(settings.model.path() / "vocab.json", absent)) return {};
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

void score(CommandLine& line) {
  const Stopwatch total;
  const Settings settings = parse(line);
  const Gpt2 model = open_model(settings.model, settings.seed).model;
  const std::optional<Tokenizer> tokenizer = tokenizer_of(settings);
  const std::vector<std::int32_t> ids =
      settings.ids ? *settings.ids : tokenizer->encode(settings.file ? read_input(*settings.file) : *settings.text);
  if (ids.empty()) throw Error("the text is empty; there is nothing to score");
  if (ids.size() > static_cast<std::size_t>(model.config().positions))
    throw Error(
        fmt::format("the text has {} tokens, the model holds {}; shorten it", ids.size(), model.config().positions));

  Session session(model, 1, static_cast<int>(ids.size()));
  session.append({&ids, 1});
  const std::vector<float> logits = session.all_logits();
  if (settings.logits) write_logits(*settings.logits, logits, ids.size());
  // The logits at a token are about the next one.
  const std::span before = std::span(logits).first(logits.size() - static_cast<std::size_t>(model.config().vocab));
  std::vector<float> log_probabilities;
  if (ids.size() > 1) log_probabilities = session.log_probabilities(before, std::span(ids).subspan(1));

  if (!settings.quiet) note("device: " + describe(model.device()));
  std::string lines;
  double sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string text = tokenizer ? fmt::format("\"{}\"", printable(tokenizer->bytes_of(ids[i]))) : "-";
    std::string value = "-";
    if (i > 0) value = fmt::format("{:.6f}", log_probabilities[i - 1]), sum += log_probabilities[i - 1];
    lines += fmt::format("{}\t{}\t{}\t{}\n", i, ids[i], text, value);
  }
  const auto count = static_cast<double>(log_probabilities.size());
  lines += fmt::format("total\t{:.6f}\nperplexity\t{}\n", sum,
                       count > 0 ? fmt::format("{:.6f}", std::exp(-sum / count)) : "-");
  print(lines);
  if (!settings.quiet) note(fmt::format("total = {:.2f} ms / {} tokens", total.milliseconds(), ids.size()));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "score", "Log-probabilities and perplexity of a text under a GPT-2 model.", score);
}
