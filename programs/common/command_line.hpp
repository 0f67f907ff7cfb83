// The options of a program: declared once, for parsing, --help, --man and --completion.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tessera::internal {

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

/// A face for CLI11, which takes seconds to compile and so is included in one file only.
class CommandLine {
 public:
  CommandLine(int argc, char** argv, const std::string& program, const std::string& purpose);
  ~CommandLine();

  /// `names` as in "-n,--count"; a name without dashes makes it an argument too. `what` stands for the value in --help:
  /// FILE and DIR are completed as such, and TEXT is what may have several words. `choices`: words to complete.
  template <class T>
  void option(const std::string& names, T& value, const std::string& what, const std::string& help,
              std::vector<std::string> choices = {}) {
    add(names, what, help, std::move(choices), std::is_same_v<T, std::vector<std::string>>,
        [&value](const std::string& text) { convert(text, value); });
  }
  void flag(const std::string& names, bool& value, const std::string& help);
  /// Lines below the options in --help.
  void footer(const std::string& text);

  /// Sets the values. Error on anything that was not declared, with what was probably meant. --help, --version, --man
  /// and --completion end the program.
  void parse();
  /// After parse(): Error if more than one of these options was given.
  void at_most_one(std::initializer_list<const char*> names) const;
  /// Error that says where to read on.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  using Take = std::function<void(const std::string&)>;
  void add(const std::string& names, const std::string& what, const std::string& help, std::vector<std::string> choices,
           bool repeatable, Take take);

  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// parse() has answered --help or its like.
struct Answered {};

}  // namespace tessera::internal
