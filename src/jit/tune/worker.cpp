// The worker's side of tuning: a process that compiles and runs candidates, so that one that fails or hangs harms
// nobody.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "cpu/convert.hpp"
#include "cpu/parallel.hpp"
#include "jit/tune/archive_graph.hpp"
#include "jit/tune/job.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/executable.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {
namespace {

/// Lines to the process that tunes, by the socket that is stdin. Nothing that kernels print may come between them.
class Answers {
 public:
  Answers() {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  }
  template <class... A>
  void say(fmt::format_string<A...> text, A&&... values) {
    std::string line = fmt::format(text, std::forward<A>(values)...);
    std::ranges::replace(line, '\n', ' ');
    line += '\n';
    const std::lock_guard lock(mutex_);
    for (std::string_view rest = line; !rest.empty();) {
      const ssize_t sent = ::send(STDIN_FILENO, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) std::_Exit(1);  // nobody listens any more
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

 private:
  std::mutex mutex_;
};

/// False at the end of stdin.
bool read_exactly(void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = ::read(STDIN_FILENO, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> read_command() {
  std::string line;
  for (char c; read_exactly(&c, 1);) {
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

std::string reason(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return "there is no host memory left";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "it threw something else than an exception";
  }
}

/// A set of buffers: one for each block that `needs` says.
struct Buffers {
  std::vector<std::shared_ptr<void>> owners;
  std::vector<std::byte*> blocks;

  template <class Needs>
  Buffers(const Device& device, const std::vector<TuneBlock>& of, Needs needs) {
    for (const TuneBlock& block : of) {
      owners.push_back(needs(block) ? device.allocate(block.bytes + 2 * block_alignment) : nullptr);
      const auto address = reinterpret_cast<std::uintptr_t>(owners.back().get());
      const std::uintptr_t aligned = (address + block_alignment - 1) / block_alignment * block_alignment;
      blocks.push_back(static_cast<std::byte*>(owners.back().get()) + (aligned - address) + block.misalignment);
    }
  }
};
bool always(const TuneBlock&) { return true; }
/// Has its contents to be restored before each candidate?
bool is_updated(const TuneBlock& block) { return block.is_read && block.is_written; }

/// The rows of a tensor: its elements along the last axis.
class Rows {
 public:
  Rows(const Parameter& parameter, const Argument& tensor)
      : tensor_(tensor), rank_(static_cast<std::size_t>(parameter.rank)) {
    for (std::size_t axis = 0; axis + 1 < rank_; ++axis) count_ *= tensor.extent[axis];
    if (rank_ > 0) width_ = tensor.extent[rank_ - 1], stride_ = tensor.stride[rank_ - 1];
    if (width_ == 0) count_ = 0;
  }
  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }
  std::int64_t stride() const { return stride_; }
  /// Elements from the tensor's first one to that of a row.
  std::int64_t offset(std::int64_t row) const {
    std::int64_t offset = 0;
    for (std::size_t axis = rank_ < 2 ? 0 : rank_ - 1; axis-- > 0; row /= tensor_.extent[axis])
      offset += row % tensor_.extent[axis] * tensor_.stride[axis];
    return offset;
  }

 private:
  const Argument& tensor_;
  std::size_t rank_;
  std::int64_t count_ = 1, width_ = 1, stride_ = 1;
};

/// The rounding that different orders of sums may explain: of an element, relative to its value, or to the root mean
/// square of its row or of its tensor, whichever is largest.
double tolerance_of(ElementType type) {
  if (info(type).kind != ElementKind::real) return 0;
  switch (info(type).bytes) {
    case 1:
      return 0.15;
    case 2:
      return type == ElementType::f16 ? 1e-2 : 2e-2;
    case 4:
      return 1e-3;  // operands of products may be tf32
    default:
      return 1e-9;
  }
}

/// An element that is wrong.
struct Difference {
  double error = 0, got = 0, expected = 0;
};

/// The comparison of two tensors of one layout, on all cores.
template <class Held>
class Comparison {
 public:
  Comparison(const Parameter& parameter, const Argument& tensor, const std::byte* got, const std::byte* expected,
             double tolerance)
      : type_(parameter.type), rows_(parameter, tensor), got_(got), expected_(expected), tolerance_(tolerance) {}

  /// The worst element; none if all are right.
  std::optional<Difference> run() {
    if (tolerance_ > 0) limit_ = find_limit();
    if (tolerance_ > 0) for_each([](Comparison& self, std::int64_t begin, std::int64_t end) { self.add(begin, end); });
    size_ = count_ > 0 ? std::sqrt(squares_ / count_) : 0;
    for_each([](Comparison& self, std::int64_t begin, std::int64_t end) { self.compare(begin, end); });
    return worst_;
  }

 private:
  template <class Body>
  void for_each(Body) {
    cpu::parallel_for(
        rows_.count(),
        [](void* self, std::int64_t begin, std::int64_t end) { Body()(*static_cast<Comparison*>(self), begin, end); },
        this);
  }

  void read(std::vector<Held>& values, const std::byte* from, std::int64_t row) const {
    values.resize(static_cast<std::size_t>(rows_.width()));
    cpu::from_memory(type_, values.data(), from + rows_.offset(row) * info(type_).bytes, rows_.stride(), rows_.width());
  }

  /// Sum of the squares of the values up to `limit_`, and their number.
  std::pair<double, double> squares(const std::vector<Held>& values) const {
    double sum = 0, count = 0;
    for (const Held value : values)
      if (const double size = std::fabs(static_cast<double>(value)); size <= limit_) sum += size * size, ++count;
    return {sum, count};
  }

  /// A hundred times the median of some values that are not 0: a few large ones, such as the -1e30 of a mask, do not
  /// count.
  double find_limit() const {
    constexpr std::int64_t most = 1024;
    std::vector<Held> row;
    std::vector<double> sizes;
    const std::int64_t rows = std::max<std::int64_t>(rows_.count() / most, 1), step = rows_.width() / most + 1;
    for (std::int64_t r = 0; r < rows_.count(); r += rows) {
      read(row, expected_, r);
      for (std::size_t i = static_cast<std::size_t>(r % step); i < row.size(); i += static_cast<std::size_t>(step))
        if (const double size = std::fabs(static_cast<double>(row[i])); size > 0 && std::isfinite(size))
          sizes.push_back(size);
    }
    if (sizes.empty()) return 0;
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    return std::min(100 * *middle, 1e150);
  }

  void add(std::int64_t begin, std::int64_t end) {
    std::vector<Held> values;
    double sum = 0, count = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      read(values, expected_, row);
      const auto [more, of] = squares(values);
      sum += more, count += of;
    }
    const std::lock_guard lock(mutex_);
    squares_ += sum, count_ += count;
  }

  void compare(std::int64_t begin, std::int64_t end) {
    std::vector<Held> mine, first;
    std::optional<Difference> worst;
    for (std::int64_t row = begin; row < end; ++row) {
      read(mine, got_, row), read(first, expected_, row);
      const auto [sum, count] = tolerance_ > 0 ? squares(first) : std::pair(0.0, 0.0);
      const double size = std::max(size_, count > 0 ? std::sqrt(sum / count) : 0);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (mine[i] == first[i] || (mine[i] != mine[i] && first[i] != first[i])) continue;
        const auto a = static_cast<double>(mine[i]), b = static_cast<double>(first[i]);
        const bool rounds = tolerance_ > 0 && std::isfinite(a) && std::isfinite(b);
        const double error = rounds ? std::fabs(a - b) / std::max(std::fabs(b), size) : HUGE_VAL;
        if (error > tolerance_ && (!worst || error > worst->error)) worst = {error, a, b};
      }
    }
    const std::lock_guard lock(mutex_);
    if (worst && (!worst_ || worst->error > worst_->error)) worst_ = worst;
  }

  ElementType type_;
  Rows rows_;
  const std::byte *got_, *expected_;
  double tolerance_, limit_ = 0;
  std::mutex mutex_;  // guards the rest
  double squares_ = 0, count_ = 0, size_ = 0;
  std::optional<Difference> worst_;
};

/// Why the values of `got` are not those of `expected`; empty if they are.
std::string difference(const Parameter& parameter, const Argument& tensor, const std::byte* got,
                       const std::byte* expected, double tolerance) {
  return with_host(host_type(parameter.type), [&]<class Held>(Held) {
    const auto worst = Comparison<Held>(parameter, tensor, got, expected, tolerance).run();
    return worst ? fmt::format("a result is {} where the first candidate's is {}", worst->got, worst->expected)
                 : std::string();
  });
}

constexpr std::size_t most_sets = 8;

class Worker {
 public:
  Worker(Answers& answers, TuneJob job)
      : answers_(answers),
        job_(std::move(job)),
        device_(Device::parse(job_.device)),
        stream_(device_.stream()),
        executables_(job_.graphs.size()),
        is_compiled_(job_.graphs.size()) {
    for (const std::string& graph : job_.graphs) graphs_.push_back(unarchive(graph));
    sets_.reserve(most_sets);  // threads that compile read the first
    sets_.emplace_back(device_, job_.blocks, always);
  }

  void compile_all() {
    const std::size_t cores = job_.compiles_one_by_one ? 1 : std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 0; i < std::min(cores, graphs_.size()); ++i)
      std::thread([this] {
        for (std::size_t c; !measures_ && (c = next_++) < graphs_.size();) compile(c);
      }).detach();  // one that compiles for minutes is not waited for
  }

  /// Reads the contents of the blocks.
  bool receive() {
    std::vector<std::byte> buffer(std::size_t{16} << 20);
    for (std::size_t b = 0; b < job_.blocks.size(); ++b) {
      const TuneBlock& block = job_.blocks[b];
      for (std::uint64_t at = 0; block.is_read && at < block.bytes; at += buffer.size()) {
        const std::size_t bytes = std::min<std::uint64_t>(buffer.size(), block.bytes - at);
        if (!read_exactly(buffer.data(), bytes)) return false;
        device_.copy_in(sets_[0].blocks[b] + at, buffer.data(), bytes);
      }
      if (!block.is_read) poison_[b].assign(block.bytes, std::byte{block.poison});
    }
    if (std::ranges::any_of(job_.blocks, is_updated)) {
      initial_.emplace(device_, job_.blocks, is_updated);
      copy_updated(*initial_, sets_[0]);
    }
    answers_.say("open");
    return true;
  }

  /// False if the worker should exit.
  bool check(std::size_t c) {
    if (!is_compiled_[c]) return answers_.say("wrong {} it is not compiled", c), true;
    try {
      restore(sets_[0]);
      answers_.say("running {}", c);
      const Event start = stream_.record();
      launch(c, sets_[0]);
      const double ms = stream_.record().milliseconds_since(start);
      device_.synchronize();
      answers_.say("ran {} {:.6g}", c, ms);
      if (const std::string why = compare(c); !why.empty())
        answers_.say("wrong {} {}", c, why);
      else
        answers_.say("checked {}", c);
      return true;
    } catch (...) {
      answers_.say("failed {} {}", c, reason(std::current_exception()));
      return false;
    }
  }

  bool time(std::size_t c, int calls) {
    try {
      measures_ = true;
      add_sets();
      if (initial_)
        for (const Buffers& set : sets_) copy_updated(set, *initial_);
      answers_.say("running {}", c);
      const int sets = static_cast<int>(sets_.size());
      calls = (calls + sets - 1) / sets * sets;
      const auto all = [&] {
        for (int i = 0; i < calls; ++i) launch(c, sets_[static_cast<std::size_t>(i % sets)]);
      };
      double ms = 0;
      if (device_.shares_host_memory()) {
        const Event start = stream_.record();
        all();
        ms = stream_.record().milliseconds_since(start);
      } else {
        auto& [recorded_calls, graph] = graphs_of_calls_[c];
        if (!graph || recorded_calls != calls) graph.emplace(stream_.capture(all)), recorded_calls = calls;
        stream_.launch(*graph);  // loads the code and fills the queue
        const Event start = stream_.record();
        stream_.launch(*graph);
        ms = stream_.record().milliseconds_since(start);
      }
      answers_.say("timed {} {:.6g}", c, ms / calls);
      return true;
    } catch (...) {
      answers_.say("failed {} {}", c, reason(std::current_exception()));
      return false;
    }
  }

  std::size_t candidates() const { return graphs_.size(); }

 private:
  std::vector<Argument> arguments(const Buffers& buffers) const {
    std::vector<Argument> all;
    for (const TuneArgument& argument : job_.arguments) {
      all.push_back(argument.argument);
      if (argument.block >= 0)
        all.back().data = buffers.blocks[static_cast<std::size_t>(argument.block)] + argument.offset;
    }
    return all;
  }

  void compile(std::size_t c) {
    try {
      auto executable = std::make_shared<const Executable>(graphs_[c]);
      const std::vector<Argument> all = arguments(sets_[0]);
      executable->code(stream_, all, executable->prepare(all)).make();
      executables_[c] = std::move(executable);
      is_compiled_[c] = true;
      answers_.say("compiled {}", c);
    } catch (...) {
      answers_.say("refused {} {}", c, reason(std::current_exception()));
    }
  }

  void launch(std::size_t c, const Buffers& buffers) { executables_[c]->launch(stream_, arguments(buffers)); }

  void copy_updated(const Buffers& to, const Buffers& from) {
    for (std::size_t b = 0; b < job_.blocks.size(); ++b)
      if (is_updated(job_.blocks[b])) stream_.copy(to.blocks[b], from.blocks[b], job_.blocks[b].bytes);
    stream_.synchronize();
  }

  /// The memory as before the first launch.
  void restore(const Buffers& buffers) {
    if (initial_) copy_updated(buffers, *initial_);
    for (std::size_t b = 0; b < job_.blocks.size(); ++b)
      if (!job_.blocks[b].is_read) device_.copy_in(buffers.blocks[b], poison_[b].data(), job_.blocks[b].bytes);
  }

  /// Launches rotate over sets of buffers, so that none finds its data in the L2 cache.
  void add_sets() {
    std::uint64_t bytes = 0;
    for (const TuneBlock& block : job_.blocks) bytes += block.bytes;
    if (has_all_sets_ || bytes == 0) return;
    has_all_sets_ = true;
    const std::uint64_t wanted = std::min<std::uint64_t>(2 * device_.info().l2_bytes / bytes + 1, most_sets);
    try {
      while (sets_.size() < wanted) {
        Buffers set(device_, job_.blocks, always);
        for (std::size_t b = 0; b < job_.blocks.size(); ++b)
          stream_.copy(set.blocks[b], (is_updated(job_.blocks[b]) ? *initial_ : sets_[0]).blocks[b],
                       job_.blocks[b].bytes);
        sets_.push_back(std::move(set));
      }
    } catch (const OutOfMemory&) {  // fewer sets do
    }
    stream_.synchronize();
  }

  /// Keeps the results of the first candidate; says what is wrong with those of the others.
  std::string compare(std::size_t c) {
    std::vector<std::vector<std::byte>> results(job_.blocks.size());
    for (std::size_t b = 0; b < job_.blocks.size(); ++b) {
      if (!job_.blocks[b].is_written) continue;
      results[b].resize(job_.blocks[b].bytes);
      device_.copy_out(results[b].data(), sets_[0].blocks[b], results[b].size());
    }
    if (expected_.empty()) return expected_ = std::move(results), "";
    if (results == expected_) return "";
    if (job_.equal_bits) return "its results have other bits than the first candidate's";
    const std::vector<Parameter>& parameters = graphs_[c].parameters;
    for (std::size_t i = 0; i < job_.arguments.size(); ++i) {
      const TuneArgument& argument = job_.arguments[i];
      if (argument.block < 0 || parameters[i].access == Access::in || parameters[i].access == Access::scalar) continue;
      const auto b = static_cast<std::size_t>(argument.block);
      const double tolerance = info(parameters[i].type).kind != ElementKind::real ? 0
                               : job_.tolerance > 0                               ? job_.tolerance
                                                                                  : tolerance_of(parameters[i].type);
      const std::string why = difference(parameters[i], argument.argument, results[b].data() + argument.offset,
                                         expected_[b].data() + argument.offset, tolerance);
      if (!why.empty()) return fmt::format("argument {}: {}", argument_name(parameters, i), why);
    }
    return "";
  }

  Answers& answers_;
  TuneJob job_;
  Device device_;
  Stream stream_;
  std::vector<Graph> graphs_;
  std::vector<Buffers> sets_;
  std::optional<Buffers> initial_;  // contents of the blocks that are updated
  bool has_all_sets_ = false;
  std::map<std::size_t, std::vector<std::byte>> poison_;  // contents of results before a candidate is checked
  std::vector<std::shared_ptr<const Executable>> executables_;
  std::vector<std::atomic<bool>> is_compiled_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> measures_ = false;  // nothing is compiled then
  std::vector<std::vector<std::byte>> expected_;
  std::map<std::size_t, std::pair<int, std::optional<CapturedGraph>>> graphs_of_calls_;
};

int work(Answers& answers) {
  std::uint64_t size = 0;
  if (!read_exactly(&size, sizeof size)) return 1;
  std::string bytes(size, '\0');
  if (!read_exactly(bytes.data(), bytes.size())) return 1;
  TuneJob job = TuneJob::from(bytes);
  if (job.version != version())
    throw Error(
        fmt::format("the tuning worker is of Tessera {}, and the program is linked with Tessera {}; set "
                    "TESSERA_TUNE_WORKER to that version's worker",
                    version(), job.version));
  Worker& worker = *new Worker(answers, std::move(job));  // never destroyed: threads may still compile
  worker.compile_all();
  if (!worker.receive()) return 1;
  while (const std::optional<std::string> line = read_command()) {
    std::istringstream words(*line);
    std::string command;
    std::size_t candidate = 0;
    int calls = 1;
    words >> command >> candidate >> calls;
    if (candidate >= worker.candidates()) return 1;
    if (!(command == "check" ? worker.check(candidate) : worker.time(candidate, std::max(calls, 1)))) return 1;
  }
  return 0;
}

}  // namespace

int run_tune_worker() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a kernel may hang when the process that tunes is killed
  ::unsetenv("TESSERA_DUMP");          // of all candidates
  ::unsetenv("TESSERA_PROFILE");       // its file is that of the process that tunes
  ::setenv("TESSERA_LOG", "off", 1);   // warnings of slow candidates
  Answers answers;
  int status = 1;
  try {
    status = work(answers);
  } catch (...) {
    answers.say("stuck {}", reason(std::current_exception()));
  }
  std::_Exit(status);  // the device may not work any more
}

}  // namespace tessera::internal
