// Faults planted in plans of warp-specialized matmuls of 8-bit operands, which the verifier must report.
#include <algorithm>
#include <utility>
#include <vector>

#include "matmuls_8_bits.hpp"
#include "support/catch.hpp"
#include "support/plan_steps.hpp"
#include "support/planted_faults.hpp"

namespace test_warp_specialized_8_bits_faults {

using namespace matmuls_8_bits;

namespace {

/// The steps around the nth wgmma, from its fence to the fence of its sums.
void drop_part(Plan& plan, std::size_t nth) {
  const StepPlace place = place_of<Wgmma>(plan, nth);
  place.body->erase(place.body->begin() + static_cast<std::ptrdiff_t>(place.index) - 1,
                    place.body->begin() + static_cast<std::ptrdiff_t>(place.index) + 3);
}
template <class Kind>
void repeat(Plan& plan, std::size_t nth) {
  const StepPlace place = place_of<Kind>(plan, nth);
  place.body->insert(place.body->begin() + static_cast<std::ptrdiff_t>(place.index), Step(place.step()));
}
/// In a stage, the step that releases the one before.
StepPlace release_of(Plan& plan, std::size_t nth) {
  std::vector<StepPlace> found;
  for (const StepPlace& place : places_of<ElectOne>(plan)) {
    const Body& body = place.step().action.get<ElectOne>().body;
    if (std::ranges::any_of(body, [](const Step& step) { return step.action.is<ArriveEmpty>(); }))
      found.push_back(place);
  }
  return found.at(nth);
}
PromoteSums& promotion(Plan& plan, std::size_t nth) { return the<PromoteSums>(plan, nth); }

}  // namespace

// In the loop, the stage before's last part is promoted first, then each part but the last.
TEST_CASE("the verifier reports errors of promoted sums", "[plan]") {
  const PlantedFault faults[] =
      {
          {"sums are not promoted", [](Plan& p) { place_of<PromoteSums>(p, 1).drop(); },
           "it overwrites sums that are not promoted"},
          {"the sums of the stage before are not promoted", [](Plan& p) { place_of<PromoteSums>(p, 0).drop(); },
           "it overwrites sums that are not promoted"},
          {"the last sums are not promoted", [](Plan& p) { place_of<PromoteSums>(p, 4).drop(); },
           "sums of fp8 products are not promoted"},
          {"sums are promoted twice", [](Plan& p) { repeat<PromoteSums>(p, 1); }, "are promoted already"},
          {"the last sums are promoted twice", [](Plan& p) { repeat<PromoteSums>(p, 4); }, "are promoted already"},
          {"sums are promoted before the wait for them", [](Plan& p) { place_of<PromoteSums>(p, 1).move(-2); },
           "is the accumulator of a wgmma in flight"},
          {"the last sums are promoted before the wait for them",
           [](Plan& p) {
    const StepPlace last = place_of<PromoteSums>(p, 4), wait = place_of<WgmmaWait>(p, 4);
    REQUIRE(last.body == wait.body);
    last.move(static_cast<std::ptrdiff_t>(wait.index) - static_cast<std::ptrdiff_t>(last.index));
           },
           "is the accumulator of a wgmma in flight"},
          {"sums are promoted after they are overwritten",
           [](Plan& p) {
    const StepPlace first = place_of<PromoteSums>(p, 1), next = place_of<Wgmma>(p, 2);
    first.move(static_cast<std::ptrdiff_t>(next.index) - static_cast<std::ptrdiff_t>(first.index));
           },
           "it overwrites sums that are not promoted"},
                     {"sums are promoted to other columns",
                      [](Plan& p) { promotion(p, 1).sums = promotion(p, 3).sums; }, "are sums of other columns"},
                     {"sums are promoted to more columns than there are",
                      [](Plan& p) { p.values[promotion(p, 3).sums].origin[1] = 224; }, "are not columns of"},
                     {"sums are promoted to sums", [](Plan& p) { promotion(p, 2).accumulators = promotion(p, 1).sums; },
                      "are not columns of"},
                     {"sums are added up by wgmma", [](Plan& p) { the<Wgmma>(p, 1).overwrites = false; },
                      "it adds up more than 128 products of fp8"},
                     {"wgmma adds to the sums of the stage before",
                      [](Plan& p) {
    the<Wgmma>(p, 1).overwrites = false;
    the<Wgmma>(p, 1).overwrites_first = the<Loop>(p, 2).loop;
                      },
                      "it adds up more than 128 products of fp8"},
      {"the last columns are left out", [](Plan& p) { drop_part(p, 3); }, "only 192 of 256 columns are multiplied"},
      {"columns in between are left out", [](Plan& p) { drop_part(p, 1); },
       "only 128 of 128 along k, and columns up to 64, are multiplied"},
      {"a part is multiplied twice", [](Plan& p) { repeat<Wgmma>(p, 2); },
       "k is multiplied from 0 on, but so far only up to 128"},
      {"columns that overlap", [](Plan& p) { p.values[the<Wgmma>(p, 2).out].origin[1] = 120; }, "and columns up to"},
      {"columns within the rows of a swizzle", [](Plan& p) { p.values[the<Wgmma>(p, 1).out].origin[1] = 60; },
       "but the operand is 64 by k from 0 to 128"},
      {"columns past the end", [](Plan& p) { p.values[the<Wgmma>(p, 3).out].origin[1] = 200; },
       "but the operand is 64 by k from 0 to 128"},
      {"a wait that leaves two groups", [](Plan& p) { the<WgmmaWait>(p, 1).pending = 2; },
       "is the accumulator of a wgmma in flight"},
      {"no wait for sums", [](Plan& p) { place_of<WgmmaWait>(p, 2).drop(); },
       "is the accumulator of a wgmma in flight"},
      {"no wait for the sums of the stage before", [](Plan& p) { place_of<WgmmaWait>(p, 0).drop(); },
       "is the accumulator of a wgmma in flight"},
      {"a stage is released before the wait",
       [](Plan& p) {
    const StepPlace released = release_of(p, 0), wait = place_of<WgmmaWait>(p, 0);
    REQUIRE(released.body == wait.body);
    released.move(static_cast<std::ptrdiff_t>(wait.index) - static_cast<std::ptrdiff_t>(released.index));
       },
       "wgmma that read the stage are in flight"},
      {"the last stage is released before the wait", [](Plan& p) { release_of(p, 1).move(-2); },
       "wgmma that read the stage are in flight"},
      {"the stage that is being read is released",
       [](Plan& p) { release_of(p, 0).step().action.get<ElectOne>().body[0].action.get<ArriveEmpty>().behind = 0; },
       "wgmma that read the stage are in flight"},
      {"all parts have one set of registers",
       [](Plan& p) {
    const StorageId one = p.values[the<Wgmma>(p, 0).out].storage, other = p.values[the<Wgmma>(p, 1).out].storage;
    for (Value& value : p.values)
      if (value.storage == other) value.storage = one;
       },
       "is the accumulator of a wgmma in flight"},
      {"a set of registers that is not zero at first", [](Plan& p) { the<DeclareAccumulator>(p, 2).zeroed = false; },
       "is read before it is set"},
      {"a set of registers that is not declared", [](Plan& p) { place_of<DeclareAccumulator>(p, 2).drop(); },
       "before it is defined"},
      {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p, 0).drop(); }, "no fence precedes it"},
      {"a wgmma that is not committed", [](Plan& p) { place_of<WgmmaCommit>(p, 1).drop(); }, "are not committed"},
      {"operands of another type", [](Plan& p) { the<Wgmma>(p, 0).type = ElementType::f8e5m2; },
       "is not stored as wgmma reads f8e5m2"},
      {"a left operand that is not read", [](Plan& p) { place_of<LoadFragment>(p, 0).drop(); },
       "is read before it is set"},
      {"a left operand that is read before the wait",
       [](Plan& p) {
    const StepPlace read = place_of<LoadFragment>(p, 0), wait = place_of<WgmmaWait>(p, 0);
    REQUIRE(read.body == wait.body);
    read.move(static_cast<std::ptrdiff_t>(wait.index) - static_cast<std::ptrdiff_t>(read.index));
       },
       "is the left operand of a wgmma in flight"},
      {"a right operand along n", [](Plan& p) { the<Wgmma>(p, 1).b_k_major = false; },
       "wgmma reads f8e4m3 only k-major"},
      {"a k that is no multiple of 32", [](Plan& p) { the<Wgmma>(p, 0).k = 48; }, "no wgmma instruction has shape"},
      {"half of k", [](Plan& p) { the<Wgmma>(p, 0).k = 64; }, "only 64 of 128 along k"},
      };
  check_reported(plan_with(plain<f8e4m3, f32>({128, 256, 128}).graph()), faults);

  const PlantedFault of_k[] = {
      {"more than 128 of k", [](Plan& p) { the<Wgmma>(p, 0).k = 256; }, "it adds up more than 128 products of fp8"},
      {"the last part of k is left out", [](Plan& p) { drop_part(p, 3); }, "only 384 of 512 along k"},
      {"k in between is left out", [](Plan& p) { drop_part(p, 1); },
       "k is multiplied from 256 on, but so far only up to 128"},
      {"a part of k is multiplied twice", [](Plan& p) { the<Wgmma>(p, 1).first_k = 0; },
       "k is multiplied from 0 on, but so far only up to 128"},
      {"k past the end", [](Plan& p) { the<Wgmma>(p, 3).first_k = 448; }, "but the operand is 64 by k from 448 to 576"},
  };
  check_reported(plan_with(plain<f8e4m3, f32>({64, 64, 512}).graph()), of_k);
}

TEST_CASE("the verifier reports sums that are promoted too late, or to another matmul", "[plan]") {
  const PlantedFault late[] = {
      {"the last sums are promoted at the end",
       [](Plan& p) {
    const StepPlace last = place_of<PromoteSums>(p, 2);
    last.move(std::ssize(*last.body) - 1 - static_cast<std::ptrdiff_t>(last.index));
  }, "is used before all sums are promoted to it"},
  };
  for (const SplitK how : {SplitK::none, SplitK::cluster, SplitK::stream_k})
    check_reported(plan_with(plain<f8e4m3, f32>({64, 64, 128}).graph(), split(how)), late);
  const PlantedFault other[] = {
      {"sums of one matmul are promoted to the other",
       [](Plan& p) { std::swap(promotion(p, 2).accumulators, promotion(p, 3).accumulators); },
       "are sums of another matmul"},
      {"all sums are promoted to one matmul",
       [](Plan& p) {
    for (const std::size_t i : {0, 3, 4}) promotion(p, i).accumulators = promotion(p, 1).accumulators;
  }, "are sums of another matmul"},
  };
  check_reported(plan_with(gated<f8e4m3>({64, 128, 128}).graph()), other);
}

TEST_CASE("the verifier reports errors of integers of 8 bits", "[plan]") {
  const PlantedFault faults[] = {
      {"a left operand along m", [](Plan& p) { the<Wgmma>(p).a_k_major = false; }, "wgmma reads i8 only k-major"},
      {"a right operand along n", [](Plan& p) { the<Wgmma>(p).b_k_major = false; }, "wgmma reads i8 only k-major"},
      {"a k that is no multiple of 32", [](Plan& p) { the<Wgmma>(p).k = 48; }, "no wgmma instruction has shape"},
      {"half of k", [](Plan& p) { the<Wgmma>(p).k = 64; }, "along k are multiplied"},
      {"operands without sign", [](Plan& p) { the<Wgmma>(p).type = ElementType::u8; },
       "is not stored as wgmma reads u8"},
      {"some columns only", [](Plan& p) { the<Wgmma>(p).n = 64; }, "but the operand is 64 by k from 0 to 128"},
      {"sums that are not waited for", [](Plan& p) { place_of<WgmmaWait>(p, 1).drop(); }, "in flight"},
      {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p, 0).drop(); }, "no fence precedes it"},
  };
  check_reported(plan_with(plain<i8, i32>({128, 128, 128}).graph()), faults);
}

}  // namespace test_warp_specialized_8_bits_faults
