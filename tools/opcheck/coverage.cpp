#include "opcheck/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "opcheck/case.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::opcheck {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view head = R"(# Ops, element types, executors

Made by `opcheck coverage` from `include/tessera/graph/ops.def` and `bench/results/opcheck`.

A number is how many cases `opcheck` has of an op and an element type; where there is none, the op is not of that type.
Each case is a kernel of that op over tensors of its own, compared with what `ops.def` allows, as `tests/reference`
computes it. `scripts/test --all` runs every case by the CPU executor (`opcheck test`) and as generated CUDA C++ in the
emulator (`opcheck test --device emulated`); `scripts/test`, of an op and a type, one of six there and one of twenty-four
here, the first always among them. On a GPU all are run by hand, and the results kept:

    scripts/run opcheck test --device cuda --format json > bench/results/opcheck/h200.json

The element type is that of the operands: of `cast` and `bitcast` what is cast, of `mma` the factors, of `gather`,
`extent` and the like the tensor's elements, of `loop` its count, of `argument` and `result` what a loop carries, of
`branch`, `repeat`, `require` and `check` the condition, of `print` the values.
)";

/// The outcome of the cases of an op and a type on a GPU.
struct Result {
  int cases, failures;
};

class Gpu {
 public:
  explicit Gpu(const fs::path& path) try : name_(path.stem().string()) {
    std::ifstream file(path);
    const json results = json::parse(file);
    for (const json& row : results.at("ops"))
      for (const auto& [type, of_type] : row.at("types").items())
        results_[{row.at("op"), type}] = {of_type.at("cases"), of_type.at("failures")};
  } catch (const json::exception& error) {
    throw Error(fmt::format("{} is not what opcheck test --format json prints: {}", path.string(), error.what()));
  }

  const std::string& name() const { return name_; }

  /// Over all types of an op: `ok`, or those that are not.
  std::string cell(Op op, const std::map<ElementType, int>& cases) const {
    std::string text;
    for (const auto& [type, count] : cases) {
      const auto found = results_.find({std::string(tessera::internal::name(op)), std::string(tessera::internal::name(type))});
      const Result result = found == results_.end() ? Result{0, 0} : found->second;
      if (result.failures > 0)
        text += fmt::format("{} of {} {} fail ", result.failures, result.cases, tessera::internal::name(type));
      if (result.cases < count)
        text += fmt::format("{} of {} {} not run ", count - result.cases, count, tessera::internal::name(type));
    }
    if (text.empty()) return "ok";
    text.pop_back();
    return text;
  }

 private:
  std::string name_;
  std::map<std::pair<std::string, std::string>, Result> results_;
};

std::vector<Gpu> gpus_of(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  return {files.begin(), files.end()};
}

}  // namespace

std::string coverage(const fs::path& results) {
  const std::vector<Gpu> gpus = gpus_of(results);
  std::string page(head), line = "\n| op |", rule = "|---|", total_line;
  const auto column = [&](std::string_view title, std::string_view alignment) {
    line += fmt::format(" {} |", title);
    rule += fmt::format("{}|", alignment);
  };
  for (const ElementType type : all_types()) column(name(type), "--:");
  for (const std::string_view executor : {"CPU", "emulated CUDA"}) column(executor, "---");
  if (gpus.empty()) column("CUDA", "---");
  for (const Gpu& gpu : gpus) column("CUDA, " + gpu.name(), "---");
  page += line + "\n" + rule + "\n";

  int total = 0;
  for (const Op op : all_ops()) {
    std::map<ElementType, int> counts;
    line = fmt::format("| `{}` |", name(op));
    for (const ElementType type : all_types()) {
      const auto count = static_cast<int>(cases_of(op, type, Purpose::test).size());
      if (count) counts[type] = count;
      line += count ? fmt::format(" {} |", count) : "  |";
      total += count;
    }
    line += " every case | every case |";
    if (gpus.empty()) line += " not run |";
    for (const Gpu& gpu : gpus) line += fmt::format(" {} |", gpu.cell(op, counts));
    page += line + "\n";
  }
  return page + fmt::format("\n{} cases in all.\n", total);
}

}  // namespace tessera::internal::opcheck
