#include "cpu/elements.hpp"

#include <cstring>

namespace tessera::internal::cpu {
namespace {

// place[i] = before[i] + index[i] * step, or nowhere. Returns whether all are in range.
template <class Step>
bool add_places(std::int64_t* place, const std::int64_t* before, const std::int32_t* index, int n, std::uint32_t low,
                std::uint32_t count, Step step) {
  std::int32_t missing = 0;
  for (int i = 0; i < n; ++i) {
    const bool exists = static_cast<std::uint32_t>(index[i]) - low < count;
    const std::int64_t here = exists ? index[i] : 0;  // multiplying an index out of range may overflow
    missing |= exists ? 0 : 1;
    place[i] = before[i] + here * step + (exists ? 0 : ElementStrip::nowhere);
  }
  return missing == 0;
}

}  // namespace

StripWalk ElementWalk::start(StripPlan& plan, const Shape& shape, std::span<const Ref* const> indices,
                             std::span<const Ref* const> operands) {
  plan.update(shape, indices.size() + operands.size(), [&](std::size_t i) {
    const Ref& ref = i < indices.size() ? *indices[i] : *operands[i - indices.size()];
    return std::pair<const Strides&, const Shape&>(ref.stride, shape);
  });
  return StripWalk(plan);
}

ElementWalk::ElementWalk(StripPlan& plan, const ViewRef& view, int stored, const Shape& shape,
                         std::span<const Ref* const> indices, std::span<const Ref* const> operands, HostType type)
    : plan_(plan),
      walk_(start(plan, shape, indices, operands)),
      data_(view.data),
      type_(type),
      indices_(static_cast<int>(indices.size())),
      operands_(static_cast<int>(operands.size())) {
  for (int i = 0; i < indices_; ++i) {
    const std::int64_t low = view.lo[at(i)], high = std::min(view.hi[at(i)], std::int64_t{1} << 31);
    index_[i] = {indices[at(i)]->data, static_cast<std::uint32_t>(low),
                 static_cast<std::uint32_t>(std::max<std::int64_t>(0, high - low)), view.stride[at(i)] * stored};
  }
  for (int i = 0; i < operands_; ++i) written_[i] = operands[at(i)]->data;
  std::fill_n(fixed_, walk_.count(), 0);
  for (int i = 0; i < indices_; ++i)
    if (plan_.sources[at(i)].inside && !plan_.sources[at(i)].outside) fixed_all_ = add(i, fixed_, fixed_) && fixed_all_;
}

bool ElementWalk::add(int index, const std::int64_t* before, std::int64_t* place) {
  const auto& [data, low, count, step] = index_[index];
  const auto* values =
      reinterpret_cast<const std::int32_t*>(walk_.elements(plan_.sources[at(index)], data, HostType::i32, scratch_));
  if (const auto narrow = static_cast<std::int32_t>(step); narrow == step)
    return add_places(place, before, values, walk_.count(), low, count, narrow);
  return add_places(place, before, values, walk_.count(), low, count, step);
}

bool ElementWalk::next(ElementStrip& strip) {
  if (walk_.done()) return false;
  strip = {walk_.first(), walk_.count(), data_, fixed_, fixed_all_, {}};
  bool some = true;
  for (int i = 0; i < indices_; ++i) {
    const StripPlan::Source& source = plan_.sources[at(i)];
    const Index& index = index_[i];
    if (!source.inside) {
      const std::int32_t value =
          *reinterpret_cast<const std::int32_t*>(walk_.begin(source, index.data, sizeof(std::int32_t)));
      const bool exists = static_cast<std::uint32_t>(value) - index.low < index.count;
      strip.base += exists ? value * index.step : 0;
      some = some && exists;
    } else if (source.outside) {
      strip.all = add(i, strip.place, place_) && strip.all;
      strip.place = place_;
    }
  }
  if (!some) {
    std::fill_n(place_, strip.count, ElementStrip::nowhere);
    strip.place = place_, strip.all = false;
  }
  for (int i = 0; i < operands_; ++i)
    strip.operand[i] = walk_.elements(plan_.sources[at(indices_ + i)], written_[i], type_, operand_[i]);
  walk_.next();
  return true;
}

}  // namespace tessera::internal::cpu
