// Makes the code of a sequence's launches before they run, on several threads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "jit/compile/compiler.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/sequence.hpp"

namespace tessera::internal {
namespace {

constexpr std::size_t most_compiling_threads = 8;

struct CodeToMake {
  const Executable* executable;
  LaunchCode code;
  std::exception_ptr failure = {};
};

/// Each code that is not made yet, once, in the order of the launches. If that fails already, it is a failure of the
/// code.
std::vector<CodeToMake> codes_of(const Sequence& sequence) {
  const Stream stream = sequence.device().stream();
  std::vector<CodeToMake> codes;
  std::set<const void*> known;
  for (const Sequence::Launch& launch : sequence.launches()) {
    const Executable* const executable = launch.executable.get();
    LaunchCode code{executable, [] {}};
    std::exception_ptr failure;
    try {
      code = executable->code(stream, launch.arguments, launch.grid);
    } catch (...) {
      failure = std::current_exception();
    }
    if (code.id && !code.is_made && known.insert(code.id).second)
      codes.push_back({executable, std::move(code), failure});
  }
  return codes;
}

std::string reason_of(const CodeToMake& code) {
  const std::string& name = code.executable->name();
  std::string reason;
  try {
    std::rethrow_exception(code.failure);
  } catch (const std::bad_alloc&) {
    reason = "there is no host memory left";
  } catch (const std::exception& e) {
    reason = e.what();
  }
  return reason.find(fmt::format("kernel '{}'", name)) != reason.npos ? reason
                                                                      : fmt::format("kernel '{}': {}", name, reason);
}

/// Throws Error if one failed.
void throw_failures(const std::vector<CodeToMake>& codes) {
  std::string first;
  std::vector<std::string> others;
  for (const CodeToMake& code : codes) {
    if (!code.failure) continue;
    if (first.empty())
      first = reason_of(code);
    else if (const std::string& name = code.executable->name(); std::ranges::find(others, name) == others.end())
      others.push_back(name);
  }
  if (first.empty()) return;
  if (others.empty()) throw Error(first);
  throw Error(fmt::format("{} (also failed: kernels '{}')", first, fmt::join(others, "', '")));
}

}  // namespace

void Sequence::warm_up(std::stop_token stop) const {
  std::optional<WaitForCode> waiting;
  if (!stop.stop_possible()) waiting.emplace();  // otherwise it is work in the background
  std::vector<CodeToMake> codes = codes_of(*this);
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t count = std::min({codes.size(), cores, most_compiling_threads});
  AwaitedKernels awaited(device_.shares_host_memory() ? 0 : static_cast<int>(codes.size()));
  std::atomic<std::size_t> next = 0;
  const auto make = [&] {
    for (std::size_t i = 0; !stop.stop_requested() && (i = next++) < codes.size();) {
      try {
        codes[i].code.make();
      } catch (...) {
        codes[i].failure = std::current_exception();
      }
      if (!device_.shares_host_memory()) awaited.made();
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      while (threads.size() + 1 < count) threads.emplace_back(make);
    } catch (const std::system_error&) {  // no thread is left; fewer do the same
    }
    make();
  }
  throw_failures(codes);
}

}  // namespace tessera::internal
