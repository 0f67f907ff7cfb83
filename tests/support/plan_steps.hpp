// Finds steps in a plan, to inspect or to break them.
#pragma once
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#include "codegen/plan/plan.hpp"

/// The position of a step.
struct StepPlace {
  tessera::internal::codegen::Body* body;
  std::size_t index;
  tessera::internal::codegen::Step& step() const { return (*body)[index]; }
  void drop() const { body->erase(body->begin() + static_cast<std::ptrdiff_t>(index)); }
  /// Moves it after this many of the following steps; negative: before as many.
  void move(std::ptrdiff_t by) const {
    tessera::internal::codegen::Step moved = std::move(step());
    drop();
    body->insert(body->begin() + static_cast<std::ptrdiff_t>(index) + by, std::move(moved));
  }
  /// Puts these steps in its place.
  void replace(tessera::internal::codegen::Body steps) const {
    drop();
    body->insert(body->begin() + static_cast<std::ptrdiff_t>(index), steps.begin(), steps.end());
  }
  /// Lets one of this many threads run it.
  void elect(int threads) const {
    tessera::internal::codegen::ElectOne one{.threads = threads, .body = {}};
    one.body.push_back(std::move(step()));
    step().action = std::move(one);
  }
};

/// Every step of a plan, including nested ones, in order.
inline void each_step(tessera::internal::codegen::Body& steps, const std::function<void(StepPlace)>& each) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    each({&steps, i});
    tessera::internal::codegen::each_body(steps[i], [&](tessera::internal::codegen::Body& inner) { each_step(inner, each); });
  }
}
inline std::vector<StepPlace> steps_of(tessera::internal::codegen::Plan& plan) {
  std::vector<StepPlace> places;
  for (auto& phase : plan.phases)
    for (auto& role : phase.roles) each_step(role.body, [&](StepPlace place) { places.push_back(place); });
  return places;
}

template <class Kind>
std::vector<StepPlace> places_of(tessera::internal::codegen::Plan& plan) {
  std::vector<StepPlace> places = steps_of(plan);
  std::erase_if(places, [](StepPlace place) { return !place.step().action.is<Kind>(); });
  return places;
}
template <class Kind>
int count(const tessera::internal::codegen::Plan& plan) {
  return static_cast<int>(places_of<Kind>(const_cast<tessera::internal::codegen::Plan&>(plan)).size());
}

/// The nth step of a kind. Throws if there is none.
template <class Kind>
StepPlace place_of(tessera::internal::codegen::Plan& plan, std::size_t nth = 0) {
  return places_of<Kind>(plan).at(nth);
}
template <class Kind>
Kind& the(tessera::internal::codegen::Plan& plan, std::size_t nth = 0) {
  return place_of<Kind>(plan, nth).step().action.template get<Kind>();
}

/// The steps of the CTA that has the first k-iteration of a split tile, or those of the others.
inline tessera::internal::codegen::IfFirstSplit& split_part(tessera::internal::codegen::Plan& plan, bool first) {
  using tessera::internal::codegen::IfFirstSplit;
  for (const StepPlace& place : places_of<IfFirstSplit>(plan))
    if (IfFirstSplit& part = place.step().action.get<IfFirstSplit>(); part.first == first) return part;
  throw std::runtime_error("the plan has no such part");
}
