// The view inside of kernels: what stamps mean, and what roles of emulated kernels log.
#include <algorithm>
#include <map>

#include "codegen/generate.hpp"
#include "codegen/target/stamps.hpp"
#include "jit/profile/inside.hpp"
#include "jit/profile/profiler.hpp"
#include "jit/profile/recorder.hpp"
#include "jit/profile/trace_json.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "support/trace_check.hpp"
#include "tessera/dsl/control.hpp"
#include "tessera/tessera.hpp"
#ifdef TESSERA_HAS_EMULATOR
#include "support/emulated_device.hpp"
#endif

namespace test_inside {

using namespace tessera::internal;
using profile::read_stamps;
using profile::Recorder;
using profile::StampedKernels;
using profile::StampedLaunch;
using Kind = StampTable::Activity::Kind;

namespace {

constexpr std::uint32_t room = 16;
constexpr std::uint32_t waits = stamps::first_activity, multiplies = waits + 1;

/// Words of a log, by row.
class Log {
 public:
  explicit Log(std::size_t rows) : words_(rows * room, 0), at_(rows, 0) {}
  Log& stamp(std::size_t row, std::uint32_t number, std::uint32_t clock) {
    return word(row, std::uint64_t{number} << 32 | clock);
  }
  Log& place(std::size_t row, std::uint32_t number, std::uint32_t clock, std::uint64_t time, std::uint32_t sm = 0,
             std::uint32_t tile = stamps::no_tile) {
    return stamp(row, number, clock).word(row, time).word(row, std::uint64_t{tile} << 32 | sm);
  }
  StampedLaunch read(std::vector<std::string> rows) const {
    StampTable table{.rows = std::move(rows), .activities = {{Kind::wait, "wait"}, {Kind::matmul, "multiply"}}};
    StampedLaunch launch{.subject = profile::named("k"), .table = std::make_shared<const StampTable>(std::move(table))};
    read_stamps(words_, room, launch);
    return launch;
  }

 private:
  Log& word(std::size_t row, std::uint64_t word) {
    if (at_[row] < room) words_[row * room + at_[row]] = word;
    ++at_[row];
    return *this;
  }
  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> at_;
};

}  // namespace

TEST_CASE("stamps tell how long each role did what", "[jit][profile]") {
  // A tick is half a nanosecond.
  Log log(2);
  log.place(0, stamps::role_begins, 1000, 5000).stamp(0, waits, 1200).place(0, stamps::tile_begins, 1600, 5300, 3, 7);
  log.stamp(0, multiplies, 1700).place(0, stamps::role_ends, 3000, 6000);
  log.place(1, stamps::role_begins, 1100, 5050).stamp(1, waits, 1100).place(1, stamps::role_ends, 3400, 6200);
  const StampedLaunch launch = log.read({"consumer", "producer"});
  CHECK(launch.ctas == 1);
  CHECK(launch.full_rows == 0);
  CHECK(launch.duration == 1200);
  CHECK(launch.totals[0][waits] == 200);
  CHECK(launch.totals[0][multiplies] == 650);
  CHECK(launch.totals[1][waits] == 1150);
  REQUIRE(launch.tiles.size() == 1);  // of the row that multiplies
  CHECK(launch.tiles[0].multiprocessor == 3);
  CHECK(launch.tiles[0].tile == 7);
  CHECK((launch.tiles[0].begin == 300 && launch.tiles[0].end == 1000));
  REQUIRE(launch.spans.size() == 6);
  CHECK((launch.spans[1].begin == 100 && launch.spans[1].end == 300 && launch.spans[1].number == waits));
}

TEST_CASE("a clock that wraps, and a GPU's time of few digits, are read right", "[jit][profile]") {
  Log wraps(1);
  wraps.place(0, stamps::tile_begins, 0xffffff00u, 1000, 0, 0).stamp(0, multiplies, 0x100u);
  wraps.place(0, stamps::role_ends, 0x300u, 1000 + 0x400);
  const StampedLaunch wrapped = wraps.read({"all"});
  CHECK(wrapped.totals[0][multiplies] == 0x200);
  CHECK(wrapped.duration == 0x400);

  // Two CTAs whose clocks differ by far. The time advances by 1,000 ns.
  Log coarse(2);
  coarse.place(0, stamps::tile_begins, 0, 8000, 0, 0)
      .stamp(0, multiplies, 400)
      .place(0, stamps::role_ends, 2000, 10000);
  coarse.place(1, stamps::tile_begins, 900000, 8000, 1, 1).stamp(1, multiplies, 900600);
  coarse.place(1, stamps::role_ends, 902000, 10000);
  const StampedLaunch rough = coarse.read({"all"});
  CHECK(rough.ctas == 2);
  CHECK(rough.totals[0][multiplies] == 1600 + 1400);
  CHECK(rough.duration == 2000);
  CHECK(rough.tiles.size() == 2);
}

TEST_CASE("the rows of a CTA are placed by the clock that they share", "[jit][profile]") {
  Log log(2);  // both begin at the same time, by a clock of 1,000 ns
  log.place(0, stamps::role_begins, 0, 8000).stamp(0, waits, 100).place(0, stamps::role_ends, 2400, 10000);
  log.place(1, stamps::role_begins, 400, 8000).stamp(1, waits, 500).place(1, stamps::role_ends, 2000, 10000);
  const StampedLaunch launch = log.read({"producer", "consumer"});
  const auto consumer = std::ranges::find(launch.spans, 1, &StampedLaunch::Span::row);
  REQUIRE(consumer != launch.spans.end());
  CHECK((consumer->begin == 400 && consumer->end == 500));
}

TEST_CASE("each wait is an activity, and what follows a loop, too", "[jit][profile]") {
  const auto stamps_of = [](const auto& kernel) {
    const Graph& graph = kernel.graph();
    Variant variant = dense_variant(graph);
    variant.stamped = true;
    return generate(graph, variant, Arch::sm_80).stamps.activities;
  };
  const auto at = [](const auto& activities, std::string_view what) {
    return std::ranges::find_if(activities,
                                [&](const auto& activity) { return activity.what.find(what) != std::string::npos; });
  };
  const auto product = stamps_of(kernel("product", [](In<bf16, 2> a, In<bf16, 2> b, Out<f32, 2> y) {
    Index m = blocks(cdiv(y.extent(0), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(a.extent(1), 32))) acc = mma(load(a, {m, k}, {64, 32}), load(b, {k, 0}, {32, 64}), acc);
    store(y, {m, 0}, acc);
  }));
  const auto copies = at(product, "cp.async.wait_group");
  REQUIRE(copies != product.end());
  CHECK((copies + 1)->what == "barrier");
  CHECK((copies + 1)->kind == Kind::wait);
  const auto sums = stamps_of(kernel("sums", [](In<f32, 2> x, Out<f32, 1> y) {
    Index m = blocks(cdiv(y.extent(0), 64));
    Var acc = cast<f32>(iota({64, 64}, 0));
    for (Index k : range(cdiv(x.extent(1), 64))) acc = acc * load(x, {m, k}, {64, 64});
    store(y, {m}, reshape(sum(acc, 1), {64}));
  }));
  CHECK(at(sums, "sum along 1") != sums.end());
}

TEST_CASE("a log that is full, empty or of unknown numbers loses no other", "[jit][profile]") {
  Log log(3);
  log.place(0, stamps::tile_begins, 0, 100, 0, 0);
  for (std::uint32_t i = 0; i < 2 * room; ++i) log.stamp(0, waits + i % 2, 10 * (i + 1));
  log.place(2, stamps::tile_begins, 0, 100, 1, 1)
      .stamp(2, 77, 5)
      .stamp(2, waits, 10)
      .place(2, stamps::role_ends, 30, 130);
  const StampedLaunch launch = log.read({"all"});  // the second CTA wrote nothing
  CHECK(launch.ctas == 3);
  CHECK(launch.full_rows == 1);
  CHECK(launch.totals[0][waits] > 20);
  CHECK(Log(4).read({"all"}).ctas == 4);
  CHECK(Log(4).read({"all"}).spans.empty());
}

TEST_CASE("half of the launches of the kernels of a pattern are stamped, eight at most", "[jit][profile]") {
  const StampedKernels kernels("linear*");
  std::atomic<int> turns{0}, others{0};
  int stamped = 0;
  for (int i = 0; i < 40; ++i) {
    const bool is_stamped = kernels.take("linear_gelu", turns);
    stamped += is_stamped;
    if (i < 16 && i % 4 == 3) CHECK(stamped == (i + 1) / 2);
    if (i == 3) CHECK(is_stamped);  // an even and an odd one, for problems that take turns
    CHECK(!kernels.take("softmax", others));
  }
  CHECK(stamped == StampedKernels::most_stamped);
  CHECK(profile::stamp_room(264) >= 4096);
  CHECK(profile::stamp_room(std::int64_t{1} << 40) == 0);
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("the emulator's roles log what they do, and results stay", "[jit][profile][emulator]") {
  const auto gemm = kernel("gemm", [](In<bf16, 2> a, In<bf16, 2> b, Out<f32, 2> c) {
    auto [m, n] = blocks(cdiv(c.extent(0), 128), cdiv(c.extent(1), 128));
    Var acc = zeros<f32>({128, 128});
    for (Index k : range(cdiv(a.extent(1), 64))) acc = mma(load(a, {m, k}, {128, 64}), load(b, {k, n}, {64, 128}), acc);
    store(c, {m, n}, acc);
  });
  const Device device = emulated_device();
  const Tensor<bf16, 2> a(device, {256, 256}), b(device, {256, 256});
  const Tensor<f32, 2> c(device, {256, 256}), plain(device, {256, 256});
  std::vector<bf16> values;
  for (int i = 0; i < 256 * 256; ++i) values.push_back(static_cast<bf16>(static_cast<float>(i % 13 - 6)));
  a.copy_from(values), b.copy_from(values);
  launch(device.stream(), gemm, a, b, plain);

  Recorder recorder{{}};
  const StampedKernels stamped("gemm");
  {
    const profile::Recording recording(recorder, nullptr, &stamped);
    launch(device.stream(), gemm, a, b, c);
    launch(device.stream(), gemm, a, b, c);
  }
  CHECK(c.to_vector() == plain.to_vector());
  const profile::Trace trace = recorder.trace();
  REQUIRE(trace.stamped.size() == 1);
  const StampedLaunch& launch = trace.stamped[0];
  CHECK(launch.full_rows == 0);
  CHECK(launch.table->rows == std::vector<std::string>{"producer", "consumer 0", "consumer 1"});
  // Each CTA's consumers multiply in four k-iterations of each grid tile.
  std::map<Kind, int> begun;
  for (const StampedLaunch::Span& span : launch.spans)
    if (span.row >= 1 && !stamps::has_place(span.number))
      ++begun[launch.table->activities[span.number - stamps::first_activity].kind];
  std::int64_t tiles = 0;
  for (const StampedLaunch::Tile& tile : launch.tiles) tiles += tile.cta == launch.shown_cta;
  CHECK(tiles > 0);
  CHECK(begun[Kind::matmul] == 4 * tiles);
  CHECK(begun[Kind::wait] >= 8 * tiles);
  CHECK(begun[Kind::compute] >= tiles);  // into shared memory; another thread stores it by TMA
  CHECK(std::ssize(launch.tiles) == 4);
  // The spans of a row follow one another without a gap.
  for (std::size_t i = 1; i < launch.spans.size(); ++i)
    if (launch.spans[i].row == launch.spans[i - 1].row) CHECK(launch.spans[i].begin == launch.spans[i - 1].end);

  const std::string text = profile::inside_text(trace);
  for (const char* part : {"inside gemm", "1 of 2 launches stamped", "grid [2,2]",
                           "producer: ", "consumer 0: ", "wait until", "matmul", "stamps cost"})
    CHECK(text.find(part) != std::string::npos);
  const std::string json = trace_json(trace);
  CHECK(trace_check::faults(json) == std::vector<std::string>());
  for (const char* part : {"roles of CTA ", "grid tiles by multiprocessor", "\"cat\":\"inside\"", "\"cat\":\"tile\""})
    CHECK(json.find(part) != std::string::npos);
}
#endif

}  // namespace test_inside
