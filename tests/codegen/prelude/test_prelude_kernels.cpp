// Kernels that call every item of the prelude compile for every architecture.
#include <algorithm>
#include <string>
#include <string_view>

#include "codegen/prelude/prelude.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/compiling.hpp"
#include "support/share.hpp"
#include "support/support.hpp"

namespace test_prelude_kernels {

using namespace tessera::internal;

namespace {

struct Kernel {
  const char* name;
  const char* text;  ///< the body; all kernels here have the same parameters
};

constexpr Kernel kernels[] = {
    {"threads", R"(  char* const shared = shared_memory();
  shared[thread_index()] = static_cast<char>(lane_index() + warp_index());
  barrier();
  l[thread_index()] = block_index() * grid_size() + shared[63 - thread_index()];
  warp_barrier();
  f[0] = *from_here(f + 1);
)"},
    {"persistent", R"(  const LaunchHead& head = *reinterpret_cast<const LaunchHead*>(w);
  GridBarrier grid = {w + 8, head.tiles};
  grid_wait<32>(grid);
  f[0] = head.parameters<float>() + head.code;
  grid_arrive(grid);
  grid_leave(grid);
)"},
    {"stamps", R"(  u32 at = w[0];
  stamp_place(m, w[1], thread_index() == 0, at, 3, block_index());
  stamp(m, w[1], thread_index() == 0, at, 4);
)"},
    {"lists", R"(  const ListedTensor<float, 1, int> x = {f, {i[0]}, {i[1]}}, none = {};
  const TensorList<float, 1, 1, int> list = {{x, none}};
  const auto &first = list[0], &outside = list[-1];
  f[1] = first.data[first.stride[0]] + first.extent[0] + outside.extent[0];
)"},
    {"shuffles", R"(  f[0] = shuffle_xor(f[0], 1) + shuffle(f[1], 2) + shuffle_up(f[2], 3);
  i[0] = shuffle_xor(i[0], 1) + shuffle(i[1], 2) + shuffle_up(i[2], 3);
  l[0] = shuffle_xor(l[0], 1) + shuffle(l[1], 2) + shuffle_up(l[2], 3);
  i[1] = shuffle_xor(i[0] > 0, 1) + shuffle(i[1] > 0, 2) + shuffle_up(i[2] > 0, 3);
  float x[4] = {f[0], f[1], f[2], f[3]};
  add_halves<4>(x, 1);
  gather_halves<4>(x, 1);
  f[1] = x[lane_index() % 4];
)"},
    {"casts", R"(  const bool p = i[0] > 0;
  f[0] = cast_f32(f[0]) + cast_f32(i[0]) + cast_f32(l[0]) + cast_f32(p) + cast_f16(small_to_real(i[1]));
  f[1] = cast_f16(f[0]) + cast_f16(i[0]) + cast_f16(l[0]) + cast_f16(p);
  f[2] = cast_bf16(f[0]) + cast_bf16(i[0]) + cast_bf16(l[0]) + cast_bf16(p);
  f[3] = cast_tf32(f[0]) + cast_tf32(i[0]) + cast_tf32(l[0]) + cast_tf32(p);
  f[5] = cast_f8e4m3(f[0]) + cast_f8e4m3(i[0]) + cast_f8e5m2(l[0]) + cast_f8e5m2(p);
  const double d = cast_f64(f[0]) + cast_f64(i[0]) + cast_f64(m[0]) + cast_f64(p);
  f[6] = cast_f32(d) + cast_f16(d) + cast_bf16(d) + cast_tf32(d) + cast_f8e4m3(d) + cast_f8e5m2(d);
  i[4] = cast_i8(d) + cast_i16(d) + cast_i32(d) + cast_u8(d) + cast_u16(d) + cast_pred(d);
  l[1] = cast_i64(d) + static_cast<i64>(bits_of(double_of(l[2])));
  w[3] = cast_u32(d);
  m[4] = cast_u64(d);
  i[0] = cast_i32(f[0]) + cast_i32(i[0]) + cast_i32(l[0]) + cast_i32(p);
  i[1] = cast_u8(f[0]) + cast_u8(i[0]) + cast_u8(l[0]) + cast_u8(p);
  i[2] = cast_pred(f[0]) + cast_pred(i[0]) + cast_pred(l[0]) + cast_pred(p);
  l[0] = cast_i64(f[0]) + cast_i64(i[0]) + cast_i64(l[0]) + cast_i64(p);
  w[0] = cast_u32(f[0]) + cast_u32(i[0]) + cast_u32(l[0]) + cast_u32(p) + cast_u32(m[1]);
  m[0] = cast_u64(f[0]) + cast_u64(i[0]) + cast_u64(l[0]) + cast_u64(p) + cast_u64(w[1]);
  i[3] = cast_i8(f[0]) + cast_i8(m[1]) + cast_i16(f[0]) + cast_i16(l[0]) + cast_u16(f[1]) + cast_u16(w[1]);
  f[4] = cast_f32(w[2]) + cast_f32(m[2]) + cast_bf16(m[3]);
)"},
    {"eight_bits", R"(  f[0] = from_memory(p8[0]) + from_memory(q8[0]);
  p8[1] = to_memory<f8e4m3>(f[2]);
  q8[1] = to_memory<f8e5m2>(f[2]);
  q[1] = to_memory<pred>(from_memory(q[0]) && f[1] > 0.0f);
  store_vector<16>(p8 + 16, f);
  read_input<4>(f + 4, q8, i[7] > 0);
)"},
    {"f64", R"(  double x = cast_f64(f[0]), y = cast_f64(f[1]), both[2], again[2];
  fill(again, x);
  copy(both, again);
  x = sin_of(x) + cos_of(y) + tan_of(x) + tanh_of(y) + exp2_of(x) + sigmoid2_of(y) + sign_of(x);
  if (less(x, y) || less_equal(y, x) || is_nan(x) || is_infinite(x) || is_finite(y)) x = minimum(x, y);
  y = minimum_nan(x, y) + maximum_nan(y, x) + double_infinity() * double_nan_value();
  keep_best(x, 1, y, i[4]);
  add_halves<2>(both, 1);
  f[0] = cast_f32(shuffle_xor(x, 1) + shuffle(y, 3) + shuffle_up(both[0], 1));
  f[1] = f8e4m3_value(f8e4m3_bits(f[2])) + f8e5m2_value(f8e5m2_bits(f[3])) + exp2_of(f[4]);
)"},
    {"elements", R"(  f[0] = from_memory(f[0]) + from_memory(h[0]) + from_memory(b[0]);
  i[0] = from_memory(i[0]) + from_memory(u[0]);
  l[0] = from_memory(l[0]);
  f[1] = to_memory<float>(f[2]);
  h[1] = to_memory<f16>(f[2]);
  b[1] = to_memory<bf16>(f[2]);
  i[1] = to_memory<int>(i[2]);
  u[1] = to_memory<u8>(i[2]);
  i[9] = from_memory(s[0]) + from_memory(t[0]) + from_memory(v[0]);
  s[1] = to_memory<i8>(i[2]);
  t[1] = to_memory<i16>(i[2]);
  v[1] = to_memory<u16>(i[2]);
  store_vector<8>(t + 8, i);
  store_vector<8>(v + 8, i);
  store_vector<4>(w + 4, w);
  l[1] = to_memory<i64>(l[2]);
  read_input<2>(f + 4, b, i[7] > 0);
  read_input<4>(f + 8, f + 16, i[7] > 0, 1.0f);
  f[5] = read_input(h, i[7] > 0) + read_input(b, i[7] > 0, 2.0f);
  store_whole<8>(b, f, i[7] > 0);
  store_whole<8>(h, f, i[7] > 0);
  store_whole<4>(f + 8, f, i[7] > 0);
  i[4] = read_input(u, i[7] > 0) + read_input(i, i[7] > 0, 3);
  l[4] = read_input(l, i[7] > 0);
  read_no_hoist<4>(f + 8, f + 16, i[7] > 0);
  read_no_hoist<2>(f + 4, b, i[7] > 0, 1.0f);
  f[5] = read_no_hoist(h, i[7] > 0) + read_no_hoist(b, i[7] > 0, 2.0f);
  i[4] = read_no_hoist(u, i[7] > 0) + read_no_hoist(i, i[7] > 0, 3);
  l[4] = read_no_hoist(l, i[7] > 0);
  read_evict_last<4>(f + 8, f + 16, i[7] > 0, priority_of_read(l[0]));
  read_evict_last<8>(f + 8, b, i[7] > 0, priority_of_read(l[0]));
)"},
    {"copies", R"(  copy_async<4>(shared_memory(), f, i[0] > 0);
  copy_async<8>(shared_memory() + 8, f, i[0] > 0);
  copy_async_commit();
  copy_async<16>(shared_memory() + 16, f, i[0] > 0);
  copy_async_commit();
  copy_async_wait<1>();
  copy_async_wait<0>();
  f[1] = *reinterpret_cast<float*>(shared_memory());
)"},
    {"matrices", R"(  float c[4] = {};
  u32 x[4], y[4];
  load_matrix_x4(x, shared_memory() + 16 * lane_index());
  load_matrix_x2(y, shared_memory() + 16 * lane_index());
  mma_f16(c, x, y);
  mma_bf16(c, x, y);
  mma_tf32(c, x, y);
  load_matrix_x4_transposed(x, shared_memory() + 16 * lane_index());
  load_matrix_x2_transposed(y, shared_memory() + 16 * lane_index());
  mma_bf16(c, x, y);
  store_vector<4>(f + 4 * thread_index(), c);
  int sums[8] = {};
  load_bytes_transposed<8, 1>(x, shared_memory(), 1);
  load_bytes_transposed<4, 2>(y, shared_memory(), 0);
  u32 words[2];
  load_matrix_x2_transposed(words, shared_memory() + swizzled<8>(lane_index() % 16, 1));
  unpack_pairs<i8, 2>(i, words);
  unpack_pairs<f8e4m3, 2>(f, words);
  unpack_real_pairs<i8, 2>(f + 8, words);
  unpack_real_pairs<u8, 2>(f + 16, words);
  load_reals<2>(f + 24, s);
  load_reals<2>(f + 26, u);
  mma_i8<1>(sums, x, y);
  mma_u8<2>(sums + 1, x, y + 2);
  store_vector<4>(i, sums);
)"},
    {"bits", R"(  if (continues(i[2] > 0, 7)) i[3] = 0;
  i[0] = static_cast<int>(pack_f16(f[0], f[1]) + pack_bf16(f[0], f[1]) + bits_of(f[2]));
  f[0] = float_of(static_cast<u32>(i[1])) + infinity() * nan_value();
)"},
    {"arithmetic", R"(  f[0] = wrap_add(minimum_nan(f[0], f[1]), maximum_nan(f[0], f[1]));
  f[7] = less(f[0], f[1]) || less_equal(f[2], f[3]) ? minimum(f[0], f[2]) : 0.0f;
  i[0] = wrap_add(i[0], wrap_sub(i[1], wrap_mul(i[2], wrap_neg(wrap_abs(i[3])))));
  i[1] = wrap_add(floor_div(i[0], i[1]), modulo(i[0], cdiv(i[1], i[0])));
  i[2] = minimum(maximum(i[0], i[1]), i[2]);
  l[0] = wrap_add(l[0], wrap_sub(l[1], wrap_mul(l[2], wrap_neg(wrap_abs(l[3])))));
  l[1] = wrap_add(floor_div(l[0], l[1]), modulo(l[0], cdiv(l[1], l[0])));
  l[2] = minimum(maximum(l[0], l[1]), l[2]);
  w[1] = wrap_add(floor_div(w[0], w[1]), modulo(w[0], wrap_mul(cdiv(w[1], w[0]), wrap_abs(w[2])))) + sign_of(w[3]);
  m[1] = wrap_add(floor_div(m[0], m[1]), modulo(m[0], wrap_mul(cdiv(m[1], m[0]), wrap_abs(m[2])))) + sign_of(m[3]);
  w[4] = minimum(maximum(w[0], w[1]), shift_left(w[5], shift_right(w[6], w[7]))) + count_ones(w[8]) + leading_zeros(w[9]);
  m[4] = minimum(maximum(m[0], m[1]), shift_left(m[5], shift_right(m[6], m[7]))) + count_ones(m[8]) + leading_zeros(m[9]);
  i[3] = random_bits(l[0], l[1]);
  f[1] = random_uniform(l[0], l[1]);
  i[7] = shift_left(i[0], count_ones(i[1])) + shift_right(i[2], leading_zeros(i[3])) + sign_of(i[8]);
  l[3] = shift_left(l[0], count_ones(l[1])) + shift_right(l[2], leading_zeros(l[3])) + sign_of(l[4]);
  f[8] = is_nan(f[9]) || is_infinite(f[10]) || is_finite(f[11]) ? sin_of(f[8]) + cos_of(f[9]) : sign_of(tan_of(f[10]));
  keep_best(f[0], 1, f[1], i[4]);
  keep_best(i[0], 1, i[1], i[5]);
  keep_best(l[0], 1, l[1], i[6]);
  f[7] += sin_approximate(f[0]) + cos_approximate(f[1]) + tanh_approximate(f[2]) + log2_approximate(sqrt_approximate(f[3]));
  f[2] = tanh_of(f[3]) + sigmoid2_of(f[6]) + exp2_approximate(f[4]) * reciprocal_approximate(f[5]);
)"},
    {"tiles", R"(  char* const tile = shared_memory();
  clear_tile<64>(tile, 64);
  const Window inside = both(window(l[0], 16, l[1]), stepped_window(l[2], i[3], 16, l[3]));
  read_vector<4>(f, f + 64, within(inside, i[0]), 0.0f);
  read_tile<8, bf16, 8>(f + 4, tile, i[0], 8);
  const GridPlace place = grouped(snake_order(l[4]), i[1], i[2], 4);
  u32 x[12], y[8];
  load_matrix_x4(x, left_row<8>(tile, place.row, 0));
  load_matrix_x4_transposed(x + 4, left_row_transposed<8>(tile, place.column));
  load_matrix_x4(x + 8, right_row<4>(tile, 0, 0));
  load_matrix_x4_transposed(y, right_row_transposed<4>(tile, 0));
  load_matrix_x2(y + 4, right_row<2>(tile, 0, 0));
  load_matrix_x2_transposed(y + 6, right_row_transposed<2>(tile, 0));
  exchange_quads(x);
  store_words(f, x, inside.low < 8);
  mma_bf16(f, x, y);
  mma_bf16(f, x + 4, y + 2);
  mma_bf16(f, x + 8, y + 4);
  mma_bf16(f, x, y + 6);
)"},
    {"atomics", R"(  atomic_add(f, 1.0f);
  atomic_add(i, 1);
  scatter_element(i, 1);
  scatter_vector<4>(f, f + 4);
  scatter_vector<4>(b, f);
  scatter_vector<2>(w + 2, w);
  scatter_vector<2>(u, i);
  scatter_words<1>(f + 8, w);
  atomic_add(l, static_cast<i64>(-1));
  atomic_add(w, 1u);
  atomic_add(m, 1ull);
)"},
    // Macros, as NVRTC takes a generic lambda for a host function.
    {"orders", R"(
#define ALL(y)                                                 \
  y[1] = atomic_add<Acquire, BlockScope>(y, y[2]);             \
  y[1] = atomic_max<Release, DeviceScope>(y, y[1]);            \
  y[1] = atomic_min<AcquireRelease, SystemScope>(y, y[1]);     \
  y[1] = atomic_exchange<Relaxed, BlockScope>(y, y[1]);        \
  y[1] = atomic_compare_exchange<AcquireRelease, DeviceScope>(y, y[1], y[2]);
#define BITS(y)                                                \
  y[1] = atomic_and<Release, BlockScope>(y, y[2]);             \
  y[1] = atomic_or<Acquire, SystemScope>(y, y[1]);             \
  y[1] = atomic_xor(y, y[1]);
  double* const d = reinterpret_cast<double*>(l + 9);
  ALL(f) ALL(d) ALL(i) ALL(l) ALL(w) ALL(m)
  BITS(i) BITS(l) BITS(w) BITS(m)
)"},
    {"reports", R"(  u32* const board = reinterpret_cast<u32*>(i);
  if (f[0] < 0) fail_check(board, 3, l[0]);
  u32* const record = new_record(board, 4, l[1], 3);
  if (record) record_elements(record, f, 1);
  if (record) record_elements(record + 1, l, 1);
)"},
    {"scans", R"(  const auto largest = [](float a, float b) { return fmaxf(a, b); };
  const auto sum = [](int a, int b) { return wrap_add(a, b); };
  const auto wide = [](i64 a, i64 b) { return wrap_add(a, b); };
  f[0] = scanned_before(lane_before<32, 1>(scan_lanes<32, 1>(f[0], largest), 0.0f), i[0], 1.0f) + last_lane<4, 8>(f[1]);
  i[0] = scanned_before(lane_before<8, 4, true>(scan_lanes<8, 4, true>(i[0], sum), 0), i[1], 1) + last_lane<2, 1>(i[2]);
  l[0] = lane_before<4, 1>(scan_lanes<4, 1>(l[0], wide), i64(0)) + last_lane<32, 1, true>(l[1]);
)"},
    {"sorts", R"(  u64 keys[32];
  PlacedKey wide[16];
  u32 short_keys[4];
  for (int k = 0; k < 32; ++k) keys[k] = placed_key<true>(f[k], k);
  for (int k = 0; k < 16; ++k) wide[k] = k < i[0] ? placed_key<false>(l[k], k) : last_key<PlacedKey>();
  for (int k = 0; k < 4; ++k) short_keys[k] = key_of<false>(i[k]);
  sort_lanes<32, 1, 1024>(keys);
  sort_lanes<16, 2, 8>(wide);
  sort_lanes<1, 1, 4>(short_keys);
  for (int k = 0; k < 32; ++k) f[k] = placed_value<float, true>(keys[k]);
  for (int k = 0; k < 16; ++k) l[k] = placed_value<i64, false>(wide[k]);
  for (int k = 0; k < 4; ++k) i[k] = key_value<int, false>(short_keys[k]) + key_place(keys[k]) + key_place(wide[k]);
  i[4] = rank_in_line<false, true>(f, 100, 32, 8, i[5], f[0]) + sum_of_copies<8>(i);
)"},
};

// Features of sm_90a alone: TMA, mbarriers, warp groups.
constexpr Kernel hopper_kernels[] = {
    {"pipelines", R"(  u64* const full = reinterpret_cast<u64*>(panel_memory());
  if (thread_index() == 0) {
    barrier_init(full + 8, 1);
    init_pipeline<4>(full, 1, full + 4, 2);
    barrier_init_fence();
  }
  barrier();
  PipelineState at = {0, 0};
  barrier_expect(full + at.stage, 1024);
  barrier_arrive(full + stage_behind<4>(at, 1));
  barrier_wait(full + at.stage, at.phase);
  int left = i[0];
  if (!take_one(left)) advance<4>(at, 1);
  named_barrier_arrive(1, 64);
  named_barrier(2, 64);
  i[0] = at.stage + panel_offset(i[1], i[2]) + panels_offset<bf16, 64>(i[3], i[4]) + panels_offset<float, 64>(i[5], i[6]);
)"},
    {"clusters", R"(  float* const part = reinterpret_cast<float*>(shared_memory());
  float d[8] = {}, e[64] = {};
  put_part<64>(part, d, thread_index());
  cluster_barrier();
  add_parts<64>(d, part, thread_index());
  cluster_barrier();
  add_parts<64>(e, part, thread_index());
  cluster_barrier();
  i[block_index()] = share_of(i[0], cluster_rank()) + static_cast<int>(cluster_index() + clusters());
  f[thread_index()] = d[5] + e[60];
)"},
    {"walks", R"(  float* const part = reinterpret_cast<float*>(l);
  u32* const flags = reinterpret_cast<u32*>(l + 4096);
  float d[8] = {}, e[64] = {};
  for (WorkRange span = first_span(i[0], i[1], i[2]); span.k_iterations > 0; next_span(span, i[0], i[1], i[2])) {
    i[span.block] = span.first;
    if (thread_index() == 0) set_flag(flags + block_index());
    for (Peers others = peers_of(span, i[0], i[1], i[2]); others.left > 0; next_of(others, i[0], i[1], i[2])) {
      if (thread_index() == 0) wait_flag(flags + others.block);
      barrier();
      add_part<64>(d, of_block(part, 4096, others.block), thread_index());
      add_part<64>(e, of_block(part, 4096, others.block), thread_index());
    }
  }
  f[thread_index()] = d[5] + e[60];
)"},
    {"copy_engine", R"(  const TensorMap* const map = reinterpret_cast<const TensorMap*>(l);
  char* const tile = panel_memory();
  u64* const full = reinterpret_cast<u64*>(tile + 8192);
  prefetch_map(map);
  griddep_launch_dependents();
  prefetch_l2<128>(tile, l[0], i[0], i[1], l[1], i[2], i[3], l[2]);
  griddep_wait();
  tma_load(map, tile, full, i[0], i[1]);
  tma_load(map, tile, full, i[0], i[1], i[2]);
  tma_load(map, tile, full, i[0], i[1], i[2], i[3]);
  tma_load(map, tile, full, i[0], i[1], i[2], i[3], box_coordinate(l[0]));
  async_proxy_fence();
  tma_store_guarded(map, tile, i[0], i[1]);
  tma_store(map, tile, i[0], i[1]);
  tma_store(map, tile, i[0], i[1], i[2]);
  tma_store_commit();
  tma_store_wait<0>();
)"},
    {"multicast", R"(  const TensorMap* const map = reinterpret_cast<const TensorMap*>(l);
  char* const tile = panel_memory();
  u64* const full = reinterpret_cast<u64*>(tile + 8192);
  tma_load_multicast(map, tile, full, i[0], i[1]);
  tma_load_multicast(map, tile, full, i[0], i[1], i[2]);
  tma_load_multicast(map, tile, full, i[0], i[1], i[2], i[3]);
  tma_load_multicast(map, tile, full, i[0], i[1], i[2], i[3], i[4]);
  barrier_arrive_cluster(full);
)"},
    {"warp_groups", R"(  setmaxnreg_dec<40>();
  setmaxnreg_inc<232>();
  char* const tile = panel_memory();
  clear_rest<64, 64>(tile, i[1], i[0], thread_index());
  const u64 matrix = matrix_descriptor<1, 64>(tile);
  float d[128] = {};
  wgmma_fence();
  wgmma_bf16_n16<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n32<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n64<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n96<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n128<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n160<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n176<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n192<0, 0>(d, matrix, matrix, true);
  wgmma_bf16_n256<0, 1>(d, matrix, matrix, true);
  wgmma_f16_n16<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n32<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n64<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n96<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n128<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n160<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n176<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n192<0, 0>(d, matrix, matrix, true);
  wgmma_f16_n256<0, 1>(d, matrix, matrix, true);
  wgmma_tf32_n64<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n96<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n128<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n192<0, 0>(d, matrix, matrix, true);
  wgmma_tf32_n256<0, 0>(d, matrix, matrix, true);
  wgmma_f8e4m3_n32<0, 0>(d, matrix, matrix, true);
  wgmma_f8e4m3_n48<0, 0>(d, matrix, matrix, true);
  wgmma_f8e4m3_n64<0, 0>(d, matrix, matrix, true);
  wgmma_f8e4m3_n96<0, 0>(d, matrix, matrix, true);
  wgmma_f8e4m3_n128<0, 0>(d, matrix, matrix, true);
  wgmma_f8e5m2_n32<0, 0>(d, matrix, matrix, true);
  wgmma_f8e5m2_n48<0, 0>(d, matrix, matrix, true);
  wgmma_f8e5m2_n64<0, 0>(d, matrix, matrix, true);
  wgmma_f8e5m2_n96<0, 0>(d, matrix, matrix, true);
  wgmma_f8e5m2_n128<0, 0>(d, matrix, matrix, true);
  wgmma_commit();
  register_fence(d);
  wgmma_wait<0>();
  int sums[128] = {};
  wgmma_fence();
  wgmma_i8_n64<0, 0>(sums, matrix, matrix, true);
  wgmma_i8_n96<0, 0>(sums, matrix, matrix, true);
  wgmma_i8_n128<0, 0>(sums, matrix, matrix, true);
  wgmma_i8_n192<0, 0>(sums, matrix, matrix, true);
  wgmma_i8_n256<0, 0>(sums, matrix, matrix, true);
  wgmma_u8_n64<0, 0>(sums, matrix, matrix, true);
  wgmma_u8_n96<0, 0>(sums, matrix, matrix, true);
  wgmma_u8_n128<0, 0>(sums, matrix, matrix, true);
  wgmma_u8_n192<0, 0>(sums, matrix, matrix, true);
  wgmma_u8_n256<0, 0>(sums, matrix, matrix, true);
  wgmma_commit();
  register_fence(sums);
  wgmma_wait<0>();
  u32 a[4] = {1, 2, 3, 4};
  fragment_fence(a);
  wgmma_fence();
  wgmma_left_bf16_n16<0>(d, a, matrix, true);
  wgmma_left_bf16_n32<0>(d, a, matrix, true);
  wgmma_left_bf16_n64<0>(d, a, matrix, true);
  wgmma_left_bf16_n96<0>(d, a, matrix, true);
  wgmma_left_bf16_n128<0>(d, a, matrix, true);
  wgmma_left_bf16_n160<0>(d, a, matrix, true);
  wgmma_left_bf16_n176<0>(d, a, matrix, true);
  wgmma_left_bf16_n192<0>(d, a, matrix, true);
  wgmma_left_bf16_n256<1>(d, a, matrix, true);
  wgmma_left_f16_n16<0>(d, a, matrix, true);
  wgmma_left_f16_n32<0>(d, a, matrix, true);
  wgmma_left_f16_n64<0>(d, a, matrix, true);
  wgmma_left_f16_n96<0>(d, a, matrix, true);
  wgmma_left_f16_n128<0>(d, a, matrix, true);
  wgmma_left_f16_n160<0>(d, a, matrix, true);
  wgmma_left_f16_n176<0>(d, a, matrix, true);
  wgmma_left_f16_n192<0>(d, a, matrix, true);
  wgmma_left_f16_n256<1>(d, a, matrix, true);
  wgmma_left_f8e4m3_n32<0>(d, a, matrix, true);
  wgmma_left_f8e4m3_n48<0>(d, a, matrix, true);
  wgmma_left_f8e4m3_n64<0>(d, a, matrix, true);
  wgmma_left_f8e4m3_n96<0>(d, a, matrix, true);
  wgmma_left_f8e4m3_n128<0>(d, a, matrix, true);
  wgmma_left_f8e5m2_n32<0>(d, a, matrix, true);
  wgmma_left_f8e5m2_n48<0>(d, a, matrix, true);
  wgmma_left_f8e5m2_n64<0>(d, a, matrix, true);
  wgmma_left_f8e5m2_n96<0>(d, a, matrix, true);
  wgmma_left_f8e5m2_n128<0>(d, a, matrix, true);
  float e[4] = {1, 2, 3, 4};
  register_fence(e);
  wgmma_left_tf32_n64<0>(d, e, matrix, true);
  wgmma_left_tf32_n96<0>(d, e, matrix, true);
  wgmma_left_tf32_n128<0>(d, e, matrix, true);
  wgmma_left_tf32_n192<0>(d, e, matrix, true);
  wgmma_left_tf32_n256<0>(d, e, matrix, true);
  wgmma_left_i8_n64<0>(sums, a, matrix, true);
  wgmma_left_i8_n96<0>(sums, a, matrix, true);
  wgmma_left_i8_n128<0>(sums, a, matrix, true);
  wgmma_left_i8_n192<0>(sums, a, matrix, true);
  wgmma_left_i8_n256<0>(sums, a, matrix, true);
  wgmma_left_u8_n64<0>(sums, a, matrix, true);
  wgmma_left_u8_n96<0>(sums, a, matrix, true);
  wgmma_left_u8_n128<0>(sums, a, matrix, true);
  wgmma_left_u8_n192<0>(sums, a, matrix, true);
  wgmma_left_u8_n256<0>(sums, a, matrix, true);
  wgmma_commit();
  register_fence(d);
  wgmma_wait<0>();
  load_vector<1>(f, panels_element<float, 64>(tile, i[0], i[1], i[2]));
  warp_barrier();
  store_matrix(tile + 16 * lane_index(), bits_of(d[0]), bits_of(d[1]), bits_of(d[2]), bits_of(d[3]));
  store_matrix_transposed(tile + 16 * lane_index(), bits_of(d[0]), bits_of(d[1]), bits_of(d[2]), bits_of(d[3]));
  f[thread_index()] = d[5] + static_cast<float>(sums[5]);
)"},
};

constexpr const char* archs[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"};

CompileRequest request(const std::string& name, const std::string& body, Arch arch) {
  const std::string kernel =
      "extern \"C\" __global__ void __launch_bounds__(64) " + name +
      "(float* f, int* i, i64* l, f16* h, bf16* b, u8* u, u32* w, u64* m, i8* s, i16* t, u16* v, f8e4m3* p8, "
      "f8e5m2* q8, pred* q) {\n" +
      body + "}\n";
  return {.source = prelude_for(kernel) + "\n" + kernel, .kernel = name, .arch = arch};
}

}  // namespace

TEST_CASE("Every prelude item is called by a kernel that compiles cleanly for every architecture", "[prelude]") {
  std::string called =
      "load_vector debug_fail check_offset reach_below reach_above check_number check_numbers";  // below
  for (const Kernel& kernel : kernels) called += std::string("\n") + kernel.text;
  for (const Kernel& kernel : hopper_kernels) called += std::string("\n") + kernel.text;
  const std::string all = prelude_for(called);
  for (const PreludeItem& item : prelude_items()) {
    INFO(item.file << ": no kernel here calls " << item.name);
    CHECK(all.find(item.text) != all.npos);
  }

  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  for (const Kernel& kernel : hopper_kernels) {
    CompileRequest whole_group = request(kernel.name, kernel.text, Arch::sm_90a);
    const std::size_t bounds = whole_group.source.find("__launch_bounds__(64)");
    whole_group.source.replace(bounds, 21, "__launch_bounds__(128)");
    // These set registers without roles and wait for each wgmma: only whole kernels show that they compile cleanly
    // (test_role_plans.cpp).
    CHECK_NOTHROW(nvrtc->compile(whole_group));
  }
  for (const char* arch : archs) {
    for (const Kernel& kernel : kernels) {
      if (!in_share(std::string(arch) + kernel.name, std::min<std::size_t>(test_share(1), 4))) continue;
      const CompileRequest kernel_request = request(kernel.name, kernel.text, Arch::parse(arch));
      const CompiledCode code = nvrtc->compile(kernel_request);
      INFO(arch << " " << kernel.name << "\n" << code.log);
      CHECK(code.report.warnings.empty());
      CHECK(is_clean(code.report, kernel_request.source));
    }
    // printf takes its arguments from local memory.
    CHECK(nvrtc
              ->compile(request(
                  "debug",
                  "  if (!(f[0] < 1)) debug_fail(\"f[0] < 1\", 7);\n  check_offset(l[0], 4, "
                  "reach_below(l[1]), reach_above(l[2]), 7);\n  check_number(f[0], 7);\n  check_numbers<4>(f, 7);\n",
                  Arch::parse(arch)))
              .report.warnings.empty());
  }
}

TEST_CASE("Vector accesses have their full width", "[prelude]") {
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  struct Element {
    const char *pointer, *value;
    int bytes;
  };
  for (const Element element :
       {Element{"f", "float", 4}, {"h", "float", 2}, {"i", "int", 4}, {"u", "int", 1}, {"l", "i64", 8}}) {
    for (const int bytes : {1, 2, 4, 8, 16, 32, 64}) {
      if (bytes < element.bytes) continue;
      const std::string n = std::to_string(bytes / element.bytes),
                        offset = std::string(element.pointer) + " + thread_index() * " + n;
      const std::string body = "  " + std::string(element.value) + " x[" + n + "];\n  load_vector<" + n + ">(x, " +
                               offset + ");\n  store_vector<" + n + ">(" + offset + " + 64 * " + n + ", x);\n";
      const CompiledCode code = nvrtc->compile(request("move", body, Arch{99, 0}));  // PTX, for a GPU not yet known
      const std::string_view ptx = reinterpret_cast<const char*>(code.image.data());
      INFO(body << ptx);
      REQUIRE(code.is_ptx);
      for (const std::string_view access : {"ld.global", "st.global"}) {
        int count = 0;
        for (std::size_t at = ptx.find(access); at != ptx.npos; at = ptx.find(access, at + 1)) {
          // ld.global.v4.u32, ld.global.u8
          std::string_view kind = ptx.substr(at + access.size() + 1, 8);
          int width = 1;
          if (kind.starts_with('v')) {
            width = kind[1] - '0';
            kind.remove_prefix(3);
          }
          width *= std::atoi(std::string(kind.substr(1, 2)).c_str()) / 8;
          CHECK(width == std::min(bytes, 16));
          ++count;
        }
        CHECK(count == std::max(bytes / 16, 1));
      }
      CHECK(ptx.find(".local") == ptx.npos);
    }
  }
}

TEST_CASE("The ops' expressions compile, and exist exactly for the operands that the ops take", "[prelude]") {
  std::string body;
  const auto use = [&](Op op, ElementType type, const std::string& pointer) {
    if (!accepts(op, type)) return;
    const bool real = info(type).kind == ElementKind::real;
    const std::string_view text = real ? info(op).cuda_real : info(op).cuda_integer;
    INFO(name(op));
    CHECK_FALSE(text.empty());
    const std::string cell = pointer + "[" + std::to_string(static_cast<int>(op)) + "]";
    const bool pred = type == ElementType::pred;
    body += "  {\n    const auto a = " + cell + (pred ? " > 0" : "") + ", b = " + pointer + "[99]" +
            (pred ? " > 0" : "") + ", c = " + pointer + "[98]" + (pred ? " > 0" : "") + ";\n    " + cell + " = " +
            std::string(text) + ";\n    (void)b, (void)c;\n  }\n";
  };
  for (int i = 0; i <= static_cast<int>(Op::min_nan); ++i) {
    const Op op = static_cast<Op>(i);
    use(op, ElementType::f32, "f");
    use(op, ElementType::i32, "i");
    use(op, ElementType::i64, "l");
    use(op, ElementType::u32, "w");
    use(op, ElementType::u64, "m");
    use(op, ElementType::pred, "i");
    const Operands operands = info(op).operands;
    const bool real_only = operands == Operands::real || operands == Operands::single;
    CHECK(info(op).cuda_real.empty() != (real_only || operands == Operands::number));
    CHECK(info(op).cuda_integer.empty() == real_only);
  }
  CHECK((info(Op::load).cuda_real.empty() && info(Op::load).cuda_integer.empty()));
  const Nvrtc* nvrtc = nvrtc_here();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const CompiledCode code = nvrtc->compile(request("ops", body, Arch::parse(arch)));
    INFO(body << code.log);
    CHECK(code.report.warnings.empty());
    CHECK(code.report.clean());
  }
}

}  // namespace test_prelude_kernels
