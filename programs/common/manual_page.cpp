#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "common/declared.hpp"
#include "jit/options/options.hpp"

namespace tessera::internal {

namespace {

/// Escapes text for troff: no line is taken for a request, and dashes can be searched for and copied.
std::string plain(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool first = i == 0 || text[i - 1] == '\n';
    if (first && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
    if (text[i] == '\\') {
      escaped += "\\e";
    } else if (text[i] == '-') {
      escaped += "\\-";
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", plain(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", plain(text)); }

/// Breaks lines after sentences, as is customary in manual pages, and begins paragraphs at empty lines.
std::string paragraphs(std::string text) {
  std::string out;
  for (std::size_t end; !text.empty(); text.erase(0, std::min(end, text.size()))) {
    end = text.find("\n\n");
    std::string part = one_line(text.substr(0, end));
    for (std::size_t at = 0; (at = part.find(". ", at)) != part.npos; ++at) part[at + 1] = '\n';
    out += fmt::format("{}{}\n", out.empty() ? "" : ".PP\n", plain(part));
    if (end != text.npos) end += 2;
  }
  return out;
}

std::string synopsis(const DeclaredOption& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    names.push_back(bold(name) + (option.is_flag() ? "" : (is_long ? "=" : " ") + italic(option.what)));
  }
  if (option.is_argument) names.push_back(italic(option.what));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string manual_page(const DeclaredProgram& program) {
  std::string title = program.name, purpose = program.purpose;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (purpose.ends_with('.')) purpose.pop_back();
  std::string text = fmt::format(".\\\" Made by {} --man\n.TH \"{}\" 1 \"\" \"Tessera {}\" \"Tessera\"\n", program.name,
                                 plain(title), program.version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", plain(program.name), plain(purpose));
  text += fmt::format(".SH SYNOPSIS\n{} [{}]", bold(program.name), italic("OPTIONS"));
  for (const DeclaredOption* argument : program.arguments()) text += fmt::format(" [{}]", italic(argument->what));
  text += fmt::format("\n.SH DESCRIPTION\n{}", paragraphs(program.purpose + "\n\n" + program.footer));
  text += ".SH OPTIONS\n";
  for (const DeclaredOption& option : program.options)
    text += fmt::format(".TP\n{}\n{}", synopsis(option), paragraphs(option.help));
  text += ".SH EXIT STATUS\n" +
          paragraphs(
              "0 on success, 2 after an error, which is one line on stderr, and any other status that the "
              "description names.");
  text += ".SH ENVIRONMENT\n";
  for (const OptionInfo& variable : option_table()) {
    const std::string fallback = variable.fallback.empty() ? "" : fmt::format(" [{}]", variable.fallback);
    text += fmt::format(".TP\n{}\n{}", bold(variable.variable), paragraphs(std::string(variable.meaning) + fallback));
  }
  return text;
}

}  // namespace tessera::internal
