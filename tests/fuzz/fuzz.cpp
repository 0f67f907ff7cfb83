// Checks random programs: fuzz 1000 1 runs those of the seeds 1 to 1000
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include "common/program.hpp"
#include "fuzz/isolated.hpp"
#include "fuzz/program.hpp"
#include "fuzz/trial.hpp"
#include "tessera/graph/error.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "fuzz/emulated.hpp"
#endif

using namespace tessera::internal;
using namespace tessera::internal::fuzz;

namespace {

struct Settings {
  std::optional<std::uint64_t> count, seed, seed_only;
  std::string device = "cpu", keep = TESSERA_SOURCE_DIR "/tests/fuzz/corpus";
  bool print = false;

  bool emulated() const { return device == "emulated"; }
};

Settings parse(CommandLine& line) {
  Settings settings;
  line.option("count", settings.count, "COUNT", "How many programs");
  line.option("seed", settings.seed, "SEED", "The seed of the first; the others follow");
  line.option("--device", settings.device, "DEVICE",
              "cpu, emulated, cuda or cuda:N, beside the CPU and the reference [cpu]");
  line.option("--keep", settings.keep, "DIR",
              "Where programs that fail are kept, made small;\nnone: they are only named [tests/fuzz/corpus]");
  line.option("--seed-only", settings.seed_only, "N", "Only the program of this seed");
  line.flag("--print", settings.print, "Prints the programs and runs none");
  line.parse();
  if (settings.seed_only) {
    if (settings.count || settings.seed) throw Error("--seed-only takes the place of COUNT and SEED");
    settings.count = 1, settings.seed = settings.seed_only;
  }
  if (!settings.count || !settings.seed) throw Error("give COUNT and SEED, as in: fuzz 1000 1");
#ifndef TESSERA_HAS_EMULATOR
  if (settings.emulated()) throw Error("--device emulated: this program was built without Boost.Context");
#endif
  return settings;
}

/// In a child process: checks the programs, and prints "start I", "ok I" or "bad I" with kind and text, and "alive" in
/// between.
void check_all(const Settings& settings, std::span<const Program> programs,
               const std::function<void(std::string_view)>& say) {
  std::vector<std::unique_ptr<Trial>> trials(programs.size());
  std::vector<bool> done(programs.size());
  const auto judge = [&](std::size_t i, const std::optional<Failure>& failure) {
    if (done[i]) return;
    done[i] = true;
    if (!failure) return say(fmt::format("ok {}", i));
    say(fmt::format("bad {}\t{}\t{}", i, printable(failure->kind), printable(failure->text)));
  };
  const bool beside_cpu = settings.device != "cpu" && !settings.emulated();
  const std::optional<Device> device = beside_cpu ? std::optional(Device::parse(settings.device)) : std::nullopt;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    say(fmt::format("start {}", i));
    try {
      trials[i] = std::make_unique<Trial>(trace(programs[i]), programs[i].given, programs[i].seed,
                                         [&] { say("alive"); });
    } catch (const std::exception& error) {
      judge(i, Failure{"tracing or reference", error.what()});
      continue;
    }
    std::optional<Failure> failure = trials[i]->check_on(Device::cpu());
    if (!failure) failure = trials[i]->check_without_passes();
    if (!failure && device) failure = trials[i]->check_on(*device);
    if (failure || !settings.emulated()) judge(i, failure), trials[i].reset();
  }
#ifdef TESSERA_HAS_EMULATOR
  if (!settings.emulated()) return;
  say("emulate");
  const auto failures = check_emulated(trials);
  for (std::size_t i = 0; i < programs.size(); ++i) judge(i, failures[i]);
#endif
}

/// The error of each program, by its index.
std::map<std::size_t, Failure> failures_of(const Settings& settings, std::span<const Program> programs) {
  std::map<std::size_t, Failure> failures;
  std::vector<bool> done(programs.size());
  const std::chrono::seconds silence(settings.emulated() ? 120 : 20);
  for (;;) {
    std::vector<Program> left;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < programs.size(); ++i)
      if (!done[i]) left.push_back(programs[i]), places.push_back(i);
    if (left.empty()) return failures;
    std::size_t current = left.size();  // none: all of them are in progress
    const std::string end = isolated([&](const auto& say) { check_all(settings, left, say); }, silence,
                                     [&](std::string_view line) {
      const auto number = [&](std::size_t skip) {
        return static_cast<std::size_t>(std::atoll(std::string(line.substr(skip)).c_str()));
      };
      if (line.starts_with("start ")) current = number(6);
      if (line.starts_with("emulate")) current = left.size();
      if (line.starts_with("ok ")) done[places[number(3)]] = true;
      if (!line.starts_with("bad ")) return;
      const std::size_t tab = line.find('\t'), second = line.find('\t', tab + 1);
      done[places[number(4)]] = true;
      failures[places[number(4)]] = {std::string(line.substr(tab + 1, second - tab - 1)),
                                     std::string(line.substr(second + 1))};
    });
    if (end.empty()) continue;
    if (left.size() == 1 || current < left.size()) {
      const std::size_t i = places[std::min(current, left.size() - 1)];
      done[i] = true;
      failures[i] = {end, ""};
      continue;
    }
    // The failure happened while all of them were emulated: retry them one by one.
    for (const std::size_t i : places) {
      if (done[i]) continue;
      done[i] = true;
      for (auto& [place, failure] : failures_of(settings, programs.subspan(i, 1))) failures[i] = failure;
    }
  }
}

std::string line_of(const Failure& failure) {
  return failure.text.empty() ? failure.kind : fmt::format("{}: {}", failure.kind, failure.text);
}

/// Throws Error if there is no such device. The check runs in a child process, since drivers start threads.
void require_device(const Settings& settings) {
  if (settings.emulated()) return;
  std::string refusal;
  const auto ask = [&](const auto& say) {
    try {
      Device::parse(settings.device);
    } catch (const Error& error) {
      say(error.what());
    }
  };
  isolated(ask, std::chrono::seconds(60), [&](std::string_view line) { refusal = line; });
  if (!refusal.empty()) throw Error(fmt::format("--device {}: {}", settings.device, refusal));
}

/// Prints and saves a failing program, after shrinking it.
void report(const Settings& settings, const Program& program, const Failure& failure) {
  note(fmt::format("fuzz: seed {}: {}", program.seed, line_of(failure)));
  if (settings.keep == "none") return;
  const Stopwatch watch;
  const double limit_ms = settings.emulated() ? 120'000 : 30'000;
  const Program small = shrink(
      program,
      [&](const Program& candidate) {
    const auto failures = failures_of(settings, std::span(&candidate, 1));
    return !failures.empty() && failures.begin()->second.kind == failure.kind;
      },
      [&] { return watch.milliseconds() < limit_ms; });
  const auto left = failures_of(settings, std::span(&small, 1));
  const std::string source = print_test(small, line_of(left.empty() ? failure : left.begin()->second));
  print(source + "\n");
  const std::filesystem::path file = std::filesystem::path(settings.keep) / fmt::format("seed_{}.cpp", program.seed);
  std::filesystem::create_directories(settings.keep);
  std::ofstream stream(file);
  stream << source;
  if (!stream.flush()) throw Error(fmt::format("cannot write {}", file.native()));
}

int fuzz_all(CommandLine& line) {
  const Settings settings = parse(line);
  if (settings.print) {
    for (std::uint64_t i = 0; i < *settings.count; ++i)
      print(print_test(generate(*settings.seed + i), fmt::format("Seed {}.", *settings.seed + i)) + "\n");
    return 0;
  }
  require_device(settings);
  const std::uint64_t batch = settings.emulated() ? 16 : 50;
  std::uint64_t mismatches = 0;
  Stopwatch since_line;
  struct Batch {
    std::vector<Program> programs;
    std::map<std::size_t, Failure> failures;
  };
  const auto check = [&](std::uint64_t first) {
    Batch result;
    for (std::uint64_t i = first; i < std::min(first + batch, *settings.count); ++i)
      result.programs.push_back(generate(*settings.seed + i));
    result.failures = failures_of(settings, result.programs);
    return result;
  };
  const std::uint64_t at_once = settings.emulated() ? 2 : 1;  // the emulator uses one core, other devices all cores
  for (std::uint64_t first = 0; first < *settings.count; first += at_once * batch) {
    std::vector<std::future<Batch>> batches;
    for (std::uint64_t i = 0; i < at_once; ++i)
      batches.push_back(std::async(std::launch::async, check, first + i * batch));
    for (std::future<Batch>& future : batches) {
      const Batch done = future.get();
      for (const auto& [i, failure] : done.failures) {
        ++mismatches;
        report(settings, done.programs[i], failure);
      }
    }
    if (since_line.milliseconds() < 5000) continue;
    since_line = {};
    note(fmt::format("fuzz: {} of {} programs, {} mismatches", std::min(first + at_once * batch, *settings.count),
                     *settings.count, mismatches));
  }
  print(fmt::format("{} programs, {} mismatches\n", *settings.count, mismatches));
  return mismatches ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("TESSERA_LOG", "off", 0);  // random programs have slow tiles and odd hints, which need no warning
  int status = 0;
  const int usage =
      run_program(argc, argv, "fuzz", "Random programs, checked on several executors against a reference.",
                  [&](CommandLine& line) { status = fuzz_all(line); });
  return usage ? usage : status;
}
