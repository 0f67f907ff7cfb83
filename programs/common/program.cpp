#include "common/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <system_error>

#include "common/progress.hpp"
#include "jit/options/files.hpp"
#include "model/files/input_file.hpp"
#include "tessera/model/hub.hpp"
#include "tessera/model/utf8.hpp"

namespace tessera::internal {

namespace fs = std::filesystem;

namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

// While 0, 1 or 2 is closed, the next file to be opened would get that number, and output would go into it.
void occupy_standard_streams() {
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;  // in the wrong mode, so that using it fails
  }
}

/// Repeats a read or write until it transfers something: other programs that share a terminal may have made the file
/// non-blocking.
template <class Transfer>
ssize_t transferred(int file, short event, const Transfer& transfer) {
  for (;;) {
    const ssize_t size = transfer();
    if (size >= 0 || (errno != EINTR && errno != EAGAIN)) return size;
    pollfd ready{file, event, 0};
    if (errno == EAGAIN) ::poll(&ready, 1, -1);
  }
}

[[noreturn]] void fail_output(int error) {
  if (error == EPIPE) throw ReaderGone{};
  throw OutputError("cannot write to stdout: " + reason_of(error));
}

fs::path executable_folder() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path();
}

/// The name by which the user called the program, which may be installed under another name than it was built with.
std::string called_name(int argc, char** argv, const std::string& program) {
  const std::string name = argc > 0 && argv[0] ? fs::path(argv[0]).filename().string() : "";
  const bool is_plain =
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  return name.empty() || name.starts_with('-') || !is_plain ? program : name;
}

}  // namespace

int run_program(int argc, char** argv, const std::string& program, const std::string& purpose,
                const std::function<void(CommandLine&)>& body) {
  const std::string name = called_name(argc, argv, program);
  occupy_standard_streams();
  // A closed pipe and a file that is too large then appear as failed writes, and nothing is left behind.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    CommandLine line(argc, argv, name, purpose);
    body(line);
    return 0;
  } catch (const Answered&) {
    return 0;
  } catch (const ReaderGone&) {
    return 128 + SIGPIPE;  // like a process killed by the signal
  } catch (...) {
    note(fmt::format("{}: error: {}", name, printable(message_of_failure())));
    return 2;
  }
}

std::string message_of_failure() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "there is no memory left; choose a smaller model or a shorter text";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void print(std::string_view text) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) fail_output(errno);  // the output of lessons
  while (!text.empty()) {
    const ssize_t size = transferred(1, POLLOUT, [&] { return ::write(1, text.data(), text.size()); });
    if (size < 0) fail_output(errno);
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

void note(std::string_view line) { std::fputs(fmt::format("{}\n", line).c_str(), stderr); }

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t valid = find_invalid_utf8(text).value_or(text.size());
    for (std::size_t i = 0; i < valid; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const auto next = i + 1 < valid ? static_cast<unsigned char>(text[i + 1]) : 0;
      if (byte < 0x20 || byte == 0x7f) {
        line += fmt::format("\\x{:02x}", byte);
      } else if (byte == 0xc2 && next < 0xa0) {  // U+0080 to U+009F are control characters, too
        line += fmt::format("\\x{:02x}\\x{:02x}", byte, next);
        ++i;
      } else {
        line += text[i];
      }
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(1);
  }
  return line;
}

std::string read_input(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 28, part = std::size_t{1} << 16;
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "stdin" : in_quotes(path);
  const auto refuse = [&] { throw Error(fmt::format("cannot read {}: {}", name, reason_of(errno))); };
  const Descriptor opened = is_stdin ? Descriptor() : Descriptor::through_links(path, O_RDONLY | O_NOCTTY);
  if (!is_stdin && !opened) refuse();
  if (is_stdin && ::isatty(0) && ::isatty(2))
    note("Reading from the terminal; Ctrl-D at the beginning of a line ends the input.");
  const int file = is_stdin ? 0 : opened.get();
  std::string text;
  // Without stdio, which would read on after an end of file that a terminal reports once.
  for (ssize_t size = 1; size > 0 && text.size() <= most;) {
    const std::size_t before = text.size();
    text.resize(before + part);
    size = transferred(file, POLLIN, [&] { return ::read(file, text.data() + before, part); });
    if (size < 0) refuse();
    text.resize(before + static_cast<std::size_t>(size));
  }
  if (text.size() > most) throw Error(fmt::format("{} has more than {} MiB; that is not text", name, most >> 20));
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  return text;
}

std::string given_text(const std::optional<std::string>& text, const std::optional<std::string>& file) {
  if (text) return *text;
  return file || !::isatty(0) ? read_input(file.value_or("-")) : "";
}

fs::path shipped_model() {
  // In the source tree, and installed: relative to a folder above the program.
  const fs::path places[] = {"samples/models/storyteller-6m", "share/tessera/models/storyteller-6m"};
  std::vector<fs::path> roots;
  // From build/bin or build/release/bin up to the folder that contains the build.
  fs::path folder = executable_folder();
  for (int up = 0; up < 4 && !folder.empty(); ++up, folder = folder.parent_path()) roots.push_back(folder);
#ifdef TESSERA_SOURCE_DIR
  roots.emplace_back(TESSERA_SOURCE_DIR);
#endif
  for (const fs::path& root : roots)
    for (const fs::path& place : places)
      if (std::error_code absent; fs::is_directory(root / place, absent)) return root / place;
  throw Error(fmt::format("there is no {} above this program; give a model folder", places[0].native()));
}

void ModelOptions::declare(CommandLine& line) {
  line.option(
      "-m,--model", folder, "DIR",
      "Model folder in the Hugging Face layout, a GGUF file, or the name of a model\nin the hub's cache [the shipped "
      "model]");
  std::vector<std::string> names;
  for (const Preset& each : presets()) names.emplace_back(each.name);
  line.option("--preset", preset, "NAME",
              "Random weights, in a size by name: nano, micro, mini, gpt2,\ngpt2-medium, -large, -xl, tile-small, "
              "-medium, -large,\nsmollm2-135m, -360m; only ids, because there is no tokenizer",
              std::move(names));
  line.option("--dtype", dtype, "TYPE", "Type of matmul operands: f32, tf32 or bf16 [f32]", {"f32", "tf32", "bf16"});
  line.flag("--batch-invariant", batch_invariant,
            "The logits of a text are the same, to the bit, in any batch and\nwith any draft; slower");
  line.option("--decode", decode, "FORM",
              "How a step of one token runs on a GPU: plain launches, a CUDA graph,\nor one persistent kernel; auto: "
              "graph or persistent, measured once\n[auto]",
              {"auto", "plain", "graph", "persistent"});
  line.option("--device", device, "DEVICE",
              "auto, cpu, cuda, cuda:N or emulated; no fallback from a named\ndevice [auto]",
              {"auto", "cpu", "cuda", "emulated"});
}

fs::path ModelOptions::path() const { return folder ? find_model(*folder) : shipped_model(); }

OpenModel open_model(const ModelOptions& options, std::uint64_t seed_of_weights,
                     const std::function<FirstUse(const GenerationDefaults&)>& first) {
  const Computation computation(parse_compute(options.dtype), options.batch_invariant,
                                parse_decode_form(options.decode));
  const Device device = Device::parse(options.device);
  const auto first_use = [&](const GenerationDefaults& defaults) {
    return first && !device.shares_host_memory() ? first(defaults) : FirstUse();
  };
  if (options.preset) {
    const ProgressLine line(compile_progress);
    return {Model(device, preset(*options.preset), seed_of_weights, computation, first_use({})), {}};
  }
  const Checkpoint checkpoint = Checkpoint::open(options.path());
  const FirstUse use = first_use(checkpoint.defaults);
  std::atomic<double> part = 0;
  const ProgressLine line([&] {
    const Progress kernels = compile_progress();
    return Progress{.what = kernels.what.empty() ? "loading the model" : "loading the model, " + kernels.what,
                    .part = part};
  });
  const auto progress = [&](double read) { part = read; };
  return {Model(device, checkpoint, computation, progress, use), checkpoint.defaults};
}

std::string describe(const Device& device) {
  return device.name() + (device.reason().empty() ? "" : ": " + device.reason());
}

}  // namespace tessera::internal
