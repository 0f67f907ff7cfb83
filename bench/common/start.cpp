#include "common/start.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "common/child.hpp"
#include "common/growing.hpp"
#include "common/kernels.hpp"
#include "common/median.hpp"
#include "common/program.hpp"
#include "jit/compile/compiler.hpp"

namespace tessera::internal::bench {

using nlohmann::json;

json compile_times(Arch gpu) {
  Options options = tessera::internal::options();
  options.cache_dir = "off";
  const auto compile = [&](const NamedKernel& kernel) {
    const Graph graph = kernel.graph();
    return Compiler(options)
        .compile(generate(graph, kernel.variant(graph), gpu, generate_options()), gpu)
        .entry->code.report;
  };
  compile(named_kernels().front());  // NVRTC's one-time work in a process
  json times = json::array();
  for (const NamedKernel& kernel : named_kernels()) {
    if (!kernel.is_of(gpu)) continue;
    std::vector<double> ms;
    CompileReport report;
    for (int i = 0; i < 3; ++i) ms.push_back((report = compile(kernel)).compile_ms);
    times.push_back({{"name", kernel.name},
                     {"ms", median(ms)},
                     {"registers", report.registers},
                     {"shared_bytes", report.shared_bytes}});
  }
  return times;
}

json plan_times(Arch gpu, bool small) {
  const auto plan = [&](const Graph& graph, const Variant& variant) {
    const Stopwatch watch;
    codegen::make_plan(graph, variant, gpu, {.verify = false});
    return watch.milliseconds();
  };
  json times{{"model", json::array()}, {"growing", json::array()}};
  for (const NamedKernel& kernel : named_kernels()) {
    if (!kernel.is_of(gpu)) continue;
    const Graph graph = kernel.graph();
    const Variant variant = kernel.variant(graph);
    std::vector<double> ms;
    for (int i = 0; i < 5; ++i) ms.push_back(plan(graph, variant));
    times["model"].push_back({{"name", kernel.name}, {"ms", median(ms)}});
  }
  for (const Growing& kernel : growing_kernels()) {
    const Graph graph = run_passes(kernel.traced(small ? std::max(1, kernel.size / 20) : kernel.size));
    times["growing"].push_back({{"name", kernel.name}, {"ms", plan(graph, dense_variant(graph))}});
  }
  return times;
}

json first_text(const std::string& device_name, bool small) {
  const Stopwatch opening;
  const Device device = Device::parse(device_name);
  device.stream().synchronize();
  const double device_ms = opening.milliseconds();
  const auto text = [&] {
    const Stopwatch watch;
    const FirstUse first{.batch = 1, .lengths = {16, 1}};
    const Model model(device, preset(small ? "nano" : "gpt2"), 0, Compute::f32, first);
    Session session(model, 1, 32);
    std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (int i = 0; i < 2; ++i) {
      session.append({&tokens, 1});
      tokens = session.sample(Sampling());
    }
    return watch.milliseconds();
  };
  const double first_ms = text();
  return {{"device_ms", device_ms}, {"first_ms", first_ms}, {"second_ms", text()}};
}

json process_starts(const std::vector<std::string>& command) {
  std::string folder = (std::filesystem::temp_directory_path() / "tessera-start-XXXXXX").string();
  if (!::mkdtemp(folder.data())) throw Error(fmt::format("no folder for a cache can be made as {}", folder));
  struct Remove {
    std::string folder;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } const remove{folder};

  std::vector<std::string> argv{"env", "TESSERA_CACHE_DIR=" + folder};
  argv.insert(argv.end(), command.begin(), command.end());
  const auto start = [&] { return json::parse(Child(argv).read_line()); };
  const json cold = start();
  std::vector<json> warm;
  for (int i = 0; i < 5; ++i) warm.push_back(start());
  json medians;
  for (const auto& [key, value] : cold.items()) {
    std::vector<double> times;
    for (const json& one : warm) times.push_back(one.at(key).get<double>());
    medians[key] = median(times);
  }
  return {{"cold", cold}, {"warm", medians}};
}

}  // namespace tessera::internal::bench
