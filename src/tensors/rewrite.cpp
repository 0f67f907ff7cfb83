#include "tensors/rewrite.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace tessera::internal {
namespace {

// A program that is made from another one, value by value.
class Rewriter {
 public:
  explicit Rewriter(const TensorProgram& program) : program_(program) {}

  /// `make` returns the value in the new program that stands for an old one, whose operands are new already.
  TensorProgram run(const auto& make) {
    for (const Value& old : program_.values) {
      Value value = old;
      for (int& operand : value.in) operand = moved_[static_cast<std::size_t>(operand)];
      moved_.push_back(make(std::move(value)));
    }
    for (int input : program_.inputs) made_.inputs.push_back(moved_[static_cast<std::size_t>(input)]);
    for (int scalar : program_.scalars) made_.scalars.push_back(moved_[static_cast<std::size_t>(scalar)]);
    for (int output : program_.outputs) add_output(made_, moved_[static_cast<std::size_t>(output)]);
    made_.key = program_.key;
    return std::move(made_);
  }
  const Value& value(int v) const { return made_.values[static_cast<std::size_t>(v)]; }
  int size() const { return static_cast<int>(made_.values.size()); }
  int append(Value value) {
    const int next = size();
    if (value.op != TensorOp::input && value.op != TensorOp::scalar)
      if (const auto [found, is_new] = known_.emplace(key_of(value), next); !is_new) return found->second;
    made_.values.push_back(std::move(value));
    return next;
  }

 private:
  const TensorProgram& program_;
  TensorProgram made_;
  std::vector<int> moved_;
  std::unordered_map<std::string, int> known_;
};

class Simplifier {
 public:
  explicit Simplifier(const TensorProgram& program) : rewriter_(program) {
    uses_.resize(program.values.size());
    for (const Value& value : program.values)
      for (int operand : value.in) ++uses_[key(operand)];
    for (int output : program.outputs) uses_[key(output)] += 2;  // it is needed as it is
  }
  TensorProgram run() {
    return rewriter_.run([this](Value value) {
      const bool has_users = uses_[next_++] > 1;
      const int before = rewriter_.size(), made = make(std::move(value));
      shared_.resize(key(rewriter_.size()));
      if (has_users || made < before) shared_[key(made)] = true;
      return made;
    });
  }

 private:
  static std::size_t key(int v) { return static_cast<std::size_t>(v); }
  const Value& value(int v) const { return rewriter_.value(v); }
  bool is_shared(int v) const { return key(v) < shared_.size() && shared_[key(v)]; }

  int make(Value x) {
    if (x.op == TensorOp::reshape) return reshape(std::move(x));
    const std::vector<std::size_t> operands = operands_of(x);
    const bool is_permute = x.op == TensorOp::permute;
    if ((operands.size() != 1 && !is_permute) || depth_ >= most) return rewriter_.append(std::move(x));
    ++depth_;
    const std::size_t position = is_permute ? 0 : operands[0];
    const TensorOp op = value(x.in[position]).op;
    const int made = op == TensorOp::concat                   ? behind_concat(std::move(x), position)
                     : op == TensorOp::reshape && !is_permute ? behind_reshape(std::move(x), position)
                                                              : rewriter_.append(std::move(x));
    --depth_;
    return made;
  }
  // The positions of the operands that are not numbers, of an op on elements whose operands all have its extents or,
  // if they are inputs, are broadcast to them; else none.
  std::vector<std::size_t> operands_of(const Value& x) const {
    std::vector<std::size_t> found;
    if (x.op != TensorOp::cast && x.op != TensorOp::elementwise && x.op != TensorOp::map && x.op != TensorOp::select)
      return {};
    for (std::size_t i = 0; i < x.in.size(); ++i) {
      const Value& operand = value(x.in[i]);
      if (operand.is_number()) continue;
      if (operand.extents != x.extents && operand.op != TensorOp::input) return {};
      found.push_back(i);
    }
    return found;
  }
  // Is it computed from inputs, element by element, for one user? (A cast may be repeated for each.)
  bool rests_on_inputs(int v) const {
    std::unordered_map<int, bool> known;
    const auto rests = [&](const auto& self, int v, int depth) -> bool {
      const Value& x = value(v);
      if (x.op == TensorOp::input) return true;
      if (depth >= most) return false;
      if (const auto found = known.find(v); found != known.end()) return found->second;
      const std::vector<std::size_t> operands =
          x.op == TensorOp::reshape ? std::vector<std::size_t>{0} : operands_of(x);
      const bool repeats = x.op == TensorOp::cast || x.op == TensorOp::reshape;
      return known[v] = !operands.empty() && (repeats || !is_shared(v)) &&
                        std::all_of(operands.begin(), operands.end(),
                                    [&](std::size_t i) { return self(self, x.in[i], depth + 1); });
    };
    return rests(rests, v, 0);
  }
  int reshape(Value x) {
    const std::span<const std::int64_t> extents = x.extents;
    std::pair<int, std::vector<std::int64_t>> key{x.in[0], {extents.begin(), extents.end()}};
    if (const auto known = reshaped_.find(key); known != reshaped_.end()) return known->second;
    const int made = reshape_once(std::move(x));
    reshaped_.emplace(std::move(key), made);
    return made;
  }
  int reshape_once(Value x) {
    while (value(x.in[0]).op == TensorOp::reshape) x.in = value(x.in[0]).in;
    const Value inner = value(x.in[0]);
    const std::vector<std::size_t> operands = operands_of(inner);
    if (operands.empty() || !rests_on_inputs(x.in[0])) return rewriter_.append(std::move(x));
    std::vector<Value> of_operands;
    for (const std::size_t i : operands) {
      const auto extents = reshaped_operand(value(inner.in[i]).extents, inner.extents, x.extents);
      if (!extents) return rewriter_.append(std::move(x));
      Value& of_operand = of_operands.emplace_back(x);
      of_operand.in = {inner.in[i]}, of_operand.type = value(inner.in[i]).type, of_operand.extents = *extents;
    }
    Value moved = inner;
    moved.extents = x.extents;
    for (std::size_t i = 0; i < operands.size(); ++i) moved.in[operands[i]] = reshape(std::move(of_operands[i]));
    return rewriter_.append(std::move(moved));
  }
  // The extents of an operand that is broadcast to `from`, where that is reshaped; nothing if no extents are right.
  static std::optional<Extents> reshaped_operand(const Extents& operand, const Extents& from, const Extents& to) {
    if (from.size() == 0) return std::nullopt;
    Extents made = Extents::of_rank(to.rank());
    for (int axis = 0; axis < to.rank(); ++axis) made[axis] = 1;
    const int shift = from.rank() - operand.rank();
    int of_from = 0, of_to = 0;
    while (of_from < from.rank() && of_to < to.rank()) {  // groups of axes that have as many elements in both
      std::int64_t left = from[of_from], right = to[of_to];
      int from_end = of_from + 1, to_end = of_to + 1;
      while (left != right) {
        if (left < right)
          left *= from[from_end++];
        else
          right *= to[to_end++];
      }
      bool has_all = true, has_one = true;
      for (int axis = of_from; axis < from_end; ++axis) {
        const std::int64_t extent = axis < shift ? 1 : operand[axis - shift];
        has_all &= extent == from[axis], has_one &= extent == 1;
      }
      if (!has_all && !has_one) return std::nullopt;
      for (int axis = of_to; has_all && axis < to_end; ++axis) made[axis] = to[axis];
      of_from = from_end, of_to = to_end;
    }
    return made;
  }
  // An op on the elements of a reshaped value: it is computed where the value is.
  int behind_reshape(Value x, std::size_t position) {
    const int from = x.in[position];
    Value outer = value(from);
    const int source = outer.in[0];
    const bool widens = info(x.type).bytes > info(outer.type).bytes;  // the narrower values are stored then
    if (is_shared(from) || is_shared(source) || widens || x.extents != outer.extents || rests_on_inputs(source))
      return rewriter_.append(std::move(x));
    outer.type = x.type;
    x.extents = value(source).extents, x.in[position] = source;
    outer.in = {make(std::move(x))};
    return rewriter_.append(std::move(outer));
  }
  int behind_concat(Value x, std::size_t position) {
    const int from = x.in[position];
    const Value whole = value(from);
    const bool widens = info(x.type).bytes > info(whole.type).bytes;  // the narrower values are stored then
    if (whole.op != TensorOp::concat || is_shared(from) || widens) return rewriter_.append(std::move(x));
    Value joined = whole;
    joined.type = x.type, joined.extents = x.extents;
    joined.name = x.name, joined.location = x.location;
    if (x.op == TensorOp::permute)
      joined.attr[0] = std::find(x.attr.begin(), x.attr.end(), whole.attr[0]) - x.attr.begin();
    for (int& part : joined.in) {
      Value moved = x;
      moved.extents[joined.axis()] = value(part).extents[whole.axis()];
      moved.in[position] = part;
      part = make(std::move(moved));
    }
    return rewriter_.append(std::move(joined));
  }

  Rewriter rewriter_;
  std::vector<int> uses_;     // of each old value
  std::size_t next_ = 0;      // the old value to come
  std::vector<bool> shared_;  // new values that have several users
  std::map<std::pair<int, std::vector<std::int64_t>>, int> reshaped_;
  static constexpr int most = 64;
  int depth_ = 0;  // of calls of make(), at most `most`
};

// The elements that each partial reduction should have; 0: all, in one reduction.
std::int64_t chunk_of(const Value& reduce, const Value& operand, int multiprocessors) {
  const int axis = reduce.axis(), rank = operand.extents.rank();
  const std::int64_t n = operand.extents[axis], results = reduce.extents.size();
  const bool is_row = axis == rank - 1;
  // CTAs have one row, or 32 columns, of elements that registers hold.
  const std::int64_t ctas = is_row ? results : (results + 31) / 32, least = is_row ? 4096 : 64;
  const std::int64_t most = is_row ? 16384 : 512;
  if (results == 0 || n < 4 * least || ctas >= multiprocessors) return 0;
  const std::int64_t parts = std::max(std::min(2 * multiprocessors / ctas, n / least), (n + most - 1) / most);
  return parts < 2 ? 0 : (n + parts - 1) / parts;
}

}  // namespace

TensorProgram simplified(const TensorProgram& program) { return Simplifier(program).run(); }

TensorProgram split_reductions(const TensorProgram& program, int multiprocessors) {
  Rewriter rewriter(program);
  return rewriter.run([&](Value value) {
    if (value.op == TensorOp::reduce) {
      while (const std::int64_t chunk = chunk_of(value, rewriter.value(value.in[0]), multiprocessors)) {
        const Value& operand = rewriter.value(value.in[0]);
        Value partial = value;
        partial.extents[value.axis()] = (operand.extents[value.axis()] + chunk - 1) / chunk;
        partial.attr[1] = chunk;
        partial.type = computing_type(value.type);
        value.in = {rewriter.append(std::move(partial))};
      }
    }
    return rewriter.append(std::move(value));
  });
}

}  // namespace tessera::internal
