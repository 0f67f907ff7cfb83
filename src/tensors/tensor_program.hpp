// A tensor program in canonical form: the values that some results depend on, operands first, each once.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/tensors/lazy_node.hpp"

namespace tessera::internal {

/// A node without its tensors and numbers; operands are numbers of values.
struct Value {
  TensorOp op{};
  Op element_op{};
  ElementType type{};
  Extents extents;
  std::vector<int> in;
  std::vector<std::int64_t> attr;
  MapFunction function = nullptr;
  std::array<std::int64_t, max_rank> strides{};  ///< of an input
  std::string_view name;
  Location location;

  int axis() const { return static_cast<int>(attr[0]); }
  bool is_number() const { return op == TensorOp::scalar || op == TensorOp::literal; }
};

struct TensorProgram {
  std::vector<Value> values;
  std::vector<int> outputs;
  std::vector<int> inputs, scalars;  ///< their values, in the order in which a run gives them
  std::string key;                   ///< programs with equal keys compute the same of their inputs and scalars
};

/// The tensors and numbers that a run gives a program.
struct Given {
  std::vector<detail::AnyTensor> inputs;
  std::vector<Cell> scalars;
  std::optional<Device> device;
};

/// The program of the outputs, and what it is given. Inputs over the same memory are one, unless `merge_inputs` is
/// false: then each node is one, in the order of `first`, and then of use.
TensorProgram canonical(const std::vector<LazyRef>& outputs, Given& given, bool merge_inputs = true,
                        std::span<const LazyRef> first = {});
/// The op, its operands and attributes: equal for values that are equal, unless they are inputs or scalars. Names and
/// places are not part of it.
std::string key_of(const Value& value);
/// Makes a value a result, in memory of its own: of an input, or of what is a result already, it is a copy.
void add_output(TensorProgram& program, int value);
/// A value as a line: "%5 = add %3 %4 : f32[4,8]".
std::string value_text(const TensorProgram& program, int value);
std::string to_string(const TensorProgram& program);
}  // namespace tessera::internal
