// Structural ops for control flow.
#include <fmt/format.h>

#include "opcheck/sketch.hpp"
#include "opcheck/structural.hpp"

namespace tessera::internal::opcheck::structural {
namespace {

/// Two tiles that are swapped in each iteration.
Case exchange(Op op, ElementType type, const Shape& tile, int count) {
  const std::vector<std::int64_t> extents(tile.begin(), tile.end());
  const std::vector<Id>::size_type left = 0, right = 1;
  Sketch sketch(
      {given(i32, count), input(type, extents), input(type, extents), output(type, extents), output(type, extents)});
  const std::vector<Id> at = sketch.origin(tile.rank());
  const std::vector<Id> results =
      sketch.loop(sketch.scalar(0), {sketch.load(1, type, at, tile), sketch.load(2, type, at, tile)},
                  [&](Id, const std::vector<Id>& carried) {
    return std::vector{carried[right], carried[left]};
      });
  sketch.store(3, at, results[left]);
  sketch.store(4, at, results[right]);
  return sketch.finish(op, type, fmt::format("two of {}, {} iterations", to_string(tile), count));
}

/// Loops whose count the kernel reads from memory, one nested in the other.
Case nest(std::int64_t outer, std::int64_t inner) {
  const auto always = [](std::int64_t value) {
    const auto number = static_cast<double>(value);
    return Values{.low = number, .high = number};
  };
  Sketch sketch(
      {input(i32, {1}, Layout::dense, always(outer)), input(i32, {1}, Layout::dense, always(inner)), output(i32, {1})});
  const auto count = [&](int parameter) {
    return sketch.apply(Op::reshape, {sketch.load(parameter, i32, sketch.origin(1), {1})});
  };
  const Id sum = sketch.loop(count(0), sketch.index(0), [&](Id i, Id sum) {
    return sketch.loop(count(1), sum, [&](Id j, Id sum) {
      return sketch.apply(Op::add, {sum, sketch.apply(Op::mul, {sketch.apply(Op::add, {i, j}), j})});
    });
  });
  sketch.store(2, sketch.origin(1), sketch.apply(Op::broadcast, {sum}, {}, Shape{1}));
  return sketch.finish(Op::loop, i32, fmt::format("{} times {}, read from memory", outer, inner));
}

/// Each iteration stores its own tile.
Case stores(int count) {
  Sketch sketch({given(i32, count), input(i32, {count, 9}), output(i32, {count, 9})});
  sketch.loop(sketch.scalar(0), {}, [&](Id i, const std::vector<Id>&) {
    sketch.store(2, {i, sketch.index(0)}, sketch.load(1, i32, {i, sketch.index(0)}, {1, 9}));
    return std::vector<Id>();
  });
  return sketch.finish(Op::loop, i32, fmt::format("stores in {} iterations", count));
}

}  // namespace

std::vector<Case> argument(ElementType type, Purpose purpose) {
  if (purpose != Purpose::test) return {};
  return {exchange(Op::argument, type, {8, 64}, 3), exchange(Op::argument, type, {5, 33}, 2)};
}

std::vector<Case> result(ElementType type, Purpose purpose) {
  if (purpose != Purpose::test) return {};
  return {exchange(Op::result, type, {5, 33}, 0), exchange(Op::result, type, {1}, 1),
          exchange(Op::result, type, {3, 1, 2}, 4)};
}

std::vector<Case> loop(ElementType type, Purpose purpose) {
  if (type != i32 || purpose != Purpose::test) return {};
  return {nest(1, 4), nest(3, 0), nest(-1, 2), stores(0), stores(5)};
}

std::vector<Case> branch(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (type != pred || purpose != Purpose::test) return cases;
  {
    Sketch sketch({given(i32, 3), input(ElementType::f32, {7, 9}), output(ElementType::f32, {7, 9})});
    const Id row = sketch.grid({7})[0];
    sketch.branch(sketch.apply(Op::less, pred, {row, sketch.scalar(0)}), [&] {
      const std::vector<Id> at{row, sketch.index(0)};
      sketch.store(2, at, sketch.load(1, ElementType::f32, at, {1, 9}));
    });
    cases.push_back(sketch.finish(Op::branch, type, "on the block's index"));
  }
  {
    Sketch sketch({input(pred, {6}), input(pred, {6}), output(i32, {6, 40})});
    const Id row = sketch.grid({6})[0];
    const auto condition = [&](int parameter) {
      return sketch.apply(Op::reshape, {sketch.load(parameter, pred, {row}, {1})});
    };
    const auto store = [&](int value) {
      sketch.store(2, {row, sketch.index(0)}, sketch.constant(i32, value, {1, 40}));
    };
    sketch.branch(condition(0), [&] {
      store(1);
      sketch.branch(condition(1), [&] { store(2); });
    });
    cases.push_back(sketch.finish(Op::branch, type, "one in another, on what is read"));
  }
  {
    Sketch sketch({update(i32, {5})});
    sketch.loop(sketch.index(5), {}, [&](Id i, const std::vector<Id>&) {
      const Id x = sketch.load(0, i32, {i}, {1});
      const Id positive = sketch.apply(Op::greater, pred, {x, sketch.constant(i32, 0, {1})});
      sketch.branch(sketch.apply(Op::reshape, {positive}), [&] { sketch.store(0, {i}, sketch.apply(Op::neg, {x})); });
      return std::vector<Id>();
    });
    cases.push_back(sketch.finish(Op::branch, type, "in a loop over an InOut"));
  }
  for (const int given_number : {1, 5}) {  // read only in a branch, and values of both branches
    const Shape tile{5, 33};
    Sketch sketch({given(i32, given_number), input(ElementType::f32, {5, 33}), input(ElementType::f32, {5, 33}),
                   output(ElementType::f32, {5, 33}), output(ElementType::f32, {5, 33})});
    const std::vector<Id> at = sketch.origin(2);
    const Id small = sketch.apply(Op::less, pred, {sketch.scalar(0), sketch.index(3)});
    const Id x = sketch.load(1, ElementType::f32, at, tile), y = sketch.load(2, ElementType::f32, at, tile);
    const std::vector<Id> then = sketch.branch(small, {x, y}, [&](const std::vector<Id>& carried) {
      return std::vector{carried[1], sketch.apply(Op::abs, {carried[0]})};
    });
    const std::vector<Id> both =
        sketch.branch(sketch.apply(Op::logical_not, {small}), then, [&](const std::vector<Id>& carried) {
          return std::vector{sketch.apply(Op::neg, {sketch.apply(Op::abs, {y})}), carried[0]};
        });
    sketch.store(3, at, both[0]);
    sketch.store(4, at, both[1]);
    cases.push_back(sketch.finish(Op::branch, type, fmt::format("values of both ways, {}", given_number)));
  }
  return cases;
}

std::vector<Case> repeat(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (type != pred || purpose != Purpose::test) return cases;
  for (const int given_steps : {0, 1, 7}) {  // two tiles are swapped, and a number is halved, until it is 0
    const Shape tile{5, 33};
    Sketch sketch({given(i32, given_steps), input(i32, {5, 33}), output(i32, {5, 33}), output(i32, {1})});
    const std::vector<Id> at = sketch.origin(2);
    const auto is_left = [&](Id n) { return sketch.apply(Op::greater, pred, {n, sketch.index(0)}); };
    const Id x = sketch.load(1, i32, at, tile), n = sketch.scalar(0);
    const std::vector<Id> results =
        sketch.repeat(is_left(n), {x, sketch.apply(Op::neg, {x}), n}, [&](const std::vector<Id>& carried) {
          const Id half = sketch.apply(Op::floor_div, {carried[2], sketch.index(2)});
          const Id sum = sketch.apply(Op::add, {carried[1], carried[2]});
          return std::vector{sum, carried[0], half, is_left(half)};
        });
    sketch.store(2, at, results[0]);
    sketch.store(3, sketch.origin(1), sketch.apply(Op::broadcast, {results[2]}, {}, Shape{1}));
    cases.push_back(sketch.finish(Op::repeat, type, fmt::format("{} halved", given_steps)));
  }
  return cases;
}

std::vector<Case> require(ElementType type, Purpose purpose) {
  if (type != pred || purpose != Purpose::test) return {};
  Sketch sketch({input(i32, {6}), output(i32, {6})});
  const Id extent = sketch.apply(Op::extent, i32, {sketch.tensor(0)}, {0});
  sketch.require(sketch.apply(Op::equal, pred, {extent, sketch.apply(Op::extent, i32, {sketch.tensor(1)}, {0})}));
  sketch.store(1, sketch.origin(1), sketch.load(0, i32, sketch.origin(1), {6}));
  std::vector<Case> cases;
  cases.push_back(sketch.finish(Op::require, type, "two extents are equal"));
  return cases;
}

std::vector<Case> check(ElementType type, Purpose purpose) {
  if (type != pred || purpose != Purpose::test) return {};
  Sketch sketch({input(i32, {40}), output(i32, {40})});
  const Id block = sketch.grid({5})[0], x = sketch.load(0, i32, {block}, {8});
  const Id least = sketch.apply(Op::min, {x}, {0}), most = sketch.apply(Op::max, {x}, {0});
  sketch.check(sketch.apply(Op::reshape, {sketch.apply(Op::less_equal, pred, {least, most})}));
  sketch.store(1, {block}, x);
  std::vector<Case> cases;
  cases.push_back(sketch.finish(Op::check, type, "of what is read, and it holds"));
  return cases;
}

std::vector<Case> print(ElementType type, Purpose purpose) {
  if (!info(type).computes || purpose != Purpose::test) return {};
  Sketch sketch({given(i32, 3), input(type, {6, 33}), output(type, {6, 33})});
  const Id x = sketch.load(1, type, sketch.origin(2), {6, 33}), scalar = sketch.scalar(0);
  sketch.branch(sketch.apply(Op::less, pred, {scalar, sketch.index(0)}), [&] { sketch.print({scalar, x}); });
  sketch.store(2, sketch.origin(2), x);
  std::vector<Case> cases;
  cases.push_back(sketch.finish(Op::print, type, "in a branch that is not taken"));
  return cases;
}

}  // namespace tessera::internal::opcheck::structural
