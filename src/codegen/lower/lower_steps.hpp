// The basis of lowering: steps are pushed in order, each after the steps of the values that it needs.
#pragma once
#include <unordered_map>

#include "codegen/lower/lower_fuse.hpp"
#include "codegen/lower/lower_values.hpp"

namespace tessera::internal::lowering {

inline int round_up(int a, int b) { return (a + b - 1) / b * b; }

/// A number as an operand.
Operand literal(std::int64_t value);
/// The element of a value for a register of a sweep over `layout`; for a part of a tile, `origin` is where it begins.
Operand element_of(const Plan& plan, ValueId value, const Layout& layout, const Origin& origin = {});
/// Removes a last cast to the type of the memory, where the store rounds in the same way.
void leave_rounding_to_memory(Expression& expression);

class SweepBuilder;

/// The body under construction and the values in it. Nothing here belongs to a step that is not pushed yet.
class Steps {
 public:
  Steps(const GraphAnalysis& analysis, const Fusion& fusion, const Layouts& layouts, const GraphPlace& place,
        Values& values, Plan& plan, Role& role)
      : analysis(analysis),
        fusion(fusion),
        layouts(layouts),
        place(place),
        values(values),
        plan(plan),
        threads(role.threads()),
        body_(&role.body) {}

  const GraphAnalysis& analysis;
  const Fusion& fusion;
  const Layouts& layouts;
  const GraphPlace place;
  Values& values;
  Plan& plan;
  const int threads;

  const Node& node(Id id) const { return analysis[id]; }

  // --- pushing

  /// A step for node `id`, at its location in the source.
  Step step(Id id, Action action) const { return {std::move(action), id, node(id).location}; }
  /// Appends it to the body.
  template <class Kind>
  void push(Id id, Kind action) {
    if constexpr (requires { action.sweep; }) {
      ValueId out;
      TileAccess* access = nullptr;
      if constexpr (requires { action.out; }) out = action.out;
      if constexpr (requires { action.access; }) access = &action.access;
      const Operand* beside = nullptr;
      if constexpr (requires { action.expected; }) beside = action.expected ? &*action.expected : nullptr;
      ValueId other;  // that the step makes or reads in addition
      if constexpr (requires { action.best; }) other = action.best;
      if constexpr (OneOf<Kind, Sort, Merge>) other = action.at;
      settle(action.sweep, out, other, access, beside);
      if constexpr (std::same_as<Kind, StoreShared>) group(action);
      if constexpr (std::same_as<Kind, Store>) settle(action);
    }
    body_->push_back(step(id, std::move(action)));
  }
  /// Runs `inside`; values that it makes are forgotten afterwards.
  template <class Inside>
  void apart(const Inside& inside) {
    const Values::Mark before = values.mark();
    inside();
    values.forget(before);
  }
  /// The same with its steps going to `body`.
  template <class Inside>
  void within(Body& body, const Inside& inside) {
    Body* const outer = std::exchange(body_, &body);
    apart(inside);
    body_ = outer;
  }

  /// One of every `threads` threads runs the steps that `inside` pushes; the step around them is for node `id`.
  template <class Inside>
  void elect(Id id, int threads, const Inside& inside) {
    ElectOne step{.threads = threads, .body = {}};
    within(step.body, inside);
    push(id, std::move(step));
  }

  // --- values, which take steps if they do not exist yet

  ValueId value(Id id);
  /// The node's own step.
  void compute(Id id);
  /// The extent of a tensor; of a tensor of a list by a step.
  void extent(Id id);
  /// A new number, computed by a step of its own.
  ValueId number(Id about, Label label, ElementType type, Expression expression);
  ValueId number(Id about, Label label, ElementType type, Term term) {
    return number(about, std::move(label), type, Expression{{std::move(term)}});
  }
  /// The value in a layout, which is passed by copy: it may be that of a value, and adding a value moves the table.
  ValueId value_in(Id id, Layout layout);
  /// to = from, which has the same layout.
  void copy(Id id, ValueId from, ValueId to);

  // --- places in tensors: lower_memory.cpp

  /// The value of a node of one element, or its number.
  Operand scalar(Id id);
  TileAccess access_of(Id id);
  /// Sets the rows of a gather or a scatter in a sweep. They are along the tile's first axis.
  void set_rows(TileAccess& access, Id rows, const Sweep& sweep);
  /// Sets the element indices along each axis of an access by elements.
  void set_elements(TileAccess& access, Id id, SweepBuilder& sweep);
  ValueId load(Id id);
  void store(Id id);

 private:
  void settle(Sweep& sweep, ValueId out, ValueId other, TileAccess* access, const Operand* beside);
  void group(StoreShared& stage) const;
  void settle(Store& store) const;

  Body* body_;
};

/// A sweep under construction. It owns its terms and reads. Values that its operands need become steps meanwhile, each
/// with a sweep of its own, and these are appended to the body before this sweep's step.
class SweepBuilder {
 public:
  /// Ops whose root is `root` are computed in the sweep.
  SweepBuilder(Steps& steps, const Shape& shape, const Layout& layout, Id root = no_id);
  SweepBuilder(Steps& steps, Sweep sweep, Id root) : SweepBuilder(steps, sweep.shape, sweep.layout, root) {}
  /// Restricts the sweep to `extent` elements from `start` along an axis.
  SweepBuilder& part(int axis, int start, int extent);

  /// All tiles that a part reads are read first, by steps of their own.
  SweepBuilder& reading_first();

  /// These ops are computed here, whatever their root.
  SweepBuilder& inlining(const std::set<Id>& nodes);
  /// Uses a value over this part of the tile for the elements of a node, after the casts to the node's type.
  void give(Id id, ValueId value);

  /// The same for a value of half as many columns, each of which is that of two neighbors of the node.
  void give_twice(Id id, ValueId value);

  const Sweep& sweep() const { return sweep_; }
  /// The expression is `id`: its op if it is computed here, otherwise a copy of its value.
  SweepBuilder& express(Id id);
  SweepBuilder& add(Term term);
  /// The element of a node for an element of the sweep.
  Operand operand(Id id);
  Sweep take() { return std::move(sweep_); }

 private:
  bool is_fused(Id id) const;
  Id behind_broadcasts(Id id) const;
  Operand leaf(Id id);
  Operand term(Id id);
  Operand fetched(Id id);
  Operand loaded_part(Id id);

  Steps& steps_;
  const Id root_;
  const Shape whole_shape_;
  const Layout whole_layout_;
  Sweep sweep_;
  std::unordered_map<Id, int> terms_, reads_;  // by node
  std::unordered_map<Id, Operand> parts_;
  const std::set<Id>* inlined_ = nullptr;
  bool reads_first_ = false;
};

}  // namespace tessera::internal::lowering
