#include "codegen/author/declarations.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "codegen/prelude/tokens.hpp"

namespace tessera::internal::author {
namespace {

using Kind = Declaration::Kind;

struct Word {
  std::string_view text;
  bool named = false;  // an identifier or a keyword
  unsigned line = 0;
};

/// The tokens that a compiler parses, with their lines.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  Tokens tokens(text);
  std::size_t counted = 0;
  unsigned line = 1;
  bool begins_line = true, directive = false;
  while (const std::optional<Token> token = tokens.next()) {
    const auto at = static_cast<std::size_t>(token->text.data() - text.data());
    line += static_cast<unsigned>(std::count(text.begin() + counted, text.begin() + at, '\n'));
    counted = at;
    switch (token->kind) {
      case Token::Kind::newline:
        begins_line = true, directive = false;
        break;
      case Token::Kind::space:
      case Token::Kind::comment:
        break;
      default:
        directive |= begins_line && token->text == "#";
        begins_line = false;
        if (!directive) words.push_back({token->text, token->kind == Token::Kind::word, line});
    }
  }
  return words;
}

bool is_one_of(std::string_view text, const auto& list) { return std::ranges::find(list, text) != list.end(); }

constexpr std::array<std::string_view, 3> openings = {"(", "[", "{"}, closings = {")", "]", "}"};
constexpr std::array<std::string_view, 4> specifiers = {"const", "constexpr", "static", "inline"};
constexpr std::array<std::string_view, 4> types = {"auto", "Tile", "Index", "Var"};
constexpr std::array<std::string_view, 4> heads = {"for", "if", "while", "switch"};
constexpr std::array<std::string_view, 8> operators = {"+", "-", "*", "/", "%", "&", "|", "^"};

class Reader {
 public:
  explicit Reader(std::string_view text) : words_(words_of(text)) {}

  Declarations run() {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      if (begins_statement(at) && !declaration(at)) assignment(at);
      kernel(at);
    }
    return std::move(found_);
  }

 private:
  std::string_view at(std::size_t i) const { return i < words_.size() ? words_[i].text : std::string_view(); }
  bool is_name(std::size_t i) const { return i < words_.size() && words_[i].named; }
  unsigned line(std::size_t i) const { return words_[std::min(i, words_.size() - 1)].line; }

  bool begins_statement(std::size_t i) const {
    if (i == 0) return true;
    constexpr std::array<std::string_view, 6> ends = {";", "{", "}", ")", "else", "do"};
    if (is_one_of(at(i - 1), ends)) return true;
    return at(i - 1) == "(" && i > 1 && is_one_of(at(i - 2), heads);
  }

  /// The place after the bracket that closes the one at `i`.
  std::optional<std::size_t> after_brackets(std::size_t i) const {
    int depth = 0;
    for (; i < words_.size(); ++i) {
      if (is_one_of(at(i), openings)) ++depth;
      if (is_one_of(at(i), closings) && --depth == 0) return i + 1;
    }
    return {};
  }

  /// The place after template arguments, if there are any at `i`.
  std::optional<std::size_t> after_template_arguments(std::size_t i) const {
    if (at(i) != "<") return i;
    for (int depth = 0; i < words_.size(); ++i) {
      if (at(i) == ";" || at(i) == "{") return {};
      if (at(i) == "<") ++depth;
      if (at(i) == ">" && --depth == 0) return i + 1;
    }
    return {};
  }

  struct Initializer {
    std::size_t end;    // the place of what follows it
    bool value = true;  // not a lambda with statements of its own
  };

  /// The expression from `i` to the end of the statement, or to the next declarator.
  std::optional<Initializer> initializer(std::size_t i) const {
    Initializer result{i};
    for (int depth = 0; i < words_.size(); ++i) {
      if (depth == 0) {
        const bool next = at(i) == "," && is_name(i + 1) && (at(i + 2) == "=" || at(i + 2) == "{" || at(i + 2) == "(");
        if (next || at(i) == ";" || is_one_of(at(i), closings)) {
          result.end = i;
          return result;
        }
      }
      if (at(i) == ";") result.value = false;
      if (is_one_of(at(i), openings)) ++depth;
      if (is_one_of(at(i), closings)) --depth;
    }
    return {};
  }

  /// Records a name for a value that `first` to `last` compute, unless another value may be made on the same line.
  void found(Kind kind, std::size_t name, std::size_t first, std::size_t last) {
    for (std::size_t i = last; i < words_.size() && line(i) == line(last); ++i)
      if (at(i) == "return") return;
    found_.names.push_back({kind, std::string(at(name)), line(first), line(last)});
  }

  /// A declaration that begins at `i`. Returns true if there is one.
  bool declaration(std::size_t i) {
    const std::size_t begin = i;
    const auto skip_specifiers = [&] {
      for (;;) {
        if (at(i) == "[" && at(i + 1) == "[") {
          const std::optional<std::size_t> end = after_brackets(i);
          if (!end) return;
          i = *end;
        } else if (is_one_of(at(i), specifiers)) {
          ++i;
        } else {
          return;
        }
      }
    };
    skip_specifiers();
    if (at(i) == "tessera" && at(i + 1) == ":" && at(i + 2) == ":") i += 3;
    if (!is_one_of(at(i), types)) return false;
    const std::string_view type = at(i);
    const std::optional<std::size_t> name = after_template_arguments(i + 1);
    if (!name) return false;
    i = *name;
    while (at(i) == "const" || at(i) == "&") ++i;
    if (at(i) == "[" && type == "auto") return bindings(begin, i);
    if (!is_name(i)) return false;
    if (at(i + 1) == ":" && at(i + 2) != ":" && begin > 1 && at(begin - 2) == "for") {
      const std::optional<Initializer> range = initializer(i + 2);
      if (range) found(Kind::counter, i, begin, range->end);
      return true;
    }
    return declarators(type, begin, i);
  }

  bool bindings(std::size_t begin, std::size_t i) {
    std::vector<std::size_t> names;
    do {
      ++i;
      if (!is_name(i)) return false;
      names.push_back(i++);
    } while (at(i) == ",");
    if (at(i) != "]" || at(i + 1) != "=") return false;
    const std::optional<Initializer> of = initializer(i + 2);
    if (!of) return false;
    for (const std::size_t name : names) found(Kind::binding, name, begin, of->end);
    return true;
  }

  bool declarators(std::string_view type, std::size_t begin, std::size_t i) {
    const Kind kind = type == "Var" ? Kind::variable : Kind::value;
    for (bool any = false;; any = true) {
      const std::size_t name = i++;
      std::size_t from = i + 1;
      if (at(i) == "{" || at(i) == "(") {
        const std::optional<std::size_t> end = after_brackets(i);
        // "auto f(...)" and "Tile<f32, 2> f(...) {" are functions.
        if (!end || (at(i) == "(" && (type == "auto" || (at(*end) != ";" && at(*end) != ",")))) return any;
        from = *end;
      } else if (at(i) != "=" || at(i + 1) == "=") {
        return any;
      }
      const std::optional<Initializer> of = initializer(from);
      if (!of) return any;
      if (of->value) found(kind, name, any ? name : begin, of->end);
      i = of->end;
      if (at(i) != ",") return true;
      ++i;
    }
  }

  void assignment(std::size_t i) {
    if (!is_name(i)) return;
    std::size_t sign = i + 1;
    if (is_one_of(at(sign), operators)) ++sign;
    if ((at(sign) == "<" || at(sign) == ">") && at(sign + 1) == at(sign)) sign += 2;
    if (at(sign) != "=" || at(sign + 1) == "=") return;
    const std::optional<Initializer> value = initializer(sign + 1);
    if (value && value->value) found(Kind::assignment, i, i, value->end);
  }

  /// A call of kernel(...) at `i`, one of whose arguments is a lambda.
  void kernel(std::size_t i) {
    if ((at(i) != "kernel" && at(i) != "trace_kernel") || at(i + 1) != "(") return;
    const std::size_t call = i;
    for (i += 2; i < words_.size() && at(i) != ")" && at(i) != ";";) {
      if (at(i) == "[" && at(i - 1) == ",") break;
      const std::optional<std::size_t> end = is_one_of(at(i), openings) ? after_brackets(i) : i + 1;
      if (!end) return;
      i = *end;
    }
    if (at(i) != "[") return;
    const std::optional<std::size_t> open = after_brackets(i);
    if (!open || at(*open) != "(") return;
    const std::optional<std::size_t> end = after_brackets(*open);
    if (!end) return;
    KernelLambda lambda{line(call), line(*end - 1), {}};
    int depth = 0;  // of template arguments
    for (i = *open + 1; i < *end; ++i) {
      if (at(i) == "<" || at(i) == "(") ++depth;
      if (at(i) == ">" || (at(i) == ")" && i + 1 < *end)) --depth;
      if (depth > 0 || (at(i) != "," && i + 1 != *end)) continue;
      const bool declares = is_name(i - 1) && (is_name(i - 2) || at(i - 2) == ">" || at(i - 2) == "&");
      lambda.parameters.emplace_back(declares ? at(i - 1) : "");
    }
    found_.kernels.push_back(std::move(lambda));
  }

  std::vector<Word> words_;
  Declarations found_;
};

}  // namespace

Declarations declarations_in(std::string_view text) { return Reader(text).run(); }

}  // namespace tessera::internal::author
