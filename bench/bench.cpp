// Measures kernels of Tessera against PyTorch's on one GPU, in alternation: bench, or bench 'gemm*,copy*'
#include <fmt/format.h>
#include <fnmatch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "common/compare.hpp"
#include "common/join.hpp"
#include "common/launch.hpp"
#include "common/machine.hpp"
#include "common/measure.hpp"
#include "common/median.hpp"
#include "common/program.hpp"
#include "common/start.hpp"
#include "cpu/parallel.hpp"
#include "jit/options/files.hpp"
#include "jit/options/options.hpp"
#include "tessera/graph/error.hpp"

using namespace tessera::internal;
using namespace tessera::internal::bench;
using nlohmann::json;

namespace {

struct Settings {
  std::optional<std::string> rows, file, peer, commit, compare, tiles;
  std::string device = "cuda";
  std::uint32_t repetitions = 30, pause_ms = 50, seed = 1;
  bool list = false, small = false, first_text = false;
};

const std::filesystem::path source_folder = TESSERA_SOURCE_DIR;

/// Measurements besides the rows; ROWS accepts their names, too.
constexpr std::string_view plan_name = "plan", compile_name = "compile", start_name = "start", launch_name = "launch";
constexpr std::string_view beside[] = {plan_name, compile_name, start_name, launch_name};

Settings parse(CommandLine& line) {
  Settings settings;
  const Pace pace;
  settings.repetitions = static_cast<std::uint32_t>(pace.repetitions);
  settings.pause_ms = static_cast<std::uint32_t>(pace.pause_ms);
  line.option("rows", settings.rows, "ROWS", "What to measure, as 'gemm*,sweep-*' [everything but groups]");
  line.flag("--list", settings.list, "Prints the names of all rows, and exits");
  line.option("--json", settings.file, "FILE",
              "Where the figures go, too [bench/results/DATE-MACHINE.json,\nif everything is measured]");
  line.option("--peer", settings.peer, "FILE", "The Python script that measures the peer, or none [bench/peer.py]");
  line.option("--device", settings.device, "DEVICE", "cuda or cuda:N [cuda]; gather-* runs on the CPU");
  line.option("--repetitions", settings.repetitions, "N", fmt::format("Turns of each side [{}]", settings.repetitions));
  line.option("--pause", settings.pause_ms, "MS",
              fmt::format("Rest before each pair of turns [{}]", settings.pause_ms));
  line.option("--compare", settings.compare, "FILE",
              "Figures of an earlier run: reports rows that got slower by more than 3 %");
  line.option("--tiles", settings.tiles, "M,N,K",
              "Tiles of all matmuls, as 128,256,64, and of attention: M queries, N keys [chosen by choose()]");
  line.option("--seed", settings.seed, "N", fmt::format("Seed of the random extents of sweep-* [{}]", settings.seed));
  line.option("--commit", settings.commit, "ID", "Name of the source revision, if git cannot tell it");
  line.flag("--small", settings.small, "Tiny extents, also with --device cpu: tests the program");
  line.flag("--first-text", settings.first_text, "Only the startup cost of this process, as JSON");
  line.footer(
      "Times are of the device, from a CUDA graph of 20 calls or more over buffers that together exceed the L2 cache;\n"
      "those of decode, prefill and forward are of the host. Medians; ratio: the peer's time by ours, above 1 ours is "
      "faster; error: the\n"
      "largest of sampled elements against f64, over their root mean square. scripts/performance makes a page of "
      "results, which says more.\n\n"
      "Groups of rows are measured only if a pattern begins with their name, as 'sweep-*': smallm-, products of few\n"
      "rows; unaligned-, of rows at odd multiples of 16 bytes; sweep-, of random extents; rows-, what memory bounds,\n"
      "row by row or transposed; order-, what meets across a line: sorts, counts, running sums of all; gather-, on the "
      "CPU, what reaches elements one by one:\n"
      "the peer is a plain loop on one core, and TESSERA_THREADS says how many cores are ours; t1-, without wgmma, as "
      "with TESSERA_TENSOR_CORES=mma_sync; tensors-, tensor programs beside torch.compile; "
      "gqa-, attention whose queries share heads of keys; window-, attention to the last 1024\n"
      "positions; cached-, attention of 16 queries to a long cache; forward-, all logits of small GPTs, left on the "
      "device; chosen-, each tile that choose() might choose: the\n"
      "peer is the best of them, and the ratio its time by that of the tile chosen; tiles-, each tile for 200 random\n"
      "extents, for scripts/fit.");
  line.parse();
  if (settings.repetitions < 1) throw Error("--repetitions: measure at least once");
  return settings;
}

/// Does a pattern ask for this group of rows? Such a pattern begins with its name.
bool wanted(const Settings& settings, std::string_view name, const std::string& group = "") {
  if (!settings.rows) return group.empty();
  std::istringstream patterns(*settings.rows);
  for (std::string pattern; std::getline(patterns, pattern, ',');)
    if ((group.empty() || pattern.starts_with(group + "-")) &&
        ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0)
      return true;
  return false;
}

std::vector<std::string> names(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name());
  for (const std::string_view name : beside) names.emplace_back(name);
  return names;
}

/// --tiles
std::optional<MatmulTiles> parse_tiles(const Settings& settings) {
  if (!settings.tiles) return {};
  MatmulTiles tiles{};
  int end = 0;
  const bool read = std::sscanf(settings.tiles->c_str(), "%4d,%4d,%4d%n", &tiles.m, &tiles.n, &tiles.k, &end) == 3 &&
                    static_cast<std::size_t>(end) == settings.tiles->size();
  if (!read || std::min({tiles.m, tiles.n, tiles.k}) < 1 || std::max({tiles.m, tiles.n, tiles.k}) > 1024)
    throw Error(fmt::format("--tiles {}: give three extents from 1 to 1024, as 128,256,64", *settings.tiles));
  return tiles;
}

Device open_device(const Settings& settings, bool on_cpu) {
  if (on_cpu) return Device::cpu();
  const Device device = Device::parse(settings.device);
  if (!device.info().arch && !settings.small)
    throw Error("figures need a GPU, and this is the CPU; --small tests the program here");
  return device;
}

std::string commit(const Settings& settings) {
  if (settings.commit) return *settings.commit;
  const std::string id = first_line_of({"git", "-C", source_folder.string(), "describe", "--always", "--dirty"});
  return id.empty() ? "unknown" : id;
}

/// The peer; null, after a line with the reason, if there is none.
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

bool is_of_cpu(const Row& row) { return row.beside_loop != nullptr; }

void measure_rows(const Settings& settings, const std::vector<Row>& rows, const Device& device, json& results,
                  std::vector<std::string>& failed) {
  const bool loops = std::ranges::all_of(rows, is_of_cpu);
  const std::unique_ptr<Peer> peer = loops ? nullptr : start_peer(settings, device);
  results["peer"] = loops ? json("plain loops on one core") : peer ? json(peer->name()) : json();
  print(Figures::heading());
  const Pace pace{.repetitions = static_cast<int>(settings.repetitions),
                  .pause_ms = static_cast<int>(settings.pause_ms)};
  std::optional<double> bytes_per_second;  // what the faster side's copy reaches
  for (const Row& row : rows) {
    Figures figures = measure(row, device, peer.get(), pace);
    if (row.op == "copy" && figures.ours_ms)
      bytes_per_second = row.work / std::min(*figures.ours_ms, figures.peer_ms.value_or(*figures.ours_ms)) * 1e3;
    if (row.layers && bytes_per_second) figures.layer = exposed_layer(row, figures, *bytes_per_second);
    print(figures.line());
    results["rows"].push_back(figures.json());
    if (!figures.failure.empty()) failed.push_back(figures.name);
  }
  if (bytes_per_second) results["copy_bytes_per_second"] = *bytes_per_second;
}

/// One line per group: its contents, the number of rows that have a ratio, and how good the ratios are.
json summarize(const Settings& settings, const std::vector<Row>& rows, const json& figures) {
  json groups = json::object();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].group.empty()) continue;
    json& group = groups[rows[i].group];
    if (group.is_null()) group = {{"rows", 0}, {"ratios", 0}, {"geometric_mean", json()}, {"least", json()}};
    if (rows[i].group == "sweep") group["seed"] = settings.seed;
    group["rows"] = group["rows"].get<int>() + 1;
    if (figures[i]["ratio"].is_null()) continue;
    const double ratio = figures[i]["ratio"], count = group["ratios"];
    const double logarithms = count == 0 ? 0 : count * std::log(group["geometric_mean"].get<double>());
    group["ratios"] = count + 1;
    group["geometric_mean"] = std::exp((logarithms + std::log(ratio)) / (count + 1));
    if (group["least"].is_null() || ratio < group["least"]["ratio"].get<double>())
      group["least"] = {{"ratio", ratio}, {"row", figures[i]["name"]}};
  }
  for (const auto& [name, group] : groups.items()) {
    std::string line = fmt::format("{}: {} rows", name, group["rows"].get<int>());
    if (group.contains("seed")) line += fmt::format(" of seed {}", settings.seed);
    if (group["least"].is_null())
      line += ", no ratios";
    else
      line += fmt::format(", geometric mean of {} ratios {:.3f}, least {:.3f} of {}", group["ratios"].get<int>(),
                          group["geometric_mean"].get<double>(), group["least"]["ratio"].get<double>(),
                          group["least"]["row"].get<std::string>());
    print(line + "\n");
  }
  return groups;
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
  const std::optional<MatmulTiles> tiles = parse_tiles(settings);
  std::vector<Row> rows = tessera::internal::bench::rows({settings.small, tiles, settings.seed});
  if (settings.list) return print(join(names(rows), "\n") + "\n");
  const auto asked_for = [&](const Row& row) { return wanted(settings, row.name(), row.group); };
  // The exposed time of a layer is relative to the bandwidth of a copy in the same call.
  const bool needs_copy = std::ranges::any_of(rows, [&](const Row& row) { return row.layers && asked_for(row); });
  std::erase_if(rows, [&](const Row& row) { return !asked_for(row) && !(needs_copy && row.op == "copy"); });
  if (rows.empty() && std::ranges::none_of(beside, [&](std::string_view name) { return wanted(settings, name); }))
    throw Error(fmt::format("there is nothing called '{}'; --list shows what there is", *settings.rows));
  if (tiles && std::ranges::none_of(rows, &Row::tiled))
    throw Error(fmt::format("--tiles {}: none of the rows is a product that takes them", *settings.tiles));
  std::optional<Earlier> earlier;
  if (settings.compare) earlier.emplace(*settings.compare);

  const bool on_cpu = !rows.empty() && std::ranges::all_of(rows, is_of_cpu);
  if (!on_cpu && !settings.small && std::ranges::any_of(rows, is_of_cpu))
    throw Error("rows of the CPU and of a GPU are measured apart: give patterns of gather-* alone");
  const Device device = open_device(settings, on_cpu);
  const std::string machine = on_cpu ? fmt::format("cpu-{}", cpu::threads()) : machine_name(device);
  json results{{"machine", machine},         {"device", device.name()}, {"date", today()},
               {"commit", commit(settings)}, {"command", command_line}, {"repetitions", settings.repetitions},
               {"rows", json::array()}};
  results.update(circumstances(device));
  if (settings.small) results["small"] = true;
  results["split_k"] = options().split_k;
  if (const char* const mode = std::getenv("TESSERA_PEER_MODE")) results["peer_mode"] = mode;  // see peer_tensors.py
  if (tiles) results["tiles"] = {tiles->m, tiles->n, tiles->k};
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
  if (json groups = summarize(settings, rows, results["rows"]); !groups.empty()) results["groups"] = std::move(groups);
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
    print(fmt::format(
        "a plan of a kernel that inspect lists takes {:.2f} ms in the median of {}, {:.2f} at most; of a kernel "
        "of thousands of ops {:.0f} ms at most\n",
        median(model), model.size(), std::ranges::max(model), std::ranges::max(ms_of("growing"))));
  });
  attempt(compile_name, [&] {
    const json times = compile_times(arch);
    results["compile"] = times;
    std::vector<double> ms;
    for (const json& kernel : times) ms.push_back(kernel["ms"].get<double>());
    print(fmt::format("a kernel that inspect lists takes NVRTC {:.1f} ms in the median of {}, {:.1f} at most\n",
                      median(ms), ms.size(), std::ranges::max(ms)));
  });

  if (earlier) print(earlier->compare(results));
  if (settings.file)
    write(*settings.file, results);
  else if (!settings.rows && !settings.small && !tiles)
    write(source_folder / "bench/results" / fmt::format("{}-{}.json", today(), machine), results);
  if (!failed.empty()) throw Error(fmt::format("failed: {}", join(failed, ", ")));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command_line = "bench " + join(std::span(argv, argc).subspan(1), " ");
  return run_program(argc, argv, "bench", "Measures Tessera's kernels against PyTorch's on a GPU.",
                     [&](CommandLine& line) { run(line, command_line); });
}
