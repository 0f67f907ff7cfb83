// Which configurations are tried, which are compared how often, and which one wins.
#include "tessera/jit/tune.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <map>
#include <mutex>
#include <set>

#include "codegen/target/variant.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/options/log.hpp"
#include "jit/tune/archive_graph.hpp"
#include "jit/tune/candidates.hpp"
#include "jit/tune/circumstances.hpp"
#include "jit/tune/records.hpp"
#include "jit/tune/worker_process.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = TuneTrial::Outcome;
using std::chrono::milliseconds;

/// As Device::parse takes it.
std::string text_of(const Device& device) {
  if (const std::optional<int> ordinal = device.info().ordinal) return fmt::format("cuda:{}", *ordinal);
  return device == Device::cpu() ? "cpu" : "emulated";
}

}  // namespace

TuneMode tune_mode() {
  return options().tune == "off" ? TuneMode::off : options().tune == "search" ? TuneMode::search : TuneMode::use;
}

std::string_view name(TuneTrial::Outcome outcome) {
  switch (outcome) {
    case Outcome::measured:
      return "measured";
    case Outcome::skipped:
      return "skipped";
    case Outcome::refused:
      return "refused";
    case Outcome::wrong:
      return "wrong";
    case Outcome::failed:
      return "failed";
    case Outcome::hung:
      break;
  }
  return "hung";
}

namespace {

/// A scalar may be a number of iterations, or a seed, which should not have a class of its own: its size counts.
std::int64_t scalar_class(std::int64_t value) {
  constexpr std::int64_t most = 1 << 20;
  return value < 0 ? -1 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(std::min(value, most))));
}

}  // namespace

std::vector<std::int64_t> tune_class(std::span<const Parameter> parameters, std::span<const Argument> arguments) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (parameter.access == Access::scalar) {
      if (info(parameter.type).kind == ElementKind::integer)
        numbers.push_back(scalar_class(encode(parameter.type, arguments[i].scalar)));
      continue;
    }
    const TensorClass tensor = classify(parameter, arguments[i]);
    std::size_t same = 0;  // the first tensor in the same memory: a launch may be in place
    while (arguments[same].data != arguments[i].data) ++same;
    if (same < i && arguments[i].data) numbers.push_back(static_cast<std::int64_t>(same));
    numbers.insert(numbers.end(), {arguments[i].data != nullptr, tensor.contiguous_axis, tensor.alignment,
                                   tensor.row_alignment, tensor.tma_addressable});
    for (int axis = 0; axis < parameter.rank; ++axis)
      numbers.push_back(tune_class_of(arguments[i].extent[static_cast<std::size_t>(axis)]));
  }
  return numbers;
}

namespace {

std::string shapes_text(std::span<const Parameter> parameters, std::span<const Argument> arguments) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (parameter.access == Access::scalar || !arguments[i].data) continue;
    std::vector<std::int64_t> extents;
    for (int axis = 0; axis < parameter.rank; ++axis)
      extents.push_back(tune_class_of(arguments[i].extent[static_cast<std::size_t>(axis)]));
    texts.push_back(fmt::format("{}[{}]", name(parameter.type), fmt::join(extents, ",")));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

/// The first configuration in lexicographic order has the graph by which the kernel is known: whatever the default is.
std::string key_of(const TuneRequest& request, const Executable& known_by, bool equal_bits) {
  const std::vector<Parameter>& parameters = known_by.traced().parameters;
  const std::string text =
      fmt::format("tune 1\n{}\n{}\n{}\n{}\n{}", request.kernel, to_string(known_by.traced()),
                  fmt::join(tune_class(parameters, request.arguments), " "), equal_bits,
                  tune_circumstances(tune_machine(request.device), request.device.info().arch.has_value()));
  return hex(sha256(text));
}

std::shared_ptr<const Executable> identity(const TuneRequest& request) {
  std::vector<std::size_t> order(request.configs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return request.configs[i]; });
  std::string first;
  for (const std::size_t i : order) try {
      return request.make(i);
    } catch (const std::exception& error) {
      if (first.empty()) first = fmt::format("({}): {}", fmt::join(request.configs[i], ","), error.what());
    }
  throw Error(fmt::format("tune: no configuration of kernel '{}' can be traced; {}", request.kernel, first));
}

void check(const TuneOptions& how) {
  if (how.budget.count() < 0 || how.most < 1 || !(how.tolerance >= 0) || std::isinf(how.tolerance))
    throw Error(
        fmt::format("tune: a budget of {} ms, {} configurations at most, and a tolerance of {}; none may be negative, "
                    "and one configuration is tried at least",
                    how.budget.count(), how.most, how.tolerance));
}

void check(const TuneRequest& request) {
  if (request.configs.empty())
    throw Error(fmt::format("tune: kernel '{}' has no configuration; list one at least", request.kernel));
  for (const Config& config : request.configs)
    if (config.size() != request.configs[0].size())
      throw Error(fmt::format("tune: configurations of kernel '{}' have {} and {} values; list as many for each",
                              request.kernel, request.configs[0].size(), config.size()));
}

/// Tunes one kernel: owns the worker, and starts another one when it has ended.
class Tuning {
 public:
  Tuning(const TuneRequest& request, const TuneOptions& how)
      : request_(request), how_(how), trials_(request.configs.size()), samples_(trials_.size()) {
    for (std::size_t i = 0; i < trials_.size(); ++i) trials_[i].config = request.configs[i];
  }

  std::vector<TuneTrial> run() {
    trace();
    start();
    compile();
    check_results();
    halve();
    return std::move(trials_);
  }
  std::size_t winner() const { return winner_; }
  /// Have most of the candidates been measured?
  bool is_representative() const { return 2 * is_right_.size() >= graphs_.size() || trials_.size() == 1; }

 private:
  milliseconds left() const {
    constexpr double share = 0.92;  // the rest ends the worker, and what it is doing
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(begin_ + share * budget_ - Clock::now()));
  }
  bool is_open(std::size_t i) const { return trials_[i].outcome == Outcome::measured; }
  void close(std::size_t i, Outcome outcome, std::string why) {
    trials_[i].outcome = outcome, trials_[i].why = std::move(why);
  }

  void trace() {
    const std::vector<std::size_t> tried = tried_configs(trials_.size(), static_cast<std::size_t>(how_.most));
    for (TuneTrial& trial : trials_) trial.why = fmt::format("beyond the {} that are compiled", how_.most);
    for (const std::size_t i : tried) try {
        const std::shared_ptr<const Executable> executable = request_.make(i);
        if (request_.device.shares_host_memory() && has_host_functions(executable->traced()))
          throw Error("it has functions of the host, which a tuning worker lacks; tune it on a GPU");
        graphs_[i] = archive(executable->traced());
        if (parameters_.empty()) parameters_ = executable->traced().parameters;
        trials_[i].outcome = Outcome::measured, trials_[i].why.clear();
      } catch (const std::exception& error) {
        close(i, Outcome::refused, error.what());
      }
    if (graphs_.empty()) none_runs();
  }

  [[noreturn]] void none_runs() const {
    const auto tried = std::ranges::find_if(trials_, [](const TuneTrial& t) { return t.outcome != Outcome::skipped; });
    const TuneTrial& first = tried == trials_.end() ? trials_.front() : *tried;
    throw Error(fmt::format("tune: no configuration of kernel '{}' runs on {}: ({}) {}: {}", request_.kernel,
                            request_.device.name(), fmt::join(first.config, ","), name(first.outcome), first.why));
  }

  /// Starts a worker for the candidates that are still open.
  void start() {
    job_ = {.version = version(),
            .device = text_of(request_.device),
            .graphs = {},
            .blocks = {},
            .arguments = {},
            .tolerance = how_.tolerance,
            .equal_bits = how_.equal_bits,
            .compiles_one_by_one = compiles_one_by_one_};
    job_.add_arguments(parameters_, request_.arguments);
    order_.clear(), is_compiled_.clear();
    for (const auto& [i, graph] : graphs_)
      if (is_open(i)) job_.graphs.push_back(graph), order_.push_back(i);
    worker_.emplace(job_, request_.device);
    constexpr std::chrono::seconds most(60);
    const auto end = Clock::now() + most;
    while (Clock::now() < end) {
      const auto answer = next(std::chrono::ceil<milliseconds>(end - Clock::now()));
      if (answer && answer->word == "open") return;
      if (!answer && worker_->has_ended()) throw Error(fmt::format("the tuning worker {}", worker_->end()));
    }
    throw Error(fmt::format("the tuning worker was not ready after {} s", most.count()));
  }

  std::optional<TuneWorker::Answer> next(milliseconds patience) {
    auto answer = worker_->answer(patience);
    if (answer && answer->word == "stuck") throw Error(fmt::format("the tuning worker cannot work: {}", answer->why));
    if (answer && answer->candidate >= order_.size())
      throw Error(fmt::format("the tuning worker answers '{} {}', and it has {} candidates", answer->word,
                              answer->candidate, order_.size()));
    if (answer && answer->word == "compiled") is_compiled_.insert(order_.at(answer->candidate));
    if (answer && answer->word == "refused") close(order_.at(answer->candidate), Outcome::refused, answer->why);
    return answer;
  }

  std::size_t pending() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(order_, [&](std::size_t i) { return is_open(i) && !is_compiled_.contains(i); }));
  }

  /// Waits until all candidates are compiled, or half of the budget is spent and one is. If the compiler ends the
  /// worker, the next one compiles a candidate at a time, so that it is known whose fault it is.
  void compile() {
    constexpr double share = 0.55;
    const auto end = begin_ + std::chrono::duration_cast<Clock::duration>(budget_ * share);
    constexpr milliseconds most(600'000);
    while (pending() > 0) {
      const bool may_wait = is_compiled_.empty() || Clock::now() < end;
      const milliseconds patience =
          is_compiled_.empty() ? most
                               : std::chrono::ceil<milliseconds>(std::max(end - Clock::now(), Clock::duration(0)));
      if (!may_wait || !next(patience)) {
        if (!worker_->has_ended()) break;
        const std::string how = worker_->end();
        const auto culprit =
            std::ranges::find_if(order_, [&](std::size_t i) { return is_open(i) && !is_compiled_.contains(i); });
        if (compiles_one_by_one_)
          close(*culprit, Outcome::failed, fmt::format("the worker {} while it was compiled", how));
        compiles_one_by_one_ = true;
        if (std::ranges::none_of(order_, [&](std::size_t i) { return is_open(i); })) none_runs();
        start();
      }
    }
    for (const std::size_t i : order_)
      if (is_open(i) && !is_compiled_.contains(i))
        close(i, Outcome::skipped, "the budget was spent before it was compiled");
    if (is_compiled_.empty()) none_runs();
  }

  /// Sends a command for a candidate and waits for its answer. None: it is out, and the worker has been started again
  /// if that was necessary. The worker prepares memory, runs the candidate, and compares; only running it has a limit.
  template <class Send>
  std::optional<TuneWorker::Answer> ask(std::size_t i, milliseconds limit, Send send) {
    constexpr milliseconds of_the_worker = std::chrono::minutes(10);
    const auto place = static_cast<std::size_t>(std::ranges::find(order_, i) - order_.begin());
    send(place);
    auto deadline = Clock::now() + of_the_worker;
    for (;;) {
      const auto answer = next(std::chrono::ceil<milliseconds>(std::max(deadline - Clock::now(), Clock::duration(0))));
      if (!answer || Clock::now() > deadline) {
        if (worker_->has_ended())
          close(i, Outcome::failed, fmt::format("the worker {}", worker_->end()));
        else
          close(i, Outcome::hung,
                fmt::format("it ran for more than {:.1f} s", static_cast<double>(limit.count()) / 1e3));
        break;
      }
      if (answer->candidate != place || answer->word == "compiled" || answer->word == "refused") continue;
      if (answer->word == "running") {
        deadline = Clock::now() + limit;
      } else if (answer->word == "ran") {
        if (samples_[i].empty()) trials_[i].milliseconds = answer->number;
        deadline = Clock::now() + of_the_worker;
      } else if (answer->word == "wrong") {
        close(i, Outcome::wrong, answer->why);
        return std::nullopt;
      } else if (answer->word == "failed") {
        close(i, Outcome::failed, answer->why);
        break;
      } else {
        return answer;
      }
    }
    restart();
    return std::nullopt;
  }

  /// Goes on with another worker. If that fails, what has been measured counts, and nothing more is.
  void restart() try {
    worker_.reset();
    if (std::ranges::none_of(order_, [&](std::size_t i) { return is_open(i); })) none_runs();
    start();
    // They are in the cache, if there is one. The new worker compares results with those of one that was right before.
    const auto known = std::ranges::find_if(order_, [&](std::size_t i) { return is_open(i) && is_right_.contains(i); });
    const auto end = Clock::now() + std::max(left(), milliseconds(1000));
    const auto is_ready = [&] { return known != order_.end() ? is_compiled_.contains(*known) : pending() == 0; };
    while (!is_ready() && Clock::now() < end && next(std::chrono::ceil<milliseconds>(end - Clock::now()))) {}
    is_reference_known_ = known != order_.end() && is_compiled_.contains(*known);
    if (is_reference_known_) ask(*known, patience(), [&](std::size_t at) { worker_->check(at); });
    is_over_ = !is_right_.empty() && !is_reference_known_;
    const auto until = Clock::now() + std::max(left() / 2, milliseconds(500));
    while (pending() > 0 && Clock::now() < until && next(std::chrono::ceil<milliseconds>(until - Clock::now()))) {}
  } catch (const Error&) {
    if (is_right_.empty()) throw;
    is_over_ = true;
  }

  /// A candidate that takes this long will not win.
  milliseconds patience() const {
    constexpr double times = 20;
    if (!is_reference_known_) return std::max(milliseconds(2000), budget_ / 2);
    return milliseconds(1000 + static_cast<std::int64_t>(times * fastest_));
  }

  void check_results() {
    for (const auto& [i, graph] : graphs_) {
      if (!is_open(i)) continue;
      if (is_over_ || (is_reference_known_ && left().count() == 0) || !is_compiled_.contains(i)) {
        close(i, Outcome::skipped, "the budget was spent");
        continue;
      }
      if (!ask(i, patience(), [&](std::size_t at) { worker_->check(at); })) continue;
      const double ms = trials_[i].milliseconds;
      fastest_ = is_reference_known_ ? std::min(fastest_, ms) : ms;
      is_reference_known_ = true;
      is_right_.insert(i);
    }
    if (is_right_.empty()) none_runs();
  }

  void sample(std::size_t i) {
    constexpr double of_sample = 1.0;  // milliseconds
    constexpr int most_calls = 500;
    if (is_over_ || !is_compiled_.contains(i)) return;
    TuneTrial& trial = trials_[i];
    const int wanted =
        static_cast<int>(std::clamp(of_sample / std::max(trial.milliseconds, 1e-4), 1.0, 1.0 * most_calls));
    int& calls = calls_[i];
    if (calls == 0 || wanted >= 2 * calls) calls = wanted;  // the first estimate is that of a cold launch
    const auto expected = static_cast<std::int64_t>(40 * calls * trial.milliseconds);
    const auto answer = ask(i, patience() + milliseconds(expected), [&](std::size_t at) { worker_->time(at, calls); });
    if (!answer) return;
    std::vector<double>& all = samples_[i];
    all.insert(std::ranges::upper_bound(all, answer->number), answer->number);
    trial.milliseconds = all[all.size() / 2];
    trial.spread = trial.milliseconds > 0 ? (all.back() - all.front()) / trial.milliseconds : 0;
  }

  /// Successive halving: each round samples the half that is fastest so far, in turns, and more often than the last
  /// round did. One that was left out after unlucky samples comes back when those that stayed prove to be slower.
  void halve() {
    struct Round {
      int samples;
      double within;  ///< of the fastest, to be sampled
    };
    constexpr Round rounds[] = {{2, 1e9}, {3, 1.5}, {5, 1.2}, {9, 1.08}, {9, 1.04}, {9, 1.04}};
    std::vector<std::size_t> order;
    for (const auto& [i, graph] : graphs_)
      if (is_open(i)) order.push_back(i);
    if (order.empty()) none_runs();
    warm_up(order[0]);
    std::size_t count = order.size();
    for (const Round& round : rounds) {
      const double limit = round.within * trials_[order[0]].milliseconds;
      std::vector<std::size_t> running;
      for (const std::size_t i : order)
        if (running.size() < count && (samples_[i].empty() || trials_[i].milliseconds <= limit)) running.push_back(i);
      for (int s = 0; s < round.samples; ++s)
        for (const std::size_t i : running)
          if (is_open(i) && (samples_[i].empty() || left().count() > 0)) sample(i);
      std::erase_if(order, [&](std::size_t i) { return !is_open(i); });
      if (order.empty()) none_runs();
      std::ranges::stable_sort(order, {}, [&](std::size_t i) { return trials_[i].milliseconds; });
      fastest_ = trials_[order[0]].milliseconds;
      count = std::max<std::size_t>(3, (count + 1) / 2);
      if (order.size() == 1 || left().count() == 0) break;
    }
    winner_ = order[0];
  }

  /// An idle GPU has a low clock.
  void warm_up(std::size_t i) {
    const auto end = Clock::now() + milliseconds(request_.device.shares_host_memory() ? 0 : 40);
    while (is_open(i) && !is_over_ && Clock::now() < end) sample(i);
    samples_[i].clear();
  }

  const TuneRequest& request_;
  const TuneOptions& how_;
  const milliseconds budget_ = std::min<milliseconds>(how_.budget, std::chrono::hours(24));
  const Clock::time_point begin_ = Clock::now();
  std::vector<TuneTrial> trials_;
  std::vector<std::vector<double>> samples_;   // milliseconds of a launch, ascending
  std::map<std::size_t, std::string> graphs_;  // of the trials that are traced
  std::map<std::size_t, int> calls_;           // of a sample
  std::vector<Parameter> parameters_;
  TuneJob job_;
  std::vector<std::size_t> order_;  // the trials that the worker knows, in its order
  std::set<std::size_t> is_compiled_;
  std::optional<TuneWorker> worker_;
  bool compiles_one_by_one_ = false;
  bool is_over_ = false;             // there is no worker any more
  bool is_reference_known_ = false;  // does the worker have results to compare with?
  std::set<std::size_t> is_right_;   // the trials whose results were right
  std::size_t winner_ = 0;
  double fastest_ = 0;
};

}  // namespace

BestConfig best_config(const TuneRequest& request) {
  check(request);
  const auto place_of = [&](const Config& config) -> std::optional<std::size_t> {
    const auto found = std::ranges::find(request.configs, config);
    if (found == request.configs.end()) return std::nullopt;  // of an earlier list
    return static_cast<std::size_t>(found - request.configs.begin());
  };
  if (tune_mode() == TuneMode::off) return {};
  const std::shared_ptr<const Executable> known_by = identity(request);
  for (const bool equal_bits : {true, false})  // who asked for equal bits gets them
    if (const auto record = TuneRecords::instance().find(key_of(request, *known_by, equal_bits)))
      if (const auto place = place_of(record->config)) return {.place = place};
  if (tune_mode() == TuneMode::use) return {};
  if (is_recording()) return {.is_final = false};  // nothing can be measured now
  try {
    return {.place = place_of(tune(request).best)};
  } catch (const std::exception& error) {
    log_warn(fmt::format("kernel '{}' is not tuned: {}", request.kernel, error.what()));
    return {.has_failed = true};
  }
}

TuneReport tune(const TuneRequest& request, const TuneOptions& how) {
  return tune(request, how, TuneRecords::instance());
}

TuneReport tune(const TuneRequest& request, const TuneOptions& how, TuneRecords& records) {
  refuse_while_recording("a kernel is tuned");
  check(request), check(how);
  const auto begin = Clock::now();
  const std::shared_ptr<const Executable> known_by = identity(request);
  const std::string key = key_of(request, *known_by, how.equal_bits);
  TuneReport report{.kernel = request.kernel,
                    .device = tune_machine(request.device),
                    .shapes = shapes_text(known_by->traced().parameters, request.arguments),
                    .trials = {},
                    .best = {}};
  static std::recursive_mutex one_at_a_time;  // others would disturb the measurement; a kernel may need another one's
  const std::lock_guard lock(one_at_a_time);
  if (!how.again && how.tolerance == 0)
    if (const auto record = records.find(key))
      if (std::ranges::find(request.configs, record->config) != request.configs.end()) {
        report.best = record->config, report.milliseconds = record->milliseconds, report.from_record = true;
        return report;
      }
  Tuning tuning(request, how);
  report.trials = tuning.run();
  const TuneTrial& best = report.trials[tuning.winner()];
  report.best = best.config, report.milliseconds = best.milliseconds;
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!tuning.is_representative()) return report;
  records.add({.key = key,
               .kernel = request.kernel,
               .shapes = report.shapes,
               .device = report.device,
               .config = best.config,
               .milliseconds = best.milliseconds,
               .spread = best.spread,
               .time = std::time(nullptr)});
  return report;
}

std::string TuneReport::text() const {
  if (from_record)
    return fmt::format("{} {} on {}: ({}), {:.4f} ms, from a record\n", kernel, shapes, device, fmt::join(best, ","),
                       milliseconds);
  std::string text = fmt::format("{} {} on {}: ({}), {:.4f} ms, of {} configurations in {:.1f} s\n", kernel, shapes,
                                 device, fmt::join(best, ","), milliseconds, trials.size(), seconds);
  std::vector<const TuneTrial*> order;
  for (const TuneTrial& trial : trials) order.push_back(&trial);
  std::ranges::stable_sort(order, {}, [&](const TuneTrial* t) {
    const int group = t->config == best                 ? 0
                      : t->outcome == Outcome::measured ? 1
                      : t->outcome == Outcome::skipped  ? 3
                                                        : 2;
    return std::pair(group, t->milliseconds);
  });
  for (const TuneTrial* trial : order) {
    const std::string config = fmt::format("({})", fmt::join(trial->config, ","));
    if (trial->outcome == Outcome::measured)
      text += fmt::format("  {:<20} {:9.4f} ms  {:5.2f}  +-{:.1f}%\n", config, trial->milliseconds,
                          milliseconds / trial->milliseconds, 50 * trial->spread);
    else
      text += fmt::format("  {:<20} {}: {}\n", config, name(trial->outcome), trial->why);
  }
  return text;
}

}  // namespace tessera::internal
