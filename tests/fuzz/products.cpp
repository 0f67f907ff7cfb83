// Matmuls of random programs: with tiles of any size, and with those that sm_90a runs warp-specialized.
#include <algorithm>

#include "fuzz/generator.hpp"

namespace tessera::internal::fuzz {

/// Matmuls of loaded tiles, accumulated in a loop: for tensor cores, or, with few rows, gemv with partial sums per
/// thread. Some do not fit into shared memory. The loop may also read the accumulator elsewhere, before or after the
/// update.
void Generator::product(int rows) {
  const auto sources = places_where([](const Place& p) {
    return p.readable() && p.access == Access::in && p.at.size() == 2 && info(p.type).kind == ElementKind::real;
  });
  if (sources.empty()) return;
  const Place left = one_of(sources), right = one_of(sources);
  constexpr std::array types = {f32,
                                ElementType::tf32,
                                ElementType::f16,
                                ElementType::bf16,
                                ElementType::f8e4m3,
                                ElementType::f64,
                                ElementType::i8};
  const ElementType factors = left.type == right.type && chance(60) ? left.type : one_of(types);
  const ElementType sums = sum_type(factors);
  const bool whole = sums == i32;
  const int columns = one_of(palette_);
  int k = 16 * between(1, 4);
  if (const int bytes = (rows + columns) * info(factors).bytes; large_ && chance(30))
    k = std::min(1024, between(70'000, 150'000) / bytes / 16 * 16);
  const Extents tile = {rows, columns};
  const Name var = new_var(literal(sums, 0, tile), 0),
             others = chance(45) ? new_var(literal(sums, 0, tile), 0) : nothing;
  const Name count = k > 64 ? literal(i32, between(1, 2)) : loop_count();
  within(loop_of(count), [&] {
    const bool transposed = chance(25);
    const Name a = convert(load_from(left, {rows, k}, nothing), factors);
    Name b = convert(load_from(right, transposed ? Extents{columns, k} : Extents{k, columns}, nothing), factors);
    if (transposed)
      b = emit({.op = Op::permute, .type = factors, .shape = {k, columns}, .from = {b}, .attributes = {1, 0}},
               of(b).most);
    const double all = of(a).most * of(b).most * k * 8;  // after the largest number of iterations
    const double most = of(var).most = whole ? largest_of(sums) : all;
    const Name old = read(var);
    const Name c = chance(20) ? binary(Op::mul, old, literal(sums, whole ? 3 : 0.5), most) : old;
    const Name sum = emit({.op = Op::mma, .type = sums, .shape = tile, .from = {a, b, c}}, most);
    assign(var, sum);
    if (others != nothing) {
      of(others).most = whole ? most : most * 8;
      const Name read_now = chance(50) ? old : sum;
      assign(others, binary(Op::add, read(others), read_now, of(others).most));
    }
    if (chance(25)) some_effect();
  });
  of(var).used = false;
  if (others != nothing) of(others).used = false;
}

// Warp-specialized matmuls
// --------------------------------------------------------------------------------------------------------------------

/// Operands that are TMA-addressable, mostly, and the outputs. Few tiles: the reference is slow.
void Generator::make_warp_specialized_matmul() {
  constexpr int most = 3 << 20;  // number of multiplications
  WarpSpecializedMatmul& p = roles_;
  p.factors = one_of(std::array{ElementType::f16, ElementType::bf16, ElementType::tf32});
  const ElementType stored = p.factors == ElementType::tf32 ? f32 : p.factors;
  p.m = one_of(std::array{64, 64, 64, 128, 128, 256});
  p.n = p.m == 256 ? 64 : one_of(std::array{16, 32, 64, 64, 96, 128, 192});
  p.k = (p.m * p.n > 128 * 128 ? 64 : one_of(std::array{64, 64, 64, 128})) * 2 / info(stored).bytes;
  if (chance(40)) {  // transposed tensors are square
    const bool first = chance(50), then = chance(50);
    p.transposed = {first, then};
    p.m = p.n = p.k = chance(90) ? 64 : 128;
    if (first && then && p.k == 64) p.n = one_of(std::array{64, 128, 192});
    if (!first && !then && p.k == 64) p.m = one_of(std::array{64, 128, 256});
  }
  int tiles = std::max(2, most / (p.m * p.n * p.k * (p.transposed ? 2 : 1)));
  const auto some = [&](int at_most) {
    const int count = between(1, std::min(at_most, tiles));
    tiles /= count;
    return count;
  };
  grid_ = {some(3), 1};
  p.rounds = some(3);
  grid_[1] = some(2);
  const auto length = [&](int tile, int count) {
    const int whole = tile * count, ragged = whole - (chance(50) ? between(1, tile - 1) : 0);
    return chance(60) ? (ragged + 7) / 8 * 8 : ragged;
  };
  const int m = length(p.m, grid_[0]), n = length(p.n, grid_[1]), k = length(p.k, p.rounds);
  const auto type = [&](int percent) { return chance(percent) ? stored : stored_type(); };
  p.left = make_operand(Access::in, type(p.transposed ? 97 : 85), {m, k}, {0, 1});
  // tf32 along k, mostly, as wgmma reads it.
  p.right = make_operand(Access::in, type(93), {k, n}, {0, 1}, p.factors == ElementType::tf32 ? 10 : 50);
  if (chance(6)) {  // the left operand transposed
    p.right = p.left;
    for (int& axis : p.right.axes) axis = axis < 0 ? axis : 1 - axis;
  }
  const int less = p.transposed ? 4 : 1;
  if (chance(20 / less)) p.of_left.push_back(make_operand(Access::in, type(30), {m, k}, {1}));
  if (chance(15 / less)) p.of_left.push_back(make_operand(Access::in, type(30), {m, k}, {0, -1}));
  if (chance(15 / less)) p.of_left.push_back(make_operand(Access::in, type(50), {m, k}, {0, 1}));
  if (chance(50)) p.beside.push_back(make_operand(Access::in, type(30), {m, n}, {1}));
  if (chance(30)) p.beside.push_back(make_operand(Access::in, type(30), {m, n}, {0, -1}));
  if (chance(30)) p.beside.push_back(make_operand(Access::in, type(30), {m, n}, {0, 1}));
  std::vector<Access> kinds(static_cast<std::size_t>(between(1, 2)), Access::out);
  if (chance(30)) kinds.back() = Access::in_out;
  for (const Access access : kinds) {
    const ElementType of_sums = chance(95) ? one_of(std::array{stored, stored, f32}) : stored_type();
    const Operand sums = make_operand(access, of_sums, {m, n}, {0, 1});
    const bool transposed = sums.axes[0] == 1;
    owners_.push_back({sums.parameter, false, transposed ? std::vector{1, 0} : std::vector{0, 1}, {p.m, p.n}});
  }
}

/// A tensor with the extents of an operand that has these axes; in any order, and for an In sometimes with extra axes
/// of one element. `along_last`: how often an In is contiguous along the last of them.
Generator::Operand Generator::make_operand(Access access, ElementType type, const Extents& extents,
                                           std::vector<int> axes, int along_last) {
  const bool in = access == Access::in;
  if (axes.size() == 2 && axes[1] >= 0 && chance(in ? 40 : 8)) std::swap(axes[0], axes[1]);
  for (int more = in && axes.size() == 2 && axes[1] >= 0 && chance(20) ? between(1, 3) : 0; more > 0; --more)
    axes.insert(axes.begin() + between(0, static_cast<int>(axes.size())), -1);
  Given given;
  for (const int axis : axes)
    given.extents.push_back(axis < 0 ? between(1, 2) : extents[static_cast<std::size_t>(axis)]);
  given.fill = fill();
  if (chance(80)) {
    std::size_t inner = axes.size();
    const int fast = chance(in ? along_last : 92) ? 1 : 0;
    while (inner-- > 1 && axes[inner] != fast) continue;
    make_tma_addressable(given, inner);
  } else {
    make_layout(given, access, 0);
  }
  const Operand result{static_cast<int>(program_.parameters.size()), std::move(axes)};
  add_tensor(access, type, std::move(given));
  return result;
}

/// Contiguous along the axis `inner`, and other strides are multiples of 16 bytes, for elements of 2 bytes and more.
void Generator::make_tma_addressable(Given& given, std::size_t inner) {
  const auto whole = [](std::int64_t elements) { return (elements + 7) / 8 * 8; };
  given.strides.assign(given.extents.size(), 1);
  std::int64_t stride = whole(given.extents[inner]) + (chance(30) ? 8 * between(1, 3) : 0);
  for (const int axis : shuffled(static_cast<int>(given.extents.size()))) {
    const auto a = static_cast<std::size_t>(axis);
    if (a == inner) continue;
    given.strides[a] = given.extents[a] == 1 && chance(30) ? between(1, 5) : stride;
    stride *= given.extents[a];
  }
}

/// The tile of an operand at its two indices, with the operand's tile extents.
Name Generator::load_operand(const Operand& operand, const Extents& tile, const std::vector<Name>& at) {
  Place place = *std::ranges::find(places_, operand.parameter, &Place::view);
  Extents shape, matrix;
  std::vector<int> order;
  for (std::size_t axis = 0; axis < operand.axes.size(); ++axis) {
    const int of_tile = operand.axes[axis];
    shape.push_back(of_tile < 0 ? 1 : tile[static_cast<std::size_t>(of_tile)]);
    if (of_tile < 0) continue;
    if (const int kind = between(0, 99); kind < 93)
      place.at[axis] = at[static_cast<std::size_t>(of_tile)];
    else if (kind < 96)
      place.at[axis] = literal(i32, one_of(std::array{-1.0, 0x1p25, 0x1p26, -0x1p26, -0x1p31, 0x1p31 - 1}));
    matrix.push_back(shape.back());
    order.push_back(of_tile);
  }
  Name result = load_from(place, shape, nothing);
  if (chance(95)) body_->back().attributes = {0};
  if (shape.size() > 2) result = reshape(result, matrix);
  if (order == std::vector{1, 0})
    result = emit({.op = Op::permute,
                   .type = place.type,
                   .shape = {matrix[1], matrix[0]},
                   .from = {result},
                   .attributes = {1, 0}},
                  of(result).most);
  return result;
}

void Generator::warp_specialized_matmul() {
  const WarpSpecializedMatmul& p = roles_;
  const Name block = std::ranges::find(*body_, Statement::Kind::blocks, &Statement::kind)->to;
  const std::vector<Name> blocks = {block, block + 1};
  const Extents tile = {p.m, p.n};
  Name start = literal(f32, 0, tile);
  if (!p.beside.empty() && chance(30)) {
    start = convert(load_operand(p.beside.back(), tile, blocks), f32);
    if (of(start).shape != tile)
      start = emit({.op = Op::broadcast, .type = f32, .shape = tile, .from = {start}}, of(start).most);
  }
  const Name var = new_var(start, of(start).most);
  const Name other = p.transposed ? new_var(literal(f32, 0, tile), 0) : nothing;
  Name count = nothing;
  if (chance(25)) {
    count = literal(i32, chance(95) ? p.rounds : 0);
  } else {
    const auto axis = std::ranges::find(p.left.axes, 1) - p.left.axes.begin();
    const Name all = emit({.op = Op::extent, .type = i32, .from = {p.left.parameter}, .attributes = {axis}}, 200);
    count = binary(Op::cdiv, all, literal(i32, chance(95) ? p.k : p.k / 2), 6);
  }
  within(loop_of(count), [&] {
    const Name round = visible_.back();
    const Name a = left_operand({blocks[0], round});
    const Name b = convert(load_operand(p.right, {p.k, p.n}, {round, blocks[1]}), p.factors);
    add_product(var, a, b);
    if (p.transposed) {
      const Name same = p.transposed->left_first ? a : b;
      const Extents shape = of(same).shape;
      const Name transposed = emit(
          {.op = Op::permute, .type = p.factors, .shape = {shape[1], shape[0]}, .from = {same}, .attributes = {1, 0}},
          of(same).most);
      if (p.transposed->left_then)
        add_product(other, transposed, b);
      else
        add_product(other, a, transposed);
    }
    if (chance(8)) some_effect();
  });
  std::vector<Name> sums = {limit(read(var), comfortable)};
  if (p.transposed) {
    sums.push_back(limit(read(other), comfortable));
    const double most = of(sums[0]).most + of(sums[1]).most;
    sums.push_back(limit(binary(one_of(std::array{Op::add, Op::sub}), sums[0], sums[1], most), comfortable));
  }
  for (const Place& place : places_where([](const Place& place) { return place.access != Access::in; }))
    if (place.view == place.parameter || chance(50))
      store_sums(sums[sums.size() > 1 ? between(0, 2) : 0], Place(place));
}

/// Queries, keys and the mask between them, as in attention.
void Generator::make_role_chain() {
  WarpSpecializedMatmul& p = roles_;
  p.factors = one_of(std::array{ElementType::f16, ElementType::bf16});
  p.m = one_of(std::array{64, 64, 128});
  p.n = p.k = 64;
  p.rounds = between(1, 3);
  grid_ = {between(1, 2)};
  const auto length = [&](int tile, int count) { return tile * count - (chance(50) ? between(1, tile - 1) : 0); };
  const int queries = length(p.m, grid_[0]), keys = length(p.n, p.rounds);
  p.left = {static_cast<int>(program_.parameters.size()), {0, 1}};
  add_tensor(Access::in, p.factors, {.extents = {queries, p.k}, .fill = Fill::whole});
  p.right = {static_cast<int>(program_.parameters.size()), {0, 1}};
  add_tensor(Access::in, p.factors, {.extents = {keys, p.k}, .fill = Fill::whole});
  owners_.push_back({static_cast<int>(program_.parameters.size()), false, {0}, {p.m}});
  add_tensor(Access::out, f32, {.extents = {queries, p.k}, .fill = Fill::whole});
}

void Generator::chain_by_roles() {
  const WarpSpecializedMatmul& p = roles_;
  const Name block = std::ranges::find(*body_, Statement::Kind::blocks, &Statement::kind)->to, zero = literal(i32, 0);
  const auto tile_of = [&](const Operand& operand, int rows, Name at) {
    return emit({.op = Op::load,
                 .type = p.factors,
                 .shape = {rows, p.k},
                 .from = {static_cast<Name>(operand.parameter), at, zero},
                 .attributes = {0},
                 .fixed = 1},
                4);
  };
  const auto positions = [&](Name at, int tile, int axis) {
    const Extents shape = axis == 0 ? Extents{tile, 1} : Extents{1, tile};
    const Name first = binary(Op::mul, at, literal(i32, tile), 1e3);
    const Name further = emit({.op = Op::iota, .type = i32, .shape = shape, .attributes = {axis}}, tile);
    return binary(Op::add, first, further, 1e3);
  };
  const Name queries = tile_of(p.left, p.m, block), rows = positions(block, p.m, 0);
  const Name sums = new_var(literal(f32, 0, {p.m, p.k}), 0);
  const Name all = emit({.op = Op::extent, .type = i32, .from = {p.right.parameter}, .attributes = {0}}, 200);
  within(loop_of(binary(Op::cdiv, all, literal(i32, p.n), 6)), [&] {
    const Name round = visible_.back();
    const Name keys = tile_of(p.right, p.n, round), columns = positions(round, p.n, 1);
    const Name transposed =
        emit({.op = Op::permute, .type = p.factors, .shape = {p.k, p.n}, .from = {keys}, .attributes = {1, 0}}, 4);
    const Name none = literal(f32, 0, {p.m, p.n});
    const Name scores =
        emit({.op = Op::mma, .type = f32, .shape = {p.m, p.n}, .from = {queries, transposed, none}}, 1024);
    const Name seen = mask(rows, columns);
    const Name left = emit({.op = Op::select,
                            .type = f32,
                            .shape = {p.m, p.n},
                            .from = {seen, scores, literal(f32, one_of(std::array{0, 0, -3}))}},
                           1024);
    add_product(sums, convert(left, p.factors), keys);
  });
  const Place place = *std::ranges::find_if(places_, &Place::writable);
  write(Op::store, place, {p.m, p.k}, {limit(read(sums), comfortable), place.view});
}

/// Which columns a row sees: those up to it, or near it, in one of the ways to write that.
Name Generator::mask(Name rows, Name columns) {
  const auto sum = [&](Op op, Name a, Name b) { return binary(op, a, b, 2e3); };
  const Name by = literal(i32, between(-40, 100));
  Name seen = nothing;
  switch (between(0, 4)) {
    case 0:
      seen = sum(Op::less_equal, columns, sum(Op::add, rows, by));
      break;
    case 1:
      seen = sum(Op::greater_equal, sum(Op::sub, rows, columns), by);
      break;
    case 2:
      seen = sum(Op::less, sum(Op::sub, columns, rows), by);
      break;
    case 3: {
      const Name left = sum(Op::sub, by, columns), right = sum(Op::sub, literal(i32, 5), rows);
      seen = sum(Op::greater, left, right);
      break;
    }
    default:
      seen = sum(Op::less_equal, sum(Op::sub, rows, by), columns);
  }
  return chance(35) ? binary(Op::logical_and, seen, mask(rows, columns), 1) : seen;
}

/// Updates of a Var's accumulator in the loop.
void Generator::add_product(Name var, Name a, Name b) {
  const double most = of(var).most + of(a).most * of(b).most * of(a).shape[1] * 6;
  const Name old = read(var);
  assign(var, emit({.op = Op::mma, .type = f32, .shape = of(var).shape, .from = {a, b, old}}, most));
  of(var).most = most;
}

/// The operand's tile, or a value computed from it in the loop.
Name Generator::left_operand(const std::vector<Name>& at) {
  const WarpSpecializedMatmul& p = roles_;
  const Extents tile = {p.m, p.k};
  Name result = load_operand(p.left, tile, at);
  for (const Operand& other : p.of_left) {
    result = convert(result, f32);
    const Name by = convert(load_operand(other, tile, at), f32);
    const Op op = one_of(std::array{Op::add, Op::sub, Op::mul, Op::maximum});
    const double x = of(result).most, y = of(by).most;
    result = limit(binary(op, result, by, op == Op::mul ? x * y : x + y), 64);
  }
  if (chance(p.transposed ? 3 : 10))
    result = unary(one_of(std::array{Op::neg, Op::abs}), convert(result, f32), of(result).most);
  return convert(result, p.factors);
}

/// Epilogues of a row, a column, each element or a number, and ones that need other threads' accumulators.
Name Generator::epilogue_of(Name sums, const std::vector<Name>& blocks) {
  const Extents tile = of(sums).shape;
  const double most = of(sums).most;
  const int kind = between(0, 99);
  const auto combined = [&](Name other) {
    const Op op = one_of(std::array{Op::add, Op::add, Op::sub, Op::mul, Op::maximum});
    const double by = of(other).most;
    return limit(binary(op, sums, other,
                        op == Op::mul       ? most * by
                        : op == Op::maximum ? std::max(most, by)
                                            : most + by),
                 comfortable);
  };
  if (kind < 45 && !roles_.beside.empty())
    return combined(convert(load_operand(one_of(roles_.beside), tile, blocks), f32));
  if (kind < 55) {
    for (const Place& place :
         places_where([](const Place& place) { return place.access == Access::in_out && place.readable(); }))
      if (place.tile == tile) return combined(convert(load_from(Place(place), tile, nothing), f32));
  }
  if (kind < 65) return combined(literal(f32, one_of(std::array{-2.0, 0.5, 3.0})));
  if (kind < 72) return unary(one_of(std::array{Op::neg, Op::abs}), sums, most);
  if (kind < 80) return exact_ ? sums : unary(Op::tanh, sums, 1);
  if (kind < 92) {  // a part of the tile
    const Name row = emit({.op = Op::iota, .type = i32, .shape = {tile[0], 1}, .attributes = {0}}, tile[0]);
    const Name column = emit({.op = Op::iota, .type = i32, .shape = {1, tile[1]}, .attributes = {1}}, tile[1]);
    const Name condition = binary(one_of(std::array{Op::less, Op::equal}), row, column, 1);
    return emit({.op = Op::select, .type = f32, .shape = tile, .from = {condition, sums, literal(f32, 3)}},
                std::max(most, 3.0));
  }
  if (kind < 95) return combined(reduction(Op::max, sums, between(0, 1)));
  if (kind < 97 && tile[0] == tile[1])
    return combined(emit({.op = Op::permute, .type = f32, .shape = tile, .from = {sums}, .attributes = {1, 0}}, most));
  return sums;
}

/// Stores of a whole accumulator tile, directly or after an epilogue.
void Generator::store_sums(Name sums, const Place& place) {
  const Name block = std::ranges::find(program_.body, Statement::Kind::blocks, &Statement::kind)->to;
  for (int i = between(0, 3); i > 0; --i) sums = epilogue_of(sums, {block, block + 1});
  Extents tile = place.tile;
  for (std::size_t axis = 0; axis < tile.size(); ++axis)
    if (tile[axis] == 0) tile[axis] = place.extents[axis];
  if (size_of(tile) != size_of(of(sums).shape)) return;
  const bool adds = place.shared || (place.access == Access::in_out && info(place.type).computes && chance(20));
  Name stored = convert(limit(sums, adds ? 16 : 64), place.type);
  if (tile != of(stored).shape)
    stored = emit({.op = Op::permute, .type = place.type, .shape = tile, .from = {stored}, .attributes = {1, 0}},
                  of(stored).most);
  write(adds ? place.by : Op::store, place, tile, {stored, place.view});
}

}  // namespace tessera::internal::fuzz
