#include "common/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <span>
#include <system_error>

#include "common/progress.hpp"
#include "graph/error.hpp"
#include "model/input_file.hpp"
#include "model/utf8.hpp"

#ifndef TESSERA_VERSION
#define TESSERA_VERSION "development build"
#endif

namespace tessera {

namespace fs = std::filesystem;

namespace {

/// --help or --version was answered.
struct Answered {};

std::string reason_of(int error) { return std::generic_category().message(error); }

template <class T>
void convert_number(std::string_view text, T& value, const std::string& expected) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) throw Error(fmt::format("{} is not {}", in_quotes(text), expected));
}

template <std::integral T>
void convert_integer(std::string_view text, T& value) {
  using Limits = std::numeric_limits<T>;
  convert_number(text, value, fmt::format("an integer from {} to {}", Limits::min(), Limits::max()));
}

// A file opened while 0, 1 or 2 is closed would get that number, and be printed into.
void occupy_standard_streams() {
  for (const int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;  // the wrong way: using it fails
  }
}

/// The one that needs no name before it.
const CLI::Option* text_of(const CLI::App& app) {
  const auto named = app.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return named.empty() ? nullptr : named.front();
}

/// The first argument that looks like options, and is none. CLI11 would take what follows it for a text, and -hello for
/// --help and more.
std::optional<std::string> unknown_option(const CLI::App& app, std::span<char* const> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") break;
    if (!argument.starts_with('-') || argument.size() == 1) continue;
    const bool is_long = argument.starts_with("--");
    for (std::size_t at = 1; at < argument.size(); ++at) {  // letters may share a dash
      const std::string name =
          is_long ? std::string(argument.substr(0, argument.find('='))) : fmt::format("-{}", argument[at]);
      const CLI::Option* const option = app.get_option_no_throw(name);
      if (!option) return is_long ? name : std::string(argument);
      const bool takes_value = option->get_items_expected_max() > 0;
      const bool has_value = is_long ? name.size() < argument.size() : at + 1 < argument.size();
      if (takes_value && !has_value) ++i;
      if (takes_value || is_long) break;
    }
  }
  return std::nullopt;
}

fs::path executable_folder() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path();
}

}  // namespace

void convert(const std::string& text, std::string& value) { value = text; }
void convert(const std::string& text, std::int32_t& value) { convert_integer(text, value); }
void convert(const std::string& text, std::uint32_t& value) { convert_integer(text, value); }
void convert(const std::string& text, std::uint64_t& value) { convert_integer(text, value); }
void convert(const std::string& text, float& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc::result_out_of_range || stop != end) return convert_number(text, value, "a number");
  value = std::strtof(text.c_str(), nullptr);  // which rounds what is too small, to 0 in the end
  if (std::isinf(value)) throw Error(fmt::format("{} is too large; give a number up to 3.4e38", in_quotes(text)));
}
void convert(const std::string& text, std::vector<std::string>& value) { value.push_back(text); }

void convert(const std::string& text, std::vector<std::int32_t>& value) {
  const auto refuse = [&] { throw Error(fmt::format("{} is not a list of token ids, as in 1,2,3", in_quotes(text))); };
  std::string_view rest = text;
  const auto skip_blanks = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size())); };
  rest.remove_suffix(rest.size() - (rest.find_last_not_of(" \t\r\n") + 1));
  skip_blanks();
  if (rest.starts_with('[') != rest.ends_with(']')) refuse();
  if (rest.starts_with('[')) {
    rest = rest.substr(1, rest.size() - 2);
    skip_blanks();
    if (rest.empty()) return;
  }
  for (;;) {
    const std::string_view id = rest.substr(0, rest.find_first_of(", \t\r\n"));
    std::int32_t number = 0;
    const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error == std::errc::invalid_argument || stop != id.data() + id.size()) refuse();
    if (error != std::errc()) throw Error(fmt::format("{} is not a token id; it is too large", in_quotes(id)));
    value.push_back(number);
    rest.remove_prefix(id.size());
    skip_blanks();
    if (rest.empty()) return;
    if (!rest.starts_with(',')) continue;
    rest.remove_prefix(1);
    skip_blanks();
  }
}

struct CommandLine::Parser {
  CLI::App app;
  int argc;
  char** argv;
};

CommandLine::CommandLine(int argc, char** argv, const std::string& program, const std::string& purpose)
    : parser_(new Parser{CLI::App(purpose, program), argc, argv}) {
  parser_->app.set_version_flag("--version", program + " (Tessera " TESSERA_VERSION ")", "Print the version and exit");
}
CommandLine::~CommandLine() = default;

void CommandLine::add(const std::string& names, const std::string& what, const std::string& help, bool repeatable,
                      Take take) {
  CLI::Option* const option = parser_->app.add_option(
      names,
      [names, take = std::move(take)](const CLI::results_t& texts) {
    try {
      for (const std::string& text : texts) take(text);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", names, error.what()));
    }
    return true;
      },
      help);
  option->type_name(what);
  if (repeatable) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  parser_->app.add_flag(names, value, help)->disable_flag_override();
}

void CommandLine::footer(const std::string& text) { parser_->app.footer(text); }

void CommandLine::parse() {
  CLI::App& app = parser_->app;
  const std::span<char*> arguments(parser_->argv, static_cast<std::size_t>(parser_->argc));
  if (const auto unknown = unknown_option(app, arguments.subspan(arguments.empty() ? 0 : 1)))
    throw Error(fmt::format("there is no option {}{} (see {} --help)", *unknown,
                            text_of(app) ? "; a text that begins with a dash comes after --" : "", app.get_name()));
  try {
    app.parse(parser_->argc, parser_->argv);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    throw Answered{};
  } catch (const CLI::CallForVersion& version) {
    print(fmt::format("{}\n", version.what()));
    throw Answered{};
  } catch (const CLI::ExtrasError&) {
    const CLI::Option* const text = text_of(app);
    const std::string words = fmt::format("{}", fmt::join(app.remaining(), " "));
    if (!text) throw Error(fmt::format("{} is not expected (see {} --help)", words, app.get_name()));
    const bool has_first = !text->results().empty();
    throw Error(fmt::format("{} is not expected; put a text of several words in quotes: \"{}{}{}\"", words,
                            has_first ? text->results().front() : "", has_first ? " " : "", words));
  } catch (const CLI::ParseError& error) {
    throw Error(fmt::format("{} (see {} --help)", error.what(), app.get_name()));
  }
}

void CommandLine::at_most_one(std::initializer_list<const char*> names) const {
  const char* first = nullptr;
  for (const char* name : names) {
    if (parser_->app.count(name) == 0) continue;
    if (first) throw Error(fmt::format("{} and {} exclude each other; give one of them", first, name));
    first = name;
  }
}

int run_program(int argc, char** argv, const std::string& program, const std::string& purpose,
                const std::function<void(CommandLine&)>& body) {
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone shows as a failed write
  std::string message;
  try {
    CommandLine line(argc, argv, program, purpose);
    body(line);
    return 0;
  } catch (const Answered&) {
    return 0;
  } catch (const std::bad_alloc&) {
    message = "there is no memory left; choose a smaller model or a shorter text";
  } catch (const std::exception& error) {
    message = error.what();
  }
  note(fmt::format("{}: error: {}", program, printable(message)));
  return 2;
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written && !std::ferror(stdout)) return;
  throw Error("cannot write to stdout: " + reason_of(errno));
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
      } else if (byte == 0xc2 && next < 0xa0) {  // U+0080 to U+009F: control characters too
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
  constexpr std::size_t most = std::size_t{1} << 28;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(path == "-" ? nullptr : std::fopen(path.c_str(), "rb"),
                                                               [](std::FILE* file) { return std::fclose(file); });
  std::FILE* const file = path == "-" ? stdin : opened.get();
  const std::string name = path == "-" ? "stdin" : in_quotes(path);
  std::string text;
  std::size_t got = 1;
  while (file && got > 0 && text.size() <= most) {
    const std::size_t before = text.size();
    text.resize(before + (std::size_t{1} << 16));
    got = std::fread(text.data() + before, 1, text.size() - before, file);
    text.resize(before + got);
  }
  if (!file || std::ferror(file)) throw Error(fmt::format("cannot read {}: {}", name, reason_of(errno)));
  if (text.size() > most) throw Error(fmt::format("{} has more than {} MiB; that is no text", name, most >> 20));
  return text;
}

fs::path shipped_model() {
  const fs::path place = "samples/models/storyteller-6m";
  std::vector<fs::path> roots;
  // From build/bin or build/release/bin to the folder that the build lies in.
  fs::path folder = executable_folder();
  for (int up = 0; up < 4 && !folder.empty(); ++up, folder = folder.parent_path()) roots.push_back(folder);
#ifdef TESSERA_SOURCE_DIR
  roots.emplace_back(TESSERA_SOURCE_DIR);
#endif
  for (const fs::path& root : roots)
    if (std::error_code absent; fs::is_directory(root / place, absent)) return root / place;
  throw Error(fmt::format("there is no {} above this program; name a model folder", place.native()));
}

void ModelOptions::declare(CommandLine& line) {
  line.option("-m,--model", folder, "DIR", "Model folder in the Hugging Face layout; without it, the shipped one");
  line.option("--preset", preset, "NAME",
              "Random weights in a size by name: nano, micro, mini, gpt2,\ngpt2-medium, -large, -xl, tile-small, "
              "-medium, -large; ids only,\nas there is no tokenizer");
  line.option("--dtype", dtype, "TYPE", "f32, tf32 or bf16: what products multiply [f32]");
  line.option("--device", device, "DEVICE", "auto, cpu, cuda or cuda:N; never another than asked for [auto]");
}

fs::path ModelOptions::path() const { return folder ? fs::path(*folder) : shipped_model(); }

OpenModel open_model(const ModelOptions& options, std::uint64_t seed_of_weights) {
  const Compute compute = parse_compute(options.dtype);
  const Device device = Device::parse(options.device);
  if (options.preset) return {Gpt2(device, preset(*options.preset), seed_of_weights, compute), {}};
  const Checkpoint checkpoint = Checkpoint::open(options.path());
  std::atomic<double> part = 0;
  const ProgressLine line([&] { return Progress{.what = "loading the model", .part = part}; });
  return {Gpt2(device, checkpoint, compute, [&](double read) { part = read; }), checkpoint.defaults};
}

std::string describe(const Device& device) {
  return device.name() + (device.reason().empty() ? "" : ": " + device.reason());
}

}  // namespace tessera
