#include "opcheck/axes.hpp"

#include <fmt/format.h>

#include "opcheck/setting.hpp"
#include "opcheck/sketch.hpp"

namespace tessera::internal::opcheck {
namespace {

struct Along {
  Op op;
  ElementType type, result;
  Axis becomes;

  Case of(const Setting& setting, int axis, const Values& values, std::string_view remark = "", int options = 0) const {
    const std::vector<std::int64_t> attributes =
        is_scan(op) ? std::vector<std::int64_t>{axis, options} : std::vector<std::int64_t>{axis};
    std::vector<std::int64_t> results = setting.extents;
    if (becomes == Axis::one) {
      std::int64_t& extent = results[static_cast<std::size_t>(axis)];
      extent = (extent + setting.tile[axis] - 1) / setting.tile[axis];
    }
    Sketch sketch({input(type, setting.extents, setting.layout, values), output(result, results, setting.layout)});
    const std::vector<Id> at = sketch.tiles(0, setting.tile);
    sketch.store(1, at, sketch.apply(op, result, {sketch.load(0, type, at, setting.tile)}, attributes));
    return sketch.finish(op, type, fmt::format("axis {} of {}{}", axis, setting.name(), remark));
  }
};

}  // namespace

std::vector<Case> along_axes(Op op, ElementType type, ElementType result, Axis axis, Purpose purpose) {
  const Along along{op, type, result, axis};
  std::vector<Case> cases;
  for (const Setting& setting : settings(purpose)) {
    const int last = setting.tile.rank() - 1;
    for (int i = purpose == Purpose::test ? 0 : last; i <= last; ++i) cases.push_back(along.of(setting, i, {}));
  }
  if (purpose != Purpose::test) return cases;
  const Setting few{{9, 40}, {9, 40}};
  cases.push_back(along.of(few, 1, {.low = -3, .high = 3, .whole = true}, ", many equal"));
  cases.push_back(along.of(few, 1, {.edges = true}, ", extreme numbers"));
  for (int options = 1; is_scan(op) && options < 4; ++options) {
    const std::string remark = fmt::format("{}{}", options & 1 ? ", reverse" : "", options & 2 ? ", exclusive" : "");
    for (const Setting& setting : {few, Setting{{5, 33}, {13, 40}, Layout::padded}, Setting{{1, 1100}, {2, 1100}}})
      for (const int axis : {0, 1}) cases.push_back(along.of(setting, axis, {}, remark, options));
  }
  return cases;
}

}  // namespace tessera::internal::opcheck
