// Records how a kernel is lowered, for the inspector.
#pragma once
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "codegen/analysis/graph_analysis.hpp"
#include "codegen/lowering_record.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal {

/// Records a graph, then the plan after each pass, then what the lines of the texts spell.
class LoweringRecorder {
 public:
  /// For make_plan; it must not outlive the recorder.
  codegen::PlanObserver observer();
  /// The record, with the steps of the complete plan. `plan_lines` and `kernel` spell them.
  std::shared_ptr<LoweringRecord> finish(const codegen::Plan& plan, const codegen::StepLines& plan_lines,
                                         const codegen::StepLines& kernel);

 private:
  void begin(const lowering::GraphAnalysis& analysis);
  void add_nodes(const lowering::GraphAnalysis& analysis);
  void add_steps(const codegen::Plan& plan);
  void add_layouts(const codegen::Plan& plan);
  void add_shared(const codegen::Plan& plan);
  void add_roles(const codegen::Plan& plan);
  int number_of(const codegen::Step* step) const;
  std::vector<int> numbers(const codegen::StepLines& lines) const;

  std::shared_ptr<LoweringRecord> record_;
  std::vector<int> node_numbers_;  // of the graph's nodes in its text
  std::map<const codegen::Step*, int> steps_;
};

}  // namespace tessera::internal
