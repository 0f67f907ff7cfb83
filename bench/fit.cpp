// Fits the constants of the cost model (codegen/schedule/cost_model.hpp) to measured tiles, and prints them with the
// errors that remain. The files are results of TESSERA_SPLIT_K=none bench 'tiles-*', and of =cluster and =stream_k.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "codegen/schedule/cost_model.hpp"
#include "common/program.hpp"
#include "tessera/graph/error.hpp"

using namespace tessera::internal;
using nlohmann::json;

namespace {

constexpr int multiprocessors = 132;  // of H100 and H200, SXM

/// One measured launch.
struct Sample {
  int shape = 0;
  MatmulWork work;
  SplitKLaunch launch;
  double ms = 0;
};

struct Data {
  std::string machine;
  std::vector<std::string> shapes;
  std::vector<Sample> samples;
};

SplitKLaunch launch_of(const std::string& text) {
  char name[16] = "";
  SplitKLaunch launch;
  launch.multicast = text == "multicast";
  if (text == "none" || launch.multicast) return launch;
  if (std::sscanf(text.c_str(), "%15s %d %d", name, &launch.blocks, &launch.lockstep_rows) != 3)
    throw Error(fmt::format("'{}' is no launch", text));
  launch.split_k = std::string_view(name) == "cluster" ? SplitK::cluster : SplitK::stream_k;
  return launch;
}

void read(const std::string& path, Data& data) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("{} cannot be read", path));
  const json results = json::parse(file);
  const auto machine = results.at("machine").get<std::string>(), policy = results.at("split_k").get<std::string>();
  if (!data.machine.empty() && data.machine != machine)
    throw Error(fmt::format("{} is of {}, other files are of {}", path, machine, data.machine));
  data.machine = machine;
  for (const json& row : results.at("rows")) {
    const auto name = row.at("name").get<std::string>();
    std::int64_t m = 0, n = 0, k = 0;
    if (std::sscanf(name.c_str(), "tiles-gemm-bf16-%ldx%ldx%ld", &m, &n, &k) != 3) continue;
    const auto known = std::ranges::find(data.shapes, name);
    const int shape = static_cast<int>(known - data.shapes.begin());
    if (known == data.shapes.end()) data.shapes.push_back(name);
    for (const auto& [tile, figures] : row.at("alternatives").items()) {
      MmaExtents extents;
      if (std::sscanf(tile.c_str(), "%dx%dx%d", &extents.m, &extents.n, &extents.k) != 3 || figures["ms"].is_null())
        continue;
      const SplitKLaunch launch = launch_of(figures.at("launch").get<std::string>());
      if (policy == "none" || launch.split_k != SplitK::none ||
          launch.multicast)  // a policy that does not apply measures "none" again
        data.samples.push_back({shape, matmul_work(extents, m, n, k), launch, figures["ms"].get<double>()});
    }
  }
}

/// Errors of the logarithms of predicted times: of all launches, and within a shape, which is what a choice among its
/// tiles depends on.
struct Errors {
  double all = 0, within = 0, mean = 0;
  int count = 0;
};
Errors errors(const MachineModel& machine, const Data& data) {
  const CostModel model(machine, multiprocessors);
  struct Sum {
    double sum = 0, squares = 0;
    int count = 0;
  };
  std::vector<Sum> shapes(data.shapes.size());
  Errors result;
  for (const Sample& sample : data.samples) {
    const double error = std::log(model.cycles(sample.work, sample.launch) / (sample.ms * machine.clock));
    Sum& of = shapes[static_cast<std::size_t>(sample.shape)];
    of.sum += error;
    of.squares += error * error;
    ++of.count;
    result.mean += std::abs(error);
    ++result.count;
  }
  for (const Sum& of : shapes) {
    result.all += of.squares;
    if (of.count > 0) result.within += of.squares - of.sum * of.sum / of.count;
  }
  result.all = std::sqrt(result.all / result.count);
  result.within = std::sqrt(result.within / result.count);
  result.mean /= result.count;
  return result;
}

/// The best measured time by that of the model's decisions.
struct Choice {
  double mean = 1, worst = 1;  ///< of the tile and split-K that it chooses for a shape
  std::string worst_shape = {};
  int best = 0, count = 0;
  double launch = 1, worst_launch = 1;  ///< of the split-K that a launch chooses for a tile
};
Choice choice(const MachineModel& machine, const Data& data) {
  const CostModel model(machine, multiprocessors);
  struct Tile {
    double cycles = 0, ms = 0, best = 1e30;
  };
  std::vector<std::map<MmaExtents, Tile>> shapes(data.shapes.size());
  for (const Sample& sample : data.samples) {
    Tile& tile = shapes[static_cast<std::size_t>(sample.shape)][sample.work.tile];
    tile.best = std::min(tile.best, sample.ms);
    // One cluster size is measured for each tile: it stands for the others.
    const SplitKLaunch launch = model.split_k(at_launch(sample.work));
    if (launch.split_k != sample.launch.split_k || launch.multicast != sample.launch.multicast) continue;
    tile.cycles = model.cycles(sample.work, launch);
    tile.ms = sample.ms;
  }
  Choice result;
  double logs = 0, launch_logs = 0;
  int launches = 0;
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    const Tile* chosen = nullptr;
    double best = 1e30;
    for (const auto& [extents, tile] : shapes[shape]) {
      best = std::min(best, tile.best);
      if (tile.ms == 0) continue;
      if (!chosen || tile.cycles < chosen->cycles) chosen = &tile;
      launch_logs += std::log(tile.best / tile.ms);
      ++launches;
      result.worst_launch = std::min(result.worst_launch, tile.best / tile.ms);
    }
    if (!chosen) continue;
    const double ratio = best / chosen->ms;
    logs += std::log(ratio);
    ++result.count;
    result.best += ratio > 0.99;
    if (ratio < result.worst) result.worst = ratio, result.worst_shape = data.shapes[shape];
  }
  result.mean = std::exp(logs / result.count);
  result.launch = std::exp(launch_logs / launches);
  return result;
}

struct Constant {
  std::string_view name, source;
  std::function<double&(MachineModel&)> of;
};

/// Those of a machine's own file.
std::vector<Constant> constants(const MachineModel& machine) {
  std::vector<Constant> list;
#define CONSTANT(name, value, source, what) \
  list.push_back({#name, #source, [](MachineModel& of) -> double& { return of.name; }});
  if (&machine == &MachineModel::h100()) {
#include "codegen/schedule/h100.def"
    return list;
  }
#define CONSTANT(name, value, source, what) \
  list.push_back({#name, #source, [](MachineModel& of) -> double& { return of.name; }});
#include "codegen/schedule/h200.def"
  for (std::size_t i = 0; i < machine.tiles.size(); ++i)
    list.push_back({"TILE", "fitted", [i](MachineModel& of) -> double& { return of.tiles[i].rate; }});
  return list;
}

// Mostly what a wrong choice costs, and what predicts it; the level of all times a little, so that constants stay
// plausible.
double objective(const MachineModel& machine, const Data& data) {
  const Errors of = errors(machine, data);
  const Choice chosen = choice(machine, data);
  return of.within + 0.1 * of.all + (1 - chosen.mean) + 0.1 * (1 - chosen.worst) + (1 - chosen.launch) +
         0.1 * (1 - chosen.worst_launch);
}

// Coordinate descent on the logarithms of the fitted constants. One that the data say nothing about stays.
MachineModel fitted(const MachineModel& from, const Data& data, const std::vector<Constant>& list) {
  MachineModel machine = from;
  double least = objective(machine, data);
  for (double step = 1.2; step > 1.004; step = std::sqrt(step)) {
    for (bool better = true; better;) {
      better = false;
      for (const Constant& constant : list) {
        if (constant.source != "fitted") continue;
        for (const double factor : {step, 1 / step}) {
          MachineModel changed = machine;
          constant.of(changed) *= factor;
          if (constant.name == "TILE" && constant.of(changed) > 1) continue;
          const double error = objective(changed, data);
          if (!(error < least * (1 - 1e-5))) continue;  // also if it is not a number
          least = error;
          machine = changed;
          better = true;
        }
      }
    }
  }
  return machine;
}

Choice report(std::string_view title, const MachineModel& machine, const Data& data) {
  const Errors of = errors(machine, data);
  const Choice chosen = choice(machine, data);
  print(fmt::format("{}: error {:.3f}, within a shape {:.3f} (root mean square), mean {:.3f}, of {} launches\n", title,
                    of.all, of.within, of.mean, of.count));
  print(fmt::format(
      "  best / chosen tile {:.3f}, worst {:.3f} ({}), {} of {} within 1 %; best / chosen split-K {:.3f}, "
      "worst {:.3f}\n",
      chosen.mean, chosen.worst, chosen.worst_shape, chosen.best, chosen.count, chosen.launch, chosen.worst_launch));
  return chosen;
}

void fit(const MachineModel& now, const Data& data) {
  MachineModel before = now, machine = fitted(now, data, constants(now));
  report("fitted", machine, data);
  // The other half tells what the fit is worth.
  Data half = data, other = data;
  std::erase_if(half.samples, [](const Sample& sample) { return sample.shape % 2 != 0; });
  std::erase_if(other.samples, [](const Sample& sample) { return sample.shape % 2 == 0; });
  // From a start that knows nothing of the rest.
  MachineModel start = now;
  for (const Constant& constant : constants(now))
    if (constant.source == "fitted") constant.of(start) = constant.name == "TILE" ? 0.7 : 1.5 * constant.of(start);
  report("fitted to every other shape, on the rest", fitted(start, half, constants(now)), other);
  std::size_t tile = 0;
  for (const Constant& constant : constants(now)) {
    const double was = constant.of(before), is = constant.of(machine);
    if (constant.name == "TILE") {
      const MmaExtents& extents = machine.tiles[tile++].extents;
      print(fmt::format("TILE({}, {}, {}, {:.3g}, fitted)  was {:.3g}\n", extents.m, extents.n, extents.k, is, was));
    } else if (is != was) {
      print(fmt::format("CONSTANT({}, {:.4g}, fitted, ...)  was {:.4g}\n", constant.name, is, was));
    }
  }
}

void run(CommandLine& line) {
  std::string machine, folder = TESSERA_SOURCE_DIR "/bench/results/tiles";
  std::optional<float> least;
  line.option("MACHINE", machine, "MACHINE", "h100 or h200: takes the files *-MACHINE-*.json", {"h100", "h200"});
  line.option("--folder", folder, "DIR", "Folder of the files [bench/results/tiles]");
  line.option("--check", least, "LEAST",
              "Fit nothing, and fail if chosen tiles reach less than LEAST of the best time (geometric mean)");
  line.parse();
  Data data;
  if (machine.empty()) line.refuse("name the machine, h100 or h200");
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().native().find('-' + machine + '-') != std::string::npos) files.insert(entry.path());
  for (const std::filesystem::path& file : files) read(file, data);
  if (data.samples.empty())
    throw Error(fmt::format("no file *-{}-*.json of {} has a row tiles-gemm-bf16-*", machine, folder));
  const MachineModel& now = data.machine.starts_with("h100") ? MachineModel::h100() : MachineModel::h200();
  const Choice chosen = report("as it is", now, data);
  if (!least) return fit(now, data);
  if (chosen.mean < static_cast<double>(*least))
    throw Error(fmt::format("the chosen tiles reach {:.3f} of the best time, less than {}", chosen.mean, *least));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "fit", "Fits the cost model of matmuls to measured tiles.", run);
}
