// What a launch's tensors let code assume.
#include <algorithm>

#include "catch.hpp"
#include "codegen/variant.hpp"

using namespace tessera::internal;

namespace {

/// A tensor somewhere in memory, `offset` bytes behind a multiple of 16.
TensorClass class_of(ElementType type, std::vector<std::int64_t> extents, std::vector<std::int64_t> strides,
                     std::uintptr_t offset = 0) {
  Argument argument;
  argument.data = reinterpret_cast<void*>(std::uintptr_t{1} << 20 | offset);
  std::ranges::copy(extents, argument.extent.begin());
  std::ranges::copy(strides, argument.stride.begin());
  return classify({.access = Access::in, .type = type, .rank = static_cast<int>(extents.size())}, argument);
}
bool boxable(std::vector<std::int64_t> extents, std::vector<std::int64_t> strides, std::uintptr_t offset = 0) {
  return class_of(ElementType::bf16, extents, strides, offset).boxable;
}

}  // namespace

TEST_CASE("the class of a tensor is where its elements are neighbours, and what divides", "[plan]") {
  const TensorClass dense = class_of(ElementType::f32, {5, 32}, {32, 1});
  CHECK(dense == TensorClass{.unit_axis = 1,
                             .alignment = 16,
                             .granule = 16,
                             .boxable = true,
                             .has_elements = true});
  CHECK(class_of(ElementType::f32, {5, 32}, {1, 5}).unit_axis == 0);
  CHECK(class_of(ElementType::f32, {5, 32}, {64, 2}).unit_axis == -1);
  CHECK(class_of(ElementType::f32, {5, 1}, {1, 1}).unit_axis == 0);  // along the longer
  CHECK(class_of(ElementType::f32, {1, 1}, {1, 1}).unit_axis == 1);
  CHECK(class_of(ElementType::f32, {5, 32}, {32, 1}, 8).alignment == 8);
  CHECK(class_of(ElementType::f32, {5, 31}, {31, 1}).alignment == 4);
  CHECK(class_of(ElementType::f32, {5, 31}, {-32, 1}).alignment == 16);
  CHECK(class_of(ElementType::f32, {1, 31}, {31, 1}).alignment == 16);  // there is no other row
  CHECK(class_of(ElementType::f32, {5, 36}, {36, 1}).granule == 16);
  CHECK(class_of(ElementType::f32, {5, 6}, {32, 1}).granule == 8);
  CHECK(class_of(ElementType::bf16, {5, 7}, {32, 1}).granule == 2);
  CHECK(class_of(ElementType::f32, {5, 32}, {1, 5}).granule == 4);  // a row is a column
  CHECK(classify({.access = Access::scalar, .type = ElementType::f32, .rank = 0}, {}) == TensorClass{});
}

TEST_CASE("the copy engine can address what a tensor map may have", "[plan]") {
  CHECK(boxable({64}, {1}));
  CHECK(boxable({64, 128}, {128, 1}));
  CHECK(boxable({64, 128}, {1, 64}));
  CHECK(boxable({3, 64, 128}, {8, 1024, 1}));    // in any order
  CHECK(boxable({64, 7}, {16, 1}));              // of any extent
  CHECK_FALSE(boxable({64, 128}, {256, 2}));     // no neighbours
  CHECK_FALSE(boxable({64, 7}, {7, 1}));         // rows of 14 bytes
  CHECK_FALSE(boxable({64, 128}, {128, 1}, 8));  // 8 bytes further
  CHECK_FALSE(boxable({64, 128}, {0, 1}));       // a row again and again
  CHECK_FALSE(boxable({64, 128}, {-128, 1}));    // backwards
  CHECK_FALSE(boxable({0, 128}, {128, 1}));
  CHECK_FALSE(boxable({64, 0}, {128, 1}));
}

TEST_CASE("of an axis of one element the stride does not matter to the copy engine", "[plan]") {
  for (const std::int64_t stride :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{-8}, std::int64_t{1} << 45}) {
    CHECK(boxable({1, 128}, {stride, 1}));
    CHECK(boxable({64, 1, 128}, {128, stride, 1}));
  }
  CHECK(boxable({64, 1}, {128, 1}));     // a column
  CHECK_FALSE(boxable({1, 1}, {7, 7}));  // nothing has a stride of 1
}

TEST_CASE("the copy engine has bounds", "[plan]") {
  CHECK(boxable({2, 2, 2, 2, 64}, {512, 256, 128, 64, 1}));
  CHECK_FALSE(boxable({2, 2, 2, 2, 2, 64}, {1024, 512, 256, 128, 64, 1}));  // 5 axes
  const std::int64_t most = (std::int64_t{1} << 39) - 8;                    // elements of 2 bytes, below 2^40 of those
  CHECK(boxable({2, 128}, {most, 1}));
  CHECK_FALSE(boxable({2, 128}, {most + 8, 1}));
  CHECK_FALSE(boxable({2, 128}, {(std::int64_t{1} << 62) + 8, 1}));  // of which twice is small
  CHECK(class_of(ElementType::f32, {2, 128}, {most / 2, 1}).boxable);
  CHECK_FALSE(class_of(ElementType::f32, {2, 128}, {most, 1}).boxable);
  CHECK(boxable({64, std::int64_t{1} << 32}, {8, 1}));
  CHECK_FALSE(boxable({64, (std::int64_t{1} << 32) + 1}, {8, 1}));
}

TEST_CASE("dense tensors are what the copy engine can address, up to 5 axes", "[plan]") {
  Graph graph;
  for (int rank = 1; rank <= 6; ++rank)
    graph.parameters.push_back({.access = Access::in, .type = ElementType::f32, .rank = rank});
  const Variant variant = dense_variant(graph);
  for (std::size_t i = 0; i < 6; ++i) CHECK(variant.tensors[i].boxable == (i < 5));
}
