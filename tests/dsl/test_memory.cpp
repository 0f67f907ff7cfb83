// Loads, stores, views, gathers, scatters and atomics against the fine print of ops.def, with canaries around memory
// that may be written.
#include <climits>
#include <numeric>

#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_memory {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Memory;
using oracle::Real;
using oracle::Rng;
using oracle::Value;
using oracle::Values;

namespace {

const std::vector<ElementType> stored_types = {
    ElementType::f32,    ElementType::f64, ElementType::f16, ElementType::bf16, ElementType::f8e4m3,
    ElementType::f8e5m2, ElementType::i8,  ElementType::i16, ElementType::i32,  ElementType::i64,
    ElementType::u8,     ElementType::u16, ElementType::u32, ElementType::u64};

// A model of memory and views
// ---------------------------------------------------------------------------------------------

/// A view: where its axes are in a tensor. An index that is outside of any view in between is outside.
struct Axis {
  int of;                    // the tensor's axis
  std::int64_t start, step;  // element i is the tensor's start + i * step
  std::int64_t low, high;    // i that exist
};
struct View {
  const Memory* memory;
  std::vector<Axis> axes;

  explicit View(const Memory& m) : memory(&m) {
    for (std::size_t i = 0; i < m.extents.size(); ++i) axes.push_back({static_cast<int>(i), 0, 1, 0, m.extents[i]});
  }
  void slice(int axis, std::int64_t start, std::int64_t extent, int step) {
    Axis& a = axes[axis];
    a.start += start * a.step, a.step *= step;
    // Extents are small: each existing element is searched.
    std::int64_t low = extent, high = 0;
    for (std::int64_t at = a.low; at < a.high; ++at) {
      if ((at - start) % step != 0 || (at - start) / step < 0 || (at - start) / step >= extent) continue;
      low = std::min(low, (at - start) / step), high = std::max(high, (at - start) / step + 1);
    }
    a.low = low, a.high = high;
  }
  void permute(const std::vector<int>& order) {
    std::vector<Axis> transposed;
    for (int axis : order) transposed.push_back(axes[axis]);
    axes = transposed;
  }
  /// Where element `at` is in memory, or -1 outside.
  std::int64_t place(const std::vector<std::int64_t>& at) const {
    std::int64_t element = memory->origin;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (at[i] < axes[i].low || at[i] >= axes[i].high) return -1;
      element += (axes[i].start + at[i] * axes[i].step) * memory->strides[axes[i].of];
    }
    return element;
  }
};

/// The coordinates of each element of a tile at a tile index, in row-major order; axis 0 by rows if there are any.
std::vector<std::vector<std::int64_t>> coordinates(const Extents& tile, const std::vector<i32>& at,
                                                   const std::vector<i64>& rows = {}) {
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t i = 0; i < oracle::size_of(tile); ++i) {
    std::vector<std::int64_t> coordinate(tile.size());
    std::int64_t rest = i;
    for (std::size_t axis = tile.size(); axis-- > 0; rest /= tile[axis]) {
      const std::int64_t inside = rest % tile[axis];
      const std::size_t index = rows.empty() ? axis : axis - 1;
      coordinate[axis] = axis == 0 && !rows.empty() ? rows[inside] : std::int64_t{at[index]} * tile[axis] + inside;
    }
    all.push_back(coordinate);
  }
  return all;
}

Array any_values(Rng& rng, ElementType type, const Extents& shape) {
  return oracle::is_real(type) ? oracle::random_array(rng, type, shape, -100, 100)
                               : oracle::random_bits_array(rng, type, shape);
}

/// Memory of a random layout: axes in any order, gaps between elements, negative strides, for inputs also stride 0;
/// space before and after. All of it holds values.
Memory random_memory(Rng& rng, Access access, ElementType type, int rank, int longest = 6) {
  Memory memory{access, type, {}, {}, 0, {}, {}};
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (oracle::chance(rng, 60)) std::shuffle(order.begin(), order.end(), rng);
  memory.extents.resize(rank), memory.strides.resize(rank);
  std::int64_t stride = oracle::chance(rng, 25) ? 2 : 1, below = 0;
  for (int i = rank; i-- > 0;) {
    const int axis = order[i];
    memory.extents[axis] =
        oracle::chance(rng, 3) ? 0 : oracle::between(rng, 1, rank > 3 ? std::min(longest, 4) : longest);
    memory.strides[axis] = stride;
    stride *= std::max<std::int64_t>(memory.extents[axis], 1);
    stride += oracle::chance(rng, 30) ? oracle::between(rng, 1, 3) : 0;
    if (access == Access::in && oracle::chance(rng, 10)) memory.strides[axis] = 0;
    if (oracle::chance(rng, 20)) {
      below += memory.strides[axis] * std::max<std::int64_t>(memory.extents[axis] - 1, 0);
      memory.strides[axis] *= -1;
    }
  }
  constexpr std::int64_t room = 40;
  memory.origin = room + below;
  const Array values = any_values(rng, type, {static_cast<int>(stride + 2 * room)});
  memory.bytes = oracle::input(values).bytes;
  return memory;
}

/// A number in a kernel: a literal, or a scalar given at launch.
struct Numbers {
  std::vector<Memory>* memory;  // scalars are added here before the trace
  struct Number {
    bool given;
    std::size_t parameter;
    i32 value;
  };
  Number number(Rng& rng, i32 value) {
    if (oracle::chance(rng, 40)) return {false, 0, value};
    memory->push_back(oracle::scalar_input(value));
    return {true, memory->size() - 1, value};
  }
  static Value use(const Number& n, const Values& parameters) {
    return n.given ? parameters[n.parameter] : oracle::literal(ElementType::i32, n.value);
  }
};

i32 random_position(Rng& rng, int near) {
  const int kind = oracle::between(rng, 0, 19);
  if (kind == 0)
    return std::array{
        INT_MIN, INT_MIN + 1, INT_MAX, INT_MAX - 1, 1 << 30, -(1 << 30), 1 << 29}[oracle::between(rng, 0, 6)];
  return kind < 12 ? oracle::between(rng, 0, near) : oracle::between(rng, -near - 1, near + 1);
}

/// A sequence of slices and permutations of a parameter, in the model and in the kernel.
struct ViewChain {
  struct Step {
    bool turn;
    std::vector<int> axes;
    int axis, by;
    Numbers::Number start, extent;
  };
  std::vector<Step> steps;

  void random(Rng& rng, Numbers& numbers, View& view) {
    const int rank = static_cast<int>(view.axes.size());
    for (int i = oracle::between(rng, 0, 3); i > 0; --i) {
      Step step{};
      step.turn = oracle::chance(rng, 40);
      if (step.turn) {
        step.axes.resize(rank);
        std::iota(step.axes.begin(), step.axes.end(), 0);
        std::shuffle(step.axes.begin(), step.axes.end(), rng);
        view.permute(step.axes);
      } else {
        step.axis = oracle::between(rng, 0, rank - 1);
        const i32 start = oracle::chance(rng, 95)
                              ? oracle::between(rng, -3, 6)
                              : std::array{1 << 30, -(1 << 30), INT_MAX, INT_MIN}[oracle::between(rng, 0, 3)];
        const i32 extent = oracle::chance(rng, 97) ? oracle::between(rng, 0, 8)
                                                   : std::array{1 << 30, INT_MAX}[oracle::between(rng, 0, 1)];
        step.start = numbers.number(rng, start), step.extent = numbers.number(rng, extent);
        step.by = oracle::chance(rng, 60) ? 1 : std::array{2, 3, -1, -2}[oracle::between(rng, 0, 3)];
        view.slice(step.axis, start, extent, step.by);
      }
      steps.push_back(step);
    }
  }
  Value make(Value view, const Values& parameters) const {
    for (const Step& step : steps) {
      if (step.turn)
        view = oracle::apply(Op::permute_view, view.type, {view}, {step.axes.begin(), step.axes.end()});
      else
        view = oracle::apply(Op::slice, view.type,
                             {view, Numbers::use(step.start, parameters), Numbers::use(step.extent, parameters)},
                             {step.axis, step.by});
    }
    return view;
  }
};

Extents random_tile(Rng& rng, int rank) {
  Extents tile(rank);
  for (int& extent : tile) extent = oracle::between(rng, 1, rank > 3 ? 3 : 5);
  return tile;
}

/// A float or an integer that may be padding.
struct Padding {
  ElementType type;
  Real real;
  i64 whole;
  std::int64_t bits(Trace& trace) const {
    return oracle::is_real(type) ? trace.literal_bits(type, static_cast<double>(real), oracle::here())
                                 : trace.literal_bits(type, whole, oracle::here());
  }
};
Padding random_padding(Rng& rng, ElementType type) {
  const Real reals[] = {0, 0, -oracle::real_inf, oracle::real_inf, oracle::real_nan, 1.5L, -2};
  const i64 wholes[] = {0, 0, -1, 7, oracle::highest_of(type), oracle::lowest_of(type), 1};
  const int choice = oracle::between(rng, 0, 6);
  return {type, reals[choice], lowest(type) == 0 && wholes[choice] < 0 ? 0 : wholes[choice]};
}

std::string bytes_difference(const Memory& actual, const Memory& expected) {
  for (std::size_t i = 0; i < expected.bytes.size(); ++i)
    if (actual.bytes[i] != expected.bytes[i])
      return "memory differs at element " + std::to_string(i / info(expected.type).bytes) + " of its block";
  return "";
}

/// The expected tile when a whole view is read starting at `at`.
Array expected_read(const View& view, const std::vector<std::vector<std::int64_t>>& places, const Extents& tile,
                    const Padding& padding) {
  Array expected(view.memory->type, tile);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (const std::int64_t place = view.place(places[i]); place >= 0)
      oracle::read_element(expected, i, view.memory->at(place), view.memory->type);
    else if (oracle::is_real(expected.type))
      expected.real[i] = padding.real;
    else
      expected.whole[i] = padding.whole;
  }
  return expected;
}

enum class Move { load, gather, store, scatter };

/// One random read or write through a random view of random memory.
std::string random_move(std::uint64_t seed, Move move) {
  Rng rng(seed);
  const ElementType type = oracle::one_of(rng, stored_types);
  const bool by_rows = move == Move::gather || move == Move::scatter,
             writes = move == Move::store || move == Move::scatter;
  const int rank = oracle::between(rng, 1, by_rows ? 4 : 6);
  std::vector<Memory> memory;
  memory.reserve(64);  // views point into it
  memory.push_back(random_memory(rng,
                                 !writes ? (oracle::chance(rng, 70) ? Access::in : Access::in_out)
                                         : (oracle::chance(rng, 70) ? Access::out : Access::in_out),
                                 type, rank));
  const Extents tile = random_tile(rng, rank);
  const Array values = any_values(rng, type, tile);
  memory.push_back(writes ? oracle::input(values) : oracle::dense(Access::out, type, tile));
  Array rows(ElementType::i32, {tile[0]});
  if (by_rows) {
    std::vector<i64> distinct;
    for (i64 row = -2; row < 9; ++row) distinct.push_back(row);
    for (i64 row : {INT_MIN, INT_MAX, 1 << 30, INT_MIN + 1, INT_MAX - 1}) distinct.push_back(row);
    std::shuffle(distinct.begin(), distinct.end(), rng);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows.whole[i] = move == Move::scatter ? distinct[i] : oracle::one_of(rng, distinct);
    memory.push_back(oracle::input(rows));
  }
  View view(memory[0]);
  Numbers numbers{&memory};
  ViewChain chain;
  chain.random(rng, numbers, view);
  std::vector<i32> at;
  std::vector<Numbers::Number> position;
  for (int axis = by_rows ? 1 : 0; axis < rank; ++axis) {
    at.push_back(random_position(rng, 3));
    position.push_back(numbers.number(rng, at.back()));
  }
  const auto places = coordinates(tile, at, by_rows ? rows.whole : std::vector<i64>{});
  const Padding padding = random_padding(rng, type);

  Memory expected_memory = memory[0];
  const Array expected = expected_read(view, places, tile, padding);
  if (writes) {
    for (std::size_t i = 0; i < places.size(); ++i)
      if (const std::int64_t place = view.place(places[i]); place >= 0)
        oracle::write_element(expected_memory.at(place), values, i);
  }
  const std::string graph = oracle::run(memory, [&](const Values& parameters) {
    const Value target = chain.make(parameters[0], parameters);
    Values in{target};
    if (by_rows) in.push_back(oracle::load_all(parameters[2], rows.shape));
    for (const auto& n : position) in.push_back(Numbers::use(n, parameters));
    if (writes) {
      in.insert(in.begin(), oracle::load_all(parameters[1], tile));
      oracle::apply(by_rows ? Op::scatter : Op::store, type, in);
    } else {
      const Value read = oracle::apply(by_rows ? Op::gather : Op::load, type, in,
                                       {padding.bits(Trace::current(oracle::here()))}, tile);
      oracle::store_all(parameters[1], read, tile.size());
    }
  });
  std::string wrong = bytes_difference(memory[0], expected_memory);
  if (!writes && wrong.empty()) wrong = oracle::difference(oracle::values_of(memory[1]), expected);
  if (wrong.empty()) return "";
  std::string text = wrong + "\n" + graph + "extents";
  for (std::size_t i = 0; i < memory[0].extents.size(); ++i)
    text += " " + std::to_string(memory[0].extents[i]) + ":" + std::to_string(memory[0].strides[i]);
  text += "; scalars";
  for (const Memory& m : memory)
    if (m.access == Access::scalar) text += " " + std::to_string(m.scalar.i32);
  return text;
}

void check_moves(Move move) {
  const Seeds seeds(3000);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("seed " << seed);
    CHECK(random_move(seed, move) == "");
  }
}

}  // namespace

TEST_CASE("loads of random views of random memory", "[cpu]") { check_moves(Move::load); }
TEST_CASE("stores to random views of random memory", "[cpu]") { check_moves(Move::store); }
TEST_CASE("gathers from random views of random memory", "[cpu]") { check_moves(Move::gather); }
TEST_CASE("scatters to random views of random memory", "[cpu]") { check_moves(Move::scatter); }

// Memory, in the language
// ------------------------------------------------------------------------------------------------

namespace {

template <class T>
bool equal(T a, T b) {
  if constexpr (std::is_arithmetic_v<T>)
    return a == b;
  else
    return a.bits == b.bits;
}

template <class T>
void check_ragged_copy() {
  const auto k = kernel("copy", [](In<T, 2> x, Out<T, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 3), cdiv(y.extent(1), 5));
    store(y, {m, n}, load(x, {m, n}, {3, 5}, 9));
  });
  for (const auto& [rows, cols] : {std::array{1, 1}, {3, 5}, {7, 11}, {4, 33}, {100, 1}, {1, 64}}) {
    for (int missing : {0, 1, 2}) {  // x is smaller than y: the rest of y is padding
      INFO(name(element_type<T>) << " " << rows << "x" << cols << " less " << missing);
      const int r = std::max(rows - missing, 0), c = std::max(cols - missing, 0);
      std::vector<T> values(static_cast<std::size_t>(r) * c),
          poison(static_cast<std::size_t>(rows) * cols, stored<T>(77));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = stored<T>(static_cast<int>(i) % 60 + 10);
      const auto x = tensor<T, 2>({r, c}, values), y = tensor<T, 2>({rows, cols}, poison);
      launch(test_device().stream(), k, x, y);
      const std::vector<T> got = y.to_vector();
      std::size_t wrong = 0;
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j)
          wrong += !equal(got[static_cast<std::size_t>(i) * cols + j],
                          i < r && j < c ? values[static_cast<std::size_t>(i) * c + j] : stored<T>(9));
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("ragged tensors of every stored type, padded", "[cpu]") {
  check_ragged_copy<f32>();
  check_ragged_copy<f16>();
  check_ragged_copy<bf16>();
  check_ragged_copy<i32>();
  check_ragged_copy<i64>();
  check_ragged_copy<u8>();
  check_ragged_copy<i8>();
  check_ragged_copy<i16>();
  check_ragged_copy<u16>();
  check_ragged_copy<u32>();
  check_ragged_copy<u64>();
}

TEST_CASE("padding is as specified", "[cpu]") {
  const auto k = kernel("padding", [](In<f32, 1> x, In<i64, 1> n, Out<f32, 2> y, Out<i64, 1> m) {
    store(y, {0, 0}, reshape(load(x, {0}, {4}), {1, 4}));
    store(y, {1, 0}, reshape(load(x, {0}, {4}, -inf), {1, 4}));
    store(y, {2, 0}, reshape(load(x, {0}, {4}, std::numeric_limits<double>::quiet_NaN()), {1, 4}));
    store(y, {3, 0}, reshape(load(x, {-1}, {4}, 2.5), {1, 4}));
    store(y, {4, 0}, reshape(load(x, {0}, {4}, 2.5), {1, 4}));  // the same load except for the padding
    store(y, {5, 0}, reshape(1 / load(x, {0}, {4}, -0.0), {1, 4}));
    store(m, {0}, load(n, {0}, {4}, std::numeric_limits<i64>::min()));
  });
  const auto x = tensor<f32, 1>({2}, {1, 2});
  const auto n = tensor<i64, 1>({3}, {1, 2, 3});
  const auto y = tensor<f32, 2>({6, 4}, std::vector<f32>(24, 77));
  const auto m = tensor<i64, 1>({4}, std::vector<i64>(4, 77));
  launch(test_device().stream(), k, x, n, y, m);
  const std::vector<f32> got = y.to_vector();
  const float i = INFINITY;
  const std::vector<f32> expected = {1,   2,   0,   0,   1, 2, -i,  -i,  1, 2,   NAN, NAN,
                                     2.5, 2.5, 2.5, 2.5, 1, 2, 2.5, 2.5, 1, 0.5, -i,  -i};
  for (std::size_t j = 0; j < expected.size(); ++j)
    CHECK((std::isnan(expected[j]) ? std::isnan(got[j]) : got[j] == expected[j]));
  CHECK(m.to_vector() == std::vector<i64>{1, 2, 3, std::numeric_limits<i64>::min()});
  // Padding that the type cannot hold is an error when traced.
  CHECK(error_of([] {
          (void)kernel("bad", [](In<u8, 1> in, Out<u8, 1> out) { store(out, {0}, load(in, {0}, {4}, -1)); });
        }) != "(no error)");
}

namespace {

/// Padding is a number that arithmetic does not produce: for loads, and for gathers of rows and of elements.
template <class T>
void check_padding(double padding) {
  INFO(name(element_type<T>) << " padded with " << padding);
  const auto k = kernel("padding", [=](In<T, 2> x, In<i32, 1> rows, Out<T, 3> y, Out<f32, 2> computed) {
    const auto keep = [&](int which, const auto& tile) { store(y, {which, 0, 0}, expand_dims(tile, 0)); };
    const Tile r = load(rows, {0}, {4});
    const Tile i = reshape(r, {4, 1}), j = iota({1, 8}, 1);
    keep(0, load(x, {0, 0}, {4, 8}, padding));
    keep(1, load(x, {-1, 0}, {4, 8}, padding));  // none of it exists
    keep(2, gather(x, r, {0}, {8}, padding));
    keep(3, gather(x, {i, j}, padding));
    keep(4, load(x.slice(1, 1, 4), {0, 0}, {4, 8}, padding));
    store(computed, {0, 0}, -cast<f32>(load(x, {0, 0}, {4, 8}, padding)));
  });
  constexpr int height = 3, width = 5;
  std::vector<T> values, untouched(5 * 4 * 8, stored<T>(77));
  for (int i = 0; i < height * width; ++i) values.push_back(stored<T>(i % 8 + 1));  // representable in 8 bits
  const std::vector<i32> rows = {2, -1, 0, 3};
  const auto y = tensor<T, 3>({5, 4, 8}, untouched);
  const auto computed = tensor<f32, 2>({4, 8}, std::vector<f32>(4 * 8, 77));
  launch(test_device().stream(), k, tensor<T, 2>({height, width}, values), tensor<i32, 1>({4}, rows), y, computed);
  const auto number = [](const T& x) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(x);
    else
      return static_cast<double>(static_cast<float>(x));
  };
  const auto same = [](double a, double b) {
    return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
  };
  const std::vector<T> got = y.to_vector();
  const std::vector<f32> negated = computed.to_vector();
  for (int which = 0; which < 5; ++which) {
    std::size_t wrong = 0;
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 8; ++j) {
        const int row = which == 1 ? -1 : which == 2 || which == 3 ? rows[static_cast<std::size_t>(i)] : i;
        const int column = which == 4 ? j + 1 : j;  // a slice ends where the tensor does, too
        const bool inside = row >= 0 && row < height && column < width;
        const double expected = inside ? (row * width + column) % 8 + 1 : padding;
        const auto at = static_cast<std::size_t>(i * 8 + j);
        wrong += !same(number(got[static_cast<std::size_t>(which) * 32 + at]), expected);
        if (which == 0) wrong += !same(static_cast<double>(negated[at]), -expected);
      }
    INFO("way " << which);
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("padding may be an infinity, a NaN or -0, for loads and for gathers", "[cpu]") {
  Cases cases(20);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double padding : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0})
    for (void (*const check)(double) :
         {check_padding<f16>, check_padding<f64>, check_padding<bf16>, check_padding<f32>, check_padding<f8e5m2>})
      if (!cases.skip()) check(padding);
}

TEST_CASE("tensors over a user's memory, with any strides", "[cpu]") {
  const auto k = kernel("sub", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c) {
    auto [m, n] = blocks(cdiv(c.extent(0), 4), cdiv(c.extent(1), 4));
    store(c, {m, n}, load(a, {m, n}, {4, 4}) - load(b, {m, n}, {4, 4}));
  });
  const Device& device = test_device();
  const std::vector<f32> a = numbered<f32>(200), b = numbered<f32>(200, 1000);
  const auto memory_a = tensor<f32, 1>({200}, a), memory_b = tensor<f32, 1>({200}, b);
  struct Layout {
    std::array<std::int64_t, 2> a, b, c;
    std::int64_t first_a, first_b, first_c;
  };
  for (const Layout& l : {Layout{{7, 1}, {7, 1}, {7, 1}, 0, 0, 0}, Layout{{1, 6}, {13, 2}, {1, 9}, 3, 0, 5},
                          Layout{{0, 1}, {1, 0}, {20, 3}, 2, 7, 1}, Layout{{0, 0}, {-7, -1}, {-8, 1}, 9, 60, 100},
                          Layout{{-1, 10}, {10, -1}, {-2, -11}, 50, 50, 150}}) {
    std::vector<f32> expected(300, -5);
    const auto c = tensor<f32, 1>({300}, expected);
    const Tensor<f32, 2> x(device, memory_a.data() + l.first_a, {6, 7}, l.a),
        y(device, memory_b.data() + l.first_b, {6, 7}, l.b), z(device, c.data() + l.first_c, {6, 7}, l.c);
    launch(device.stream(), k, x, y, z);
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 7; ++j)
        expected[l.first_c + i * l.c[0] + j * l.c[1]] =
            a[l.first_a + i * l.a[0] + j * l.a[1]] - b[l.first_b + i * l.b[0] + j * l.b[1]];
    CHECK(c.to_vector() == expected);
  }
}

TEST_CASE("views and their extents", "[cpu]") {
  const auto k = kernel(
      "views", [](In<i32, 3> x, Out<i32, 1> e, Out<i32, 2> y, Out<i32, 2> z, Scalar<i32> start, Scalar<i32> extent) {
        const auto part = x.slice(-1, start, extent);
        const auto transposed = part.permute({-1, 0, 1});
        const auto again = transposed.slice(0, 1, 2);
        store(e, {0}, reshape(x.extent(2) + 0 * start, {1}));
        store(e, {1}, reshape(part.extent(-1) + 0 * start, {1}));
        store(e, {2}, reshape(transposed.extent(0) + 0 * start, {1}));
        store(e, {3}, reshape(transposed.extent(1) + 0 * start, {1}));
        store(e, {4}, reshape(again.extent(0) + 0 * start, {1}));
        store(e, {5}, reshape(again.extent(-1) + 0 * start, {1}));
        store(y, {0, 0}, reshape(load(transposed, {0, 1, 0}, {4, 1, 3}, -1), {4, 3}));
        store(z, {0, 0}, reshape(load(again, {0, 0, 0}, {4, 1, 3}, -2), {4, 3}));
      });
  const auto x = tensor<i32, 3>({2, 3, 5}, numbered<i32>(30));
  const auto e = tensor<i32, 1>({6}, std::vector<i32>(6, 77));
  const auto y = tensor<i32, 2>({4, 3}, std::vector<i32>(12, 77)), z = tensor<i32, 2>({4, 3}, std::vector<i32>(12, 77));
  launch(test_device().stream(), k, x, e, y, z, 2, 3);
  CHECK(e.to_vector() == std::vector<i32>{5, 3, 3, 2, 2, 3});
  CHECK(y.to_vector() == std::vector<i32>{17, 22, 27, 18, 23, 28, 19, 24, 29, -1, -1, -1});
  CHECK(z.to_vector() == std::vector<i32>{3, 8, 13, 4, 9, 14, -2, -2, -2, -2, -2, -2});
  launch(test_device().stream(), k, x, e, y, z, -1, 3);
  CHECK(e.to_vector()[1] == 3);
  CHECK(y.to_vector() == std::vector<i32>{-1, -1, -1, 15, 20, 25, 16, 21, 26, -1, -1, -1});
  CHECK(z.to_vector() == std::vector<i32>{0, 5, 10, 1, 6, 11, -2, -2, -2, -2, -2, -2});
}

TEST_CASE("stores through views leave everything else unchanged", "[cpu]") {
  const auto k = kernel("append", [](In<i32, 1> lengths, In<i32, 3> fresh, Out<i32, 3> cache) {
    Index b = blocks(fresh.extent(0));
    const Tile start = item(load(lengths, {b}, {1}));
    store(cache.slice(1, start, 2), {b, 0, 0}, load(fresh, {b, 0, 0}, {1, 4, 3}));  // 4 rows, of which 2 exist
  });
  const auto lengths = tensor<i32, 1>({4}, {0, 3, 5, -1});
  const auto fresh = tensor<i32, 3>({4, 4, 3}, numbered<i32>(48, 100));
  std::vector<i32> expected(4 * 6 * 3, -7);
  const auto cache = tensor<i32, 3>({4, 6, 3}, expected);
  launch(test_device().stream(), k, lengths, fresh, cache);
  const int starts[] = {0, 3, 5, -1};
  for (int b = 0; b < 4; ++b)
    for (int row = 0; row < 2; ++row)
      for (int i = 0; i < 3; ++i)
        if (const int to = starts[b] + row; to >= 0 && to < 6)
          expected[(b * 6 + to) * 3 + i] = 100 + (b * 4 + row) * 3 + i;
  CHECK(cache.to_vector() == expected);
}

TEST_CASE("gather and scatter in the language", "[cpu]") {
  const auto k = kernel("rows", [](In<f32, 2> table, In<i32, 1> rows, In<i64, 1> line, Out<f32, 2> y, Out<i64, 1> z,
                                   Out<f32, 2> back, Out<i64, 1> line_back) {
    const Tile r = load(rows, {0}, {6});
    const Tile t = gather(table, r, {1}, {2}, 7);
    store(y, {0, 0}, t);
    const Tile l = gather(line, r, -1);
    store(z, {0}, l);
    scatter(back, r, {0}, t + 100);
    scatter(line_back, r, l * 2);
  });
  const auto table = tensor<f32, 2>({4, 3}, numbered<f32>(12));
  const auto rows = tensor<i32, 1>({6}, {3, -1, 0, 4, 2, INT_MIN});
  const auto line = tensor<i64, 1>({4}, {10, 11, 12, 13});
  const auto y = tensor<f32, 2>({6, 2}, std::vector<f32>(12, 77)),
             back = tensor<f32, 2>({4, 2}, std::vector<f32>(8, 77));
  const auto z = tensor<i64, 1>({6}, std::vector<i64>(6, 77)), line_back = tensor<i64, 1>({4}, std::vector<i64>(4, 77));
  launch(test_device().stream(), k, table, rows, line, y, z, back, line_back);
  CHECK(y.to_vector() == std::vector<f32>{11, 7, 7, 7, 2, 7, 7, 7, 8, 7, 7, 7});
  CHECK(z.to_vector() == std::vector<i64>{13, -1, 10, -1, 12, -1});
  CHECK(back.to_vector() == std::vector<f32>{102, 107, 77, 77, 108, 107, 111, 107});
  CHECK(line_back.to_vector() == std::vector<i64>{20, 77, 24, 26});
}

TEST_CASE("elements by tiles of indices", "[cpu]") {
  const auto k = kernel("elements", [](In<f32, 2> table, In<i32, 1> rows, Out<f32, 2> y, InOut<f32, 2> z,
                                       InOut<i32, 1> bins, Out<f32, 1> one) {
    Tile i = reshape(load(rows, {0}, {6}), {6, 1}), j = 3 - iota({1, 5}, 1);
    Tile x = gather(table, {i, j}, 7);
    store(y, {0, 0}, x);
    scatter(z, {j, i}, x + 1);
    Tile bin = load(rows, {0}, {6});
    atomic_add(bins, {bin}, full<i32>({1}, 10));
    atomic_add(bins, {bin}, iota({6}, 0));
    Tile a = constant<i32>(1), b = constant<i32>(2);
    store(one, {0}, reshape(gather(table, {a, b}), {1}));
  });
  const auto table = tensor<f32, 2>({4, 3}, numbered<f32>(12));
  const auto rows = tensor<i32, 1>({6}, {3, -1, 0, 0, 2, INT_MIN});
  const auto y = tensor<f32, 2>({6, 5}, std::vector<f32>(30, 77)), z = tensor<f32, 2>({3, 4}, std::vector<f32>(12, 77));
  const auto bins = tensor<i32, 1>({4}, {1, 2, 3, 4});
  const auto one = tensor<f32, 1>({1}, {77});
  launch(test_device().stream(), k, table, rows, y, z, bins, one);
  const auto row = [](float r) { return std::vector<f32>{7, r + 2, r + 1, r, 7}; };
  std::vector<f32> y_expected;
  for (const float r : {9.0f, -1.0f, 0.0f, 0.0f, 6.0f, -1.0f})
    for (const float x : r < 0 ? std::vector<f32>(5, 7) : row(r)) y_expected.push_back(x);
  CHECK(y.to_vector() == y_expected);
  CHECK(z.to_vector() == std::vector<f32>{1, 77, 7, 10, 2, 77, 8, 11, 3, 77, 9, 12});
  CHECK(bins.to_vector() == std::vector<i32>{26, 2, 17, 14});
  CHECK(one.to_vector() == std::vector<f32>{5});
}

TEST_CASE("elements of a transposed and sliced view", "[cpu]") {
  const auto k = kernel("views", [](In<f16, 2> x, In<i32, 2> at, InOut<f16, 2> y, Out<f16, 2> z) {
    Index b = blocks(3);
    auto part = x.permute({1, 0}).slice(0, b, 4);
    Tile i = load(at, {b, 0}, {5, 32}), j = where(i % 3 == 0, -1, i / 2);
    Tile found = gather(part, {i, j}, -0.5f);
    store(y, {b, 0}, found);
    Tile again = gather(y.slice(0, b * 5, 5), {j, i}, 3);
    store(z, {b, 0}, again);
  });
  std::vector<f16> numbers;
  for (int i = 0; i < 63; ++i) numbers.emplace_back(static_cast<float>(i));
  const auto x = tensor<f16, 2>({9, 7}, numbers);
  std::vector<i32> places(15 * 32);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<i32>(i * 7 % 11) - 2;
  const auto at = tensor<i32, 2>({15, 32}, places);
  const auto y = tensor<f16, 2>({15, 32}, std::vector<f16>(480, f16(77))),
             z = tensor<f16, 2>({15, 32}, std::vector<f16>(480, f16(77)));
  launch(test_device().stream(), k, x, at, y, z);
  const auto found = y.to_vector(), again = z.to_vector();
  std::vector<f32> y_is, z_is, y_wanted, z_wanted;
  for (int b = 0; b < 3; ++b)
    for (int e = 0; e < 160; ++e) {
      const int n = b * 160 + e, i = places[static_cast<std::size_t>(n)], half = i >= 0 ? i / 2 : (i - 1) / 2,
                j = i % 3 == 0 ? -1 : half;
      const bool inside = i >= 0 && i < 4 && i + b < 7 && j >= 0 && j < 9;
      y_is.push_back(static_cast<float>(found[static_cast<std::size_t>(n)]));
      y_wanted.push_back(inside ? static_cast<float>(j * 7 + i + b) : -0.5f);
      const bool there = j >= 0 && j < 5 && i >= 0 && i < 32;
      z_is.push_back(static_cast<float>(again[static_cast<std::size_t>(n)]));
      z_wanted.push_back(there ? static_cast<float>(found[static_cast<std::size_t>((b * 5 + j) * 32 + i)]) : 3.0f);
    }
  CHECK(y_is == y_wanted);
  CHECK(z_is == z_wanted);
}

namespace {

template <class T>
void check_repeated_indices(int rows, int columns, int colors) {
  INFO(name(element_type<T>) << " [" << rows << "," << columns << "," << colors << "]");
  const auto k = kernel("repeated", [=](In<T, 3> table, In<i32, 3> any, Out<T, 3> y, Out<T, 3> z, Out<T, 3> spread,
                                        InOut<i32, 3> counts) {
    Tile i = iota({rows, 1, 1}, 0) * 2 - 1, j = columns - iota({1, columns, 1}, 1), c = iota({1, 1, colors}, 2);
    Tile l = load(any, {0, 0, 0}, {rows, columns, colors});
    Tile by_axes = gather(table, {i, j, c}, 5);
    store(y, {0, 0, 0}, by_axes);
    store(z, {0, 0, 0}, gather(table, {l, j, c}, 6));
    scatter(spread, {i, j, c}, by_axes);
    atomic_add(counts, {i, l, c}, full<i32>({1, 1, 1}, 1));
  });
  const std::int64_t size = std::int64_t{rows} * columns * colors;
  const auto extents = std::array<std::int64_t, 3>{rows, columns, colors};
  Rng rng(5);
  std::vector<T> table(static_cast<std::size_t>(size));
  std::vector<i32> any(table.size());
  for (T& x : table) x = static_cast<T>(rng() % 100);
  for (i32& x : any) x = oracle::between(rng, -1, std::min(rows, columns));
  const auto place = [&](int i, int j, int c) {
    const bool there = i >= 0 && i < rows && j >= 0 && j < columns;
    return there ? (static_cast<std::size_t>(i) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(j)) *
                           static_cast<std::size_t>(colors) +
                       static_cast<std::size_t>(c)
                 : table.size();
  };
  std::vector<T> y(table.size()), z(table.size()), spread(table.size(), T(77));
  std::vector<i32> counts(table.size());
  for (int r = 0; r < rows; ++r)
    for (int s = 0; s < columns; ++s)
      for (int c = 0; c < colors; ++c) {
        const std::size_t here = place(r, s, c), from = place(2 * r - 1, columns - s, c),
                          other = place(any[here], columns - s, c), counted = place(2 * r - 1, any[here], c);
        y[here] = from < table.size() ? table[from] : T(5);
        z[here] = other < table.size() ? table[other] : T(6);
        if (from < table.size()) spread[from] = y[here];
        if (counted < table.size()) ++counts[counted];
      }
  const auto t = tensor<T, 3>(extents, table), y_is = tensor<T, 3>(extents, std::vector<T>(table.size(), T(77))),
             z_is = tensor<T, 3>(extents, std::vector<T>(table.size(), T(77))),
             spread_is = tensor<T, 3>(extents, std::vector<T>(table.size(), T(77)));
  const auto counts_are = tensor<i32, 3>(extents, std::vector<i32>(table.size()));
  launch(test_device().stream(), k, t, tensor<i32, 3>(extents, any), y_is, z_is, spread_is, counts_are);
  CHECK(y_is.to_vector() == y);
  CHECK(z_is.to_vector() == z);
  CHECK(spread_is.to_vector() == spread);
  CHECK(counts_are.to_vector() == counts);
}

}  // namespace

TEST_CASE("elements by indices that repeat along axes, in rows of any length", "[cpu]") {
  for (const auto [rows, columns, colors] : {std::array{3, 130, 3}, std::array{130, 3, 3}, std::array{2, 5, 200},
                                             std::array{1, 1, 700}, std::array{40, 1, 40}, std::array{2, 600, 1}}) {
    check_repeated_indices<u8>(rows, columns, colors);
    check_repeated_indices<f64>(rows, columns, colors);
  }
}

// The text of such a kernel does not contain the name of the type, so no overload may depend on it.
TEST_CASE("gathers and scatters beside 64-bit values that are not in a tensor", "[cpu]") {
  const auto k = kernel("between", [](In<i32, 1> x, Out<f32, 1> y, Out<i32, 1> z, Out<i8, 1> d) {
    Index b = blocks(1);
    const Tile rows = b * 32 + iota({32}, 0);
    const Tile v = gather(x, rows);
    scatter(y, rows, cast<f32>(where(v > 0, full<i64>({32}, 5'000'000'000), full<i64>({32}, 7)) * 3));
    scatter(z, rows, cast<i32>(cast<i64>(v) * 3));
    scatter(d, rows, cast<i8>(cast<f64>(v << 6)));
  });
  std::vector<i32> values(32);
  std::vector<f32> y_expected(32);
  std::vector<i32> z_expected(32);
  std::vector<i8> d_expected(32);
  for (std::size_t i = 0; i < 32; ++i) {
    values[i] = static_cast<i32>(i % 7) - 3;
    d_expected[i] = static_cast<i8>(std::clamp(values[i] * 64, -128, 127));
    y_expected[i] = values[i] > 0 ? 15e9f : 21.0f;
    z_expected[i] = values[i] * 3;
  }
  const auto x = tensor<i32, 1>({32}, values);
  const auto y = tensor<f32, 1>({32}, std::vector<f32>(32, 77));
  const auto z = tensor<i32, 1>({32}, std::vector<i32>(32, 77));
  const auto d = tensor<i8, 1>({32}, std::vector<i8>(32, 77));
  launch(test_device().stream(), k, x, y, z, d);
  CHECK(y.to_vector() == y_expected);
  CHECK(z.to_vector() == z_expected);
  CHECK(d.to_vector() == d_expected);
}

TEST_CASE("colliding scatters leave one of the values", "[cpu]") {
  const auto k = kernel("collide", [](In<i32, 1> rows, Out<i32, 2> y) {
    Index b = blocks(8);
    scatter(y, load(rows, {b}, {16}), {0}, b * 1000 + iota({16, 3}, 0) * 10);
  });
  Rng rng(31);
  std::vector<i32> rows(128);
  for (i32& row : rows) row = oracle::between(rng, -1, 5);
  const auto r = tensor<i32, 1>({128}, rows);
  const auto y = tensor<i32, 2>({5, 3}, std::vector<i32>(15, -7));
  launch(test_device().stream(), k, r, y);
  const std::vector<i32> got = y.to_vector();
  for (int row = 0; row < 5; ++row) {
    for (int i = 0; i < 3; ++i) {
      const i32 value = got[row * 3 + i];
      REQUIRE(value >= 0);
      CHECK(rows[value / 1000 * 16 + value % 1000 / 10] == row);
    }
  }
}

TEST_CASE("a gather from a table of three axes, transposed and sliced", "[cpu]") {
  const auto k = kernel("table", [](In<i32, 3> x, In<i32, 1> rows, Out<i32, 3> y) {
    const Tile r = load(rows, {0}, {4});
    store(y, {0, 0, 0}, gather(x.permute({1, 2, 0}).slice(0, 1, 3), r, {0, 1}, {4, 1}, -1));
  });
  const auto x = tensor<i32, 3>({2, 5, 3}, numbered<i32>(30));
  const auto rows = tensor<i32, 1>({4}, {2, 0, 3, -1});
  const auto y = tensor<i32, 3>({4, 4, 1}, std::vector<i32>(16, 77));
  launch(test_device().stream(), k, x, rows, y);
  // Element [row, i, 1] of the view is x[1, row + 1, i].
  CHECK(y.to_vector() == std::vector<i32>{24, 25, 26, -1, 18, 19, 20, -1, -1, -1, -1, -1, -1, -1, -1, -1});
}

namespace {

template <class T>
void check_atomics() {
  const auto k = kernel("count", [](In<T, 2> x, InOut<T, 1> total, InOut<T, 2> cell) {
    auto [m, n] = blocks(cdiv(x.extent(0), 4), cdiv(x.extent(1), 8));
    const Tile t = load(x, {m, n}, {4, 8});
    atomic_add(total, {n}, reshape(sum(t, 0), {8}));
    atomic_add(cell, {0, 0}, sum(sum(t, 0), 1));
    atomic_add(cell, {-1, 0}, sum(sum(t, 0), 1));  // out of bounds
  });
  constexpr int rows = 333, cols = 37;
  std::vector<T> values(rows * cols), columns(cols);
  T all = 0;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      const T value = static_cast<T>((i * 7 + j * 3) % 19 - 9);
      values[i * cols + j] = value, columns[j] += value, all += value;
    }
  }
  const auto x = tensor<T, 2>({rows, cols}, values);
  const auto total = tensor<T, 1>({cols}, std::vector<T>(cols, T(5)));
  const auto cell = tensor<T, 2>({1, 1}, std::vector<T>{T(100)});
  launch(test_device().stream(), k, x, total, cell);
  for (T& column : columns) column += 5;
  CHECK(total.to_vector() == columns);
  CHECK(cell.to_vector()[0] == all + 100);
}

}  // namespace

TEST_CASE("atomic_add from many CTAs", "[cpu]") {
  check_atomics<f32>();
  check_atomics<i32>();
  check_atomics<i64>();
}

TEST_CASE("an output without elements, or with a stride that no two elements use, is valid", "[cpu]") {
  const auto k = kernel("outputs", [](Out<i32, 2> x, InOut<i32, 2> y) {
    store(x, {0, 0}, full<i32>({2, 3}, 5));
    atomic_add(y, {0, 0}, full<i32>({2, 3}, 5));
  });
  for (const auto& [rows, cols] : {std::array{0, 5}, {5, 0}, {0, 0}, {1, 0}, {0, 1}}) {
    INFO(rows << "x" << cols);
    const auto x = tensor<i32, 2>({rows, cols}, {}), y = tensor<i32, 2>({rows, cols}, {});
    CHECK(error_of([&] { launch(test_device().stream(), k, x, y); }) == "(no error)");
  }
  const auto a = tensor<i32, 1>({5}, std::vector<i32>(5, 77)), b = tensor<i32, 1>({5}, std::vector<i32>(5, 77));
  const Tensor<i32, 2> x(test_device(), a.data(), {1, 2}, {0, 2}), y(test_device(), b.data() + 1, {2, 1}, {1, 0});
  CHECK(error_of([&] { launch(test_device().stream(), k, x, y); }) == "(no error)");
  CHECK(a.to_vector() == std::vector<i32>{5, 77, 5, 77, 77});
  CHECK(b.to_vector() == std::vector<i32>{77, 82, 82, 77, 77});
}

TEST_CASE("an output that overlaps another argument is rejected", "[cpu]") {
  const auto k = kernel("overlap", [](In<i32, 1> x, In<i32, 1> w, Out<i32, 1> y) {
    store(y, {0}, load(x, {0}, {4}) + load(w.slice(0, 0, 4), {0}, {4}));
  });
  const auto x = tensor<i32, 1>({12}, numbered<i32>(12));
  CHECK_THROWS_AS(launch(test_device().stream(), k, x, x, x), Error);
  CHECK_THROWS_AS(launch(test_device().stream(), k, x.slice(0, 0, 4), x.slice(0, 8, 4), x.slice(0, 3, 4)), Error);
  CHECK_THROWS_AS(launch(test_device().stream(), k, x.slice(0, 8, 4), x.slice(0, 0, 4), x.slice(0, 3, 4)), Error);
  CHECK(x.to_vector() == numbered<i32>(12));
  launch(test_device().stream(), k, x.slice(0, 0, 4), x.slice(0, 0, 4),
         x.slice(0, 4, 4));  // inputs may be the same; neighbors do not overlap
  CHECK(x.to_vector() == std::vector<i32>{0, 1, 2, 3, 0, 2, 4, 6, 8, 9, 10, 11});
}

}  // namespace test_memory
