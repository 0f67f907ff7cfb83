// What the programs share: a command line, one line for every failure, checked output, a model by its options.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/gpt2.hpp"
#include "model/tokenizer.hpp"

namespace tessera {

/// Values as they are written on a command line; Error, quoting the text, if it is none.
void convert(const std::string& text, std::string& value);
void convert(const std::string& text, std::int32_t& value);
void convert(const std::string& text, std::uint32_t& value);
void convert(const std::string& text, std::uint64_t& value);
void convert(const std::string& text, float& value);
/// Token ids with commas or blanks between them, brackets around them or not: what the programs print, they read.
void convert(const std::string& text, std::vector<std::int32_t>& value);
/// One more of an option that may be repeated.
void convert(const std::string& text, std::vector<std::string>& value);
template <class T>
void convert(const std::string& text, std::optional<T>& value) {
  convert(text, value.emplace());
}

/// The options of a program: declared, then parsed. A face for CLI11, which takes seconds to compile and so is included
/// in one file only.
class CommandLine {
 public:
  CommandLine(int argc, char** argv, const std::string& program, const std::string& purpose);
  ~CommandLine();

  /// `names` as in "-n,--count"; a name without dashes makes it an argument too. `what` stands for the value in --help.
  template <class T>
  void option(const std::string& names, T& value, const std::string& what, const std::string& help) {
    add(names, what, help, std::is_same_v<T, std::vector<std::string>>,
        [&value](const std::string& text) { convert(text, value); });
  }
  void flag(const std::string& names, bool& value, const std::string& help);
  /// Lines below the options in --help.
  void footer(const std::string& text);

  /// Sets the values. Error on anything that was not declared; --help and --version end the program.
  void parse();
  /// After parse(): Error if more than one of these options was given.
  void at_most_one(std::initializer_list<const char*> names) const;

 private:
  using Take = std::function<void(const std::string&)>;
  void add(const std::string& names, const std::string& what, const std::string& help, bool repeatable, Take take);

  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// Runs `body` and returns the exit status: 0, or 2 after "program: error: ..." on one line of stderr for whatever was
/// thrown.
int run_program(int argc, char** argv, const std::string& program, const std::string& purpose,
                const std::function<void(CommandLine&)>& body);

/// Writes to stdout at once. Error if that fails or has failed before: a full disk, a reader that has gone.
void print(std::string_view text);
/// One line on stderr.
void note(std::string_view line);

/// `text` on one line and fit for a terminal: control characters and what is no UTF-8 as \xNN.
std::string printable(std::string_view text);

/// The whole of a file, a pipe, or, for "-", of stdin. Error if it cannot be read or is endless.
std::string read_input(const std::string& path);

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

}  // namespace tessera
