#include "codegen/kernel_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <tuple>

#include "codegen/author/reword.hpp"
#include "codegen/emit/emit.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/prelude/prelude.hpp"
#include "codegen/record_lowering.hpp"

namespace tessera::internal {
namespace {

void reword(LoweringRecord& record, const author::Reworder& author, const author::RewordedText& shown) {
  record.shown_lines = shown.lines;
  for (LoweringRecord::Pass& pass : record.passes) pass.plan = author.prose(pass.plan);
  for (LoweringRecord::Layout& layout : record.layouts) layout.name = author.prose(layout.name);
  for (LoweringRecord::Shared& piece : record.shared) piece.name = author.prose(piece.name);
  for (LoweringRecord::Role& role : record.roles)
    for (LoweringRecord::RoleStep& step : role.steps) {
      step.text = author.prose(step.text);
      step.waits = author.prose(step.waits);
      step.signals = author.prose(step.signals);
    }
}

}  // namespace

KernelSource kernel_source(const codegen::Plan& plan, LoweringRecorder* recorder) {
  KernelSource source = facts_of(plan);
  std::istringstream text(to_string(plan));
  std::string decisions;
  for (std::string line; std::getline(text, line);) fmt::format_to(std::back_inserter(decisions), "// {}\n", line);
  const codegen::StepLines lines = emit_lines(plan), plan_lines = dump_lines(plan);
  const std::string& kernel = lines.text;
  const std::string helpers = prelude_for(kernel);
  const auto joined = [&](std::string_view decisions, std::string_view kernel) {
    return fmt::format("{}\n{}\n{}{}", decisions, helpers, kernel_mark, kernel);
  };
  source.text = joined(decisions, kernel);
  source.plan = plan_lines.text;
  const std::shared_ptr<LoweringRecord> record = recorder ? recorder->finish(plan, plan_lines, lines) : nullptr;
  if (!plan.words.lines.empty()) {
    const author::Reworder author(kernel, source.plan, plan.words);
    const author::RewordedText shown = author.text(kernel);
    source.shown = joined(author.prose(decisions), shown.text);
    source.plan = author.prose(source.plan);
    if (record) reword(*record, author, shown);
  }
  source.record = record;
  source.slow = codegen::slow_tiles(plan.author, plan.remarks);
  return source;
}

KernelSource facts_of(const codegen::Plan& plan) {
  KernelSource source;
  source.author = plan.author;
  source.name = plan.kernel;
  source.remarks = plan.remarks;
  std::ranges::stable_sort(source.remarks, {}, [](const Remark& remark) { return std::tie(remark.file, remark.line); });
  source.parameters = plan.parameters;
  source.index64 = plan.variant.index64;
  source.stamps = plan.stamps;
  for (const codegen::TensorMap& map : plan.tensor_maps) source.tma_tensors.push_back(map.tensor);
  source.threads = plan.threads();
  source.shared_bytes = static_cast<int>(plan.shared_bytes);
  source.workspace_bytes = plan.workspace_bytes;
  source.persistent = plan.persistent();
  source.waits_for_previous = plan.waits_for_previous();
  source.prefetched_before_wait = plan.prefetched_before_wait();
  for (const codegen::Phase& phase : plan.phases) {
    source.split_k = std::max(source.split_k, phase.schedule.split_k);
    source.multicast = std::max(source.multicast, phase.schedule.multicast);
  }
  return source;
}

}  // namespace tessera::internal
