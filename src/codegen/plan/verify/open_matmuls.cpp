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
  diagnostics_.require(!is_fp8(s.type) || s.m == 64 * groups, "{} rows of fp8 for {} warp groups", s.m, groups);
  // Shared memory has rows in their natural order.
  RowOrder order = RowOrder::natural;
  for (const RowOrder other : row_orders)
    if (s.left && out.layout == wgmma_accumulator_layout({s.m, s.n}, groups, other)) order = other;
  const Layout of_instruction = wgmma_accumulator_layout({s.m, s.n}, groups, order);
  diagnostics_.require(out.layout == of_instruction, "{} has layout {}, the instruction {}", name_of(plan_, s.out),
                       to_string(out.layout), to_string(of_instruction));
  diagnostics_.require(plan_.storage(s.out).storage_class == StorageClass::registers, "{} is not in registers",
                       name_of(plan_, s.out));
  diagnostics_.require(s.n % 8 == 0 && s.n <= 256 && s.k % wgmma_depth(s.type) == 0,
                       "no wgmma instruction has shape [{},{}] by {}", 64, s.n, s.k);
  if (s.left)
    left(s, groups, order);
  else
    operand(plan_.buffers[s.a], s.a_state, 0, s.m, s.a_k_major, s);
  operand(plan_.buffers[s.b], s.b_state, out.origin[1], s.n, s.b_k_major, s);
  ++open_;
  next_.sums.insert(storage(s.out));
  if (s.left) next_.left.insert(storage(s.left));
  for (const PipelineStateId state : {s.left ? PipelineStateId{} : s.a_state, s.b_state})
    if (state) next_.first_stage.emplace(state, stages_[state]);
  multiplied(s);
}

void OpenMatmuls::multiplied(const Wgmma& s) {
  const Buffer& b = plan_.buffers[s.b];
  const bool promotes = is_fp8(s.type);
  diagnostics_.require(promotes == static_cast<bool>(s.accumulators), "{} of {} {} promoted", name_of(plan_, s.out),
                       tessera::internal::name(s.type), promotes ? "are not" : "are");
  if (promotes != static_cast<bool>(s.accumulators)) return;
  Columns* const columns = promotes ? &columns_[{storage(s.accumulators), plan_.values[s.out].origin[1]}] : nullptr;
  Part& part = promotes ? columns->part : of_stage_[storage(s.out)];
  diagnostics_.require(s.first_k == part.multiplied, "k is multiplied from {} on, but so far only up to {}", s.first_k,
                       part.multiplied);
  part = {.multiplied = s.first_k + s.k, .whole = s.b_k_major ? b.columns : b.rows};
  if (!promotes) return;
  columns->count = s.n;
  columns->right = s.b;
  diagnostics_.require(s.overwrites && s.k <= most_fp8_products, "it adds up more than {} products of fp8",
                       most_fp8_products);
  Sums& open = sums_[storage(s.out)];
  diagnostics_.require(!open.value, "it overwrites sums that are not promoted");
  open = {s.out, storage(s.accumulators)};
}

void OpenMatmuls::declare(const DeclareAccumulator& declared) {
  if (declared.zeroed) sums_[storage(declared.value)] = {};
}

void OpenMatmuls::promote(const PromoteSums& s) {
  const Value &sums = plan_.values[s.sums], &all = plan_.values[s.accumulators];
  const std::string name = name_of(plan_, s.sums);
  const auto found = sums_.find(storage(s.sums));
  diagnostics_.require(found != sums_.end(), "{} are promoted already", name);
  if (found == sums_.end()) return;
  const Sums open = found->second;
  sums_.erase(found);
  diagnostics_.require(!open.value || open.value == s.sums, "{} are sums of other columns", name);
  diagnostics_.require(!open.value || open.accumulators == storage(s.accumulators), "{} are sums of another matmul",
                       name);
  diagnostics_.require(sums.shape[0] == all.shape[0] && sums.origin[1] + sums.shape[1] <= all.shape[1] &&
                           sums.layout.cover(0) == all.layout.cover(0),
                       "{} are not columns of {}", name, name_of(plan_, s.accumulators));
}

void OpenMatmuls::left(const Wgmma& s, int groups, RowOrder order) const {
  const Value& value = plan_.values[s.left];
  const std::string name = name_of(plan_, s.left);
  const int packed = 4 / info(s.type).bytes;
  diagnostics_.require(plan_.storage(s.left).packed == packed && plan_.storage(s.left).type == s.type &&
                           plan_.storage(s.left).storage_class == StorageClass::registers,
                       "{} does not hold {} {} in each register", name, packed, tessera::internal::name(s.type));
  diagnostics_.require(value.shape == Shape{s.m, s.k} &&
                           value.layout == wgmma_operand_layout({s.m, s.k}, groups, s.type, order) &&
                           value.origin[1] == s.first_k,
                       "{} is {} {} from {}, but [{},{}] from {} is multiplied", name, to_string(value.shape),
                       to_string(value.layout), value.origin[1], s.m, s.k, s.first_k);
  diagnostics_.require(!unfenced_.contains(storage(s.left)), "no fence separates it from the definition of {}", name);
}

void OpenMatmuls::operand(const Buffer& buffer, PipelineStateId state, int first, int other, bool k_major,
                          const Wgmma& s) const {
  const std::string name = name_of(buffer.label);
  const int along_k = k_major ? buffer.columns : buffer.rows, across = k_major ? buffer.rows : buffer.columns;
  constexpr int swizzled_rows = 8;
  const bool is_part = is_fp8(s.type) && first % swizzled_rows == 0 && first + other <= across;
  diagnostics_.require((is_part || (first == 0 && across == other)) && s.first_k % wgmma_depth(s.type) == 0 &&
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
  std::map<StorageId, int> multiplied;  // columns
  for (const auto& [at, columns] : columns_) {
    int& before = multiplied[at.first];
    const auto& [along_k, all_of_k] = columns.part;
    const int all = plan_.buffers[columns.right].rows;
    diagnostics_.require(at.second == before && along_k == all_of_k,
                         "only {} of {} along k, and columns up to {}, are multiplied", along_k, all_of_k, before);
    before += columns.count;
    const auto next = columns_.find({at.first, before});
    diagnostics_.require(before == all || next != columns_.end(), "only {} of {} columns are multiplied", before, all);
  }
  of_stage_.clear();
  columns_.clear();
}

void OpenMatmuls::end_tile() {
  for (const auto& [storage, sums] : sums_) diagnostics_.require(!sums.value, "sums of fp8 products are not promoted");
  sums_.clear();
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
  is_free(value);
  for (const auto& [set, sums] : sums_)
    diagnostics_.require(!sums.value || sums.accumulators != storage(value),
                         "{} is used before all sums are promoted to it", name_of(plan_, value));
}

void OpenMatmuls::is_free(ValueId value) const {
  bool is_left = next_.left.contains(storage(value)), is_result = next_.sums.contains(storage(value));
  for (const Group& group : groups_) {
    is_left |= group.left.contains(storage(value));
    is_result |= group.sums.contains(storage(value));
  }
  diagnostics_.require(!is_left, "{} is the left operand of a wgmma in flight", name_of(plan_, value));
  diagnostics_.require(!is_result, "{} is the accumulator of a wgmma in flight", name_of(plan_, value));
}

void OpenMatmuls::make(ValueId value) {
  is_free(value);
  unfenced_.insert(storage(value));
}

}  // namespace tessera::internal::codegen
