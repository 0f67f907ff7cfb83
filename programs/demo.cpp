// Tessera in five parts: a kernel, its graph and CUDA code, its results on two devices, a generated text, a comparison.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <sstream>

#include "common/program.hpp"
#include "common/terminal.hpp"
#include "jit/device/diagnosis.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/utf8.hpp"
#include "tessera/tessera.hpp"

using namespace tessera::internal;

namespace {

#include "demo/softmax.hpp"

/// The same file as text: its name and its content.
constexpr struct {
  const char *file, *text;
} sources[] = {
#include "demo_sources.inc"
};

const Paint paint(has_colors(1));

void say(const std::string& line) { print("   " + line + "\n"); }
void title(int part, const std::string& text) {
  print(fmt::format("\n{}\n\n", paint.title(fmt::format("{}  {}", part, text))));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Prints a line of code, with its comment set off.
void say_code(const std::string& line) {
  const std::size_t comment = std::min(line.find("//"), line.size());
  say(line.substr(0, comment) + (comment < line.size() ? paint.aside(line.substr(comment)) : ""));
}

/// The devices of the demo: `first` is a GPU if there is one, otherwise the CPU; `second` is another one, which must
/// give the same results.
struct Devices {
  Device first = Device::best().name().starts_with("emulated") ? Device::cpu() : Device::best();
  bool is_gpu = first.name().starts_with("cuda");
  std::optional<Device> second;
  std::string why_not;

  Devices() {
    try {
      second = is_gpu ? Device::cpu() : Device::parse("emulated");
    } catch (const Error& error) {
      why_not = error.what();
    }
  }
};

std::vector<f32> random_values(std::size_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<f32> normal;
  std::vector<f32> values(count);
  for (f32& value : values) value = normal(generator);
  return values;
}

Tensor<f32, 2> tensor_of(const Device& device, int rows, int cols) {
  Tensor<f32, 2> tensor(device, {rows, cols});
  tensor.copy_from(random_values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)));
  return tensor;
}

// ---- 1

void show_kernel() {
  title(1, "A kernel, in C++");
  for (const std::string& line : lines_of(sources[0].text)) say_code(line);
  print("\n");
  say(paint.aside("The code operates on tiles. Threads, shared memory, barriers and masks are generated."));
}

// ---- 2

void show_code() {
  const auto kernel = softmax(1024);
  title(2, "Its graph, and the CUDA C++ generated for sm_90a");
  for (const std::string& line : lines_of(to_string(kernel.graph()))) say_code(line);
  print("\n");
  const std::string text = cuda_source(kernel, Arch::sm_90a);
  const std::size_t begin = std::min(text.find("// ---- kernel"), text.size());
  std::vector<std::string> code = lines_of(text.substr(begin, text.find("\n#else\n", begin) - begin));
  std::erase_if(code, [](const std::string& line) { return line.starts_with("#line"); });
  const std::size_t most = 40;
  for (const std::string& line : std::span(code).subspan(1, std::min(most, code.size() - 1))) say_code(line);
  if (code.size() > most)
    say(paint.aside(fmt::format("... and {} more lines, and {} of helper functions: TESSERA_DUMP=cuda shows all",
                                code.size() - most, lines_of(text).size() - code.size())));
}

// ---- 3

/// Runs the softmax of a few rows on a device, and compares the result with double precision.
struct Trial {
  std::vector<f32> y{};
  double worst = 0, allowed = 4e-6;  ///< relative error, as in lesson 2

  explicit Trial(const Device& device) {
    const int rows = 5, cols = 1024;
    const auto x = random_values(static_cast<std::size_t>(rows * cols));
    const Tensor<f32, 2> in = tensor_of(device, rows, cols), out(device, {rows, cols});
    launch(device.stream(), softmax(cols), in, out);
    y = out.to_vector();
    for (std::size_t row = 0; row < x.size(); row += cols) {
      double sum = 0;
      for (std::size_t i = row; i < row + cols; ++i) sum += std::exp(static_cast<double>(x[i]));
      for (std::size_t i = row; i < row + cols; ++i) {
        const double error = std::abs(y[i] / (std::exp(static_cast<double>(x[i])) / sum) - 1);
        if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
      }
    }
  }
  bool is_right() const { return worst <= allowed; }
  std::string verdict() const { return fmt::format("largest error {:.1e} of {:.0e} allowed", worst, allowed); }
};

/// Returns whether both devices agree with the softmax in double precision.
bool show_devices(const Devices& devices) {
  title(3, "The same result on two devices");
  bool right = true;
  const auto run_on = [&](const Device& device) {
    const Trial trial(device);
    right &= trial.is_right();
    say(fmt::format("{:<36} y[0][0..2] = {}   {}", device.name(),
                    paint.number(fmt::format("{:.7f} {:.7f} {:.7f}", trial.y[0], trial.y[1], trial.y[2])),
                    trial.is_right() ? paint.good(trial.verdict()) : paint.bad(trial.verdict())));
  };
  run_on(devices.first);
  if (devices.second) run_on(*devices.second);
  if (!devices.second) say(paint.aside("There is no second device: " + devices.why_not));
  if (devices.second && !devices.is_gpu)
    say(paint.aside("emulated: the CUDA C++ itself, executed on the CPU, and checked for races."));
  return right;
}

// ---- 4

void show_text(const Devices& devices) {
  title(4, "A text, generated by a GPT-2 made of such kernels");
  const Tokenizer tokenizer = Tokenizer::open(shipped_model());
  const Model model = open_model({.folder = {}, .preset = {}, .device = devices.is_gpu ? "auto" : "cpu"}, 0).model;
  const std::string prompt = "Once upon a time";
  std::vector<std::int32_t> ids = tokenizer.encode(prompt);
  const int tokens = 60;
  Sampling sampling;
  sampling.temperature = 0.8f, sampling.top_k = 40, sampling.seed = 3;

  Session session(model, 1, static_cast<int>(ids.size()) + tokens);
  session.append({&ids, 1});
  std::size_t column = 0;
  // Wraps lines between words.
  auto stream = [&, word = std::string()](const std::string& text) mutable {
    for (const char c : text) {
      if (c != ' ' && c != '\n') {
        word += c;
        continue;
      }
      if (column + word.size() > 90) print("\n   "), column = 0;
      print(word + " ");
      column += word.size() + 1;
      word.clear();
    }
  };
  print("   ");
  stream(prompt);
  Utf8Stream characters;
  const Stopwatch clock;
  int made = 0;
  for (; made < tokens; ++made) {
    ids = session.sample(sampling);
    if (std::ranges::find(model.config().eos, ids.front()) != model.config().eos.end()) break;
    stream(characters.push(tokenizer.bytes_of(ids.front())));
    session.append({&ids, 1});
  }
  const double seconds = clock.milliseconds() / 1e3;
  stream(characters.finish() + " ");
  print("\n\n");
  say(paint.aside(fmt::format("{} tokens in {:.2f} s on {}: ", made, seconds, devices.first.name())) +
      paint.number(fmt::format("{:.0f} tokens per second", made / seconds)));
}

// ---- 5

template <int bm, int bn, int bk>
auto matmul() {
  return kernel("product", [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c) {
    require(a.extent(1) == b.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(c.extent(0), bm), cdiv(c.extent(1), bn));
    Var sum = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(a.extent(1), bk))) sum = mma(load(a, {m, k}, {bm, bk}), load(b, {k, n}, {bk, bn}), sum);
    store(c, {m, n}, sum);
  });
}

// The same as naive code: on a GPU, one thread per row or element; on the CPU, plain loops.

auto plain_softmax() {
  const CudaSource text = R"(
    extern "C" __global__ void plain_softmax(const float* x, float* y, int rows, int cols) {
      const int row = blockIdx.x * blockDim.x + threadIdx.x;
      if (row >= rows) return;
      x += (long long)row * cols, y += (long long)row * cols;
      float most = x[0], sum = 0;
      for (int i = 1; i < cols; ++i) most = fmaxf(most, x[i]);
      for (int i = 0; i < cols; ++i) sum += y[i] = expf(x[i] - most);
      for (int i = 0; i < cols; ++i) y[i] /= sum;
    })";
  return cuda_kernel("plain_softmax", text, [](In<f32, 2> x, Out<f32, 2>) {
    return CudaLaunch{.blocks = {cdiv(x.extent(0), 128)}, .threads = {128}, .numbers = {x.extent(0), x.extent(1)}};
  }, [](const float* x, float* y, int rows, int cols) {
    for (int row = 0; row < rows; ++row, x += cols, y += cols) {
      const float most = *std::max_element(x, x + cols);
      float sum = 0;
      for (int i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
      for (int i = 0; i < cols; ++i) y[i] /= sum;
    }
  });
}

auto plain_matmul() {
  const CudaSource text = R"(
    extern "C" __global__ void plain_matmul(const float* a, const float* b, float* c, int m, int n, int k) {
      const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
      if (i >= m || j >= n) return;
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[(long long)i * k + l] * b[(long long)l * n + j];
      c[(long long)i * n + j] = sum;
    })";
  return cuda_kernel("plain_matmul", text, [](In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c) {
    return CudaLaunch{.blocks = {cdiv(c.extent(1), 32), cdiv(c.extent(0), 8)},
                      .threads = {32, 8},
                      .numbers = {a.extent(0), b.extent(1), a.extent(1)}};
  }, [](const float* a, const float* b, float* c, int m, int n, int k) {
    std::fill_n(c, static_cast<std::size_t>(m) * static_cast<std::size_t>(n), 0.0f);
    for (int i = 0; i < m; ++i, c += n)
      for (int l = 0; l < k; ++l)
        for (int j = 0; j < n; ++j) c[j] += a[i * k + l] * b[l * n + j];  // along rows, which are contiguous
  });
}

/// The median time of five measurements, after one warm-up run, by the device's clock.
template <class Work>
double milliseconds(const Device& device, int times, Work&& work) {
  work();
  std::array<double, 5> turns;
  for (double& turn : turns) {
    const Event begin = device.stream().record();
    for (int i = 0; i < times; ++i) work();
    turn = device.stream().record().milliseconds_since(begin) / times;
  }
  std::ranges::sort(turns);
  return turns[2];
}

void show_comparison(const Devices& devices) {
  const Device& device = devices.first;
  title(5, devices.is_gpu ? "A comparison with one thread per row or per element" : "A comparison with plain loops");
  const int times = devices.is_gpu ? 20 : 1;
  say(fmt::format("{:<28} {:>12} {:>12}", "median of 5 on " + device.name().substr(0, device.name().find(' ')), "tiles",
                  devices.is_gpu ? "threads" : "loops"));
  const auto compare = [&](const std::string& what, const auto& tiles, const auto& plain, const auto&... tensors) {
    const double ours = milliseconds(device, times, [&] { launch(device.stream(), tiles, tensors...); });
    const double theirs = milliseconds(device, times, [&] { launch(device.stream(), plain, tensors...); });
    say(fmt::format("{:<28} {} {:>9.3f} ms   {}", what, paint.number(fmt::format("{:>9.3f} ms", ours)), theirs,
                    paint.aside(fmt::format("{:.1f} times as fast", theirs / ours))));
  };
  const int rows = 2048, cols = 1024, n = devices.is_gpu ? 2048 : 512;
  compare(fmt::format("softmax, {} rows of {}", rows, cols), softmax(cols), plain_softmax(),
          tensor_of(device, rows, cols), Tensor<f32, 2>(device, {rows, cols}));
  compare(fmt::format("f32 matmul, {0} x {0}", n), matmul<64, 64, 32>(), plain_matmul(), tensor_of(device, n, n),
          tensor_of(device, n, n), Tensor<f32, 2>(device, {n, n}));
  if (!devices.is_gpu)
    say(paint.aside(fmt::format("The loops run on one core, the tiles on all {}.", device.info().multiprocessors)));
}

// ---- --doctor

/// Prints a line for each part of this machine that was searched for. Returns whether a kernel runs on the default
/// device.
bool doctor() {
  const auto tell = [](bool good, const std::string& part, const std::string& text) {
    print(fmt::format("{} {:<9} {}\n", good ? paint.good("found  ") : paint.bad("missing"), part, printable(text)));
  };
  const auto runs = [&](const auto& device_of) {
    try {
      const Device device = device_of();
      const Trial trial(device);
      tell(trial.is_right(), "kernel", fmt::format("runs on {}: {}", describe(device), trial.verdict()));
      return trial.is_right();
    } catch (const Error& error) {
      tell(false, "kernel", error.what());
      return false;
    }
  };
  tell(true, "Tessera", version());
  bool has_emulator = false;
  for (const Finding& finding : diagnose()) {
    tell(finding.found, finding.part,
         finding.mend.empty() ? finding.text : fmt::format("{}; {}", finding.text, finding.mend));
    has_emulator |= finding.found && finding.part == "emulator";
  }
  if (has_emulator) runs([] { return Device::parse("emulated"); });  // also needs g++
  return runs(&Device::best);
}

constexpr std::string_view parts[] = {"kernel", "code", "devices", "text", "comparison"};

/// Returns whether all results are right.
bool demo(CommandLine& line) {
  std::string list = fmt::format("{}", fmt::join(parts, ","));
  line.option("parts", list, "PARTS", "Only these parts, with commas: " + list, {std::begin(parts), std::end(parts)});
  bool looks = false;
  line.flag("--doctor", looks,
            "Instead of the demo, lists what was found of driver, GPU, NVRTC,\nemulator, cache and threads, or how to "
            "get it; the exit status is 1\nif no kernel runs");
  line.footer("Uses colors on a terminal, unless NO_COLOR is set. Times are measured while it runs.");
  line.parse();
  if (looks) return doctor();
  std::vector<std::string> wanted;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    if (std::ranges::find(parts, part) == std::end(parts))
      throw Error(fmt::format("there is no part '{}'; choose from {}", part, fmt::join(parts, ", ")));
    wanted.push_back(part);
  }
  const auto wants = [&](std::string_view part) { return std::ranges::find(wanted, part) != wanted.end(); };

  bool right = true;
  if (wants("kernel")) show_kernel();
  if (wants("code")) show_code();
  if (!wants("devices") && !wants("text") && !wants("comparison")) return right;
  const Devices devices;
  if (wants("devices")) right = show_devices(devices);
  if (wants("text")) show_text(devices);
  if (wants("comparison")) show_comparison(devices);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  bool right = true;
  const int status =
      run_program(argc, argv, "demo", "Tessera in five parts: a kernel, its code, its results, a text, a comparison.",
                  [&](CommandLine& line) { right = demo(line); });
  return status != 0 ? status : right ? 0 : 1;
}
