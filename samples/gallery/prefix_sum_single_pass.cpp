// Prefix sum of a long vector in one pass, by decoupled look-back (Merrill and Garland, 2016). Each CTA publishes the
// sum of its part as soon as it has it. Then it looks back and adds up the sums that earlier CTAs have published, until
// it finds one that includes everything before it.
#include "gallery/gallery.hpp"

namespace gallery {

// The state that a CTA publishes for its part. It is one 64-bit word, so that no memory ordering is needed: the kind of
// sum in the upper half (0: none yet), the sum itself in the lower half.
constexpr int sum_of_part = 1, sum_up_to_part = 2;
auto told(int what, const auto& sum) { return cast<u64>(bitcast<u32>(sum)) | full<u64>({1}, std::int64_t{what} << 32); }

auto single_pass(int size) {
  return kernel("single_pass", [=](In<f32, 1> x, Out<f32, 1> y, InOut<i32, 1> next, InOut<u64, 1> words) {
    same_extents(x, y);
    require(next.extent(0) == 1, "a number of the next part, 0 at first");
    require(words.extent(0) == cdiv(x.extent(0), size), "a word for each part, 0 at first");
    [[maybe_unused]] Index block = blocks(words.extent(0));
    // Parts are assigned in increasing order when a CTA starts. So the parts that a CTA waits for belong to CTAs that
    // are already running, in whatever order the GPU starts them.
    Tile taken = atomic_add(next, {0}, full<i32>({1}, 1));
    Index part = item(taken);
    Tile sums = cumsum(load(x, {part}, {size}), 0), all = slice(sums, 0, size - 1, 1);
    atomic_exchange(words, {part}, told(sum_of_part, all));
    Var before = zeros<f32>({1});
    Var at = part - 1;
    while_([&] { return at >= 0; },
           [&] {
      Tile word = atomic_or(words, {at}, zeros<u64>({1}));  // an atomic read: another CTA may be writing the word
      Tile sum = bitcast<f32>(cast<u32>(word));
      Index what = item(cast<i32>(word >> 32));  // 0: not published yet, so it is read again
      before += where(what > 0, sum, 0);
      at = where(what == sum_up_to_part, -1, where(what == sum_of_part, at - 1, at));
    });
    atomic_exchange(words, {part}, told(sum_up_to_part, before + all));
    store(y, {part}, before + sums);
  });
}

const Example prefix_sum_single_pass_example("prefix_sum_single_pass", 5e-5, [](const Device& device) {
  const int count = 10007, size = 256, parts = cdiv(count, size);
  const auto values = normal_values(count, 1);
  const auto x = tensor_of(device, {count}, values), y = device.tensor<f32>({count});
  const auto next = tensor_of(device, {1}, std::vector<i32>(1));
  const auto words = tensor_of(device, {parts}, std::vector<u64>(parts));
  launch(device.stream(), single_pass(size), x, y, next, words);

  std::vector<double> expected;
  double sum = 0;
  for (const f32 value : values) expected.push_back(sum += value);
  return largest_error(y, expected);
});

}  // namespace gallery
