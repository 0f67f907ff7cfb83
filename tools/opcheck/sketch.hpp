// Builds graphs of a few nodes, for any element types.
#pragma once
#include <functional>
#include <initializer_list>
#include <span>

#include "opcheck/case.hpp"
#include "tessera/graph/builder.hpp"

namespace tessera::internal::opcheck {

/// The type in which a value is stored in a tensor: its own, or one to which it is cast without loss.
ElementType stored_as(ElementType type);

Field input(ElementType type, std::vector<std::int64_t> extents, Layout layout = Layout::dense, Values values = {});
Field output(ElementType type, std::vector<std::int64_t> extents, Layout layout = Layout::dense);
/// An InOut.
Field update(ElementType type, std::vector<std::int64_t> extents, Layout layout = Layout::dense, Values values = {});
Field given(ElementType type, double value);
Field given(ElementType type, Values values);

/// The tensors as one list, and their number.
std::vector<Field> list(std::vector<Field> tensors);

/// Operands of a memory op: the given ones, then the tile's index along each axis.
std::vector<Id> access(std::vector<Id> first, std::span<const Id> at);

/// A kernel over `fields`, parameter by parameter.
class Sketch {
 public:
  explicit Sketch(std::vector<Field> fields, Location location = Location::current());

  Id apply(Op op, ElementType type, std::vector<Id> in, std::vector<std::int64_t> attr = {}, const Shape& shape = {});
  /// The same for an op whose result has the type of its first operand.
  Id apply(Op op, std::vector<Id> in, std::vector<std::int64_t> attr = {}, const Shape& shape = {});
  Id cast(Id x, ElementType type);
  Id constant(ElementType type, double value, const Shape& shape = {});
  Id index(std::int64_t value) { return constant(ElementType::i32, static_cast<double>(value)); }
  Id zeros(ElementType type, const Shape& shape) { return constant(type, 0, shape); }
  Id scalar(int parameter);
  Id tensor(int parameter);

  /// Gives the kernel a grid of these extents; returns the CTA's index along each axis.
  std::vector<Id> grid(std::initializer_list<std::int64_t> extents) { return grid(std::vector(extents)); }
  std::vector<Id> grid(const std::vector<std::int64_t>& extents);
  /// One CTA for each tile of the tensor; returns the tile's index along each axis.
  std::vector<Id> tiles(int parameter, const Shape& tile);
  /// Index 0 along each of so many axes.
  std::vector<Id> origin(int rank) { return std::vector<Id>(static_cast<std::size_t>(rank), index(0)); }

  /// For a view: loads it as stored.
  Id load(Id view, const std::vector<Id>& at, const Shape& tile, double padding = 0);
  /// For a view and a tile of indices for each of its axes.
  Id gather_elements(std::vector<Id> in, double padding = 0);
  /// `at` has an index for every axis but the first, along which `rows` selects the rows.
  Id gather(Id view, Id rows, std::span<const Id> at, const Shape& tile, double padding = 0);
  void store(Id view, const std::vector<Id>& at, Id tile);
  /// For a parameter: a value of `type`, cast if stored_as() differs.
  Id load(int parameter, ElementType type, const std::vector<Id>& at, const Shape& tile);
  void store(int parameter, const std::vector<Id>& at, Id tile);

  /// The values after `count` iterations of `step`, which takes the counter and the previous values.
  using Step = std::function<std::vector<Id>(Id counter, const std::vector<Id>& carried)>;
  std::vector<Id> loop(Id count, const std::vector<Id>& initial, const Step& step);
  Id loop(Id count, Id initial, const std::function<Id(Id counter, Id carried)>& step);
  /// The values after a branch, where the condition holds, or a repeat, whose `step` returns its values followed by
  /// whether it continues.
  using Round = std::function<std::vector<Id>(const std::vector<Id>& carried)>;
  std::vector<Id> branch(Id condition, const std::vector<Id>& initial, const Round& step);
  std::vector<Id> repeat(Id condition, const std::vector<Id>& initial, const Round& step);
  /// The stores of `body`, where the condition holds.
  void branch(Id condition, const std::function<void()>& body);

  /// Rejects the launch if the condition does not hold.
  std::int64_t function(const CustomFunction& function) { return builder_.add_function(function, location_); }
  void require(Id condition) { apply(Op::require, ElementType::pred, {condition}, {builder_.add_text("it holds")}); }
  /// Fails the launch if it does not hold when the kernel runs.
  void check(Id condition) { apply(Op::check, ElementType::pred, {condition}, {builder_.add_text("it holds")}); }
  /// For any number of values.
  void print(const std::vector<Id>& values) {
    std::string text = "values:";
    for (std::size_t i = 0; i < values.size(); ++i) text += " {}";
    apply(Op::print, ElementType::i32, values, {builder_.add_text(std::move(text))});
  }

  Case finish(Op op, ElementType type, std::string name);

 private:
  std::vector<Id> region(Op owner, Id first, const std::vector<Id>& initial, const Step& step);

  std::vector<Field> fields_;
  Location location_;
  GraphBuilder builder_;
};

}  // namespace tessera::internal::opcheck
