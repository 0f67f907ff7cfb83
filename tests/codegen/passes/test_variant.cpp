// The properties of a launch's tensors that generated code may assume.
#include <algorithm>
#include <limits>

#include "codegen/passes.hpp"
#include "codegen/target/variant.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_variant {

using namespace tessera::internal;

namespace {

/// A tensor in memory, `offset` bytes after a multiple of 16.
TensorClass class_of(ElementType type, std::vector<std::int64_t> extents, std::vector<std::int64_t> strides,
                     std::uintptr_t offset = 0) {
  Argument argument;
  argument.data = reinterpret_cast<void*>(std::uintptr_t{1} << 20 | offset);
  std::ranges::copy(extents, argument.extent.begin());
  std::ranges::copy(strides, argument.stride.begin());
  return classify({.access = Access::in, .type = type, .rank = static_cast<int>(extents.size())}, argument);
}
bool tma_addressable(std::vector<std::int64_t> extents, std::vector<std::int64_t> strides, std::uintptr_t offset = 0) {
  return class_of(ElementType::bf16, extents, strides, offset).tma_addressable;
}

}  // namespace

TEST_CASE("a tensor's class is its contiguous axis and its alignment", "[plan]") {
  const TensorClass dense = class_of(ElementType::f32, {5, 32}, {32, 1});
  CHECK(dense ==
        TensorClass{
            .contiguous_axis = 1, .alignment = 16, .row_alignment = 16, .tma_addressable = true, .has_elements = true});
  CHECK(class_of(ElementType::f32, {5, 32}, {1, 5}).contiguous_axis == 0);
  CHECK(class_of(ElementType::f32, {5, 32}, {64, 2}).contiguous_axis == -1);
  CHECK(class_of(ElementType::f32, {5, 1}, {1, 1}).contiguous_axis == 0);  // along the longer axis
  CHECK(class_of(ElementType::f32, {1, 1}, {1, 1}).contiguous_axis == 1);
  CHECK(class_of(ElementType::f32, {5, 32}, {32, 1}, 8).alignment == 8);
  CHECK(class_of(ElementType::f32, {5, 31}, {31, 1}).alignment == 4);
  CHECK(class_of(ElementType::f32, {5, 31}, {-32, 1}).alignment == 16);
  CHECK(class_of(ElementType::f32, {1, 31}, {31, 1}).alignment == 16);  // there is no other row
  CHECK(class_of(ElementType::f32, {5, 36}, {36, 1}).row_alignment == 16);
  CHECK(class_of(ElementType::f32, {5, 6}, {32, 1}).row_alignment == 8);
  CHECK(class_of(ElementType::bf16, {5, 7}, {32, 1}).row_alignment == 2);
  CHECK(class_of(ElementType::f32, {5, 32}, {1, 5}).row_alignment == 4);  // a row is a column
  CHECK(classify({.access = Access::scalar, .type = ElementType::f32, .rank = 0}, Argument{}) == TensorClass{});
}

TEST_CASE("the class of a list is what its tensors have in common", "[plan]") {
  const Graph graph = run_passes(trace_kernel(
      "pair", [](List<In<f32, 2>, 3> xs, Out<f32, 2> y) { store(y, {0, 0}, load(xs[0], {0, 0}, {4, 4})); }));
  REQUIRE(graph.parameters.size() == 5);
  using Numbers = std::array<std::int64_t, max_rank>;
  const auto tensor = [](const Numbers& extent, const Numbers& stride, std::uintptr_t offset = 0) {
    return Argument{
        .data = reinterpret_cast<void*>(std::uintptr_t{1} << 40 | offset), .extent = extent, .stride = stride};
  };
  const auto classes = [&](const Argument& first, const Argument& second) {
    const Argument out = tensor({4, 4}, {4, 1});
    return classify(graph, std::array{first, second, Argument{}, Argument{}, out});
  };
  const Argument dense = tensor({5, 32}, {32, 1});
  const auto list = [&](const Argument& second) { return classes(dense, second).tensors[0]; };
  const TensorClass same{.contiguous_axis = 1, .alignment = 16, .row_alignment = 16};
  CHECK(list(dense) == same);
  CHECK(list(Argument{}) == same);  // a tensor without elements is not accessed
  CHECK(list(tensor({0, 3}, {3, 1}, 4)) == same);
  CHECK(classes(Argument{}, dense).tensors[0] == same);
  CHECK(list(tensor({5, 32}, {32, 1}, 8)).alignment == 8);
  CHECK(list(tensor({5, 6}, {32, 1})) == TensorClass{.contiguous_axis = 1, .alignment = 16, .row_alignment = 8});
  CHECK(list(tensor({5, 6}, {6, 1})).alignment == 8);
  CHECK(list(tensor({5, 32}, {1, 8})).contiguous_axis == -1);
  CHECK(list(tensor({8, 1}, {1, 77})).contiguous_axis == -1);  // flattened axes may take their step from there
  CHECK(classes(dense, dense).tensors[1] == TensorClass{});
  CHECK(classes(dense, dense).tensors[4].tma_addressable);
  CHECK_FALSE(classes(dense, dense).index64);
  CHECK(classes(dense, tensor({2, 32}, {std::int64_t{1} << 29, 1})).index64);
  const Variant assumed = dense_variant(graph);
  CHECK(assumed.tensors[0] == same);
  CHECK(assumed.tensors[1] == TensorClass{});
}

TEST_CASE("the conditions for a TMA-addressable tensor", "[plan]") {
  CHECK(tma_addressable({64}, {1}));
  CHECK(tma_addressable({64, 128}, {128, 1}));
  CHECK(tma_addressable({64, 128}, {1, 64}));
  CHECK(tma_addressable({3, 64, 128}, {8, 1024, 1}));    // in any order
  CHECK(tma_addressable({64, 7}, {16, 1}));              // any extent
  CHECK_FALSE(tma_addressable({64, 128}, {256, 2}));     // no contiguous axis
  CHECK_FALSE(tma_addressable({64, 7}, {7, 1}));         // rows of 14 bytes
  CHECK_FALSE(tma_addressable({64, 128}, {128, 1}, 8));  // 8 bytes off
  CHECK_FALSE(tma_addressable({64, 128}, {0, 1}));       // the same row repeatedly
  CHECK_FALSE(tma_addressable({64, 128}, {-128, 1}));    // backwards
  CHECK_FALSE(tma_addressable({0, 128}, {128, 1}));
  CHECK_FALSE(tma_addressable({64, 0}, {128, 1}));
}

TEST_CASE("TMA ignores the stride of an axis with one element", "[plan]") {
  for (const std::int64_t stride :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{-8}, std::int64_t{1} << 45}) {
    CHECK(tma_addressable({1, 128}, {stride, 1}));
    CHECK(tma_addressable({64, 1, 128}, {128, stride, 1}));
  }
  CHECK(tma_addressable({64, 1}, {128, 1}));     // a column
  CHECK_FALSE(tma_addressable({1, 1}, {7, 7}));  // no stride is 1
}

TEST_CASE("limits of TMA-addressable tensors", "[plan]") {
  CHECK(tma_addressable({2, 2, 2, 2, 64}, {512, 256, 128, 64, 1}));
  CHECK_FALSE(tma_addressable({2, 2, 2, 2, 2, 64}, {1024, 512, 256, 128, 64, 1}));  // more than 5 axes
  const std::int64_t most = (std::int64_t{1} << 39) - 8;                    // 2-byte elements; below 2^40 bytes
  CHECK(tma_addressable({2, 128}, {most, 1}));
  CHECK_FALSE(tma_addressable({2, 128}, {most + 8, 1}));
  CHECK_FALSE(tma_addressable({2, 128}, {(std::int64_t{1} << 62) + 8, 1}));  // times 2 it overflows to a small number
  CHECK(class_of(ElementType::f32, {2, 128}, {most / 2, 1}).tma_addressable);
  CHECK_FALSE(class_of(ElementType::f32, {2, 128}, {most, 1}).tma_addressable);
  CHECK(tma_addressable({64, std::int64_t{1} << 32}, {8, 1}));
  CHECK_FALSE(tma_addressable({64, (std::int64_t{1} << 32) + 1}, {8, 1}));
}

TEST_CASE("dense tensors of up to 5 axes are TMA-addressable", "[plan]") {
  Graph graph;
  for (int rank = 1; rank <= 6; ++rank)
    graph.parameters.push_back({.access = Access::in, .type = ElementType::f32, .rank = rank});
  const Variant variant = dense_variant(graph);
  for (std::size_t i = 0; i < 6; ++i) CHECK(variant.tensors[i].tma_addressable == (i < 5));
}

TEST_CASE("offsets are 32-bit where neither tensors nor tiles reach 2^30 elements", "[plan]") {
  constexpr std::int64_t far = std::int64_t{1} << 30;
  const auto is_wide = [](const Graph& graph, std::vector<std::int64_t> extents, std::vector<std::int64_t> strides) {
    Argument argument;
    argument.data = reinterpret_cast<void*>(std::uintptr_t{1} << 40);
    std::ranges::copy(extents, argument.extent.begin());
    std::ranges::copy(strides, argument.stride.begin());
    Argument small = argument;  // an output
    small.extent = small.stride = {1, 1};
    return classify(run_passes(graph), {{argument, small}}).index64;
  };
  const auto copies = [](int rows, int columns) {
    return trace_kernel("copy", [=](In<u8, 2> x, Out<u8, 2> y) { store(y, {0, 0}, load(x, {0, 0}, {rows, columns})); });
  };
  // A whole tensor.
  CHECK_FALSE(is_wide(copies(1, 1), {7, far / 8 - 1}, {far / 8, 1}));
  CHECK(is_wide(copies(1, 1), {7, far / 8}, {far / 8, 1}));
  CHECK(is_wide(copies(1, 1), {2, 8}, {-far / 2, 1}));
  // A tile larger than the tensor, which is a row.
  CHECK_FALSE(is_wide(copies(17, 1), {1, 8}, {far / 16 - 1, 1}));
  CHECK_FALSE(is_wide(copies(16, 1), {1, 8}, {far / 16, 1}));
  CHECK(is_wide(copies(17, 1), {1, 8}, {far / 16, 1}));
  CHECK(is_wide(copies(17, 1), {1, 8}, {-far / 16, 1}));
  CHECK(is_wide(copies(2, 1), {0, 8}, {std::numeric_limits<std::int64_t>::min(), 1}));
  // Steps, windows and transposed axes count.
  const auto read = [](auto view) {
    return trace_kernel("read", [=](In<u8, 2> x, Out<u8, 2> y) { store(y, {0, 0}, view(x)); });
  };
  const auto stepped = [&](int step) {
    return read([=](auto& x) { return load(x.slice(1, 0, 9, step), {0, 0}, {1, 9}); });
  };
  CHECK_FALSE(is_wide(stepped(-(1 << 26)), {1, 8}, {8, 1}));
  CHECK(is_wide(stepped(-(1 << 27)), {1, 8}, {8, 1}));
  CHECK(is_wide(stepped(1 << 27), {1, 8}, {8, 1}));
  const auto transposed = read([](auto& x) { return load(x.permute({1, 0}), {0, 0}, {1, 9}); });
  CHECK_FALSE(is_wide(transposed, {1, 8}, {far / 8 - 1, 1}));
  CHECK(is_wide(transposed, {1, 8}, {far / 8, 1}));
  const auto windows = read([](auto& x) { return reshape(load(x.unfold(0, 3, 4), {0, 0, 0}, {3, 3, 1}), {3, 3}); });
  CHECK_FALSE(is_wide(windows, {1, 8}, {far / 10 - 1, 1}));
  CHECK(is_wide(windows, {1, 8}, {far / 10 + 1, 1}));
  // Gathered rows have 64-bit offsets.
  const auto gathered = read([](auto& x) { return gather(x, iota({64}, 0), {0}, {1}); });
  CHECK_FALSE(is_wide(gathered, {1, 8}, {far / 16, 1}));
  // Without a launch the known extents count.
  CHECK(dense_variant(run_passes(stepped(1 << 27))).index64);
  CHECK_FALSE(dense_variant(run_passes(stepped(1 << 26))).index64);
}

}  // namespace test_variant
