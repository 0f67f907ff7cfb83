// Measures kernels of Tessera beside PyTorch's, on one GPU, in turns: bench, or bench 'gemm*,copy*'
#include <fmt/format.h>
#include <fnmatch.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "common/join.hpp"
#include "common/launch.hpp"
#include "common/machine.hpp"
#include "common/measure.hpp"
#include "common/median.hpp"
#include "common/program.hpp"
#include "common/start.hpp"
#include "graph/error.hpp"
#include "jit/options/files.hpp"

using namespace tessera;
using namespace tessera::bench;
using nlohmann::json;

namespace {

struct Settings {
  std::optional<std::string> rows, file, peer, commit;
  std::string device = "cuda";
  std::uint32_t repetitions = 30, pause_ms = 50;
  bool list = false, small = false, first_text = false;
};

const std::filesystem::path source_folder = TESSERA_SOURCE_DIR;

/// What is measured beside the rows: names that ROWS knows, too.
constexpr std::string_view plan_name = "plan", compile_name = "compile", start_name = "start", launch_name = "launch";

Settings parse(CommandLine& line) {
  Settings settings;
  const Pace pace;
  settings.repetitions = static_cast<std::uint32_t>(pace.repetitions);
  settings.pause_ms = static_cast<std::uint32_t>(pace.pause_ms);
  line.option("rows", settings.rows, "ROWS", "What to measure, as 'gemm*,copy*' [everything]");
  line.flag("--list", settings.list, "Prints what there is to measure, and exits");
  line.option("--json", settings.file, "FILE",
              "Where the figures go, too [bench/results/DATE-MACHINE.json,\nif everything is measured]");
  line.option("--peer", settings.peer, "FILE", "The Python script that measures the peer, or none [bench/peer.py]");
  line.option("--device", settings.device, "DEVICE", "cuda or cuda:N [cuda]");
  line.option("--repetitions", settings.repetitions, "N", fmt::format("Turns of each side [{}]", settings.repetitions));
  line.option("--pause", settings.pause_ms, "MS",
              fmt::format("Rest before each pair of turns [{}]", settings.pause_ms));
  line.option("--commit", settings.commit, "ID", "Which source this is, where git cannot say it");
  line.flag("--small", settings.small, "Tiny extents, also with --device cpu: tries the program out");
  line.flag("--first-text", settings.first_text, "Only what the start of this very process costs, as JSON");
  line.footer(
      "Times are of the device, from a CUDA graph of 20 calls or more over buffers that together exceed the L2 cache;\n"
      "those of decode are of the host. Medians; ratio: the peer's time by ours, above 1 ours is faster; error: the\n"
      "largest of sampled elements against f64, over their root mean square. docs/performance.md says more.");
  line.parse();
  if (settings.repetitions < 1) throw Error("--repetitions: measure once at least");
  return settings;
}

bool wanted(const Settings& settings, std::string_view name) {
  if (!settings.rows) return true;
  std::istringstream patterns(*settings.rows);
  for (std::string pattern; std::getline(patterns, pattern, ',');)
    if (::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0) return true;
  return false;
}

std::vector<std::string> names(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name());
  for (const std::string_view name : {plan_name, compile_name, start_name, launch_name}) names.emplace_back(name);
  return names;
}

Device open_device(const Settings& settings) {
  const Device device = Device::parse(settings.device);
  if (!device.info().arch && !settings.small)
    throw Error("figures are of a GPU, and this is the CPU; --small tries the program out here");
  return device;
}

/// First line of what a command prints; empty if it fails.
std::string first_line_of(const std::vector<std::string>& command) {
  try {
    return Child(command).read_line();
  } catch (const Error&) {
    return "";
  }
}

std::string commit(const Settings& settings) {
  if (settings.commit) return *settings.commit;
  const std::string id = first_line_of({"git", "-C", source_folder.string(), "describe", "--always", "--dirty"});
  return id.empty() ? "unknown" : id;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  ::gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

/// The peer; null, and a line that says why, if there is none.
std::unique_ptr<Peer> start_peer(const Settings& settings, const Device& device) {
  const std::string program = settings.peer.value_or((source_folder / "bench/peer.py").string());
  try {
    if (program == "none") throw Error("--peer none was given");
    auto peer = std::make_unique<Peer>(program, device);
    print(fmt::format("peer: {}\n", peer->name()));
    return peer;
  } catch (const Error& error) {
    print(fmt::format("no peer: {}\n", error.what()));
    return nullptr;
  }
}

void measure_rows(const Settings& settings, const std::vector<Row>& rows, const Device& device, json& results,
                  std::vector<std::string>& failed) {
  const std::unique_ptr<Peer> peer = start_peer(settings, device);
  results["peer"] = peer ? json(peer->name()) : json();
  print(Figures::heading());
  const Pace pace{.repetitions = static_cast<int>(settings.repetitions),
                  .pause_ms = static_cast<int>(settings.pause_ms)};
  for (const Row& row : rows) {
    const Figures figures = measure(row, device, peer.get(), pace);
    print(figures.line());
    results["rows"].push_back(figures.json());
    if (!figures.failure.empty()) failed.push_back(figures.name);
  }
}

void write(const std::filesystem::path& path, const json& results) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  OutputFile file(path);
  file.write(results.dump(1) + "\n");
  file.publish();
  note(fmt::format("figures are in {}", path.native()));
}

void run(CommandLine& line, const std::string& command_line) {
  const Settings settings = parse(line);
  if (settings.first_text) return print(first_text(settings.device, settings.small).dump() + "\n");
  std::vector<Row> rows = tessera::bench::rows(settings.small);
  const std::vector<std::string> all = names(rows);
  if (settings.list) return print(join(all, "\n") + "\n");
  if (std::ranges::none_of(all, [&](const std::string& name) { return wanted(settings, name); }))
    throw Error(fmt::format("there is nothing called '{}'; --list shows what there is", *settings.rows));
  std::erase_if(rows, [&](const Row& row) { return !wanted(settings, row.name()); });

  const Device device = open_device(settings);
  const std::string machine = machine_name(device);
  json results{{"machine", machine},         {"device", device.name()}, {"date", today()},
               {"commit", commit(settings)}, {"command", command_line}, {"repetitions", settings.repetitions},
               {"rows", json::array()}};
  if (settings.small) results["small"] = true;
  print(fmt::format("device: {}\n", device.name()));
  std::vector<std::string> failed;
  const auto attempt = [&](std::string_view name, const auto& work) {
    if (!wanted(settings, name)) return;
    try {
      work();
    } catch (const std::exception& error) {
      print(fmt::format("{} failed: {}\n", name, error.what()));
      failed.emplace_back(name);
    }
  };

  if (!rows.empty()) measure_rows(settings, rows, device, results, failed);
  attempt(launch_name, [&] {
    const LaunchCost cost = launch_cost(device);
    results["launch"]["ours_us"] = cost.ours_us;
    if (cost.driver_us) results["launch"]["driver_us"] = *cost.driver_us;
    print(fmt::format("a launch costs the host {:.2f} us{}\n", cost.ours_us,
                      cost.driver_us ? fmt::format(", the driver's call alone {:.2f} us", *cost.driver_us) : ""));
  });
  attempt(start_name, [&] {
    std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe").string(), "--first-text",
                                     "--device", settings.device};
    if (settings.small) command.emplace_back("--small");
    const json start = process_starts(command);
    results["start"] = start;
    print(fmt::format("the first text of a process takes {:.1f} ms, {:.1f} ms with nothing in the cache\n",
                      start["warm"]["first_ms"].get<double>(), start["cold"]["first_ms"].get<double>()));
  });
  const Arch arch = device.info().arch.value_or(options().dump_arch);
  attempt(plan_name, [&] {
    const json times = plan_times(arch, settings.small);
    results["plan"] = times;
    const auto ms_of = [&](const char* which) {
      std::vector<double> ms;
      for (const json& kernel : times[which]) ms.push_back(kernel["ms"].get<double>());
      return ms;
    };
    const std::vector<double> model = ms_of("model");
    print(
        fmt::format("a plan of a kernel of the model takes {:.2f} ms in the median of {}, {:.2f} at most; of a kernel "
                    "of thousands of ops {:.0f} ms at most\n",
                    median(model), model.size(), std::ranges::max(model), std::ranges::max(ms_of("growing"))));
  });
  attempt(compile_name, [&] {
    const json times = compile_times(arch);
    results["compile"] = times;
    std::vector<double> ms;
    for (const json& kernel : times) ms.push_back(kernel["ms"].get<double>());
    print(fmt::format("a kernel of the model takes NVRTC {:.1f} ms in the median of {}, {:.1f} at most\n", median(ms),
                      ms.size(), std::ranges::max(ms)));
  });

  if (settings.file)
    write(*settings.file, results);
  else if (!settings.rows && !settings.small)
    write(source_folder / "bench/results" / fmt::format("{}-{}.json", today(), machine), results);
  if (!failed.empty()) throw Error(fmt::format("failed: {}", join(failed, ", ")));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command_line = "bench " + join(std::span(argv, argc).subspan(1), " ");
  return run_program(argc, argv, "bench", "Measures Tessera's kernels beside PyTorch's on a GPU.",
                     [&](CommandLine& line) { run(line, command_line); });
}
