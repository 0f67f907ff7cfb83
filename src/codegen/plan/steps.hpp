// The steps that a role's warps run, in order, barriers included.
//
// Most steps are sweeps: each thread iterates over the registers of a layout and, for each element it holds, evaluates
// an expression of earlier values. Each kind of step is a struct, and Action lists them all. Code that handles every
// kind visits it without a default case, so that it does not compile when a new kind is forgotten.
#pragma once
#include <any>
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/plan/tile_steps.hpp"

namespace tessera::internal::codegen {

using Kinds = decltype(TileKinds() + ConditionKinds() + RoleKinds());

template <class T>
concept KindOfStep = Kinds::has<T>;

/// The action of a step: one of Kinds, by value. A std::variant of so many kinds instantiates thousands of functions,
/// and took half the time to compile a file that has steps.
class Action {
 public:
  template <KindOfStep Kind>
  Action(Kind kind) : index_(Kinds::index_of<Kind>()), kind_(std::in_place_type<Kind>, std::move(kind)) {}
  int index() const { return index_; }
  template <KindOfStep Kind>
  bool is() const {
    return index_ == Kinds::index_of<Kind>();
  }
  /// Null if it is another kind.
  template <KindOfStep Kind>
  Kind* as() {
    return is<Kind>() ? std::any_cast<Kind>(&kind_) : nullptr;
  }
  template <KindOfStep Kind>
  const Kind* as() const {
    return is<Kind>() ? std::any_cast<Kind>(&kind_) : nullptr;
  }
  /// Throws std::bad_any_cast if it is another kind.
  template <KindOfStep Kind>
  Kind& get() {
    return std::any_cast<Kind&>(kind_);
  }
  template <KindOfStep Kind>
  const Kind& get() const {
    return std::any_cast<const Kind&>(kind_);
  }

 private:
  int index_;
  std::any kind_;
};

struct Step {
  Action action;
  Id node = no_id;  ///< the node in the graph
  Location location = {};
};

/// A visitor for visit_kind() made of lambdas, one for each kind.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

/// Calls visitor(kind) with the kind that an action has.
template <class Visitor, OneOf<Action, const Action> A>
auto visit_kind(Visitor&& visitor, A& action) {
  return [&]<class First, class... Peers>(KindList<First, Peers...>) {
    using Result = decltype(visitor(*action.template as<First>()));
    if constexpr (std::is_void_v<Result>) {
      const auto is = [&]<class Kind>(Kind* kind) { return kind && (visitor(*kind), true); };
      (void)(is(action.template as<First>()) || (is(action.template as<Peers>()) || ...));
    } else {
      std::optional<Result> result;
      const auto is = [&]<class Kind>(Kind* kind) { return kind && (result.emplace(visitor(*kind)), true); };
      (void)(is(action.template as<First>()) || (is(action.template as<Peers>()) || ...));
      return *std::move(result);
    }
  }(Kinds());
}

template <class T>
concept OfRoles = RoleKinds::has<std::remove_const_t<T>>;
template <class T>
concept Condition = ConditionKinds::has<std::remove_const_t<T>>;

/// The matmul of a loop's body that issues the loop's fetch inside; or null.
inline const Mma* fetching_matmul(const Loop& loop) {
  for (const Step& step : loop.body)
    if (const Mma* mma = step.action.as<Mma>(); mma && mma->fetching == loop.loop) return mma;
  return nullptr;
}

/// The bodies of a step, in the order they run; at most four.
struct Bodies {
  Body* at[4];
  int count = 0;
};
/// With those in which warps combine their results, or without.
Bodies bodies_of(Step& step, bool with_exchanges = true);

/// Calls each(body) for them.
template <class Each>
void each_body(Step& step, const Each& each) {
  const Bodies bodies = bodies_of(step);
  for (int i = 0; i < bodies.count; ++i) each(*bodies.at[i]);
}
template <class Each>
void each_body(const Step& step, const Each& each) {
  each_body(const_cast<Step&>(step), [&](const Body& body) { each(body); });
}

}  // namespace tessera::internal::codegen
