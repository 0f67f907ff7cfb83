// The tokens of C++ text.
#include "codegen/prelude/tokens.hpp"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace test_tokens {

using namespace tessera::internal;

namespace {

using Kind = Token::Kind;
using Pieces = std::vector<std::pair<Kind, std::string>>;

Pieces pieces(std::string_view text) {
  Pieces pieces;
  Tokens tokens(text);
  while (const auto token = tokens.next()) pieces.emplace_back(token->kind, token->text);
  return pieces;
}

/// The kind of a text that is one token.
Kind kind_of(std::string_view text) {
  const Pieces all = pieces(text);
  CAPTURE(text);
  REQUIRE(all.size() == 1);
  CHECK(all[0].second == text);
  return all[0].first;
}

}  // namespace

TEST_CASE("tokens: each piece of a text has its kind", "[prelude]") {
  CHECK(pieces("").empty());
  CHECK(pieces("x1 = -y;  // end\n") == Pieces{{Kind::word, "x1"},
                                               {Kind::space, " "},
                                               {Kind::other, "="},
                                               {Kind::space, " "},
                                               {Kind::other, "-"},
                                               {Kind::word, "y"},
                                               {Kind::other, ";"},
                                               {Kind::space, "  "},
                                               {Kind::comment, "// end"},
                                               {Kind::newline, "\n"}});
  for (const char* text : {"a", "_b1", "$c", "\xc3\xa9t\xc3\xa9", "R", "int"}) CHECK(kind_of(text) == Kind::word);
  for (const char* text : {"0", "1.5f", ".5", "1e+5", "2E-3f", "0x1p-3", "1'000'000", "0x1e+5", "3ull"})
    CHECK(kind_of(text) == Kind::number);
  for (const char* text : {"// a \" b", "/* a\nb */", "/**/", "/*", "//"}) CHECK(kind_of(text) == Kind::comment);
  for (const char* text : {"\"\"", "\"a // b\"", "'\\''", "\"\\\\\"", "\"open", "'"})
    CHECK(kind_of(text) == Kind::literal);
  for (const char* text : {"R\"()\"", "R\"(a\"\n// b)\"", "u8R\"x()\")x\"", "R\"(open"})
    CHECK(kind_of(text) == Kind::raw_literal);
}

TEST_CASE("tokens: neighbors are told apart", "[prelude]") {
  CHECK(pieces("1+2") == Pieces{{Kind::number, "1"}, {Kind::other, "+"}, {Kind::number, "2"}});
  CHECK(pieces("e+1") == Pieces{{Kind::word, "e"}, {Kind::other, "+"}, {Kind::number, "1"}});
  CHECK(pieces("a.b") == Pieces{{Kind::word, "a"}, {Kind::other, "."}, {Kind::word, "b"}});
  CHECK(pieces("L\"a\"") == Pieces{{Kind::word, "L"}, {Kind::literal, "\"a\""}});
  CHECK(pieces("\"open\n1") == Pieces{{Kind::literal, "\"open"}, {Kind::newline, "\n"}, {Kind::number, "1"}});
  CHECK(pieces("1'a'") == Pieces{{Kind::number, "1'a"}, {Kind::literal, "'"}});
}

TEST_CASE("tokens: a backslash continues a line", "[prelude]") {
  CHECK(kind_of("na\\\nme") == Kind::word);
  CHECK(kind_of("// a \\\r\n b") == Kind::comment);
  CHECK(kind_of("/\\\n* a *\\\n/") == Kind::comment);
  CHECK(kind_of("\"a\\\nb\"") == Kind::literal);
  CHECK(kind_of("R\"(a\\\nb)\"") == Kind::raw_literal);
  CHECK(pieces("\\\na\\\n\\\n b\\\n") == Pieces{{Kind::word, "a"}, {Kind::space, " "}, {Kind::word, "b"}});
  CHECK(join_lines("na\\\n\\\r\nme \\ x\\\n") == "name \\ x");
}

}  // namespace test_tokens
