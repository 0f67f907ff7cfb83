// What all of lowering is made of: steps that are pushed in order, each on top of the values that it needs.
#pragma once
#include <unordered_map>

#include "codegen/lower/lower_fuse.hpp"
#include "codegen/lower/lower_values.hpp"

namespace tessera::internal::lowering {

inline int round_up(int a, int b) { return (a + b - 1) / b * b; }

/// A number, as an operand.
Operand literal(std::int64_t value);
/// The element of a value that belongs to a register of a sweep over `layout`; of a part of a tile that begins at
/// `origin`.
Operand element_of(const Plan& plan, ValueId value, const Layout& layout, const Origin& origin = {});
/// Memory rounds as a cast to its type does, which goes.
void leave_rounding_to_memory(Expression& expression);

class SweepBuilder;

/// The body that grows, and what is asked of it: nothing here is of a step that is still under construction.
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

  /// A step for what the author wrote as node `id`.
  Step step(Id id, Action action) const { return {std::move(action), id, node(id).location}; }
  /// Ends the body with it.
  template <class Kind>
  void push(Id id, Kind action) {
    if constexpr (requires { action.sweep; }) {
      ValueId out;
      TileAccess* access = nullptr;
      if constexpr (requires { action.out; }) out = action.out;
      if constexpr (requires { action.access; }) access = &action.access;
      const Operand* beside = nullptr;
      if constexpr (requires { action.expected; }) beside = action.expected ? &*action.expected : nullptr;
      ValueId other;  // that it makes or reads beside
      if constexpr (requires { action.best; }) other = action.best;
      if constexpr (OneOf<Kind, Sort, Merge>) other = action.at;
      settle(action.sweep, out, other, access, beside);
      if constexpr (std::same_as<Kind, StoreShared>) group(action);
      if constexpr (std::same_as<Kind, Store>) settle(action);
    }
    body_->push_back(step(id, std::move(action)));
  }
  /// Runs `inside`; of the values that it makes nobody behind knows.
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

  // --- values, which take steps where nobody needed them before

  ValueId value(Id id);
  /// The node's own step.
  void compute(Id id);
  /// One number more, by a step of its own.
  ValueId number(Id about, Label label, ElementType type, Expression expression);
  ValueId number(Id about, Label label, ElementType type, Term term) {
    return number(about, std::move(label), type, Expression{{std::move(term)}});
  }
  /// In a layout, which is a copy: it may be asked for as that of a value, and values move when one is added.
  ValueId value_in(Id id, Layout layout);
  /// to = from, which has the same layout.
  void copy(Id id, ValueId from, ValueId to);

  // --- places in tensors: lower_memory.cpp

  /// The value of a node of one element, or its number.
  Operand scalar(Id id);
  TileAccess access_of(Id id);
  /// Of a gather or a scatter in a sweep: the rows. They lie along the tile's first axis.
  void set_rows(TileAccess& access, Id rows, const Sweep& sweep);
  /// Of an access by elements: their indices along each axis.
  void set_elements(TileAccess& access, Id id, SweepBuilder& sweep);
  ValueId load(Id id);
  void store(Id id);

 private:
  void settle(Sweep& sweep, ValueId out, ValueId other, TileAccess* access, const Operand* beside);
  void group(StoreShared& stage) const;
  void settle(Store& store) const;

  Body* body_;
};

/// A sweep under construction. Terms and reads are its own: what its operands need becomes steps meanwhile, each with a
/// sweep of its own, that end the body before this one does.
class SweepBuilder {
 public:
  /// Ops whose root is `root` are computed on the way.
  SweepBuilder(Steps& steps, const Shape& shape, const Layout& layout, Id root = no_id);
  SweepBuilder(Steps& steps, Sweep sweep, Id root) : SweepBuilder(steps, sweep.shape, sweep.layout, root) {}
  /// Over `extent` elements from `start` on along an axis of such a sweep.
  SweepBuilder& part(int axis, int start, int extent);

  /// What a part reads is read by steps of its own, all of it before anything is done with it.
  SweepBuilder& reading_first();

  /// These ops are computed here, whatever their root.
  SweepBuilder& inlining(const std::set<Id>& nodes);
  /// The element of a node is that of a value over this part of the tile, in the node's type once it is cast to it.
  void give(Id id, ValueId value);

  const Sweep& sweep() const { return sweep_; }
  /// The expression is `id`: its op if it is computed here, else a copy of it.
  SweepBuilder& express(Id id);
  SweepBuilder& add(Term term);
  /// The element of a node that belongs to an element of the sweep.
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
  std::unordered_map<Id, int> terms_, reads_;  // of nodes
  std::unordered_map<Id, Operand> parts_;
  const std::set<Id>* inlined_ = nullptr;
  bool reads_first_ = false;
};

}  // namespace tessera::internal::lowering
