#include "tensors/tensor_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

template <class T>
void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string key_of(const Value& value) {
  std::string key;
  put(key, value.op), put(key, value.element_op), put(key, value.type), put(key, value.function);
  put(key, value.extents.rank());
  for (std::int64_t extent : std::span<const std::int64_t>(value.extents)) put(key, extent);
  put(key, value.in.size());
  for (int operand : value.in) put(key, operand);
  for (std::int64_t number : value.attr) put(key, number);
  if (value.op == TensorOp::input) put(key, value.strides);
  return key;
}

namespace {

Value value_of(const LazyNode& node) {
  Value value;
  value.op = node.op, value.element_op = node.element_op, value.type = node.type, value.extents = node.extents;
  value.attr = node.attr, value.function = node.function, value.name = node.name, value.location = node.location;
  if (node.op == TensorOp::input) value.strides = node.tensor.place.stride;
  return value;
}

// Operands first; without recursion, as chains may be long.
std::vector<const LazyNode*> topological(const std::vector<LazyRef>& outputs) {
  std::vector<const LazyNode*> order;
  std::unordered_map<const LazyNode*, bool> done;
  std::vector<std::pair<const LazyNode*, std::size_t>> open;
  const auto visit = [&](const LazyNode* node) {
    if (done.emplace(node, false).second) open.emplace_back(node, 0);
  };
  for (const LazyRef& output : outputs) {
    visit(output.get());
    while (!open.empty()) {
      auto& [node, next] = open.back();
      if (next < node->in.size()) {
        const LazyNode* operand = node->in[next++].get();
        visit(operand);
      } else {
        order.push_back(node);
        open.pop_back();
      }
    }
  }
  return order;
}

void finish(TensorProgram& program) {
  program.key.clear();
  for (const Value& value : program.values) put(program.key, key_of(value).size()), program.key += key_of(value);
  for (int output : program.outputs) put(program.key, output);
}

}  // namespace

TensorProgram canonical(const std::vector<LazyRef>& outputs, Given& given, bool merge_inputs,
                        std::span<const LazyRef> first) {
  TensorProgram program;
  std::unordered_map<const LazyNode*, int> number;
  std::unordered_map<std::string, int> known;
  std::map<std::tuple<const void*, ElementType, std::vector<std::int64_t>>, int> tensors;
  std::vector<LazyRef> all(first.begin(), first.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  for (const LazyNode* node : topological(all)) {
    Value value = value_of(*node);
    for (const LazyRef& operand : node->in) value.in.push_back(number.at(operand.get()));
    const int next = static_cast<int>(program.values.size());
    int found = next;
    if (node->op == TensorOp::input) {
      const detail::AnyTensor& tensor = node->tensor;
      std::vector<std::int64_t> shape(tensor.extents().begin(), tensor.extents().end());
      shape.insert(shape.end(), tensor.strides().begin(), tensor.strides().end());
      // Tensors without elements may all have the same address.
      if (merge_inputs && tensor.size() > 0)
        found = tensors.emplace(std::tuple(tensor.place.data, tensor.type, shape), next).first->second;
      if (found == next) program.inputs.push_back(next), given.inputs.push_back(tensor);
    } else if (node->op == TensorOp::scalar) {
      program.scalars.push_back(next), given.scalars.push_back(node->number);
    } else {
      found = known.emplace(key_of(value), next).first->second;
    }
    number[node] = found;
    if (found == next) program.values.push_back(std::move(value));
    if (node->device) {
      if (given.device && !(*given.device == *node->device))
        throw Error("the results of one run are on two devices, " + given.device->name() + " and " +
                    node->device->name() + "; run them one by one");
      given.device = node->device;
    }
  }
  for (const LazyRef& output : outputs) add_output(program, number.at(output.get()));
  finish(program);
  return program;
}

void add_output(TensorProgram& program, int v) {
  const Value& value = program.values[static_cast<std::size_t>(v)];
  const auto& known = program.outputs;
  if (value.op == TensorOp::input || std::find(known.begin(), known.end(), v) != known.end()) {
    Value copy = value;
    copy.op = TensorOp::reshape, copy.name = "copy", copy.in = {v}, copy.strides = {};
    v = static_cast<int>(program.values.size());
    program.values.push_back(std::move(copy));
  }
  program.outputs.push_back(v);
}

std::string value_text(const TensorProgram& program, int v) {
  constexpr std::string_view ops[] = {"input",  "scalar", "literal",   "iota",    "elementwise", "map",
                                      "select", "cast",   "broadcast", "reshape", "permute",     "slice",
                                      "concat", "gather", "reduce",    "scan",    "sort",        "argsort",
                                      "argmax", "matmul", "attention"};
  const Value& value = program.values[static_cast<std::size_t>(v)];
  const bool has_op = value.op == TensorOp::elementwise || value.op == TensorOp::reduce || value.op == TensorOp::scan;
  const std::string_view op = has_op                      ? name(value.element_op)
                              : value.op == TensorOp::map ? value.name
                                                          : ops[static_cast<int>(value.op)];
  std::string text = fmt::format("%{} = {}", v, op);
  for (int operand : value.in) text += fmt::format(" %{}", operand);
  if (value.op == TensorOp::literal)
    text += fmt::format(" {{{}}}", number_text(value.type, value.attr[0]));
  else if (!value.attr.empty())
    text += fmt::format(" {{{}}}", fmt::join(value.attr, ","));
  text += fmt::format(" : {}{}", name(value.type), to_string(value.extents));
  return value.name != op ? text + fmt::format("  {}", value.name) : text;
}

std::string to_string(const TensorProgram& program) {
  std::string text;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const Location& place = program.values[v].location;
    text += fmt::format("{}  {}:{}\n", value_text(program, static_cast<int>(v)), place.file, place.line);
  }
  return text + fmt::format("results %{}\n", fmt::join(program.outputs, " %"));
}

}  // namespace tessera::internal
