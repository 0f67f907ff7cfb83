// Tuning: what wins, what never does, what is recorded, and what a worker that fails leaves.
#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>

#include "jit/launch/matmul_tiles.hpp"
#include "jit/options/process.hpp"
#include "jit/tune/candidates.hpp"
#include "jit/tune/circumstances.hpp"
#include "jit/tune/job.hpp"
#include "jit/tune/records.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/jit/version.hpp"
#include "tessera/tune.hpp"

namespace test_tune {

using namespace tessera::internal;

namespace {

using Outcome = TuneTrial::Outcome;
using namespace std::chrono_literals;

/// The first number of a configuration of the family below; the second is how much work it does.
enum Kind : int { right, wrong_values, unwritten, endless, nearly_right, untraceable, needs_odd, crashing };

/// y = the sums of the rows of x, times 2: in as many steps as `work` says.
auto row_sums(int kind, int work) {
  if (kind == untraceable) throw Error("no kernel has this configuration");
  if (kind == crashing)
    return cuda_kernel("row_sums",
                       "extern \"C\" __global__ void row_sums(const float*, float*, int) { *(float*)16 = 1; }",
                       [](In<f32, 2>, Out<f32, 2>, Scalar<i32>) { return CudaLaunch{.blocks = {1}, .threads = {32}}; });
  return kernel("row_sums", [=](In<f32, 2> x, Out<f32, 2> y, Scalar<i32> times) {
    require(x.extent(0) == y.extent(0), "a sum for each row");
    if (kind == needs_odd) require(x.extent(0) % 2 == 1, "an odd number of rows");
    Index m = blocks(cdiv(x.extent(0), 4));
    Tile rows = load(x, {m, 0}, {4, 64});
    Var total = zeros<f32>({4, 1});
    const int steps = kind == endless ? 2'000'000'000 : work;
    for (Index i : range(x.extent(1) / 64 * steps)) total = total + sum(rows, 1) + 0.0f * cast<f32>(i);
    const float factor = (kind == nearly_right ? 2.00002f : 2.0f) / static_cast<float>(work);
    Tile result = total * factor * cast<f32>(times) + (kind == wrong_values ? 1.0f : 0.0f) * cast<f32>(m == 1);
    if (kind == unwritten)
      if_(m / 2 * 2 == m, [&] { store(y, {m, 0}, result); });
    else
      store(y, {m, 0}, result);
  });
}

struct Problem {
  Device device = test_device();
  Tensor<f32, 2> x = device.tensor<f32>({32, 64});
  Tensor<f32, 2> y = device.tensor<f32>({32, 1});
  TempDir folder;
  TuneRecords records{folder / TuneRecords::file_name};

  Problem() {
    std::vector<f32> values(32 * 64);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<f32>(i % 17) - 8;
    x.copy_from(values);
    y.copy_from(std::vector<f32>(32, 7.0f));
  }

  TuneReport tune(std::vector<Config> configs, TuneOptions how = {}) {
    const std::vector<Argument> arguments{x.argument(), y.argument(), [] {
                                            Argument times;
                                            times.scalar = cell_of(i32{1});
                                            return times;
                                          }()};
    const TuneRequest request{
        .kernel = "row_sums",
        .configs = configs,
        .make = [&](std::size_t i) { return row_sums(configs[i][0], configs[i][1]).shared_executable(); },
        .device = device,
        .arguments = arguments};
    return tessera::internal::tune(request, how, records);
  }
};

const TuneTrial& trial(const TuneReport& report, const Config& config) {
  for (const TuneTrial& each : report.trials)
    if (each.config == config) return each;
  throw Error("there is no such trial");
}

}  // namespace

TEST_CASE("The fastest right configuration wins, and is recorded", "[jit][tune]") {
  Problem problem;
  const TuneReport report = problem.tune({{right, 2000}, {right, 1}, {right, 500}});
  CHECK(report.best == Config{right, 1});
  CHECK_FALSE(report.from_record);
  CHECK(report.milliseconds > 0);
  for (const TuneTrial& each : report.trials) CHECK(each.outcome == Outcome::measured);
  CHECK(trial(report, {right, 2000}).milliseconds > trial(report, {right, 1}).milliseconds);
  CHECK(problem.y.to_vector() == std::vector<f32>(32, 7.0f));  // nothing was launched here
  CHECK(
      says(report.text().substr(0, report.text().find('\n')), {"row_sums", "f32[32,64]", "(0,1)", "3 configurations"}));

  const TuneReport again = problem.tune({{right, 2000}, {right, 1}, {right, 500}});
  CHECK(again.from_record);
  CHECK(again.best == report.best);
  CHECK(again.trials.empty());
  CHECK_FALSE(problem.tune({{right, 2000}, {right, 1}}, {.again = true}).from_record);
  // A record of a configuration that is not in the list any more does not count.
  CHECK_FALSE(problem.tune({{right, 2000}, {right, 500}}).from_record);
}

TEST_CASE("A configuration that fails in any way never wins, and never ends the tuning", "[jit][tune]") {
  Problem problem;
  const bool is_gpu = !problem.device.shares_host_memory();
  std::vector<Config> configs{{right, 300}, {unwritten, 1},    {wrong_values, 1},   {untraceable, 1}, {needs_odd, 1},
                              {endless, 1}, {wrong_values, 2}, {nearly_right, 200}, {right, 100}};
  if (is_gpu) configs.insert(configs.begin() + 6, {crashing, 1});
  const TuneReport report = problem.tune(configs, {.budget = 20s});
  if (is_gpu) CHECK(trial(report, {crashing, 1}).outcome == Outcome::failed);
  CHECK((report.best == Config{right, 100} || report.best == Config{nearly_right, 200}));
  CHECK(trial(report, {right, 300}).outcome == Outcome::measured);
  CHECK(trial(report, {nearly_right, 200}).outcome == Outcome::measured);
  CHECK(trial(report, {wrong_values, 1}).outcome == Outcome::wrong);
  CHECK(says(trial(report, {wrong_values, 1}).why, {"argument 2", "first candidate"}));
  CHECK(trial(report, {wrong_values, 2}).outcome == Outcome::wrong);  // by another worker than the first
  CHECK(trial(report, {unwritten, 1}).outcome == Outcome::wrong);
  CHECK(trial(report, {untraceable, 1}).outcome == Outcome::refused);
  CHECK(says(trial(report, {untraceable, 1}).why, {"no kernel has this configuration"}));
  CHECK(trial(report, {needs_odd, 1}).outcome == Outcome::refused);
  CHECK(says(trial(report, {needs_odd, 1}).why, {"an odd number of rows"}));
  CHECK(trial(report, {endless, 1}).outcome == Outcome::hung);

  // If bits must be equal, nearly right is wrong.
  const TuneReport equal = problem.tune({{right, 300}, {nearly_right, 1}}, {.equal_bits = true});
  CHECK(equal.best == Config{right, 300});
  CHECK(says(trial(equal, {nearly_right, 1}).why, {"other bits"}));
  const TuneReport narrow = problem.tune({{right, 300}, {nearly_right, 1}}, {.tolerance = 1e-6, .again = true});
  CHECK(trial(narrow, {nearly_right, 1}).outcome == Outcome::wrong);
  // The record of a tuning without equal bits is not one for a tuning with them.
  CHECK(problem.tune({{right, 300}, {nearly_right, 1}}, {.again = true}).best == Config{nearly_right, 1});
  CHECK(problem.tune({{right, 300}, {nearly_right, 1}}, {.equal_bits = true}).best == Config{right, 300});
}

TEST_CASE("A record serves launches of its class only", "[jit][tune]") {
  Problem problem;
  const std::vector<Config> configs{{right, 50}, {right, 1}};
  CHECK_FALSE(problem.tune(configs).from_record);
  problem.y = problem.device.tensor<f32>({36, 1});
  CHECK(says(error_of([&] { problem.tune(configs); }), {"no configuration", "a sum for each row"}));
  problem.x = problem.device.tensor<f32>({36, 64}, std::vector<f32>(36 * 64, 1.0f));
  CHECK_FALSE(problem.tune(configs).from_record);
  CHECK(problem.tune(configs).from_record);
  CHECK(problem.records.all().size() == 2);
}

TEST_CASE("A kernel that adds to its results is measured from the same contents each time", "[jit][tune]") {
  const auto add = [](int width) {
    return kernel("add", [=](In<f32, 1> x, InOut<f32, 1> y) {
      Index n = blocks(cdiv(x.extent(0), width));
      Tile old = load(y, {n}, {width});
      store(y, {n}, old + load(x, {n}, {width}));
    });
  };
  const Device device = test_device();
  const auto x = device.tensor<f32>({100}, std::vector<f32>(100, 3.0f)),
             y = device.tensor<f32>({100}, std::vector<f32>(100, 1.0f));
  const std::vector<Argument> arguments{x.argument(), y.argument()};
  const std::vector<Config> configs{{16}, {32}, {128}};
  TuneRecords none("");
  const TuneReport report =
      tessera::internal::tune({.kernel = "add",
                               .configs = configs,
                               .make = [&](std::size_t i) { return add(configs[i][0]).shared_executable(); },
                               .device = device,
                               .arguments = arguments},
                              {.equal_bits = true}, none);
  for (const TuneTrial& each : report.trials) CHECK(each.outcome == Outcome::measured);
  CHECK(y.to_vector() == std::vector<f32>(100, 1.0f));
}

TEST_CASE("choose() takes recorded tiles, for shapes of the class and the device alone", "[jit][tune]") {
  const Device device = Device::cpu();
  std::random_device random;  // nobody else has this shape, nor an earlier run
  const auto extent = [&] { return static_cast<std::int64_t>(4000 + random() % 1'000'000); };
  const MatmulShape shape{.m = extent(), .n = extent(), .k = extent()};
  const auto chosen = [&](const MatmulShape& of) { return choose<f32>(MatmulFamily::residual, of, device); };
  const auto record = [&](const MatmulTiles& tiles) {
    TuneReport report{
        .kernel = "test", .device = "cpu", .shapes = "", .trials = {}, .best = {tiles.m, tiles.n, tiles.k}};
    record_tiles(MatmulFamily::residual, shape, ElementType::f32, device, report);
  };
  const auto candidates = matmul_candidates<f32>(MatmulFamily::residual, shape, device);
  REQUIRE(candidates.size() > 1);
  const MatmulTiles model = chosen(shape), other = candidates[1];
  CHECK(model == candidates[0]);
  record({8, 24, 40});  // no candidate, so it does not count
  CHECK(chosen(shape) == model);
  const std::uint64_t generation = tune_generation();
  record(other);
  CHECK(tune_generation() > generation);
  CHECK(chosen(shape) == other);
  MatmulShape near = shape;
  near.m = tune_class_of(shape.m), near.n = tune_class_of(shape.n);
  CHECK(chosen(near) == other);
  const auto differs = [&](auto change) {
    MatmulShape of = shape;
    change(of);
    CHECK(chosen(of) == choose(MatmulFamily::residual, of, ElementType::f32, [&] {
            MatmulTarget off = matmul_target(device);
            off.machine_text.clear();
            return off;
          }()));
  };
  differs([](MatmulShape& of) { of.nk = true; });
  differs([](MatmulShape& of) { of.n *= 2; });
  differs([](MatmulShape& of) { of.computes_w = true; });
  CHECK(choose<f32>(MatmulFamily::plain, shape, device) == model);
}

TEST_CASE("Launches take what was tuned, with equal bits or without", "[jit][tune]") {
  const Device device = test_device();
  for (const bool equal_bits : {false, true}) {
    const std::string name = fmt::format("half_{}_{}", equal_bits, std::random_device()());
    const Tunable family = tunable(
        [&](int width) {
      return kernel(name, [=](In<f32, 1> x, Out<f32, 1> y) {
        Index n = blocks(cdiv(x.extent(0), width));
        Var sum = zeros<f32>({width});
        for (Index i : range(x.extent(0) / 1000 * (width == 16 ? 3000 : 1) + 1))
          sum = load(x, {n}, {width}) * 0.5f + 0.0f * cast<f32>(i);
        store(y, {n}, sum);
      });
        },
        {{16}, {512}});
    const auto x = device.tensor<f32>({1000}, std::vector<f32>(1000, 3.0f)), y = device.tensor<f32>({1000});
    const auto kernel_of = [&](int width) { return family.kernel({width}).shared_executable(); };
    CHECK(family.best(device.stream(), x, y).shared_executable() == kernel_of(16));
    CHECK(tune(device.stream(), family, TuneOptions{.equal_bits = equal_bits}, x, y).best == Config{512});
    CHECK(family.best(device.stream(), x, y).shared_executable() == kernel_of(512));
    launch(device.stream(), family, x, y);
    CHECK(y.to_vector() == std::vector<f32>(1000, 1.5f));
    const auto short_x = device.tensor<f32>({100}), short_y = device.tensor<f32>({100});
    CHECK(family.best(device.stream(), short_x, short_y).shared_executable() == kernel_of(16));
  }
}

TEST_CASE("A launch that the recorded configuration refuses takes another one", "[jit][tune]") {
  const Device device = test_device();
  const std::string name = fmt::format("strict_{}", std::random_device()());
  const Tunable family = tunable(
      [&](int width) {
    return kernel(name, [=](In<f32, 1> x, Out<f32, 1> y) {
      require(x.extent(0) % width == 0, "tiles divide the extent");
      Index n = blocks(x.extent(0) / width);
      store(y, {n}, load(x, {n}, {width}) + 1.0f);
    });
      },
      {{8}, {1024}});
  const auto run = [&](std::int64_t extent) {
    const auto x = device.tensor<f32>({extent}, std::vector<f32>(static_cast<std::size_t>(extent), 2.0f));
    const auto y = device.tensor<f32>({extent});
    launch(device.stream(), family, x, y);
    CHECK(y.to_vector() == std::vector<f32>(static_cast<std::size_t>(extent), 3.0f));
    return family.best(device.stream(), x, y).shared_executable();
  };
  const auto x = device.tensor<f32>({1 << 20}), y = device.tensor<f32>({1 << 20});
  REQUIRE(tune(device.stream(), family, x, y).best == Config{1024});
  CHECK(run(1 << 20) == family.kernel({1024}).shared_executable());
  CHECK(run((1 << 20) - 8) == family.kernel({8}).shared_executable());  // of the same class
  CHECK(says(error_of([&] { run((1 << 20) - 4); }), {"tiles divide the extent"}));
}

TEST_CASE("Launches in place have records of their own", "[jit][tune]") {
  const Device device = Device::cpu();
  const auto x = device.tensor<f32>({64}), y = device.tensor<f32>({64});
  const std::vector<Parameter> parameters{{.access = Access::in, .type = ElementType::f32, .rank = 1},
                                          {.access = Access::out, .type = ElementType::f32, .rank = 1}};
  const std::vector<Argument> apart{x.argument(), y.argument()}, in_place{x.argument(), x.argument()};
  CHECK(tune_class(parameters, apart) != tune_class(parameters, in_place));
}

TEST_CASE("A first configuration that hangs leaves time for the others", "[jit][tune]") {
  Problem problem;
  const TuneReport report = problem.tune({{endless, 1}, {right, 100}, {right, 1}}, {.budget = 6s});
  CHECK(trial(report, {endless, 1}).outcome == Outcome::hung);
  CHECK(report.best == Config{right, 1});
  CHECK(report.seconds < 8);
}

TEST_CASE("Options without a meaning are refused, and too little is not recorded", "[jit][tune]") {
  Problem problem;
  for (const TuneOptions& how :
       {TuneOptions{.budget = -1ms}, TuneOptions{.most = 0}, TuneOptions{.most = -3}, TuneOptions{.tolerance = -1},
        TuneOptions{.tolerance = NAN}, TuneOptions{.tolerance = INFINITY}})
    CHECK(says(error_of([&] {
                 problem.tune({{right, 1}, {right, 2}}, how);
               }),
               {"tune: a budget of", "none may be negative"}));
  const TuneReport starved = problem.tune({{right, 3}, {right, 2}, {right, 4}}, {.budget = 0ms});
  CHECK_FALSE(starved.best.empty());
  CHECK(problem.records.all().empty());
  CHECK(problem.tune({{right, 1}}, {.budget = std::chrono::milliseconds::max()}).best == Config{right, 1});
  CHECK(problem.records.all().size() == 1);
}

TEST_CASE("A kernel may be made by means of another family", "[jit][tune]") {
  const Device device = test_device();
  const auto x = device.tensor<f32>({100}, std::vector<f32>(100, 1.0f)), y = device.tensor<f32>({100});
  const auto copy = [&](int width) {
    return kernel("copy", [=](In<f32, 1> from, Out<f32, 1> to) {
      Index n = blocks(cdiv(from.extent(0), width));
      store(to, {n}, load(from, {n}, {width}));
    });
  };
  const Tunable inner = tunable(copy, {{16}, {32}});
  const Tunable outer = tunable(
      [&](int width) {
    tune(device.stream(), inner, TuneOptions{.again = true}, x, y);
    return copy(width);
      },
      {{16}, {64}});
  CHECK_FALSE(tune(device.stream(), outer, TuneOptions{.again = true}, x, y).best.empty());
}

TEST_CASE("If no configuration runs, the error names the first and its reason", "[jit][tune]") {
  Problem problem;
  CHECK(says(error_of([&] {
               problem.tune({{untraceable, 1}, {untraceable, 2}});
             }),
             {"no kernel has this configuration"}));
  CHECK(says(error_of([&] {
               problem.tune({{needs_odd, 1}});
             }),
             {"no configuration of kernel 'row_sums'", "(6,1)", "refused", "an odd number of rows"}));
  CHECK(says(error_of([&] { problem.tune({}); }), {"row_sums", "no configuration", "list one"}));
  CHECK(says(error_of([&] { problem.tune({{right, 1}, {right}}); }), {"2 and 1 values"}));
  CHECK(problem.records.all().empty());
}

TEST_CASE("A long list is tried in part, spread over what is not ranked", "[jit][tune]") {
  CHECK(tried_configs(3, 24) == std::vector<std::size_t>{0, 1, 2});
  const std::vector<std::size_t> tried = tried_configs(100, 12);
  CHECK(tried.size() == 12);
  for (std::size_t i = 0; i < 8; ++i) CHECK(tried[i] == i);
  CHECK(tried[8] == 19);
  CHECK(tried.back() == 88);
  CHECK(tried_configs(10, 1) == std::vector<std::size_t>{0});
  for (std::size_t count = 1; count < 60; ++count)
    for (std::size_t most = 1; most < 30; ++most) {
      const auto some = tried_configs(count, most);
      CHECK(some.size() == std::min(count, most));
      CHECK(std::ranges::adjacent_find(some, std::greater_equal<>()) == some.end());
      CHECK(some.back() < count);
    }

  Problem problem;
  const TuneReport report = problem.tune({{right, 3}, {right, 4}, {right, 5}, {right, 6}, {right, 7}}, {.most = 3});
  CHECK(std::ranges::count(report.trials, Outcome::skipped, &TuneTrial::outcome) == 2);
  CHECK(says(trial(report, {right, 5}).why, {"beyond the 3"}));
}

TEST_CASE("combinations() has every combination, the first of first values", "[jit][tune]") {
  CHECK(combinations({{1, 2}, {3}, {4, 5}}) == std::vector<Config>{{1, 3, 4}, {1, 3, 5}, {2, 3, 4}, {2, 3, 5}});
  CHECK(combinations({{1, 2}, {}}).empty());
  CHECK(configs_of({{64, 128, 32}}) == std::vector<Config>{{64, 128, 32}});
}

TEST_CASE("Records survive other processes, damage and a cut line", "[jit][tune]") {
  const TempDir folder;
  const auto file = folder / TuneRecords::file_name;
  const TuneRecord record{.key = std::string(64, 'a'),
                          .kernel = "k\tx",
                          .shapes = "f32[1,2]",
                          .device = "cpu",
                          .config = {1, -2, 3},
                          .milliseconds = 0.25,
                          .spread = 0.125,
                          .time = 1000};
  TuneRecords first(file), second(file);
  CHECK_FALSE(first.knows_any());
  first.add(record);
  REQUIRE(second.find(record.key));
  CHECK(second.find(record.key)->config == record.config);
  CHECK(second.find(record.key)->kernel == "k x");
  CHECK(second.find(record.key)->milliseconds == 0.25);
  CHECK_FALSE(second.find(std::string(64, 'b')));

  // A line that another process has not finished, then one that is damaged.
  std::string text = read_text(file);
  write_text(file, text + to_line(record).substr(0, 100));
  TuneRecord newer = record;
  newer.config = {9}, newer.time = 2000;
  second.add(newer);
  TuneRecords third(file);
  CHECK(third.find(record.key)->config == Config{9});
  CHECK(third.all().size() == 1);
  // An older record does not replace a newer one, unless it was measured just now, by a clock that is behind.
  CHECK(third.import({record}) == 0);
  CHECK(TuneRecords(file).find(record.key)->config == Config{9});
  third.add(record);
  CHECK(TuneRecords(file).find(record.key)->config == record.config);
  CHECK(TuneRecords(file).find(record.key)->time == 2001);

  write_text(file, to_line(newer) + to_line(record));
  CHECK(TuneRecords(file).find(record.key)->config == Config{9});

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      TuneRecords mine(file);
      for (int i = 0; i < 20; ++i) {
        TuneRecord another = record;
        another.key = fmt::format("{:064x}", t * 100 + i);
        mine.add(another);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(TuneRecords(file).all().size() == 81);

  for (const char* line : {"", "x", "a\tb", "\t\t\t\t\t\t\t"}) CHECK_FALSE(record_of(line));
  std::string long_line = to_line(record);
  long_line.pop_back();
  CHECK(record_of(long_line));
  CHECK_FALSE(record_of(long_line + "\tmore"));
  CHECK_FALSE(record_of("A" + long_line.substr(1)));
}

TEST_CASE("One record serves launches of a class", "[jit][tune]") {
  CHECK(tune_class_of(0) == 0);
  for (std::int64_t extent = 1; extent <= 16; ++extent) CHECK(tune_class_of(extent) == extent);
  CHECK(tune_class_of(17) == 18);
  CHECK(tune_class_of(4096) == 4096);
  CHECK(tune_class_of(4097) == 4608);
  CHECK(tune_class_of(4608) == 4608);
  for (std::int64_t extent = 1; extent < 100'000; ++extent) {
    const std::int64_t to = tune_class_of(extent);
    CHECK_FALSE((to < extent || to > extent + extent / 8 + 1 || tune_class_of(to) != to));
  }

  const Device device = Device::cpu();
  const Parameter parameter{.access = Access::in, .type = ElementType::f32, .rank = 2};
  const auto class_of = [&](const Tensor<f32, 2>& x) {
    const Argument argument = x.argument();
    return tune_class(std::span(&parameter, 1), std::span(&argument, 1));
  };
  const auto x = device.tensor<f32>({100, 128});
  CHECK(class_of(x) == class_of(device.tensor<f32>({104, 128})));
  CHECK(class_of(x) != class_of(device.tensor<f32>({105, 128})));
  CHECK(class_of(x) != class_of(device.tensor<f32>({100, 127})));
  CHECK(class_of(x) != class_of(device.tensor<f32>({128, 100}).permuted({1, 0})));
}

TEST_CASE("Arguments that share memory share it in the worker, too", "[jit][tune]") {
  const Device device = Device::cpu();
  const auto whole = device.tensor<f32>({64, 32});
  const auto top = whole.slice(0, 0, 40), bottom = whole.slice(0, 32, 32);
  const auto other = device.tensor<f32>({8});
  const std::vector<Parameter> parameters{{.access = Access::in, .type = ElementType::f32, .rank = 2},
                                          {.access = Access::out, .type = ElementType::f32, .rank = 2},
                                          {.access = Access::out, .type = ElementType::f32, .rank = 1},
                                          {.access = Access::in, .type = ElementType::f32, .rank = 1, .optional = true},
                                          {.access = Access::in_out, .type = ElementType::f32, .rank = 1}};
  const auto updated = device.tensor<f32>({8});
  const std::vector<Argument> arguments{top.argument(), bottom.argument(), other.argument(), Argument(),
                                        updated.argument()};
  TuneJob job;
  job.add_arguments(parameters, arguments);
  REQUIRE(job.blocks.size() == 3);
  REQUIRE(job.arguments.size() == 5);
  const auto& shared = job.blocks[static_cast<std::size_t>(job.arguments[0].block)];
  CHECK(job.arguments[0].block == job.arguments[1].block);
  CHECK(shared.bytes == 64 * 32 * 4);
  CHECK((shared.is_read && shared.is_written));
  CHECK(job.arguments[1].offset == 32 * 32 * 4);
  const auto& written = job.blocks[static_cast<std::size_t>(job.arguments[2].block)];
  CHECK((!written.is_read && written.is_written));
  CHECK(job.arguments[3].block == -1);
  const auto& in_place = job.blocks[static_cast<std::size_t>(job.arguments[4].block)];
  CHECK((in_place.is_read && in_place.is_written));
  const TuneJob again = TuneJob::from(job.bytes());
  CHECK(again.bytes() == job.bytes());
  CHECK(says(error_of([&] { TuneJob::from(std::string_view(job.bytes()).substr(0, 20)); }), {"ends too early"}));
}

TEST_CASE("Candidates of matmuls begin with what choose() takes, each once", "[jit][tune]") {
  for (const Arch arch : {Arch::parse("sm_90a"), Arch::parse("sm_80")})
    for (const ElementType type : {ElementType::bf16, ElementType::f32, ElementType::tf32, ElementType::i8})
      for (const bool nk : {false, true})
        for (const MatmulShape& shape : {MatmulShape{1, 768, 768, nk}, MatmulShape{16, 3072, 768, nk},
                                         MatmulShape{4096, 4096, 4096, nk}, MatmulShape{100, 33, 7, nk}}) {
          const MatmulTarget target = matmul_target(arch);
          const auto candidates = matmul_candidates(MatmulFamily::plain, shape, type, target);
          INFO(shape.m << "x" << shape.n << "x" << shape.k << " " << name(type) << " " << arch.name());
          CHECK(candidates.size() >= 2);
          CHECK(candidates.front() == choose(MatmulFamily::plain, shape, type, target));
          for (const MatmulTiles& tiles : candidates) {
            CHECK(std::ranges::count(candidates, tiles) == 1);
            CHECK((tiles.m > 0 && tiles.n > 0 && tiles.k > 0));
          }
        }
}

TEST_CASE("A worker that is of another version, or no worker, is an error that says so", "[jit][tune]") {
  const auto ask = [](const std::string& bytes) {
    Process worker({TESSERA_BIN_DIR "/tune-worker"}, {.talks = true});
    const std::uint64_t size = bytes.size();
    worker.write(std::as_bytes(std::span(&size, 1)));
    worker.write(bytes);
    worker.close_input();
    const std::string answer = worker.read_answer(20s).value_or("(no answer)");
    CHECK_FALSE(worker.succeeded());
    return answer;
  };
  TuneJob job;
  job.version = "0.0.1", job.device = "cpu";
  CHECK(says(ask(job.bytes()), {"stuck", "of Tessera", "0.0.1"}));
  job.version = version(), job.device = "moon";
  CHECK(says(ask(job.bytes()), {"stuck", "moon"}));
  CHECK(says(ask("not a job"), {"stuck", "ends too early"}));
}

TEST_CASE("A family checks its configurations", "[jit][tune]") {
  const auto twice = [](int width) {
    return kernel("twice", [=](In<f32, 1> x, Out<f32, 1> y) {
      Index n = blocks(cdiv(x.extent(0), width));
      store(y, {n}, load(x, {n}, {width}) * 2.0f);
    });
  };
  CHECK(says(error_of([&] { tunable(twice, {}); }), {"no configuration"}));
  CHECK(says(error_of([&] { tunable(twice, {{16}, {16, 32}}); }), {"takes 1 ints", "has 2"}));

  const Device device = Device::cpu();
  const Tunable family = tunable(twice, {{16}, {64}});
  CHECK(family.configs().size() == 2);
  const auto x = device.tensor<f32>({100}, std::vector<f32>(100, 3.0f)), y = device.tensor<f32>({100});
  launch(device.stream(), family, x, y);
  CHECK(y.to_vector() == std::vector<f32>(100, 6.0f));
  CHECK(family.kernel({64}).name() == "twice");
}

}  // namespace test_tune
