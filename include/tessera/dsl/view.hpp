// Kernel parameters, and the ops that access memory.
#pragma once
#include "tessera/dsl/combine.hpp"
#include "tessera/dsl/index_tiles.hpp"
#include "tessera/dsl/sort.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
// f32 for types that no tensor holds, so that only one error is reported.
template <class T>
constexpr ElementType stored_type() {
  if constexpr (Stored<T>)
    return element_type<T>;
  else
    return ElementType::f32;
}
}  // namespace detail

template <Access access_, class T, int R>
class TiledView;

/// A tensor parameter of element type T and rank R, or a view of one. In is read, Out is written, InOut is both; loads
/// from an In may be reordered freely.
template <Access access_, class T, int R>
class TensorView {
  static_assert(detail::check_stored<T>());
  static_assert(R >= 1 && R <= max_rank, "tessera: a tensor has 1 to 6 axes");

 public:
  using type = T;
  static constexpr int rank = R;
  static constexpr Access access = access_;
  static constexpr Parameter parameter{access_, detail::stored_type<T>(), R};

  explicit TensorView(Handle value) : value_(value) {}

  Index extent(Axis axis) const {
    Trace& trace = Trace::current(axis.location);
    return Index(trace.apply(Op::extent, ElementType::i32, {value_}, {trace.axis(axis, R, "extent")}, axis.location));
  }
  /// The elements start, start + step, ... along the axis, `extent` of them; a negative step goes backwards. Elements
  /// outside of this view read as padding. Error at trace time if the step is 0.
  TensorView slice(Axis axis, Coord start, Coord extent, Count step = 1) const {
    Trace& trace = Trace::current(axis.location);
    return TensorView(trace.apply(Op::slice, element_type<T>, {value_, start.value(), extent.value()},
                                  {trace.axis(axis, R, "slice"), step}, axis.location));
  }
  /// Replaces the axis by two: windows of `size` elements, each beginning `step` elements after the one before,
  /// followed by the elements of one window. [.., n, ..] becomes [.., (n - size) / step + 1, size, ..], and (w, i) is
  /// element w * step + i. Incomplete windows are left out. Error at trace time if the axis is a slice, or if windows
  /// of an Out or an InOut share elements.
  auto unfold(Axis axis, Count size, Count step) const {
    static_assert(R < max_rank, "tessera: a view has at most 6 axes, and unfold makes one more");
    Trace& trace = Trace::current(axis.location);
    return TensorView<access_, T, R + 1>(trace.apply(Op::unfold_view, element_type<T>, {value_},
                                                     {trace.axis(axis, R, "unfold"), size, step}, axis.location));
  }
  /// Splits the axis into rows of `size` elements: [.., n, ..] becomes [.., n / size, size, ..]. A launch where `size`
  /// does not divide n is rejected. Errors at trace time are those of unfold. Call it outside of loops and if_.
  auto unflatten(Axis axis, Count size) const {
    Trace& trace = Trace::current(axis.location);
    const auto rows = unfold(axis, size, size);
    trace.require((extent(axis) % int{size} == 0).lower(trace, axis.location),
                  "axis " + std::to_string(trace.axis(axis, R, "unflatten")) + " of the view consists of rows of " +
                      std::to_string(size) + " elements, as unflatten requires",
                  axis.location);
    return rows;
  }
  /// Merges the axis and the one after it, row by row: [.., m, n, ..] becomes [.., m n, ..]. A launch is rejected if
  /// the rows of the tensor do not follow one another in memory. Error at trace time if one of the axes is a slice, or
  /// windows.
  auto flatten(Axis axis) const {
    static_assert(R > 1, "tessera: flatten merges two axes, and a view of rank 1 has only one");
    Trace& trace = Trace::current(axis.location);
    return TensorView<access_, T, R == 1 ? 1 : R - 1>(trace.apply(
        Op::flatten_view, element_type<T>, {value_}, {trace.axis(axis, R, "flatten")}, axis.location));
  }
  /// Axis i of the result is axis axes[i] of this view.
  TensorView permute(const int (&axes)[R], Location location = Location::current()) const {
    Trace& trace = Trace::current(location);
    std::vector<std::int64_t> normal;
    for (int axis : axes) normal.push_back(trace.axis({axis, location}, R, "permute"));
    return TensorView(trace.apply(Op::permute_view, element_type<T>, std::vector<Handle>{value_}, normal, location));
  }

  template <int N>
  requires(N != R) TensorView permute(const int (&)[N])
  const {
    static_assert(N == R, "tessera: permute must name each axis of the view once");
    return *this;
  }

  /// The view divided into tiles of one shape (dsl/tiled_view.hpp).
  TiledView<access_, T, R> tiles(const Extent (&shape)[R], Location location = Location::current()) const;

  template <class I>
  Refused<f32, 0> operator[](const I&) const {
    static_assert(std::is_void_v<I>,
                  "tessera: a tensor in a kernel has no [ ]: load(x, {i, j}, {m, n}) reads the tile at a tile "
                  "position, store(y, {i, j}, tile) writes one, and gather(x, {i, j}) and scatter(y, {i, j}, tile) "
                  "access single elements");
    return {};
  }

  Handle value() const { return value_; }

 private:
  Handle value_;
};
/// A parameter of a kernel: a tensor that the kernel only reads.
template <class T, int R>
using In = TensorView<Access::in, T, R>;
/// A parameter of a kernel: a tensor that the kernel only writes.
template <class T, int R>
using Out = TensorView<Access::out, T, R>;
/// A parameter of a kernel: a tensor that the kernel reads and writes, in program order within a block.
template <class T, int R>
using InOut = TensorView<Access::in_out, T, R>;

/// A tensor parameter that a launch may leave out, by std::nullopt in place of a tensor: Optional<In<f32, 1>> bias. Its
/// extents are then 0, so loads return their padding and stores are dropped; such a launch has code of its own, without
/// these accesses.
template <class View>
class Optional : public View {
 public:
  static constexpr Parameter parameter{View::access, View::parameter.type, View::rank, true};
  explicit Optional(Handle value) : View(value) {}
  /// Does the launch give a tensor, with elements along its first axis?
  Tile<pred, 0> present(Location location = Location::current()) const {
    return Tile<pred, 0>(this->extent(Axis(0, location)) > 0, location);
  }
};
template <Element T>
class Scalar;
template <class T>
class Optional<Scalar<T>> {
  static_assert(!std::same_as<T, T>, "tessera: an Optional parameter is an In, Out or InOut; give a Scalar a default");
};

/// Tensors as one parameter: List<In<f32, 2>, 8> takes up to `most` tensors of one element type and rank, each with
/// extents and strides of its own. A launch is given a std::vector of tensors, or another contiguous range of them.
template <class View, int most>
class List {
  static_assert(most >= 1 && most <= 1024, "tessera: a List has 1 to 1024 tensors");
  static_assert(requires { View::access; } && !View::parameter.optional,
                "tessera: a List consists of In, Out or InOut: List<In<f32, 2>, 8>");

 public:
  using Tensor = View;
  static constexpr int tensors = most;
  /// Its tensors, then their number.
  static constexpr std::array<Parameter, most + 1> parameters = [] {
    std::array<Parameter, most + 1> all{};
    for (int i = 0; i <= most; ++i) {
      Parameter& at = all[static_cast<std::size_t>(i)];
      at = i < most ? View::parameter : Parameter{Access::scalar, ElementType::i32, 0};
      at.list = most + 1 - i;
    }
    return all;
  }();

  List(Handle size, std::int64_t first) : size_(size), first_(first) {}

  /// The number of tensors that the launch gives.
  Index size() const { return Index(size_); }
  /// The tensor with this number, from 0. Outside of [0, size()) it is a tensor without elements: its extents are 0,
  /// loads from it return their padding, and stores to it are dropped.
  View operator[](const Coord& number) const {
    Trace& trace = Trace::current(number.location());
    return View(trace.apply(Op::member, View::parameter.type, {number.value()}, {first_}, number.location()));
  }

 private:
  Handle size_;
  std::int64_t first_;
};

/// A number of element type T that is given at launch; a value of rank 0.
template <Element T>
class Scalar : public ExprTag {
  static_assert(Computing<T>, "tessera: a scalar parameter is f32, f64, i32, i64, u32 or u64");

 public:
  using type = T;
  static constexpr int rank = 0;
  static constexpr Parameter parameter{Access::scalar, element_type<T>, 0};
  explicit Scalar(Handle value) : value_(value) {}
  Handle lower(Trace&, Location) const { return value_; }
  Leaf<T, 0> leaf() const { return Leaf<T, 0>(value_); }

 private:
  Handle value_;
};

namespace detail {

template <Access access, Element T, int R>
auto read(Handle value) {
  if constexpr (access == Access::in_out)
    return OrderedTile<T, R>(value);
  else
    return Tile<T, R>(value);
}

template <Access access>
constexpr void check_readable() {
  static_assert(access != Access::out, "tessera: an Out is only written; declare the parameter InOut to read it too");
}
template <Access access, Element T, int R, class E>
constexpr void check_writable() {
  static_assert(access != Access::in, "tessera: an In is only read; declare the parameter Out or InOut to write it");
  static_assert(is_refused<E> || std::same_as<typename E::type, T>,
                "tessera: the tile and the tensor have different element types; cast<T>(tile)");
  static_assert(E::rank == R, "tessera: the tile and the tensor have different ranks; reshape the tile");
}

inline std::vector<Handle> operands(std::initializer_list<Handle> first, std::span<const Coord> at) {
  std::vector<Handle> in(first);
  for (const Coord& coord : at) in.push_back(coord.value());
  return in;
}
// The same with tiles of indices; these and the tile that is written (first[0]) are broadcast to one shape.
template <class I, int N>
std::vector<Handle> element_operands(Trace& trace, Op op, std::vector<Handle> first, std::span<const Tile<I, N>> at,
                                     Location location) {
  std::vector<Handle> tiles;
  for (const Tile<I, N>& index : at) tiles.push_back(index_tile(trace, index, location));
  const bool writes = first.size() > 1;
  if (writes) tiles.push_back(first[0]);
  tiles = trace.stretched(op, std::move(tiles), location);
  if (writes) first[0] = tiles.back(), tiles.pop_back();
  first.insert(first.end(), tiles.begin(), tiles.end());
  return first;
}
// Any index, for the error about indices that do not fit.
struct AnyIndex {
  template <class E>
  AnyIndex(const E&) {}
};

}  // namespace detail

/// The tile of the given shape at tile position `at`, of the view's element type. Elements outside of the view read as
/// `padding`. Error at trace time if `padding` does not fit the type.
template <Access access, Element T, int R>
auto load(const TensorView<access, T, R>& view, const Coord (&at)[R], const Extent (&shape)[R], Number padding = 0,
          Location location = Location::current()) {
  detail::check_readable<access>();
  Trace& trace = Trace::current(location);
  return detail::read<access, T, R>(trace.apply(Op::load, element_type<T>, detail::operands({view.value()}, at),
                                                {trace.literal_bits(element_type<T>, padding, location)}, location,
                                                detail::shape_of(shape)));
}

/// Gathers rows: row i of the result is row rows[i] (an element index, i32 or i64) of the view; along the other axes it
/// is the tile of the given shape at tile position `at`. The result has shape [rows, shape...]. Rows out of range read
/// as `padding`.
template <Access access, Element T, int R, TileExpr Rows, int S>
auto gather(const TensorView<access, T, R>& view, const Rows& rows, const Coord (&at)[S], const Extent (&shape)[S],
            Number padding = 0, Location location = Location::current()) {
  detail::check_readable<access>();
  static_assert(IndexType<typename Rows::type> && Rows::rank == 1,
                "tessera: row indices are a tile of i32 or i64, of rank 1");
  static_assert(S == R - 1, "tessera: gather takes an index and an extent for every axis but the first");
  Trace& trace = Trace::current(location);
  const Handle index = detail::index_tile(trace, rows, location);
  trace.use(index, location);
  Shape result = Shape::of_rank(R);
  result[0] = trace.shape(index, location)[0];
  for (int i = 0; i < S; ++i) result[i + 1] = shape[i];
  return detail::read<access, T, R>(
      trace.apply(Op::gather, element_type<T>, detail::operands({view.value(), index}, at),
                  {trace.literal_bits(element_type<T>, padding, location)}, location, result));
}
template <Access access, Element T, TileExpr Rows>
auto gather(const TensorView<access, T, 1>& view, const Rows& rows, Number padding = 0,
            Location location = Location::current()) {
  detail::check_readable<access>();
  static_assert(IndexType<typename Rows::type> && Rows::rank == 1,
                "tessera: row indices are a tile of i32 or i64, of rank 1");
  Trace& trace = Trace::current(location);
  const Handle index = detail::index_tile(trace, rows, location);
  trace.use(index, location);
  return detail::read<access, T, 1>(trace.apply(Op::gather, element_type<T>, {view.value(), index},
                                                {trace.literal_bits(element_type<T>, padding, location)}, location,
                                                trace.shape(index, location)));
}

/// Gathers elements: element p of the result is x[i[p], j[p], ...]. There is one tile of element indices, i32 or
/// i64, for each axis of the view, named Tiles of one rank, which are broadcast to one shape; the result has that
/// shape. An element out of range reads as `padding`.
template <Access access, Element T, int R, IndexType I, int N>
auto gather(const TensorView<access, T, R>& view, const Tile<I, N> (&at)[R], Number padding = 0,
            Location location = Location::current()) {
  detail::check_readable<access>();
  Trace& trace = Trace::current(location);
  return detail::read<access, T, N>(
      trace.apply(Op::gather_elements, element_type<T>,
                  detail::element_operands<I, N>(trace, Op::gather_elements, {view.value()}, at, location),
                  {trace.literal_bits(element_type<T>, padding, location)}, location));
}
template <Access access, Element T, int R, int A>
Tile<T, R> gather(const TensorView<access, T, R>&, const detail::AnyIndex (&)[A], Number = 0,
                  Location = Location::current()) {
  static_assert(A == R, "tessera: gather takes a tile of indices for each axis of the tensor");
  static_assert(
      A != R,
      "tessera: gather takes named Tiles of i32, or of i64, of one rank as indices: Tile i = ...; gather(x, {i, j})");
  return Tile<T, R>(Handle());
}

/// Writes a tile at tile position `at`; elements outside of the view are dropped.
template <Access access, Element T, int R, TileExpr E>
void store(const TensorView<access, T, R>& view, const Coord (&at)[R], const E& tile,
           Location location = Location::current()) {
  detail::check_writable<access, T, R, E>();
  Trace& trace = Trace::current(location);
  trace.apply(Op::store, element_type<T>, detail::operands({tile.lower(trace, location), view.value()}, at), {},
              location);
}

template <Access access, Element T, int R, Literal N>
void store(const TensorView<access, T, R>&, const Coord (&)[R], const N&) {
  static_assert(!std::same_as<N, N>,
                "tessera: store takes a tile, whose shape sets how much is written: full<f32>({..}, x), or "
                "zeros<f32>({..})");
}

/// Writes row i of the tile to row rows[i] of the view. Rows out of range are dropped; if rows are equal, one of them
/// is stored.
template <Access access, Element T, int R, TileExpr Rows, int S, TileExpr E>
void scatter(const TensorView<access, T, R>& view, const Rows& rows, const Coord (&at)[S], const E& tile,
             Location location = Location::current()) {
  detail::check_writable<access, T, R, E>();
  static_assert(IndexType<typename Rows::type> && Rows::rank == 1,
                "tessera: row indices are a tile of i32 or i64, of rank 1");
  static_assert(S == R - 1, "tessera: scatter takes an index for every axis but the first");
  Trace& trace = Trace::current(location);
  trace.apply(
      Op::scatter, element_type<T>,
      detail::operands({tile.lower(trace, location), view.value(), detail::index_tile(trace, rows, location)}, at), {},
      location);
}
template <Access access, Element T, TileExpr Rows, TileExpr E>
void scatter(const TensorView<access, T, 1>& view, const Rows& rows, const E& tile,
             Location location = Location::current()) {
  detail::check_writable<access, T, 1, E>();
  static_assert(IndexType<typename Rows::type> && Rows::rank == 1,
                "tessera: row indices are a tile of i32 or i64, of rank 1");
  Trace& trace = Trace::current(location);
  trace.apply(Op::scatter, element_type<T>,
              {tile.lower(trace, location), view.value(), detail::index_tile(trace, rows, location)}, {}, location);
}

/// Writes each element p of the tile to y[i[p], j[p], ...], with element indices as for gather. Elements out of range
/// are dropped; if several have the same position, one of them is stored.
template <Access access, Element T, int R, IndexType I, int N, TileExpr E>
void scatter(const TensorView<access, T, R>& view, const Tile<I, N> (&at)[R], const E& tile,
             Location location = Location::current()) {
  detail::check_writable<access, T, N, E>();
  Trace& trace = Trace::current(location);
  trace.apply(Op::scatter_elements, element_type<T>,
              detail::element_operands<I, N>(trace, Op::scatter_elements, {tile.lower(trace, location), view.value()},
                                             at, location),
              {}, location);
}
template <Access access, Element T, int R, int A, TileExpr E>
void scatter(const TensorView<access, T, R>&, const detail::AnyIndex (&)[A], const E&,
             Location = Location::current()) {
  static_assert(A == R, "tessera: scatter takes a tile of indices for each axis of the tensor");
  static_assert(A != R,
                "tessera: scatter takes named Tiles of i32, or of i64, of one rank as indices: Tile i = ...; "
                "scatter(y, {i, j}, x)");
}

template <Access access, Element T, int R, int A, Operand E>
requires(A != R) void store(const TensorView<access, T, R>&, const Coord (&)[A], const E&) {
  static_assert(A == R, "tessera: store takes an index for each axis of the tensor");
}
template <TileExpr E, Access access, Element T, int R, int A>
void store(const E&, const TensorView<access, T, R>&, const Coord (&)[A]) {
  static_assert(R == 0, "tessera: store takes the tensor first, then the position, then the tile: store(y, {i}, tile)");
}

// The most common mistake gets its own message: the number of indices or extents differs from the number of axes.
template <Access access, Element T, int R, int A, int S>
Tile<T, R> load(const TensorView<access, T, R>&, const Coord (&)[A], const Extent (&)[S]) {
  static_assert(A == R, "tessera: load takes an index for each axis of the tensor");
  static_assert(S == R, "tessera: load takes an extent for each axis of the tensor");
  return Tile<T, R>(Handle());
}

// Positions and shapes without braces get one, too.
namespace detail {
template <Element T, int R>
Tile<T, R> check_load_braces() {
  static_assert(R == 0,
                "tessera: load takes the position and the shape in braces, a number for each axis: load(x, {i}, {64}), "
                "or load(x, {i, j}, {32, 64}, padding)");
  return Tile<T, R>(Handle());
}
}  // namespace detail
template <Access access, Element T, int R, Operand At, Operand... More>
auto load(const TensorView<access, T, R>&, const At&, const More&...) {
  return detail::check_load_braces<T, R>();
}
template <Access access, Element T, int R, int A, Operand Shape, Operand... More>
auto load(const TensorView<access, T, R>&, const Coord (&)[A], const Shape&, const More&...) {
  return detail::check_load_braces<T, R>();
}
template <Access access, Element T, int R, Operand At, int S>
auto load(const TensorView<access, T, R>&, const At&, const Extent (&)[S], Number = 0) {
  return detail::check_load_braces<T, R>();
}
template <Access access, Element T, int R, Operand At, Operand... More>
void store(const TensorView<access, T, R>&, const At&, const More&...) {
  static_assert(R == 0,
                "tessera: store takes the position in braces, an index for each axis, then the tile: store(y, {i, j}, "
                "tile)");
}

}  // namespace internal
}  // namespace tessera
