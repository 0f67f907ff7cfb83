// Compares the configurations that choose() and tune() take with the best of all: for products, attention and rows of
// random extents. Each problem is measured once with every configuration, then tuned within the usual budget, its
// kernels compiled anew; the configurations that choose() and tune() take are looked up in the first measurement.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "common/attention_kernel.hpp"
#include "common/machine.hpp"
#include "common/matmuls.hpp"
#include "common/memory_kernels.hpp"
#include "common/operands.hpp"
#include "common/program.hpp"
#include "jit/launch/attention_tiles.hpp"
#include "tessera/tune.hpp"

using namespace tessera::internal;
using nlohmann::json;

namespace {

using bench::Normal;
using bench::tensor_of;

struct Settings {
  std::uint32_t products = 40, attention = 40, rows = 40, seed = 7, seconds = 5;
  std::string device = "auto", commit;
  std::optional<std::string> file;
};

class Regret {
 public:
  Regret(Device device, std::uint32_t seconds) : device_(std::move(device)), budget_(std::chrono::seconds(seconds)) {}
  const Device& device() const { return device_; }
  const json& rows() const { return rows_; }

  /// The first configuration is the one that choose() takes.
  template <class... A>
  void measure(const std::string& problem, const auto& family, const A&... values) try {
    const TuneOptions everything{.budget = std::chrono::minutes(2), .most = 400, .again = true};
    const TuneReport all = tune(device_.stream(), family, everything, values...);
    ::setenv("TESSERA_ALWAYS_COMPILE", "1", 1);  // of the worker
    const TuneReport tuned = tune(device_.stream(), family, TuneOptions{.budget = budget_, .again = true}, values...);
    ::unsetenv("TESSERA_ALWAYS_COMPILE");
    const auto time_of = [&](const Config& config) {
      for (const TuneTrial& trial : all.trials)
        if (trial.config == config && trial.outcome == TuneTrial::Outcome::measured) return trial.milliseconds;
      return std::numeric_limits<double>::infinity();
    };
    const double chosen = time_of(family.configs()[0]), found = time_of(tuned.best);
    int measured = 0;
    std::map<std::string, int> outcomes;
    for (const TuneTrial& trial : all.trials) {
      measured += trial.outcome == TuneTrial::Outcome::measured;
      if (trial.outcome != TuneTrial::Outcome::measured) ++outcomes[std::string(name(trial.outcome))];
    }
    print(fmt::format(
        "{:<40} {:3} of {:3}  best {:<16} {:8.4f} ms  chosen {:<16} {:.3f}  tuned {:<16} {:.3f} in {:.1f} s\n", problem,
        measured, all.trials.size(), text(all.best), all.milliseconds, text(family.configs()[0]),
        all.milliseconds / chosen, text(tuned.best), all.milliseconds / found, tuned.seconds));
    rows_.push_back({{"name", problem},
                     {"configurations", all.trials.size()},
                     {"measured", measured},
                     {"best", all.best},
                     {"best_ms", all.milliseconds},
                     {"chosen", family.configs()[0]},
                     {"chosen_share", all.milliseconds / chosen},
                     {"tuned", tuned.best},
                     {"tuned_share", all.milliseconds / found},
                     {"tune_s", tuned.seconds}});
    if (!outcomes.empty()) rows_.back()["not_measured"] = outcomes;
  } catch (const std::exception& error) {
    ::unsetenv("TESSERA_ALWAYS_COMPILE");
    print(fmt::format("{:<40} failed: {}\n", problem, error.what()));
    rows_.push_back({{"name", problem}, {"failure", error.what()}});
  }

 private:
  static std::string text(const Config& config) { return fmt::format("({})", fmt::join(config, ",")); }

  Device device_;
  std::chrono::milliseconds budget_;
  json rows_ = json::array();
};

/// Products of bf16 in each family, with w [k,n] and [n,k].
void products(Regret& regret, std::uint32_t count, std::uint32_t seed) {
  std::size_t i = 0;
  for (MatmulShape shape : bench::random_shapes(seed, count, 32, 16384, 2e11)) {
    const auto family = static_cast<MatmulFamily>(i / 2 % 2);  // plain, activated
    shape.nk = i++ % 2 == 1;
    const bool nk = shape.nk;
    const Device& device = regret.device();
    const Tunable kernels = tunable(
        [=](int m, int n, int k) {
      return detail::matmul_to_tune<bf16>(family, nk, {m, n, k});
        },
        detail::matmul_configs<bf16>(family, shape, device));
    const std::array<std::int64_t, 2> of_w = nk ? std::array{shape.n, shape.k} : std::array{shape.k, shape.n};
    const auto x = tensor_of<bf16, 2>(device, {shape.m, shape.k}, Normal(1));
    const auto w = tensor_of<bf16, 2>(device, of_w, Normal(2, static_cast<float>(1 / std::sqrt(shape.k))));
    const auto bias = tensor_of<f32, 1>(device, {shape.n}, Normal(3));
    const Tensor<bf16, 2> y(device, {shape.m, shape.n});
    regret.measure(fmt::format("{}-bf16-{}x{}x{}{}", family == MatmulFamily::plain ? "gemm" : "linear_gelu", shape.m,
                               shape.n, shape.k, nk ? "-nk" : ""),
                   kernels, x, w, bias, y);
  }
}

std::int64_t log_uniform(std::mt19937_64& generator, std::int64_t least, std::int64_t most) {
  const double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
  return std::llround(static_cast<double>(least) *
                      std::pow(static_cast<double>(most) / static_cast<double>(least), unit));
}

void attention(Regret& regret, std::uint32_t count, std::uint32_t seed) {
  std::mt19937_64 generator(seed);
  const Device& device = regret.device();
  const bool gpu = device.info().arch.has_value();
  for (std::uint32_t i = 0; i < count; ++i) {
    const int width = i % 2 ? 128 : 64;
    const bench::Seen seen = i / 2 % 2 ? bench::Seen::full : bench::Seen::causal;
    const std::int64_t positions = log_uniform(generator, 128, 8192) / 8 * 8, heads = log_uniform(generator, 4, 32);
    const std::int64_t batch =
        std::max<std::int64_t>(1, std::min<std::int64_t>(log_uniform(generator, 1, 16), 65536 / positions));
    const MatmulTarget target = matmul_target(device);
    const AttentionTiles chosen = attention_tiles({.operands = ElementType::bf16,
                                                   .head_width = width,
                                                   .seen = seen == bench::Seen::causal ? positions / 2 : positions,
                                                   .queries = positions,
                                                   .heads = batch * heads,
                                                   .multiprocessors = target.multiprocessors},
                                                  gpu, target.has_wgmma());
    std::vector<Config> configs{{chosen.queries, chosen.keys, chosen.blocks}};
    const auto add = [&](const Config& config) {
      if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
    };
    for (const int blocks : {0, 2, 3})
      for (const int queries : {64, 128, 192})
        for (const int keys : {64, 96, 128, 160, 176}) add({queries, keys, blocks});
    const Tunable kernels = tunable(
        [=](int queries, int keys, int blocks) {
      return bench::attention_kernel({queries, keys, blocks}, width, seen, 1, false);
        },
        configs);
    const std::array<std::int64_t, 4> extents{batch, heads, positions, width};
    const auto q = tensor_of<bf16, 4>(device, extents, Normal(1)), k = tensor_of<bf16, 4>(device, extents, Normal(2)),
               v = tensor_of<bf16, 4>(device, extents, Normal(3));
    const Tensor<bf16, 4> o(device, extents);
    regret.measure(fmt::format("attention-{}-bf16-{}x{}x{}x{}", seen == bench::Seen::causal ? "causal" : "full", batch,
                               positions, heads, width),
                   kernels, q, k, v, o, static_cast<float>(1 / std::sqrt(width)));
  }
}

void rows(Regret& regret, std::uint32_t count, std::uint32_t seed) {
  std::mt19937_64 generator(seed);
  const Device& device = regret.device();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto width = static_cast<int>(log_uniform(generator, 64, 16384) / 8 * 8);
    const std::int64_t count_of_rows = std::min<std::int64_t>(log_uniform(generator, 64, 65536), 268435456 / width);
    std::vector<Config> configs{{bench::rows_per_block<bf16>(width), 0}};
    for (const int warps : {0, 1, 2, 4, 8, 16})
      for (const int rows_of_tile : {1, 2, 4, 8})
        if (const Config config{rows_of_tile, warps}; config != configs[0] && rows_of_tile * width <= 32768)
          configs.push_back(config);
    const Tunable kernels = tunable(
        [=](int rows_of_tile, int warps) {
      return kernel("softmax", [=](In<bf16, 2> x, Out<bf16, 2> y) {
        if (warps > 0) hints({.warps = warps});
        Index row = blocks(cdiv(x.extent(0), rows_of_tile));
        Tile in = cast<f32>(load(x, {row, 0}, {rows_of_tile, width})) * log2e;
        Tile e = exp2(in - max(in, 1));
        store(y, {row, 0}, cast<bf16>(e * (1 / sum(e, 1))));
      });
        },
        configs);
    const auto x = tensor_of<bf16, 2>(device, {count_of_rows, width}, Normal(1));
    const Tensor<bf16, 2> y(device, {count_of_rows, width});
    regret.measure(fmt::format("softmax-bf16-{}x{}", count_of_rows, width), kernels, x, y);
  }
}

json summary(const json& rows) {
  json made = json::object();
  for (const char* group : {"", "gemm", "linear_gelu", "attention", "softmax"})
    for (const char* share : {"chosen_share", "tuned_share"}) {
      double sum = 0, least = 1;
      int count = 0;
      for (const json& row : rows) {
        if (!row.contains(share) || !row["name"].get<std::string>().starts_with(group)) continue;
        const double value = std::max(row[share].get<double>(), 1e-3);
        sum += std::log(value), least = std::min(least, value), ++count;
      }
      if (count > 0)
        made[*group ? group : "all"][share] = {
            {"geometric_mean", std::exp(sum / count)}, {"least", least}, {"rows", count}};
    }
  return made;
}

void run(CommandLine& line) {
  Settings settings;
  line.option("--products", settings.products, "N", "Products of random extents [40]");
  line.option("--attention", settings.attention, "N", "Attention shapes [40]");
  line.option("--rows", settings.rows, "N", "Shapes of softmax [40]");
  line.option("--seed", settings.seed, "N", "Seed of the extents [7]");
  line.option("--budget", settings.seconds, "SECONDS", "Of a tuning [5]");
  line.option("--device", settings.device, "DEVICE", "auto, cpu, cuda or cuda:N [auto]");
  line.option("--commit", settings.commit, "ID", "Name of the source revision");
  line.option("--json", settings.file, "FILE", "Where the figures go, too");
  line.parse();
  Regret regret(Device::parse(settings.device), settings.seconds);
  products(regret, settings.products, settings.seed);
  attention(regret, settings.attention, settings.seed);
  rows(regret, settings.rows, settings.seed);
  const json groups = summary(regret.rows());
  print(groups.dump(1) + "\n");
  if (!settings.file) return;
  json results{{"device", regret.device().name()},
               {"machine", bench::machine_name(regret.device())},
               {"date", bench::today()},
               {"commit", settings.commit},
               {"seed", settings.seed},
               {"budget_s", settings.seconds},
               {"rows", regret.rows()},
               {"groups", groups}};
  results.update(bench::circumstances(regret.device()));
  std::ofstream file(*settings.file);
  file << results.dump(1) << '\n';
  if (!file.flush()) throw Error(fmt::format("{} cannot be written", *settings.file));
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "regret", "Compares the configurations of choose() and tune() with the best.", run);
}
