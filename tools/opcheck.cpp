// Checks every op on every element type against its definition, measures them, or lists them: opcheck test --op add
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "common/join.hpp"
#include "common/program.hpp"
#include "jit/options/options.hpp"
#include "opcheck/check.hpp"
#include "opcheck/coverage.hpp"
#include "opcheck/page.hpp"
#include "opcheck/perf.hpp"
#include "opcheck/roles.hpp"
#include "tessera/graph/error.hpp"

using namespace tessera::internal;
using namespace tessera::internal::opcheck;
using nlohmann::json;

namespace {

struct Settings {
  std::string mode, device = "cpu", format = "table";
  std::optional<std::string> op, type;
  std::uint32_t share = 1;

  bool json() const { return format == "json"; }
};

template <class Item>
std::vector<std::string> names_of(std::span<const Item> items) {
  std::vector<std::string> names;
  for (const Item item : items) names.emplace_back(name(item));
  return names;
}

/// The ops with the requested name, or all.
template <class Item>
std::vector<Item> chosen(std::span<const Item> all, const std::optional<std::string>& asked, std::string_view what) {
  std::vector<Item> items;
  for (const Item item : all)
    if (!asked || name(item) == *asked) items.push_back(item);
  if (items.empty())
    throw Error(fmt::format("there is no {} '{}'; there are {}", what, *asked, bench::join(names_of(all), ", ")));
  return items;
}

/// An op on one element type.
struct Pair {
  Op op;
  ElementType type;
  std::vector<Case> cases;

  /// Keeps one case of so many, including the first.
  void keep_share(std::size_t share) {
    std::erase_if(cases, [i = std::size_t{0}, share](const Case&) mutable { return i++ % share != 0; });
  }
};

std::vector<Pair> pairs(const Settings& settings, Purpose purpose) {
  std::vector<Pair> pairs;
  for (const Op op : chosen(all_ops(), settings.op, "op"))
    for (const ElementType type : chosen(all_types(), settings.type, "element type"))
      pairs.push_back({op, type, cases_of(op, type, purpose)});
  return pairs;
}

/// The outcome of a pair's cases.
struct Outcome {
  Op op;
  ElementType type;
  std::size_t cases, failures = 0;
  std::string first = {};  ///< failure

  Outcome(const Pair& pair, std::span<const Verdict> verdicts)
      : op(pair.op), type(pair.type), cases(pair.cases.size()) {
    for (std::size_t i = 0; i < cases; ++i)
      if (!verdicts[i].empty() && failures++ == 0) first = fmt::format("{}: {}", pair.cases[i].name, verdicts[i]);
  }

  std::string_view status() const { return failures ? "FAIL" : cases ? "ok" : "not of this type"; }
  std::string line() const {
    const std::string line = fmt::format("{:<14} {:<5} {}", name(op), name(type), status());
    return failures ? fmt::format("{}  {} of {}; {}\n", line, failures, cases, printable(first)) : line + "\n";
  }
  nlohmann::json json() const {
    nlohmann::json json{{"cases", cases}, {"failures", failures}};
    if (failures) json["first"] = first;
    return json;
  }
};

/// An empty string means the emulator.
std::optional<Device> open_device(const Settings& settings) {
  const std::string& name = settings.device;
  if (name == "emulated") {
    require_emulator();
    return {};
  }
  if (name != "cpu" && name != "cuda" && !name.starts_with("cuda:"))
    throw Error(fmt::format("there is no device '{}'; there are cpu, cuda, cuda:N, emulated", name));
  return Device::parse(name);
}

/// Runs the cases, in the emulator if there is no device, and reports the outcome of each pair.
void run(std::span<const Pair> pairs, const std::optional<Device>& device,
         const std::function<void(const Outcome&)>& report) {
  // Many at a time, since the emulator starts a compiler each time; few enough to show progress.
  constexpr std::size_t enough = 64;
  for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    std::vector<Case> batch;
    while (end < pairs.size() && (batch.empty() || batch.size() + pairs[end].cases.size() <= enough))
      std::ranges::copy(pairs[end++].cases, std::back_inserter(batch));
    std::vector<Verdict> verdicts = device ? check_on(*device, batch) : check_emulated(batch);
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (verdicts[i].empty()) verdicts[i] = check_roles(batch[i]);
    std::span<const Verdict> left(verdicts);
    for (const Pair& pair : pairs.subspan(begin, end - begin)) {
      report(Outcome(pair, left));
      left = left.subspan(pair.cases.size());
    }
  }
}

/// Did all cases pass?
bool test(const Settings& settings) {
  std::vector<Pair> all = pairs(settings, Purpose::test);
  if (!settings.share) throw Error("--share 0: one case of how many?");
  for (Pair& pair : all) pair.keep_share(settings.share);
  if (std::ranges::all_of(all, [](const Pair& pair) { return pair.cases.empty(); }))
    throw Error(
        fmt::format("{} is not of type {}: nothing to test; opcheck list shows what is", *settings.op, *settings.type));
  const std::optional<Device> device = open_device(settings);
  const std::string device_name = device ? device->name() : "emulated " + options().dump_arch.name();
  if (!settings.json()) print(fmt::format("device: {}\n", device_name));
  std::size_t cases = 0, failures = 0;
  std::map<Op, json> types;  // those that an op has cases of
  run(all, device, [&](const Outcome& outcome) {
    cases += outcome.cases;
    failures += outcome.failures;
    if (outcome.cases) types[outcome.op][std::string(name(outcome.type))] = outcome.json();
    if (!settings.json()) print(outcome.line());
  });
  if (settings.json()) {
    // A line for each op, so that a change of one is a line of a diff.
    std::string text = fmt::format("{{\"device\":{},\"cases\":{},\"failures\":{},\"ops\":[", json(device_name).dump(), cases, failures);
    std::string_view separator = "\n";
    for (const auto& [op, of_types] : types) {
      text += fmt::format("{}{{\"op\":\"{}\",\"types\":{}}}", separator, name(op), of_types.dump());
      separator = ",\n";
    }
    print(text + "\n]}\n");
  } else
    print(fmt::format("{} cases, {} failures\n", cases, failures));
  return failures == 0;
}

/// Do all cases have a time?
bool perf(const Settings& settings) {
  if (settings.device == "emulated")
    throw Error("perf --device emulated: the emulator's times mean nothing; take cpu or cuda");
  const std::optional<Device> device = open_device(settings);
  std::vector<Case> cases;
  for (Pair& pair : pairs(settings, device->info().arch ? Purpose::perf_gpu : Purpose::perf_cpu))
    std::ranges::move(pair.cases, std::back_inserter(cases));
  if (cases.empty())
    throw Error("perf: the selected ops have no time of their own; opcheck perf alone shows those that have");
  if (!settings.json()) print(fmt::format("device: {}\n", device->name()));
  bool right = true;
  json rows = json::array();
  for (const Case& each : cases) {
    const Cost cost = cost_of(each, *device);
    right &= cost.ms.has_value();
    json row{{"op", name(each.op)}, {"type", name(each.type)}, {"case", each.name}};
    std::string figures;
    if (cost.ms) {
      const Rate rate = rate_of(each, *cost.ms);
      row.update({{"ms", *cost.ms}, {"rate", rate.value}, {"unit", rate.unit}});
      figures = fmt::format("{:>9.4f} ms {:>9.1f} {:<7}  {}", *cost.ms, rate.value, rate.unit, each.name);
    } else {
      row["failure"] = cost.failure;
      figures = fmt::format("FAIL  {}: {}", each.name, printable(cost.failure));
    }
    rows.push_back(row);
    if (!settings.json()) print(fmt::format("{:<14} {:<5} {}\n", name(each.op), name(each.type), figures));
  }
  if (settings.json()) print(json{{"device", device->name()}, {"rows", rows}}.dump(1) + "\n");
  return right;
}

std::string_view text(OpGroup group) {
  constexpr std::string_view names[] = {"unary", "binary", "ternary", "reduction", "scan", "structural"};
  return names[static_cast<std::size_t>(group)];
}

void list(const Settings& settings) {
  json rows = json::array();
  const std::vector<ElementType> types = chosen(all_types(), settings.type, "element type");
  for (const Op op : chosen(all_ops(), settings.op, "op")) {
    std::vector<std::string_view> taken;
    std::size_t cases = 0;
    for (const ElementType type : types) {
      const std::size_t count = cases_of(op, type, Purpose::test).size();
      if (count) taken.push_back(name(type));
      cases += count;
    }
    rows.push_back({{"op", name(op)},
                    {"group", text(info(op).group)},
                    {"types", taken},
                    {"cases", cases},
                    {"meaning", info(op).meaning}});
    if (!settings.json())
      print(fmt::format("{:<14} {:<11} {:>4} cases  {}\n", name(op), text(info(op).group), cases,
                        bench::join(taken, " ")));
  }
  if (settings.json()) print(json{{"ops", rows}}.dump(1) + "\n");
}

/// Is everything covered?
bool answer(CommandLine& line) {
  Settings settings;
  line.option("mode", settings.mode, "MODE",
              "test: every case against the op's meaning; perf: times; list: what there\nis; coverage, page: the pages "
              "build/docs/op-coverage.md and docs/ops.md",
              {"test", "perf", "list", "coverage", "page"});
  line.option("--op", settings.op, "OP", "Only this op [every one]");
  line.option("--type", settings.type, "TYPE", "Only this element type of its operands [every one]");
  line.option("--device", settings.device, "DEVICE",
              "cpu, cuda, cuda:N, or emulated: generated CUDA C++ on the CPU [cpu]", {"cpu", "cuda", "emulated"});
  line.option("--share", settings.share, "N", "test: of each N cases of an op and a type one, the first among them [1]");
  line.option("--format", settings.format, "FORMAT", "table or json [table]", {"table", "json"});
  line.footer("The exit status is 0 if all is right, 1 if something is wrong, 2 if that could not be found out.");
  line.parse();
  if (settings.format != "table" && !settings.json())
    throw Error(fmt::format("there is no format '{}'; there are table, json", settings.format));
  if (settings.mode == "test") return test(settings);
  if (settings.mode == "perf") return perf(settings);
  if (settings.mode == "list")
    list(settings);
  else if ((settings.mode == "coverage" || settings.mode == "page") &&
           (settings.op || settings.type || settings.json() || settings.device != "cpu"))
    throw Error(settings.mode + ": the page is of every op, type and device; it takes no options");
  else if (settings.mode == "coverage")
    print(coverage(TESSERA_SOURCE_DIR "/bench/results/opcheck"));
  else if (settings.mode == "page")
    print(page());
  else
    throw Error(settings.mode.empty()
                    ? "say what to do: test, perf, list, coverage or page"
                    : fmt::format("there is no mode '{}'; there are test, perf, list, coverage, page", settings.mode));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool right = true;
  const int status = run_program(argc, argv, "opcheck", "Checks and measures every op on every element type.",
                                 [&](CommandLine& line) { right = answer(line); });
  return status ? status : right ? 0 : 1;
}
