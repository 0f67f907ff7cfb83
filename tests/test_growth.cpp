// Kernels that are four times as large take about four times as long: to trace, to optimise, to make ready for the CPU
// and to generate. What would take more than its share is refused in a sentence.
#include <time.h>

#include <memory>

#include "api/tessera.hpp"
#include "catch.hpp"
#include "codegen/generate.hpp"
#include "codegen/passes/passes.hpp"
#include "cpu/program.hpp"
#include "graph/evaluate.hpp"
#include "support.hpp"

using namespace tessera;

namespace {

/// Of this thread: what else the machine does costs nothing.
#ifdef __SANITIZE_ADDRESS__
constexpr double slowdown = 10;  // by sanitizers, about
#else
constexpr double slowdown = 1;
#endif

double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Vars = std::vector<std::unique_ptr<Var<f32, 1>>>;
Vars vars_of(const In<f32, 1>& x, int count) {
  Vars vars;
  for (int i = 0; i < count; ++i) vars.push_back(std::make_unique<Var<f32, 1>>(load(x, {i}, {4})));
  return vars;
}

void nest(int depth, bool stores, Var<f32, 1>& v, const Out<f32, 1>& y) {
  if (depth == 0) {
    v = v + 1.0f;
    return;
  }
  for (Index i : range(2)) {
    nest(depth - 1, stores, v, y);
    if (stores) store(y, {i}, v);
  }
}

void nest_ifs(int depth, const In<f32, 1>& x, const Out<f32, 1>& y) {
  if_(x.extent(0) > depth, [&] {
    store(y, {depth}, load(x, {depth}, {4}));
    if (depth > 0) nest_ifs(depth - 1, x, y);
  });
}

using Reals = In<f32, 1>;
using Results = Out<f32, 1>;

struct Growing {
  std::string name;
  int size;       ///< of the larger kernel
  int generated;  ///< of the larger kernel that CUDA C++ is generated of; 0: not yet in so little time
  void (*make)(int size, Reals x, Results y);
};

const Growing kernels[] =
    {
        {"a chain of ops with numbers", 20000, 2000,
         [](int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  for (int i = 0; i < size; ++i) v = v + static_cast<float>(i);
  store(y, {0}, v);
         }},
        {"a value added to itself, again and again", 20000, 2000,
         [](int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  for (int i = 0; i < size; ++i) v = v + v;
  store(y, {0}, v);
         }},
              {"an index computed in a loop", 20000, 2000,
               [](int size, Reals x, Results y) {
  for (Index j : range(3)) {
    Var at = j;
    for (int i = 0; i < size; ++i) at = at + at;
    store(y, {at}, load(x, {at}, {4}));
  }
               }},
    {"the grid's extent", 20000, 0,
     [](int size, Reals x, Results y) {
  Var extent = x.extent(0);
  for (int i = 0; i < size; ++i) extent = extent + i;
  Index at = blocks(extent);
  store(y, {at}, load(x, {at}, {4}));
     }},
    {"stores at places that the host computes", 10000, 0,
     [](int size, Reals x, Results y) {
  Var at = x.extent(0);
  for (int i = 0; i < size; ++i) {
    at = at + i;
    store(y, {at}, load(x, {at}, {4}));
  }
     }},
    {"slices", 10000, 0,
     [](int size, Reals x, Results y) {
  Var sum = zeros<f32>({4});
  for (int i = 0; i < size; ++i) sum = sum + load(x.slice(0, i, 4), {0}, {4});
  store(y, {0}, sum);
     }},
    {"slices at places that the host computes", 10000, 0,
     [](int size, Reals x, Results y) {
  Var at = x.extent(0);
  for (int i = 0; i < size; ++i) {
    at = at + i;
    store(y.slice(0, at, 4), {0}, load(x.slice(0, at, 4), {0}, {4}));
  }
     }},
    {"many values that live long", 8000, 0,
     [](int size, Reals x, Results y) {
  std::vector<Tile<f32, 1>> sums;
  for (int i = 0; i < size; ++i) sums.push_back(sum(load(x, {i}, {4}), 0));
  Var result = load(x, {0}, {4});
  for (const auto& s : sums) result = result + s;
  for (const auto& s : sums) result = result * s;
  store(y, {0}, result);
     }},
    {"reshapes", 20000, 0,
     [](int size, Reals x, Results y) {
  Var v = load(x, {0}, {32});
  for (int i = 0; i < size; i += 2) {
    Tile folded = reshape(v, {4, 8});
    v = reshape(folded + 1.0f, {32});
  }
  store(y, {0}, v);
     }},
    {"reshapes and nothing else", 20000, 0,
     [](int size, Reals x, Results y) {
  Var v = reshape(load(x, {0}, {32}), {4, 8});
  for (int i = 0; i < size; ++i) {
    Tile other = reshape(v, {2, 16});
    v = reshape(other, {4, 8});
  }
  store(y, {0}, reshape(v, {32}));
     }},
    {"tiles of as many shapes", 2000, 0,
     [](int size, Reals x, Results y) {
  Var results = load(x, {0}, {1});
  for (int i = 1; i < size; ++i) results = results + sum(load(x, {0}, {i}) * 2.0f, 0);
  store(y, {0}, results);
     }},
    {"ifs", 8000, 0,
     [](int size, Reals x, Results y) {
  for (int i = 0; i < size; ++i) if_(x.extent(0) > i, [&] { store(y, {i}, load(x, {i}, {4})); });
     }},
    {"ifs that store to one place", 8000, 0,
     [](int size, Reals x, Results y) {
  for (int i = 0; i < size; ++i) if_(x.extent(0) > i, [&] { store(y, {0}, load(x, {i}, {4})); });
     }},
    {"ifs in one another", 80, 0, [](int size, Reals x, Results y) { nest_ifs(size, x, y); }},
    {"loops in a row", 4000, 0,
     [](int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  for (int i = 0; i < size; ++i)
    for (Index j : range(3)) v = v + cast<f32>(j + i);
  store(y, {0}, v);
     }},
    {"loops in a row, each with a Var of its own", 2000, 0,
     [](int size, Reals x, Results y) {
  const Vars vars = vars_of(x, size);
  for (const auto& v : vars)
    for (Index j : range(3)) *v = *v + cast<f32>(j);
  for (int i = 0; i < size; ++i) store(y, {i}, *vars[static_cast<std::size_t>(i)]);
     }},
    {"a loop that carries many Vars", 4000, 0,
     [](int size, Reals x, Results y) {
  const Vars vars = vars_of(x, size);
  for (Index j : range(3))
    for (const auto& v : vars) *v = *v * 2.0f + cast<f32>(j);
  for (int i = 0; i < size; ++i) store(y, {i}, *vars[static_cast<std::size_t>(i)]);
     }},
    {"loops in one another", 80, 0,
     [](int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  nest(size, false, v, y);
  store(y, {0}, v);
     }},
    {"loops in one another that store", 80, 0,
     [](int size, Reals x, Results y) {
  Var v = load(x, {0}, {4});
  nest(size, true, v, y);
     }},
    {"products", 800, 0,
     [](int size, Reals x, Results y) {
  Var sum = zeros<f32>({32, 32});
  for (int i = 0; i < size; ++i) {
    Tile a = reshape(load(x, {i}, {32 * 256}), {32, 256});
    sum = mma(a, transpose(a), sum);
  }
  store(y, {0}, reshape(sum, {32 * 32}));
     }},
    };

/// What each stage of a kernel of this size takes.
std::vector<std::pair<std::string, double>> times_of(const Growing& kernel, int size, bool generated) {
  std::vector<std::pair<std::string, double>> times;
  double last = seconds();
  const auto lap = [&](const std::string& stage) {
    const double now = seconds();
    times.emplace_back(stage, now - last);
    last = now;
  };
  Graph graph = trace_kernel("growing", [&](Reals x, Results y) { kernel.make(size, x, y); });
  lap("trace");
  graph = run_passes(std::move(graph));
  lap("passes");
  if (generated) {
    generate(graph, dense_variant(graph), Arch::sm_90a);
    lap("generate");
    return times;
  }
  CHECK(!to_string(graph).empty());
  lap("text");
  UniformProgram(graph, graph.grid);
  lap("launch");
  cpu::Program(std::move(graph));
  lap("CPU program");
  return times;
}

}  // namespace

TEST_CASE("a kernel four times as large takes about four times as long", "[passes][growth]") {
  constexpr double too_short = 0.03;  // to tell anything
  for (const Growing& kernel : kernels)
    for (const bool generated : {false, true}) {
      const int size = generated ? kernel.generated : kernel.size;
      if (size == 0) continue;
      const auto small = times_of(kernel, size / 4, generated), large = times_of(kernel, size, generated);
      for (std::size_t i = 0; i < small.size(); ++i) {
        INFO(kernel.name << ", " << small[i].first << ": " << small[i].second << " s for " << size / 4 << ", "
                         << large[i].second << " s for " << size);
        CHECK(large[i].second < 10 * std::max(small[i].second, too_short));
      }
    }
}

TEST_CASE("a hundred thousand ops in a row become a program in seconds", "[passes][growth]") {
  for (const auto& [stage, time] : times_of(kernels[0], 100000, false)) {
    INFO(stage);
    CHECK(time < 10 * slowdown);
  }
}

TEST_CASE("what is nested too deep is refused", "[graph][growth]") {
  const auto traced = [](auto body) { return error_of([&] { trace_kernel("nested", body); }); };
  const auto loops = [&](int depth) {
    return traced([=](Reals x, Results y) {
      Var v = load(x, {0}, {4});
      nest(depth, true, v, y);
    });
  };
  CHECK(loops(100) == "(no error)");
  CHECK(says(loops(101), {"kernel 'nested', ", "test_growth.cpp:", "nested more than 100 deep"}));
  CHECK(traced([](Reals x, Results y) { nest_ifs(99, x, y); }) == "(no error)");
  CHECK(says(traced([](Reals x, Results y) { nest_ifs(100, x, y); }), {"loops and if_ are nested more than 100 deep"}));
  const auto views = [&](int depth) {
    return traced([=](Reals x, Results y) {
      std::vector<Reals> view{x};
      for (int i = 0; i < depth; ++i) view.push_back(view.back().slice(0, i, 100));
      store(y, {0}, load(view.back(), {0}, {4}));
    });
  };
  CHECK(views(100) == "(no error)");
  CHECK(says(views(101), {"kernel 'nested', ", "test_growth.cpp:", "views more than 100 deep"}));
}
