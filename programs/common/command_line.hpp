// The command-line options of a program: declared once, for parsing, --help, --man and --completion.
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

/// Parses a value of the command line. Throws Error that quotes the text if it is not valid.
void convert(const std::string& text, std::string& value);
void convert(const std::string& text, std::int32_t& value);
void convert(const std::string& text, std::uint32_t& value);
void convert(const std::string& text, std::uint64_t& value);
void convert(const std::string& text, float& value);
/// Token ids separated by commas or blanks, with or without brackets: accepts what the programs print.
void convert(const std::string& text, std::vector<std::int32_t>& value);
/// Appends a value of an option that may be repeated.
void convert(const std::string& text, std::vector<std::string>& value);
template <class T>
void convert(const std::string& text, std::optional<T>& value) {
  convert(text, value.emplace());
}

/// Wraps CLI11, which takes seconds to compile and is therefore included in a single file.
class CommandLine {
 public:
  CommandLine(int argc, char** argv, const std::string& program, const std::string& purpose);
  ~CommandLine();

  /// `names` as in "-n,--count"; a name without dashes makes it an argument, too. `what` stands for the value in
  /// --help: FILE and DIR are completed as paths, and TEXT may have several words. `choices`: words for completion.
  template <class T>
  void option(const std::string& names, T& value, const std::string& what, const std::string& help,
              std::vector<std::string> choices = {}) {
    add(names, what, help, std::move(choices), std::is_same_v<T, std::vector<std::string>>,
        [&value](const std::string& text) { convert(text, value); });
  }
  void flag(const std::string& names, bool& value, const std::string& help);
  /// Sets the lines below the options in --help.
  void footer(const std::string& text);

  /// Parses the arguments and sets the values. Throws Error for anything that was not declared, with the closest name.
  /// --help, --version, --man and --completion end the program.
  void parse();
  /// After parse(): throws Error if more than one of these options was given.
  void at_most_one(std::initializer_list<const char*> names) const;
  /// Throws Error with a hint to --help.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  using Take = std::function<void(const std::string&)>;
  void add(const std::string& names, const std::string& what, const std::string& help, std::vector<std::string> choices,
           bool repeatable, Take take);

  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// Thrown when parse() has answered --help or a similar option.
struct Answered {};

}  // namespace tessera::internal
