// Shared by the programs: command line, one-line errors, checked output, and model options.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/command_line.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/session.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

/// Runs `body` and returns the exit status: 0 on success; 2 after printing "program: error: ..." on one line of stderr
/// for any exception; 141, without a message, if the reader of stdout has gone. The program is called by the name under
/// which the user started it, if there is a plain one.
int run_program(int argc, char** argv, const std::string& program, const std::string& purpose,
                const std::function<void(CommandLine&)>& body);

/// The message of the exception that is being handled.
std::string message_of_failure();

/// stdout cannot be written, as on a full disk.
struct OutputError : Error {
  using Error::Error;
};
/// The reader of stdout has closed it, as `head` does.
struct ReaderGone {};

/// Writes to stdout without buffering. Throws OutputError or ReaderGone if that fails or failed before.
void print(std::string_view text);
/// Prints one line on stderr.
void note(std::string_view line);

/// `text` on one line and safe for a terminal: control characters and invalid UTF-8 as \xNN.
std::string printable(std::string_view text);

/// The content of a file, a pipe or, for "-", stdin, without a leading UTF-8 byte order mark. Throws Error if it cannot
/// be read or does not end.
std::string read_input(const std::string& path);

/// The byte order mark that some editors write at the beginning of a UTF-8 text.
inline constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// `text` if given; otherwise the content of `file` if given; otherwise that of stdin, if it is a pipe or a file;
/// otherwise empty.
std::string given_text(const std::optional<std::string>& text, const std::optional<std::string>& file);

/// Measures milliseconds since its construction.
class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The folder of the model that ships with Tessera. Throws Error if it cannot be found from the program's folder.
std::filesystem::path shipped_model();

/// Selects a model, and where and how it computes.
struct ModelOptions {
  std::optional<std::string> folder, preset;
  std::string dtype = "f32", device = "auto", decode = "auto";
  bool batch_invariant = false;

  void declare(CommandLine& line);
  /// The folder of --model, or that of the shipped model.
  std::filesystem::path path() const;
};

/// A model, and the generation defaults from its folder.
struct OpenModel {
  Model model;
  GenerationDefaults defaults;
};
/// On a GPU, the kernels of the first use are compiled while the weights load. `first` is called before that.
OpenModel open_model(const ModelOptions& options, std::uint64_t seed_of_weights,
                     const std::function<FirstUse(const GenerationDefaults&)>& first = {});

/// "cpu (2 threads): reason".
std::string describe(const Device& device);

}  // namespace tessera::internal
