// The prelude's items, and which of them a kernel gets.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "codegen/prelude/prelude.hpp"
#include "support/catch.hpp"

namespace test_prelude_items {

using namespace tessera::internal;

namespace {

/// Is `line` the first of a declaration? All other lines of an item are indented, or close or prefix one.
bool declares(std::string_view line) {
  return line.starts_with("__device__ inline ") || line.starts_with("struct ") || line.starts_with("using ");
}

/// The words of C++ text outside of string literals.
std::set<std::string_view> words_of(std::string_view text) {
  std::set<std::string_view> words;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), [&](char c) { return is_word(c) || c == '"'; });
    if (begin != text.end() && *begin == '"') {
      begin = std::find(begin + 1, text.end(), '"');
      if (begin != text.end()) ++begin;
      continue;
    }
    const auto end = std::find_if_not(begin, text.end(), is_word);
    if (begin != end) words.emplace(begin, end);
    begin = end;
  }
  return words;
}

std::string_view without_comment(std::string_view item) {
  while (item.starts_with("//")) item.remove_prefix(item.find('\n') + 1);
  return item;
}

std::string names_in(std::string_view prelude) {
  std::string names;
  for (const PreludeItem& item : prelude_items()) {
    if (prelude.find(item.text) != prelude.npos) names += std::string(item.name) + " ";
  }
  return names;
}

}  // namespace

TEST_CASE("Every prelude item is one named declaration in the folder where it belongs", "[prelude]") {
  std::set<std::string_view> seen;
  for (const PreludeItem& item : prelude_items()) {
    INFO(item.file << ":\n" << item.text);
    CHECK(item.device == item.file.starts_with("device/"));
    CHECK(item.text.starts_with("// "));
    CHECK(item.text.find("\n\n") == item.text.npos);
    int declarations = 0;
    for (std::string_view rest = item.text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      declarations += declares(line);
      CHECK(line.size() <= 120);
    }
    CHECK(declarations == 1);

    // Features that only a device has: intrinsics, builtin variables, PTX, the functions of CUDA.
    const std::set<std::string_view> words = words_of(without_comment(item.text));
    CHECK(words.contains(item.name));
    const bool needs_device = std::any_of(words.begin(), words.end(), [](std::string_view word) {
      return (word.starts_with("__") && word != "__device__") || word == "asm" ||
             (word.starts_with("atomic") && word != "atomic" && word[6] != '_') || word == "threadIdx" ||
             word == "blockIdx" || word == "gridDim" || word == "blockDim";
    });
    CHECK((needs_device || item.name == "continues") == item.device);  // it detects endless loops, elsewhere

    // Declared before it is used; so is every overload, since a template would not see later ones.
    for (const PreludeItem& other : prelude_items()) {
      if (other.name == item.name || !words.contains(other.name)) continue;
      CHECK(std::find_if(prelude_items().begin(), prelude_items().end(), [&](const PreludeItem& i) {
        return i.text.data() == other.text.data();
      }) < std::find_if(prelude_items().begin(), prelude_items().end(), [&](const PreludeItem& i) {
        return i.text.data() == item.text.data();
      }));
    }
    seen.insert(item.name);
  }
  CHECK(seen.size() > 60);
}

TEST_CASE("A kernel gets the prelude that it uses", "[prelude]") {
  CHECK(prelude_for("").empty());
  CHECK(prelude_for("extern \"C\" __global__ void k(float* x) { x[0] = 1.0f; }").empty());
  CHECK(names_in(prelude_for("y = modulo(a, b);")) == "modulo ");
  CHECK(prelude_for("y = modulo(a, b);").starts_with("// The remainder of floor_div"));
  // Together with everything that an item uses, overloads included, in the order of the prelude whatever that of the
  // text.
  CHECK(names_in(prelude_for("floor_div")) == "u32 i64 u64 wrap_sub wrap_sub wrap_sub wrap_neg floor_div ");
  CHECK(prelude_for("floor_div modulo") == prelude_for("modulo floor_div floor_div"));
  CHECK(prelude_for("cast_i32").find("__float2int_rz") != std::string::npos);
  // Words in comments and strings, and parts of words, are no uses.
  CHECK(prelude_for("// modulo\n/* modulo\n modulo */ \"modulo \\\" modulo\" 'a' my_modulo modulo2 0modulo").empty());
  CHECK(names_in(prelude_for("// modulo\nmodulo")) == "modulo ");
  CHECK(names_in(prelude_for("'\\'' modulo \"")) == "modulo ");
  // Overloads for element types that the text does not have are left out. 64-bit values may occur without a type name.
  CHECK(prelude_for("wrap_add(a, b)").find("wrap_add(i64 a, i64 b)") != std::string::npos);
  CHECK(names_in(prelude_for("from_memory(x)")) == "from_memory ");
  CHECK(names_in(prelude_for("const bf16* x; from_memory(x[0])")) ==
        "u32 u16 bf16 float_of bf16_value from_memory from_memory ");
  // So may a double: by a literal with digits, or as the result of a function.
  const auto of_double = [](std::string_view text) {
    return prelude_for(text).find("minimum(double") != std::string::npos;
  };
  CHECK(!of_double("minimum(1.5f, 0x1e - 3e2f)"));
  CHECK(!of_double("minimum(a1.b, 1)"));
  for (const char* text : {"double x; minimum(x, x)", "minimum(a, 2.5)", "minimum(a, 1e-30)", "minimum(a, cast_f64(1))",
                           "minimum(double_infinity(), double_nan_value())"}) {
    INFO(text);
    CHECK(of_double(text));
  }
  CHECK(prelude_for("cast_i8(cast_f64(1))").find("cast_i8(double") != std::string::npos);  // whichever comes first
  // One blank line between the items, a newline at the end.
  const std::string text = prelude_for("floor_div modulo");
  CHECK(text.find("\n\n\n") == std::string::npos);
  CHECK((text.ends_with("}\n") && !text.ends_with("\n\n")));
  CHECK(text.find("}\n\n// The remainder of floor_div") != std::string::npos);
}

}  // namespace test_prelude_items
