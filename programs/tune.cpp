// Measures the tiles of matmuls on this machine, and keeps, shows, exports and imports what was measured.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <ctime>
#include <sstream>

#include "common/program.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/tune.hpp"

using namespace tessera::internal;

namespace {

struct Settings {
  std::vector<std::string> shapes;
  std::string type = "bf16", family = "plain", device = "auto";
  std::uint32_t seconds = 5, most = 24;
  bool nk = false, again = false, lists = false;
  std::optional<std::string> to, from;
};

/// "512x3072x768".
MatmulShape parse_shape(const std::string& text, bool nk) {
  MatmulShape shape{.m = 0, .n = 0, .k = 0, .nk = nk};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::int64_t* const extent : {&shape.m, &shape.n, &shape.k}) {
    const auto [next, error] = std::from_chars(at, end, *extent);
    const bool is_last = extent == &shape.k;
    if (error != std::errc() || *extent <= 0 || *extent > 1 << 24 ||
        (is_last ? next != end : next == end || *next != 'x'))
      throw Error(fmt::format(
          "--shape '{}': expected the extents of y [m,n] = x [m,k] w as MxNxK, such as 512x3072x768", printable(text)));
    at = next + 1;
  }
  return shape;
}

MatmulFamily parse_family(const std::string& text) {
  if (text == "plain") return MatmulFamily::plain;
  if (text == "activated") return MatmulFamily::activated;
  if (text == "residual") return MatmulFamily::residual;
  throw Error(fmt::format("--family '{}': expected plain, activated or residual", printable(text)));
}

TuneReport tune_type(const std::string& type, MatmulFamily family, const MatmulShape& shape, const Device& device,
                     const TuneOptions& options) {
  if (type == "bf16") return tune_matmul<tessera::bf16>(family, shape, device, options);
  if (type == "f16") return tune_matmul<tessera::f16>(family, shape, device, options);
  if (type == "tf32") return tune_matmul<tessera::tf32>(family, shape, device, options);
  if (type == "f32") return tune_matmul<tessera::f32>(family, shape, device, options);
  if (type == "i8") return tune_matmul<tessera::i8>(family, shape, device, options);
  throw Error(fmt::format("--type '{}': expected bf16, f16, tf32, f32 or i8", printable(type)));
}

void list() {
  const std::vector<TuneRecord> records = tune_records();
  if (records.empty()) return print("nothing has been tuned\n");
  std::string device;
  for (const TuneRecord& record : records) {
    if (record.device != device) print(fmt::format("{}\n", device = record.device));
    const std::time_t time = static_cast<std::time_t>(record.time);
    char day[16] = "";
    std::tm parts{};
    if (::gmtime_r(&time, &parts)) std::strftime(day, sizeof day, "%Y-%m-%d", &parts);
    print(fmt::format("  {}  {:<20} {:<40} ({})  {:.4f} ms\n", day, printable(record.kernel), printable(record.shapes),
                      fmt::join(record.config, ","), record.milliseconds));
  }
}

void run(CommandLine& line) {
  Settings settings;
  line.option("--shape,shape", settings.shapes, "MxNxK",
              "Matmuls y [m,n] = x [m,k] w whose tiles are measured, as\n512x3072x768,512x768x3072");
  line.option("--type", settings.type, "TYPE", "Type of its operands [bf16]", {"bf16", "f16", "tf32", "f32", "i8"});
  line.option("--family", settings.family, "FAMILY", "The epilogue: little, GELU, or the addition of y [plain]",
              {"plain", "activated", "residual"});
  line.flag("--nk", settings.nk, "w is stored as [n,k], not as [k,n]");
  line.option("--device", settings.device, "DEVICE", "auto, cpu, cuda, cuda:N or emulated [auto]",
              {"auto", "cpu", "cuda", "emulated"});
  line.option("--budget", settings.seconds, "SECONDS", "For one matmul, compilation included [5]");
  line.option("--most", settings.most, "N", "Tiles that are compiled, at most [24]");
  line.flag("--again", settings.again, "Measures even what has a record");
  line.flag("--list", settings.lists, "Prints all records: of matmuls, and of tunable kernels of programs");
  line.option("--export", settings.to, "FILE", "Writes all records to a file");
  line.option("--import", settings.from, "FILE", "Adds the records of such a file; of two, the later one counts");
  line.footer(
      "Kernels for such matmuls take the fastest tiles from then on, unless TESSERA_TUNE=off.\nRecords are in the "
      "cache folder (TESSERA_CACHE_DIR).");
  line.parse();
  line.at_most_one({"--list", "--export", "--import"});
  if (settings.shapes.empty() && !settings.lists && !settings.to && !settings.from)
    line.refuse("nothing to do: give shapes, --list, --export or --import");
  std::vector<MatmulShape> shapes;
  for (const std::string& texts : settings.shapes) {
    std::istringstream list(texts + ",");
    for (std::string text; std::getline(list, text, ',');) shapes.push_back(parse_shape(text, settings.nk));
  }
  const MatmulFamily family = parse_family(settings.family);
  if (settings.seconds < 1 || settings.seconds > 86400) throw Error("--budget: expected 1 to 86400 seconds");
  if (settings.most < 1 || settings.most > 10000) throw Error("--most: expected 1 to 10000");

  const TuneOptions options{.budget = std::chrono::seconds(settings.seconds),
                            .most = static_cast<int>(settings.most),
                            .again = settings.again};
  if (!shapes.empty()) {
    const Device device = Device::parse(settings.device);
    for (const MatmulShape& shape : shapes) print(tune_type(settings.type, family, shape, device, options).text());
  }
  if (settings.from) print(fmt::format("{} new records\n", import_tune_records(*settings.from)));
  if (settings.to) export_tune_records(*settings.to);
  if (settings.lists) list();
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "tune", "Measures the tiles of matmuls on this machine, and keeps the fastest.", run);
}
