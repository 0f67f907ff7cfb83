#include "fuzz/trial.hpp"

#include <fmt/format.h>

#include "cpu/program.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/jit/executable.hpp"

namespace tessera::internal::fuzz {
namespace {

/// An error's text without numbers, which differ from program to program.
std::string kind_of(const std::string& text) {
  std::string kind;
  for (const char c : text.substr(0, 90))
    if (c < '0' || c > '9') kind += c;
  return kind;
}

}  // namespace

Trial::Trial(Graph graph, std::span<const Given> given, std::uint64_t seed, const std::function<void()>& after_block)
    : graph_(std::move(graph)), seed_(seed), memory_(graph_.parameters, given, seed) {
  const std::vector<Argument> arguments = memory_.arguments();
  refused_ = memory_.overlaps();
  if (refused_) return;
  try {
    grid_ = reference::grid(graph_, arguments);
    expected_ = reference::run(graph_, arguments, grid_, after_block);
  } catch (const Error&) {  // a requirement does not hold
    refused_ = true;
  }
}

std::optional<Failure> Trial::check(const std::string& executor, const Launch& launch) const {
  Memory memory = memory_;
  try {
    if (auto failure = launch(memory)) return failure;
    if (refused_) return Failure{executor + ": not refused", "a launch that must be refused was not"};
  } catch (const std::exception& error) {
    const bool meant = refused_ && dynamic_cast<const Error*>(&error);
    if (!meant) return Failure{executor + ": " + kind_of(error.what()), error.what()};
    if (memory.buffers() != memory_.buffers())
      return Failure{executor + ": refused too late", "a launch was refused after something had been written"};
    return {};
  }
  if (std::string stray = memory.stray_write(memory_); !stray.empty())
    return Failure{executor + ": stray write", std::move(stray)};
  std::string difference = reference::difference(graph_, memory.arguments(), expected_);
  if (!difference.empty()) return Failure{executor + ": values", std::move(difference)};
  return {};
}

std::optional<Failure> Trial::check_on(const Device& device) const {
  return check(device.info().arch ? "cuda" : "cpu", [&](Memory& memory) -> std::optional<Failure> {
    const Executable executable(graph_);
    if (device.shares_host_memory()) {
      executable.launch(device.stream(), memory.arguments());
      return {};
    }
    std::vector<std::shared_ptr<void>> copies;
    std::vector<std::byte*> bases;
    const auto each_part = [&](const auto& copy) {
      for (std::size_t i = 0; i < bases.size(); ++i)
        for (const auto& [first, end] : memory.buffers()[i].parts())
          copy(bases[i] + first, &memory.buffers()[i][first], end - first);
    };
    for (const Buffer& buffer : memory.buffers()) {
      copies.push_back(device.allocate(buffer.size()));
      bases.push_back(static_cast<std::byte*>(copies.back().get()));
    }
    each_part([&](std::byte* there, std::byte* here, std::size_t bytes) { device.copy_in(there, here, bytes); });
    const auto copy_out = [&] {
      each_part([&](std::byte* there, std::byte* here, std::size_t bytes) { device.copy_out(here, there, bytes); });
    };
    try {
      executable.launch(device.stream(), memory.arguments(bases));
    } catch (const Error&) {
      copy_out();  // nothing may have been written to it
      throw;
    }
    copy_out();
    return {};
  });
}

std::optional<Failure> Trial::check_without_passes() const {
  if (refused_) return {};
  return check("cpu without passes", [&](Memory& memory) -> std::optional<Failure> {
    cpu::Program(graph_).run(memory.arguments(), grid_);
    return {};
  });
}

}  // namespace tessera::internal::fuzz
