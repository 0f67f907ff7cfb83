// Reports of running kernels to the host: failed checks, and printed lines. On every device.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "graph/infer.hpp"
#include "graph/reports.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_reports {

using namespace tessera::internal;

namespace {

/// Everything that `action` writes to stdout.
template <class Action>
std::string stdout_of(const Action& action) {
  const TempDir folder;
  const auto path = folder / "stdout";
  std::fflush(stdout);
  const int before = ::dup(1), file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(file, 1);
  const std::string failed = error_of(action);
  std::fflush(stdout);
  ::dup2(before, 1);
  for (const int opened : {before, file}) ::close(opened);
  return read_text(path) + (failed == "(no error)" ? "" : failed);
}

/// A report may have several lines.
bool has_all(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::all_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
}

}  // namespace

TEST_CASE("a failed check is reported with kernel, location, text and CTA, and the device continues",
          "[cpu][reports]") {
  const auto halves = kernel("halves", [](In<i32, 2> x, Out<i32, 2> y) {
    auto [i, j] = blocks(cdiv(x.extent(0), 2), cdiv(x.extent(1), 40));
    Tile xs = load(x, {i, j}, {2, 40});
    check(xs % 2 == 0, "even numbers");
    store(y, {i, j}, xs / 2);
  });
  const unsigned line = __LINE__ - 3;
  const Stream stream = test_device().stream();
  const std::int64_t rows = 6, columns = 100;
  std::vector<i32> values(static_cast<std::size_t>(rows * columns), 4);
  const Tensor<i32, 2> y(test_device(), {rows, columns});
  const auto run = [&] {
    return error_of([&] {
      launch(stream, halves, tensor<i32, 2>({rows, columns}, values), y);
      stream.synchronize();
    });
  };
  CHECK(run() == "(no error)");
  values[3 * columns + 95] = 5;  // in the last CTA of the second row
  const std::string text = run();
  INFO(text);
  CHECK(has_all(text, {"kernel 'halves', ", "test_reports.cpp:" + std::to_string(line), "check failed: even numbers",
                       "(block 5)"}));
  values[3 * columns + 95] = 6;
  CHECK(run() == "(no error)");
  CHECK(y.to_vector()[3 * columns + 95] == 3);
}

TEST_CASE("checks are allowed anywhere, also of scalars", "[cpu][reports]") {
  const auto walk = kernel("walk", [](In<i32, 1> x, InOut<i32, 1> y, Scalar<i32> most) {
    for (Index i : range(x.extent(0))) {
      Tile at = load(x, {i}, {1});
      if_(item(at) > 0, [&] { check(i < most, "no positive number so far behind"); });
      store(y, {i}, at);
    }
  });
  const Stream stream = test_device().stream();
  const Tensor<i32, 1> x = tensor<i32, 1>({5}, {0, 1, -1, 1, 0}), y = tensor<i32, 1>({5}, {7, 7, 7, 7, 7});
  const auto run = [&](int most) {
    return error_of([&] {
      launch(stream, walk, x, y, most);
      stream.synchronize();
    });
  };
  CHECK(run(4) == "(no error)");
  CHECK(y.to_vector() == std::vector<i32>{0, 1, -1, 1, 0});
  CHECK(has_all(run(3), {"'walk'", "no positive number so far behind", "(block 0)"}));
}

TEST_CASE("a print may be text alone", "[cpu][reports]") {
  const auto show = kernel("show", [](Out<f32, 1> y) {
    store(y, {blocks(3)}, full<f32>({1}, 1));
    print("no value");
  });
  const Stream stream = test_device().stream();
  const Tensor<f32, 1> y(test_device(), {3});
  CHECK(stdout_of([&] {
          launch(stream, show, y);
          stream.synchronize();
        }) == "no value\nno value\nno value\n");
}

TEST_CASE("a kernel prints lines, CTA by CTA", "[cpu][reports]") {
  const auto show = kernel("show", [](In<f32, 2> x, In<bf16, 1> h, Out<f32, 2> y, Scalar<i64> key) {
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, 3});
    print("row {}: {} {{key {}}} {}", row, xs, key, row + 7);
    Tile pairs = reshape(concat(1, xs, xs), {3, 2});
    print("{} {} {}", pairs, xs > 1, load(h, {0}, {2}));
    for (Index i : range(row)) print("round {}", i);
    store(y, {row, 0}, xs);
  });
  const Stream stream = test_device().stream();
  const Tensor<f32, 2> x = tensor<f32, 2>({3, 3}, {1, 2.5f, -0.0f, 1e-7f, 3e20f, 2, 0.1f, 1, 1});
  const Tensor<bf16, 1> h = tensor<bf16, 1>({2}, {bf16(0.5f), bf16(-3)});
  const Tensor<f32, 2> y(test_device(), {3, 3});
  const std::string text = stdout_of([&] {
    launch(stream, show, x, h, y, 1ll << 40);
    stream.synchronize();
  });
  CHECK(text ==
        "row 0: [[1, 2.5, -0]] {key 1099511627776} 7\n"
        "[[1, 2.5], [-0, 1], [2.5, -0]] [[0, 1, 0]] [0.5, -3]\n"
        "row 1: [[1e-07, 3e+20, 2]] {key 1099511627776} 8\n"
        "[[1e-07, 3e+20], [2, 1e-07], [3e+20, 2]] [[0, 1, 1]] [0.5, -3]\n"
        "round 0\n"
        "row 2: [[0.1, 1, 1]] {key 1099511627776} 9\n"
        "[[0.1, 1], [1, 0.1], [1, 1]] [[0, 0, 0]] [0.5, -3]\n"
        "round 0\n"
        "round 1\n");
  CHECK(y.to_vector() == x.to_vector());
}

TEST_CASE("lines printed before a failed check are reported", "[cpu][reports]") {
  const auto stops = kernel("stops", [](In<i32, 1> x, Out<i32, 1> y) {
    Tile xs = load(x, {0}, {200});
    print("the sum is {}", item(sum(xs, 0)));
    check(sum(xs, 0) < 0, "a negative sum");
    store(y, {0}, xs);
  });
  const Tensor<i32, 1> x = tensor<i32, 1>({3}, {1, 2, 3}), y(test_device(), {3});
  const std::string text = stdout_of([&] {
    launch(test_device().stream(), stops, x, y);
    test_device().stream().synchronize();
  });
  CHECK(has_all(text, {"the sum is 6\n", "check failed: a negative sum (block 0)"}));
}

TEST_CASE("a matmul with a check is right", "[cpu][reports]") {
  const auto product = kernel("product", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    Tile sums = acc;
    check(sums < 1000, "small sums");
    store(y, {m, n}, sums);
  });
  const std::int64_t size = 128;
  const std::vector<bf16> ones(static_cast<std::size_t>(size * size), bf16(1));
  const Tensor<bf16, 2> x = tensor<bf16, 2>({size, size}, ones);
  const Tensor<f32, 2> y(test_device(), {size, size});
  const Stream stream = test_device().stream();
  launch(stream, product, x, x, y);
  stream.synchronize();
  CHECK(y.to_vector() == std::vector<float>(static_cast<std::size_t>(size * size), 128));
}

TEST_CASE("a print's text is split at its braces", "[graph][reports]") {
  CHECK(print_pieces("") == std::vector<std::string>{""});
  CHECK(print_pieces("{}") == std::vector<std::string>{"", ""});
  CHECK(print_pieces("a {} b {{}} {}c") == std::vector<std::string>{"a ", " b {} ", "c"});
  for (const char* bad : {"{", "}", "{0}", "a } b", "{ }", "{}}"}) {
    INFO(bad);
    CHECK_THROWS_AS(print_pieces(bad), Mismatch);
  }
  const auto traced = [](std::string text) {
    return error_of([&] { trace_kernel("bad", [&](In<f32, 1> x) { print(text, load(x, {0}, {4})); }); });
  };
  CHECK(says(traced("no place"), {"kernel 'bad', ", "test_reports.cpp:", "0 {}, and 1 values"}));
  CHECK(says(traced("{} {}"), {"2 {}, and 1 values"}));
  CHECK(says(traced("{:3}"), {"'{' at character 1", "nor doubled"}));
  CHECK(traced("{}") == "(no error)");
}

TEST_CASE("a full mailbox is reported", "[graph][reports]") {
  const Graph graph = trace_kernel("full", [](In<i32, 1> x) {
    Index i = blocks(x.extent(0));
    print("a {}", i);
    check(i < 4, "few");
  });
  const Reports reports(graph);
  std::vector<std::uint32_t> board(reports.words());
  std::size_t used = 0;
  const auto record = [&](std::uint32_t block, std::uint32_t value) {
    for (const std::uint32_t word : {5u, 0u, block, 0u, value}) board[board::header + used++] = word;
    board[board::used] += 5;
  };
  record(1, 10), record(0, 20), record(1, 30);
  board[board::lost] = 1;
  board[board::used] += 5;  // which did not fit
  Reports::Told told = reports.take(board);
  CHECK(told.printed ==
        "a 20\na 10\na 30\nkernel 'full' printed more than 1048 kB between two synchronizations; the "
        "rest is lost\n");
  CHECK(told.failed.empty());
  CHECK(std::count(board.begin(), board.end(), 0u) == static_cast<std::ptrdiff_t>(board.size()));
  board[board::failed] = 1, board[board::text] = 1, board[board::block] = 7, board[board::block + 1] = 1;
  told = reports.take(board);
  CHECK(told.printed.empty());
  CHECK(says(told.failed, {"kernel 'full', ", "check failed: few (block 4294967303)"}));
  CHECK(std::count(board.begin(), board.end(), 0u) == static_cast<std::ptrdiff_t>(board.size()));
}

}  // namespace test_reports
