#include "codegen/plan/verify/open_matmuls.hpp"

#include <algorithm>
#include <utility>

namespace tessera::internal::codegen {

void OpenMatmuls::fence() {
  fenced_ = true;
  unfenced_.clear();
}

void OpenMatmuls::start(const Wgmma& s, const Role& role) {
  const Value& out = plan_.values[s.out];
  const int groups = role.warps / 4;
  diagnostics_.require(role.warps % 4 == 0 && s.m % (64 * std::max(groups, 1)) == 0, "{} rows for {} warps", s.m,
                       role.warps);
  if (role.warps % 4) return;
  diagnostics_.require(fenced_, "no fence precedes it");
  diagnostics_.require(out.layout == wgmma_accumulator_layout({s.m, s.n}, groups),
                       "{} has layout {}, the instruction {}", name_of(plan_, s.out), to_string(out.layout),
                       to_string(wgmma_accumulator_layout({s.m, s.n}, groups)));
  diagnostics_.require(plan_.storage(s.out).storage_class == StorageClass::registers, "{} is not in registers",
                       name_of(plan_, s.out));
  diagnostics_.require(s.n % 8 == 0 && s.n <= 256 && s.k % wgmma_depth(s.type) == 0,
                       "no wgmma instruction has shape [{},{}] by {}", 64, s.n, s.k);
  if (s.left)
    left(s, groups);
  else
    operand(plan_.buffers[s.a], s.a_state, s.m, s.a_k_major, s);
  operand(plan_.buffers[s.b], s.b_state, s.n, s.b_k_major, s);
  ++open_;
  next_.sums.insert(storage(s.out));
  if (s.left) next_.left.insert(storage(s.left));
  for (const PipelineStateId state : {s.left ? PipelineStateId{} : s.a_state, s.b_state})
    if (state) next_.first_stage.emplace(state, stages_[state]);
  const Buffer& b = plan_.buffers[s.b];
  Part& part = of_stage_[storage(s.out)];
  diagnostics_.require(s.first_k == part.multiplied, "k is multiplied from {} on, but so far only up to {}", s.first_k,
                       part.multiplied);
  part = {.multiplied = s.first_k + s.k, .whole = s.b_k_major ? b.columns : b.rows};
}

void OpenMatmuls::left(const Wgmma& s, int groups) const {
  const Value& value = plan_.values[s.left];
  const std::string name = name_of(plan_, s.left);
  const bool pairs = info(s.type).bytes == 2;
  diagnostics_.require(plan_.storage(s.left).pairs == pairs && plan_.storage(s.left).type == s.type &&
                           plan_.storage(s.left).storage_class == StorageClass::registers,
                       "{} is not {} of {}", name, pairs ? "pairs" : "registers", tessera::internal::name(s.type));
  diagnostics_.require(value.shape == Shape{s.m, s.k} &&
                           value.layout == wgmma_operand_layout({s.m, s.k}, groups, s.type) &&
                           value.origin[1] == s.first_k,
                       "{} is {} {} from {}, but [{},{}] from {} is multiplied", name, to_string(value.shape),
                       to_string(value.layout), value.origin[1], s.m, s.k, s.first_k);
  diagnostics_.require(!unfenced_.contains(storage(s.left)), "no fence separates it from the definition of {}", name);
}

void OpenMatmuls::operand(const Buffer& buffer, PipelineStateId state, int other, bool k_major, const Wgmma& s) const {
  const std::string name = name_of(buffer.label);
  const int along_k = k_major ? buffer.columns : buffer.rows;
  diagnostics_.require((k_major ? buffer.rows : buffer.columns) == other && s.first_k % wgmma_depth(s.type) == 0 &&
                           s.first_k + s.k <= along_k,
                       "{} is [{},{}], but the operand is {} by k from {} to {}", name, buffer.rows, buffer.columns,
                       other, s.first_k, s.first_k + s.k);
  diagnostics_.require(buffer.form == SharedForm::panels && buffer.type == s.type && !buffer.in_workspace,
                       "{} is not stored as wgmma reads {}", name, tessera::internal::name(s.type));
  diagnostics_.require(k_major || info(s.type).bytes == 2, "{}: wgmma reads {} only k-major", name,
                       tessera::internal::name(s.type));
  diagnostics_.require(buffer.stages == 1 || state, "{} has {} stages", name, buffer.stages);
}

void OpenMatmuls::commit() {
  diagnostics_.require(open_ > 0, "there is no wgmma to commit");
  if (open_ == 0) return;
  groups_.push_back(std::exchange(next_, {}));
  open_ = 0;
}

void OpenMatmuls::wait(int pending) {
  diagnostics_.require(open_ == 0, "wgmma are not committed");
  while (static_cast<int>(groups_.size()) > pending) groups_.pop_front();
  fenced_ = false;
}

void OpenMatmuls::begin_stage(PipelineStateId state) { ++stages_[state]; }

void OpenMatmuls::end_stage() {
  for (const auto& [sums, part] : of_stage_)
    diagnostics_.require(part.multiplied == part.whole, "only {} of {} along k are multiplied", part.multiplied,
                         part.whole);
  of_stage_.clear();
}

bool OpenMatmuls::read_until(PipelineStateId state, int before) const {
  const auto found = stages_.find(state);
  const int last = (found == stages_.end() ? 0 : found->second) - before;
  const auto reads = [&](const Group& group) {
    const auto first = group.first_stage.find(state);
    return first != group.first_stage.end() && first->second <= last;
  };
  return reads(next_) || std::ranges::any_of(groups_, reads);
}

void OpenMatmuls::use(ValueId value) const {
  bool is_left = next_.left.contains(storage(value)), is_result = next_.sums.contains(storage(value));
  for (const Group& group : groups_) {
    is_left |= group.left.contains(storage(value));
    is_result |= group.sums.contains(storage(value));
  }
  diagnostics_.require(!is_left, "{} is the left operand of a wgmma in flight", name_of(plan_, value));
  diagnostics_.require(!is_result, "{} is the accumulator of a wgmma in flight", name_of(plan_, value));
}

void OpenMatmuls::make(ValueId value) {
  use(value);
  unfenced_.insert(storage(value));
}

}  // namespace tessera::internal::codegen
