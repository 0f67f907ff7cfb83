// Sequences of launches: dependencies, against marking elements; runs and graphs, against plain launches.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_sequence {

using namespace tessera::internal;

namespace {

constexpr std::int64_t rows = 9, columns = 11;

using Matrix = Tensor<i32, 2>;
/// Bytes to be marked: all elements of a tensor.
std::set<const i32*> marks(const Matrix& m) {
  std::set<const i32*> marked;
  for (std::int64_t i = 0; i < m.extent(0); ++i)
    for (std::int64_t j = 0; j < m.extent(1); ++j) marked.insert(m.data() + i * m.strides()[0] + j * m.strides()[1]);
  return marked;
}
bool share(const std::set<const i32*>& a, const std::set<const i32*>& b) {
  return std::ranges::any_of(a, [&](const i32* element) { return b.contains(element); });
}

/// Boxes of one matrix with its strides, so that overlap is known exactly; sometimes without elements.
class Boxes {
 public:
  explicit Boxes(unsigned seed) : random_(seed) {}
  const Matrix& whole() const { return whole_; }
  Matrix box() {
    const auto part = [&](std::int64_t whole) {
      const std::int64_t begin = below(whole),
                         extent = below(6) == 0 ? 0 : 1 + below(std::min<std::int64_t>(3, whole - begin));
      return std::pair(begin, extent);
    };
    const auto [row, height] = part(rows);
    const auto [column, width] = part(columns);
    return whole_.slice(0, row, height).slice(1, column, width);
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  void fill() const {
    std::vector<i32> values(static_cast<std::size_t>(whole_.size()));
    std::iota(values.begin(), values.end(), 1);
    whole_.copy_from(values);
  }

 private:
  std::mt19937 random_;
  Matrix whole_{Device::cpu(), {rows, columns}};
};

const auto& mix_kernel() {
  static const auto mix = kernel("mix", [](In<i32, 2> a, In<i32, 2> b, Out<i32, 2> y, Scalar<i32> n) {
    auto [i, j] = blocks(cdiv(y.extent(0), 4), cdiv(y.extent(1), 4));
    store(y, {i, j}, load(a, {i, j}, {4, 4}) * 3 + load(b, {i, j}, {4, 4}) * 5 + n);
  });
  return mix;
}
const auto& change_kernel() {
  static const auto change = kernel("change", [](In<i32, 2> a, InOut<i32, 2> y) {
    auto [i, j] = blocks(cdiv(y.extent(0), 4), cdiv(y.extent(1), 4));
    Tile before = load(y, {i, j}, {4, 4});
    store(y, {i, j}, before * 7 + load(a, {i, j}, {4, 4}));
  });
  return change;
}

/// Random launches, with the tensors that each reads and writes.
struct Program {
  struct Touched {
    std::set<const i32*> read, written;
  };
  Sequence sequence{Device::cpu()};
  std::vector<Touched> touched;

  Program(Boxes& boxes, std::size_t count) {
    while (touched.size() < count) {
      const Matrix a = boxes.box(), b = boxes.box(), y = boxes.box();
      Touched next;
      const bool mixes = boxes.below(2) == 0;
      // A written tensor that overlaps another is rejected, and leaves the sequence unchanged.
      const std::size_t before = sequence.launches().size();
      const std::string refused = error_of([&] {
        if (mixes)
          sequence.add(mix_kernel(), a, b, y, static_cast<int>(count));
        else
          sequence.add(change_kernel(), a, y);
      });
      next.written = marks(y);
      next.read = marks(a);
      if (mixes) next.read.merge(marks(b));
      REQUIRE((refused != "(no error)") == share(next.read, next.written));
      REQUIRE(sequence.launches().size() == before + (refused == "(no error)"));
      if (refused != "(no error)") continue;
      if (!mixes) next.read.merge(marks(y));
      touched.push_back(std::move(next));
    }
  }
};

}  // namespace

TEST_CASE("what a launch depends on is what marking elements says", "[jit]") {
  int some = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Boxes boxes(seed);
    const Program program(boxes, 12);
    const auto& touched = program.touched;
    const std::size_t count = touched.size();
    // comes[i][j]: j must come after i, directly or transitively.
    std::vector<std::vector<bool>> conflicts(count, std::vector<bool>(count)), comes = conflicts;
    for (std::size_t j = 0; j < count; ++j)
      for (std::size_t i = 0; i < j; ++i)
        comes[i][j] = conflicts[i][j] = share(touched[i].written, touched[j].read) ||
                                        share(touched[i].written, touched[j].written) ||
                                        share(touched[i].read, touched[j].written);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < count; ++j)
          if (comes[i][k] && comes[k][j]) comes[i][j] = true;
    const auto found = program.sequence.dependencies();
    REQUIRE(found.size() == count);
    for (std::size_t j = 0; j < count; ++j) {
      std::vector<std::size_t> expected;
      for (std::size_t i = 0; i < j; ++i) {
        bool by_way_of_others = false;
        for (std::size_t k = i + 1; k < j; ++k) by_way_of_others = by_way_of_others || (comes[i][k] && comes[k][j]);
        if (conflicts[i][j] && !by_way_of_others) expected.push_back(i);
      }
      some += !expected.empty();
      INFO("seed " << seed << " launch " << j);
      CHECK(found[j] == expected);
    }
  }
  CHECK(some > 100);
}

TEST_CASE("a sequence has the results of plain launches, in any order that keeps its dependencies", "[jit]") {
  const Stream stream = Device::cpu().stream();
  for (unsigned seed = 0; seed < 30; ++seed) {
    Boxes boxes(seed);
    const Program program(boxes, 14);
    const auto& launches = program.sequence.launches();
    boxes.fill();
    for (const Sequence::Launch& l : launches) l.executable->launch(stream, l.arguments);
    const std::vector<i32> expected = boxes.whole().to_vector();

    boxes.fill();
    program.sequence.run(stream);
    CHECK(boxes.whole().to_vector() == expected);
    boxes.fill();
    program.sequence.run(stream, 0, 5);
    program.sequence.run(stream, 5, 5);
    program.sequence.run(stream, 5, launches.size());
    CHECK(boxes.whole().to_vector() == expected);
    boxes.fill();
    const CapturedGraph graph = program.sequence.record(stream);
    stream.launch(graph);
    CHECK(boxes.whole().to_vector() == expected);

    const auto dependencies = program.sequence.dependencies();
    for (int order = 0; order < 10; ++order) {
      boxes.fill();
      std::vector<bool> done(launches.size());
      for (std::size_t i = 0; i < launches.size(); ++i) {
        std::vector<std::size_t> ready;
        for (std::size_t l = 0; l < launches.size(); ++l)
          if (!done[l] && std::ranges::all_of(dependencies[l], [&](std::size_t d) { return done[d]; }))
            ready.push_back(l);
        REQUIRE(!ready.empty());
        const std::size_t next = ready[static_cast<std::size_t>(boxes.below(static_cast<std::int64_t>(ready.size())))];
        program.sequence.run(stream, next, next + 1);
        done[next] = true;
      }
      CHECK(boxes.whole().to_vector() == expected);
    }
  }
}

TEST_CASE("a sequence reports the tensors that its launches read and write", "[jit]") {
  Boxes boxes(1);
  const Matrix a = boxes.whole().slice(0, 0, 2), b = boxes.whole().slice(0, 2, 2), y = boxes.whole().slice(0, 4, 2);
  Sequence sequence(Device::cpu());
  sequence.add(mix_kernel(), a, b, y, 7);
  sequence.add(change_kernel(), a, y);
  const Sequence::Launch &mix = sequence.launches().at(0), &change = sequence.launches().at(1);
  CHECK(mix.executable->name() == "mix");
  CHECK((mix.reads(0) && mix.reads(1) && !mix.reads(2) && !mix.reads(3)));
  CHECK((!mix.writes(0) && !mix.writes(1) && mix.writes(2) && !mix.writes(3)));
  CHECK((change.reads(0) && !change.writes(0) && change.reads(1) && change.writes(1)));
  CHECK(mix.arguments.at(2).data == y.data());
  CHECK(mix.arguments.at(2).extent[1] == columns);
  CHECK(mix.arguments.at(3).scalar.i32 == 7);
  CHECK(mix.parameter(2) == Parameter{Access::out, ElementType::i32, 2});
  CHECK((mix.grid.rank == 2 && mix.grid.extent[0] == 1 && mix.grid.extent[1] == 3));
  CHECK(sequence.dependencies() == std::vector<std::vector<std::size_t>>{{}, {0}});
  CHECK(Sequence(Device::cpu()).dependencies().empty());
}

TEST_CASE("a sequence is checked when it is made", "[jit]") {
  const auto fill = kernel("fill", [](Out<f32, 1> y, Scalar<i32> n) {
    require(n < 5, "n is small");
    Index i = blocks(n);
    store(y, {i}, full<f32>({1}, 5));
  });
  const Tensor<f32, 1> y(Device::cpu(), {4});
  Sequence sequence(Device::cpu());
  CHECK(says(error_of([&] { sequence.add(fill, y, 5); }), {"'fill'", "n is small"}));
  CHECK(says(error_of([&] { sequence.add(fill, y, -1); }), {"axis 0 of the grid", "-1"}));
  CHECK(sequence.launches().empty());
  sequence.run(Device::cpu().stream());
}

TEST_CASE("a sequence keeps its kernels and its tensors' memory", "[jit]") {
  const Tensor<i32, 1> count(Device::cpu(), {1});
  count.copy_from(std::vector<i32>{0});
  Sequence sequence(Device::cpu());
  std::weak_ptr<void> memory;
  {
    const auto add = kernel("add", [](In<i32, 1> one, InOut<i32, 1> x) {
      Tile before = load(x, {0}, {1});
      store(x, {0}, before + load(one, {0}, {1}));
    });
    const Tensor<i32, 1> one(Device::cpu(), {1});
    one.copy_from(std::vector<i32>{1});
    memory = one.memory();
    sequence.add(add, one, count);
  }
  CHECK(!memory.expired());
  const Stream stream = Device::cpu().stream();
  sequence.run(stream);
  sequence.run(stream);
  CHECK(count.to_vector()[0] == 2);
  sequence = Sequence(Device::cpu());
  CHECK(memory.expired());
}

}  // namespace test_sequence
