// Tokens per second of a model, for prompts and for new tokens: throughput --preset gpt2 --prompt 512 --new 128
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "common/program.hpp"

using namespace tessera::internal;
using Json = nlohmann::ordered_json;

namespace {

struct Settings {
  ModelOptions model;
  std::optional<std::string> prompts, news, both;
  std::string depths = "0", batches = "1", output = "md";
  std::uint32_t repetitions = 5;
  std::uint64_t seed = 0;
  bool quiet = false;
};

Settings parse(CommandLine& line) {
  Settings settings;
  line.option("-p,--prompt", settings.prompts, "N,..",
              "Lengths of prompts to measure, in tokens; 0: none\n[512, or half the context]");
  line.option("-n,--new", settings.news, "N,..",
              "Numbers of new tokens to measure; 0: none\n[128, or a quarter of the context]");
  line.option("--both", settings.both, "P+N,..", "Prompts of P tokens followed by N new tokens [none]");
  line.option("-d,--depth", settings.depths, "N,..", "Tokens in the context before the measured ones [0]");
  line.option("-b,--batch", settings.batches, "N,..", "Texts side by side; their tokens add up [1]");
  line.option("-r,--repetitions", settings.repetitions, "N",
              "Repetitions of each measurement, after two that do not count [5]");
  line.option("-o,--output", settings.output, "FORMAT", "md, csv or json [md]", {"md", "csv", "json"});
  settings.model.declare(line);
  line.option("-s,--seed", settings.seed, "N", "Seed of the weights of --preset [0]");
  line.flag("-q,--quiet", settings.quiet, "Prints no device on stderr");
  line.footer(
      "Measures as llama-bench does: pp512 is a prompt of 512 tokens, up to the token that follows it; tg128 are 128\n"
      "tokens, one after the other, each chosen greedily and read by the host; pp512+tg128 is one after the other; "
      "and\n"
      "'@ d256' is behind 256 tokens, which do not count. Tokens are made up. Prints the mean of tokens per second, "
      "and\n"
      "their standard deviation.");
  line.parse();
  line.at_most_one({"--model", "--preset"});
  if (settings.repetitions == 0) throw Error("--repetitions 0: it must be 1 or more");
  if (settings.output != "md" && settings.output != "csv" && settings.output != "json")
    throw Error(fmt::format("--output '{}': it must be md, csv or json", printable(settings.output)));
  return settings;
}

constexpr int most_tokens = 1 << 20, most_texts = 1 << 12;

/// The numbers of a list such as "1,16,64".
std::vector<int> numbers(const char* option, std::string_view text, int least, int most) {
  std::vector<int> found;
  for (std::string_view rest = text;;) {
    const std::string_view one = rest.substr(0, rest.find(','));
    int number = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (error != std::errc() || end != one.data() + one.size() || number < least || number > most)
      throw Error(fmt::format("{} '{}': it must be numbers from {} to {} with commas between, as in 1,16,64", option,
                              printable(text), least, most));
    found.push_back(number);
    if (one.size() == rest.size()) return found;
    rest.remove_prefix(one.size() + 1);
  }
}

/// One measurement.
struct Measurement {
  int prompt, fresh;  ///< tokens of the prompt, and new ones
  int depth, batch;

  int length() const { return depth + prompt + fresh; }
  int tokens() const { return batch * (prompt + fresh); }
  std::string name() const {
    std::string text = prompt > 0 ? fmt::format("pp{}", prompt) : "";
    if (fresh > 0) text += fmt::format("{}tg{}", text.empty() ? "" : "+", fresh);
    return depth > 0 ? fmt::format("{} @ d{}", text, depth) : text;
  }
};

/// All measurements of the command line, in its order. Throws Error if one does not fit into the model's context.
std::vector<Measurement> measurements(const Settings& settings, const TransformerConfig& config) {
  const int context = config.positions;
  std::vector<Measurement> parts;  // without depth and batch
  for (const int prompt : settings.prompts ? numbers("--prompt", *settings.prompts, 0, most_tokens)
                                           : std::vector{std::min(512, (context + 1) / 2)})
    if (prompt > 0) parts.push_back({prompt, 0, 0, 1});
  for (const int fresh :
       settings.news ? numbers("--new", *settings.news, 0, most_tokens) : std::vector{std::min(128, (context + 3) / 4)})
    if (fresh > 0) parts.push_back({0, fresh, 0, 1});
  for (std::string_view rest = settings.both ? *settings.both : std::string_view(); settings.both;) {
    const std::string_view one = rest.substr(0, rest.find(',')), prompt = one.substr(0, one.find('+'));
    if (prompt.size() == one.size())
      throw Error(fmt::format("--both '{}': it must be as in 512+128", printable(*settings.both)));
    parts.push_back({numbers("--both", prompt, 1, most_tokens)[0],
                     numbers("--both", one.substr(prompt.size() + 1), 1, most_tokens)[0], 0, 1});
    if (one.size() == rest.size()) break;
    rest.remove_prefix(one.size() + 1);
  }
  std::vector<Measurement> all;
  for (const int batch : numbers("--batch", settings.batches, 1, most_texts))
    for (const int depth : numbers("--depth", settings.depths, 0, most_tokens))
      for (const Measurement& part : parts) {
        all.push_back({part.prompt, part.fresh, depth, batch});
        if (all.back().length() > context)
          throw Error(fmt::format("{} takes {} tokens, and the model's context has {}", all.back().name(),
                                  all.back().length(), context));
      }
  if (all.empty()) throw Error("there is nothing to measure; give --prompt, --new or --both");
  return all;
}

/// Tokens per second of each repetition.
std::vector<double> rates(const Model& model, const Measurement& measured, std::uint32_t repetitions) {
  const TransformerConfig& config = model.config();
  Session session(model, measured.batch, measured.length());
  const auto append = [&](int count) {
    std::vector<std::vector<std::int32_t>> tokens(static_cast<std::size_t>(measured.batch));
    for (std::size_t b = 0; b < tokens.size(); ++b)
      for (int i = 0; i < count; ++i)
        tokens[b].push_back(static_cast<std::int32_t>(
            (static_cast<std::int64_t>(i) * 7919 + static_cast<std::int64_t>(b)) % config.vocab));
    session.append(tokens);
  };
  constexpr std::uint32_t untimed = 2;  // kernels are compiled in the first, and steps recorded in the second
  std::vector<double> found;
  for (std::uint32_t i = 0; i < untimed + repetitions; ++i) {
    for (int b = 0; b < measured.batch; ++b) session.clear(b);
    if (measured.depth > 0) append(measured.depth);
    model.device().stream().synchronize();
    const Stopwatch watch;
    std::vector<std::int32_t> next(static_cast<std::size_t>(measured.batch), 0);
    if (measured.prompt > 0) {
      append(measured.prompt);
      next = session.sample({.temperature = 0});
    }
    for (int token = 0; token < measured.fresh; ++token) {
      std::vector<std::vector<std::int32_t>> tokens;
      for (const std::int32_t id : next) tokens.push_back({id});
      session.append(tokens);
      next = session.sample({.temperature = 0});
    }
    if (i >= untimed) found.push_back(measured.tokens() / watch.milliseconds() * 1e3);
  }
  return found;
}

struct Result {
  Measurement measured;
  std::vector<double> rates;

  double mean() const { return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size()); }
  double deviation() const {
    if (rates.size() < 2) return 0;
    double sum = 0;
    for (const double rate : rates) sum += (rate - mean()) * (rate - mean());
    return std::sqrt(sum / static_cast<double>(rates.size() - 1));
  }
};

/// Prints results as they are measured, but those of JSON at the end.
class Report {
 public:
  Report(const Settings& settings, const Model& model)
      : format_(settings.output),
        model_(settings.model.preset ? *settings.model.preset : settings.model.path().filename().string()),
        parameters_(parameter_count(model.config())),
        device_(model.device().name()),
        dtype_(settings.model.dtype) {
    if (format_ == "md")
      print("| model | parameters | device | dtype | batch | test | tokens/s |\n|---|--:|---|---|--:|---|--:|\n");
    if (format_ == "csv")
      print("model,parameters,device,dtype,batch,prompt,new,depth,test,tokens_per_second,deviation\n");
  }

  void add(const Result& result) {
    const Measurement& measured = result.measured;
    if (format_ == "md") {
      print(fmt::format("| {} | {:.1f} M | {} | {} | {} | {} | {:.2f} ± {:.2f} |\n", model_,
                        static_cast<double>(parameters_) * 1e-6, device_, dtype_, measured.batch, measured.name(),
                        result.mean(), result.deviation()));
    } else if (format_ == "csv") {
      print(fmt::format("{},{},{},{},{},{},{},{},{},{:.4f},{:.4f}\n", quoted(model_), parameters_, quoted(device_),
                        dtype_, measured.batch, measured.prompt, measured.fresh, measured.depth, measured.name(),
                        result.mean(), result.deviation()));
    } else {
      all_.push_back({{"model", model_},
                      {"parameters", parameters_},
                      {"device", device_},
                      {"dtype", dtype_},
                      {"batch", measured.batch},
                      {"prompt", measured.prompt},
                      {"new", measured.fresh},
                      {"depth", measured.depth},
                      {"test", measured.name()},
                      {"tokens_per_second", result.mean()},
                      {"deviation", result.deviation()},
                      {"samples", result.rates}});
    }
  }
  void finish() const {
    if (format_ == "json") print(all_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string field = "\"";
    for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
    return field + "\"";
  }

  std::string format_, model_;
  std::int64_t parameters_;
  std::string device_, dtype_;
  Json all_ = Json::array();
};

void measure(CommandLine& line) {
  const Settings settings = parse(line);
  const Model model = open_model(settings.model, settings.seed).model;
  const std::vector<Measurement> all = measurements(settings, model.config());
  if (!settings.quiet) note(fmt::format("device: {}", describe(model.device())));
  Report report(settings, model);
  for (const Measurement& measured : all) report.add({measured, rates(model, measured, settings.repetitions)});
  report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "throughput", "Tokens per second of a language model, as llama-bench measures them.",
                     measure);
}
