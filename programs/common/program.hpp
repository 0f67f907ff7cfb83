// What the programs share: a command line, one line for every failure, checked output, a model by its options.
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
#include "tessera/model/gpt2.hpp"
#include "tessera/model/tokenizer.hpp"

namespace tessera::internal {

/// Runs `body` and returns the exit status: 0, or 2 after "program: error: ..." on one line of stderr for whatever was
/// thrown, or, quietly, 141 where the reader of stdout has gone. The program goes by the name that it was called by, if
/// that is one.
int run_program(int argc, char** argv, const std::string& program, const std::string& purpose,
                const std::function<void(CommandLine&)>& body);

/// The message for the exception that is being handled.
std::string message_of_failure();

/// stdout takes no more, as on a full disk.
struct OutputError : Error {
  using Error::Error;
};
/// The reader of stdout has gone, as `head` does.
struct ReaderGone {};

/// Writes to stdout at once. Throws OutputError or ReaderGone if that fails or has failed before.
void print(std::string_view text);
/// One line on stderr.
void note(std::string_view line);

/// `text` on one line and fit for a terminal: control characters and what is no UTF-8 as \xNN.
std::string printable(std::string_view text);

/// The whole of a file, a pipe, or, for "-", of stdin, without the byte order mark of UTF-8 at its beginning. Error if
/// it cannot be read or is endless.
std::string read_input(const std::string& path);

/// The byte order mark that some editors put before a text in UTF-8.
inline constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// `text`, or else what `file` holds, or else, if stdin is a pipe or a file, what that holds. Empty if there is
/// nothing.
std::string given_text(const std::optional<std::string>& text, const std::optional<std::string>& file);

/// Milliseconds since it was made.
class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The model that comes with Tessera. Error if it is not to be found from where the program lies.
std::filesystem::path shipped_model();

/// Which model, and where and how it computes.
struct ModelOptions {
  std::optional<std::string> folder, preset;
  std::string dtype = "f32", device = "auto";

  void declare(CommandLine& line);
  /// The folder of --model, or the shipped one.
  std::filesystem::path path() const;
};

/// A model, and what its folder says about sampling.
struct OpenModel {
  Gpt2 model;
  GenerationDefaults defaults;
};
OpenModel open_model(const ModelOptions& options, std::uint64_t seed_of_weights);

/// "cpu (2 threads): why".
std::string describe(const Device& device);

}  // namespace tessera::internal
