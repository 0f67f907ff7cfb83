// Lesson 9 of docs/tutorial: five kernels with a mistake, or with a print, and what Tessera reports of each.
//     09_debugging NAME    launches one of them
//     09_debugging         launches all of them, each in a process of its own with the environment that its lesson
//     names,
//                          and checks that the report is there
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;
namespace fs = std::filesystem;

// [bounds]
auto embed(int width, bool checked) {
  return kernel("embed", [=](In<i32, 1> tokens, In<f32, 2> table, Out<f32, 2> y) {
    Index i = blocks(cdiv(tokens.extent(0), 4));
    Tile ids = load(tokens, {i}, {4});
    if (checked) check((ids >= 0) & (ids < table.extent(0)), "tokens of the vocabulary");
    store(y, {i, 0}, gather(table, ids, {0}, {width}));
  });
}
// [/bounds]

// [nan]
auto scaled_log() {
  return kernel("scaled_log", [](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, 8});
    store(y, {row, 0}, log(xs) / max(xs, 1));
  });
}
// [/nan]

// [print]
auto printed_max() {
  return kernel("printed_max", [](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, 4}), largest = max(xs, 1);
    print("row {}: {} has the maximum {}", row, xs, item(largest));
    store(y, {row, 0}, largest);
  });
}
// [/print]

// [race]
auto column_sums(int rows, int cols) {
  return kernel("column_sums", [=](In<f32, 2> x, Out<f32, 2> y) {
    Index i = blocks(cdiv(x.extent(0), rows));
    store(y, {0, 0}, sum(load(x, {i, 0}, {rows, cols}), 0));
  });
}
// [/race]

auto row_sums() {
  return kernel("row_sums", [](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    store(y, {row, 0}, sum(load(x, {row, 0}, {1, 2048}), 1));
  });
}

/// Launches a kernel on a matrix of ones, but for some zeros, and returns its result.
std::vector<f32> on_matrix(const auto& kernel, std::int64_t rows, std::int64_t cols, std::int64_t out_rows,
                           std::int64_t out_cols) {
  const Device device = Device::best();
  std::vector<f32> values(rows * cols, 1);
  for (std::size_t i = 2; i < values.size(); i += 11) values[i] = 0;
  const auto y = device.tensor<f32>({out_rows, out_cols});
  y.fill(0);
  launch(device.stream(), kernel, device.tensor<f32>({rows, cols}, values), y);
  return y.to_vector();
}

/// Launches the kernel of a lesson's part and prints what it stored.
void run(std::string_view name) {
  const auto show = [](const std::vector<f32>& y) {
    for (std::size_t i = 0; i < y.size() && i < 4; ++i)
      std::printf("%s%g", i ? ", " : "y: ", static_cast<double>(y[i]));
    std::puts(y.size() > 4 ? ", ..." : "");
  };
  if (name == "bounds" || name == "checked") {
    const Device device = Device::best();
    const auto y = device.tensor<f32>({4, 8});
    launch(device.stream(), embed(8, name == "checked"), device.tensor<i32>({4}, std::vector<i32>{7, 300, 2, 9}),
           device.tensor<f32>({256, 8}, std::vector<f32>(256 * 8, 1)), y);
    for (const std::int64_t row : {0, 1}) show(y.slice(0, row, 1).to_vector());
  } else if (name == "nan") {
    const Device device = Device::best();
    const auto y = device.tensor<f32>({2, 8});
    std::vector<f32> values(16, 1);
    values[11] = -1;
    launch(device.stream(), scaled_log(), device.tensor<f32>({2, 8}, values), y);
    show(y.slice(0, 1, 1).slice(1, 2, 3).to_vector());
  } else if (name == "print") {
    on_matrix(printed_max(), 2, 4, 2, 1);
    Device::best().synchronize();
  } else if (name == "race") {
    show(on_matrix(column_sums(8, 16), 32, 16, 1, 16));
  } else if (name == "rows") {
    show(on_matrix(row_sums(), 4, 2048, 4, 1));
  } else {
    throw Error("no part of the lesson is called " + std::string(name));
  }
}

/// Runs a part in a process of its own, and returns what that prints on stdout and stderr.
std::string output_of(const std::string& environment, const std::string& name) {
  const std::string command =
      "env " + environment + " '" + fs::read_symlink("/proc/self/exe").string() + "' " + name + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw Error("cannot run " + command);
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), count);
  ::pclose(pipe);
  return text;
}

/// Runs a part, prints its report, and returns whether it has all the given words.
bool reports(const std::string& environment, const std::string& name, const std::vector<std::string>& words) {
  const std::string text = output_of(environment, name);
  std::printf("$ %s 09_debugging %s\n%s", environment.c_str(), name.c_str(), text.c_str());
  for (const std::string& word : words)
    if (text.find(word) == text.npos) return std::printf("09_debugging: the report lacks '%s'\n", word.c_str()), false;
  return true;
}

/// Dumps the kernel `row_sums` into a folder, takes out its first barrier, and runs the edited text.
bool finds_the_missing_barrier() {
  std::string folder = (fs::temp_directory_path() / "09_debugging-XXXXXX").string();
  if (!::mkdtemp(folder.data())) throw Error("cannot create a folder " + folder);
  output_of("TESSERA_DEVICE=emulated TESSERA_DUMP=cuda TESSERA_DUMP_DIR='" + folder + "'", "rows");
  constexpr std::string_view barrier = "  barrier();\n";
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    std::string text(std::istreambuf_iterator<char>(in), {});
    if (const std::size_t at = text.find(barrier, text.find("__global__")); at != text.npos)
      std::ofstream(entry.path()) << text.erase(at, barrier.size());
  }
  const bool found = reports("TESSERA_DEVICE=emulated TESSERA_OVERRIDE_DIR='" + folder + "'", "rows",
                             {"kernel 'row_sums' in the emulator", "shared memory", "with no barrier between them"});
  fs::remove_all(folder);
  return found;
}

int all() {
  const char* const device = std::getenv("TESSERA_DEVICE");
  const std::string here = "TESSERA_DEVICE=" + std::string(device ? device : "auto");
  bool ok = reports(here, "bounds", {"y: 1, 1, 1, 1", "y: 0, 0, 0, 0"});
  ok &= reports(here, "checked", {"embed", "tokens of the vocabulary", "09_debugging.cpp:"});
  ok &= reports(here + " TESSERA_DEBUG=1", "nan", {"scaled_log", "NaN is stored"});
  ok &= reports(here, "print", {"row 0: ", "has the maximum 1"});
  try {
    Device::parse("emulated");
  } catch (const Error& error) {
    return std::printf("09_debugging: races are skipped: %s\n", error.what()), ok ? 0 : 1;
  }
  ok &=
      reports("TESSERA_DEVICE=emulated", "race", {"column_sums", "09_debugging.cpp:", "with no barrier between them"});
  ok &= finds_the_missing_barrier();
  std::printf("09_debugging: %s\n", ok ? "all reports are as expected" : "a report is missing");
  return ok ? 0 : 1;
}

int main(int argc, char** argv) try {
  if (argc == 1) return all();
  if (argv[1] == std::string_view("barrier")) return finds_the_missing_barrier() ? 0 : 1;
  run(argv[1]);
  return 0;
} catch (const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "09_debugging: error: %s\n", error.what());
  return 2;
}
