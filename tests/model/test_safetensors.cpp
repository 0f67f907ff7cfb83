// Every rule of the safetensors format, R1 to R18 of its README and reference reader, each with inputs that violate it.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <limits>
#include <optional>

#include "model/files/input_file.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"

namespace test_safetensors {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

std::string prefix(std::uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

/// A file with this header, and `data` zeros.
std::string with_header(const std::string& header, std::size_t data = 0) {
  return prefix(header.size()) + header + std::string(data, '\0');
}

/// A file with one tensor 'x'.
std::string one_tensor(const std::string& info, std::size_t data = 4) {
  return with_header("{\"x\":" + info + "}", data);
}

std::string tensor(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

class Files {
 public:
  fs::path write(const std::string& content) {
    write_text(path_, content);
    return path_;
  }
  const SafeTensors& open(const std::string& content) { return last_.emplace(SafeTensors::open(write(content))); }
  /// Rejected in one line that names the file and contains `parts`.
  void check_refused(const std::string& content, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { open(content); });
    INFO("header: " << content.substr(std::min<std::size_t>(8, content.size()), 200));
    INFO("message: " << message);
    CHECK(says(message, parts));
    CHECK(says(message, {path_.native()}));
  }

 private:
  TempDir folder_;
  fs::path path_ = folder_ / "model.safetensors";
  std::optional<SafeTensors> last_;
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("a file is read, or rejected by name and reason", "[model]") {
  const TempDir folder;
  const auto refused = [&](const fs::path& path, std::string_view reason) {
    const std::string message = error_of([&] { InputFile::open(path); });
    INFO(message);
    CHECK(says(message, {path.native(), reason}));
  };
  write_text(folder / "file", "content");
  InputFile file = InputFile::open(folder / "file");
  CHECK(file.size() == 7);
  CHECK(file.text(0, 7) == "content");
  const InputFile moved = std::move(file);
  CHECK(moved.text(3, 2) == "te");
  CHECK(says(error_of([&] { moved.text(5, 3); }), {(folder / "file").native(), "truncated", "1 bytes are missing"}));
  CHECK(read_whole(folder / "file", 7) == "content");
  CHECK(says(error_of([&] { read_whole(folder / "file", 6); }),
             {(folder / "file").native(), "7 bytes", "more than the limit of 6 bytes"}));

  refused(folder / "missing", "No such file");
  refused(folder.path(), "folder");
  write_text(folder / "empty", "");
  refused(folder / "empty", "empty");
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  refused(folder / "fifo", "not a regular file");
  refused("/dev/null", "not a regular file");
  refused(folder / "file" / "below", "Not a directory");
  if (geteuid() != 0) {  // root can read everything
    fs::permissions(folder / "file", fs::perms::none);
    refused(folder / "file", "Permission denied");
  }
  const std::string broken = error_of([&] { InputFile::open(folder / "two\nlines\x1b"); });
  CHECK(says(broken, {"two\\x0alines\\x1b"}));
}

TEST_CASE("quoting keeps a message to one short line", "[model]") {
  CHECK(in_quotes("") == "''");
  CHECK(in_quotes("wte.weight") == "'wte.weight'");
  CHECK(in_quotes("a\nb\x7f") == "'a\\x0ab\\x7f'");
  CHECK(in_quotes("\xc3\xa4") == "'\xc3\xa4'");
  std::string umlauts = "x";
  for (int i = 0; i < 1000; ++i) umlauts += "\xc3\xa4";
  const std::string cut = in_quotes(umlauts);
  CHECK(cut.size() < 520);
  CHECK(cut.find("\xc3 ") == cut.npos);  // no character is split
  CHECK(cut.find(" \xa4") == cut.npos);
}

TEST_CASE("R1: at least eight bytes", "[model]") {
  Files files;
  files.check_refused("", {"empty"});
  files.check_refused("1", {"1 bytes"});
  files.check_refused("1234567", {"7 bytes"});
}

TEST_CASE("R2: a header of at most 100 MB", "[model]") {
  Files files;
  for (const std::uint64_t n :
       {std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    files.check_refused(prefix(n) + "{}", {std::to_string(n), "100000000"});
  }
}

TEST_CASE("R2: other files that are commonly mistaken for weights are named", "[model]") {
  Files files;
  files.check_refused("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 548105171\n",
                      {"Git-LFS pointer", "git lfs pull"});
  files.check_refused("<!DOCTYPE html><html></html>", {"web page"});
  files.check_refused("<!doctype html>", {"web page"});
  files.check_refused("<html>", {"web page"});  // also below eight bytes
  files.check_refused("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", {"XML"});
  files.check_refused(std::string("PK\x03\x04\x00\x00\x08\x08", 8) + std::string(100, 'x'), {"zip", "convert"});
  files.check_refused(std::string("PK\x03\x04\x00\x00\x00\x00", 8) + std::string(100, 'x'), {"zip", "convert"});
  files.check_refused(std::string("GGUF\x03\x00\x00\x00", 8), {"GGUF"});
}

TEST_CASE("R3: the header ends inside the file", "[model]") {
  Files files;
  files.check_refused(prefix(3) + "{}", {"1 bytes are missing"});
  files.check_refused(prefix(1000) + "{}", {"998 bytes are missing"});
  const std::string whole = one_tensor(tensor("F32", "[1]", "[0,4]"));
  files.check_refused(whole.substr(0, 40), {"bytes are missing"});
}

TEST_CASE("R4: the header is UTF-8", "[model]") {
  Files files;
  const std::string info = tensor("F32", "[1]", "[0,4]");
  for (const char* bad : {"\xff", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\x80"}) {
    files.check_refused(with_header("{\"" + std::string(bad) + "\":" + info + "}", 4), {"not JSON at byte"});
  }
  files.check_refused(with_header(R"({"\ud800":)" + info + "}", 4), {"not JSON at byte"});
  CHECK(files.open(with_header("{\"\xc3\xa4\":" + info + "}", 4)).find("\xc3\xa4"));
  CHECK(files.open(with_header(R"({"\u00e4":)" + info + "}", 4)).find("\xc3\xa4"));
}

TEST_CASE("R5: the header is one strict JSON object", "[model]") {
  Files files;
  for (const char* bad : {"", " ", "[]", "null", "1", "\"x\"", "\xef\xbb\xbf{}", "// x\n{}"}) {
    files.check_refused(with_header(bad), {"not a JSON object"});
  }
  for (const char* bad : {"{", "{}{}", "{},", "{} x", "{\"x\"}", "{'x':1}", "{,}", "{/* */}", "{}}"}) {
    files.check_refused(with_header(bad), {"not JSON at byte"});
  }
  const std::string info = tensor("F32", "[1]", "[0,4]");
  files.check_refused(with_header("{\"x\":" + info + ",}", 4), {"not JSON at byte"});
  files.check_refused(one_tensor(tensor("F32", "[1,]", "[0,4]")), {"not JSON at byte"});
  files.check_refused(one_tensor(tensor("F32", "[NaN]", "[0,4]")), {"not JSON at byte"});
  files.check_refused(one_tensor(tensor("F32", "[01]", "[0,4]")), {"not JSON at byte"});
  files.check_refused(one_tensor(tensor("F32", "[+1]", "[0,4]")), {"not JSON at byte"});
  files.check_refused(with_header(std::string("{}\0", 3)), {"not JSON at byte 10"});
  files.check_refused(with_header(std::string("{}\0}", 4)), {"not JSON at byte 10"});
  files.check_refused(with_header(std::string("{\"a\0b\":{}}", 10)), {"not JSON at byte"});
  CHECK(files.open(with_header(" \t\r\n{} \t\r\n ")).tensors().empty());
  CHECK(files.open(with_header(" {\"x\" : " + info + " }   ", 4)).tensors().size() == 1);
}

TEST_CASE("R5: nesting that the format does not have is rejected where it begins", "[model]") {
  Files files;
  const std::string deep(5'000'000, '[');
  files.check_refused(with_header("{\"x\":" + deep), {"'x' is an array, where an object is expected"});
  files.check_refused(with_header(R"({"x":{"shape":)" + deep), {"'shape' holds an array", "unsigned integer"});
  std::string objects = "{";
  for (int i = 0; i < 500'000; ++i) objects += "\"x\":{";
  files.check_refused(with_header(objects), {"'x' is not part of the format"});
}

TEST_CASE("R6: __metadata__ maps strings to strings", "[model]") {
  Files files;
  CHECK(files.open(with_header(R"({"__metadata__":{"format":"pt","":"","dtype":"x"}})")).tensors().empty());
  CHECK(files.open(with_header(R"({"__metadata__":{}})")).find("__metadata__") == nullptr);
  for (const char* bad : {"1", "-1", "1.5", "null", "true", "{}", "[]"}) {
    files.check_refused(with_header(R"({"__metadata__":{"k":)" + std::string(bad) + "}}"),
                        {"'k' of __metadata__", "a string is expected"});
  }
  CHECK(files.open(with_header(R"({"__metadata__":null})")).tensors().empty());  // like none, as the reference reads it
  files.check_refused(with_header(R"({"__metadata__":null,"__metadata__":{}})"), {"two __metadata__"});
  files.check_refused(with_header(R"({"__metadata__":null,"x":null})"), {"'x' is null", "an object"});
  for (const char* bad : {"1", "\"x\"", "[]", "true"}) {
    files.check_refused(with_header(R"({"__metadata__":)" + std::string(bad) + "}"), {"'__metadata__'", "an object"});
  }
  files.check_refused(with_header(R"({"__metadata__":{"a":"1","b":"","a":"2"}})"), {"'a'", "twice"});
  files.check_refused(with_header(R"({"__metadata__":{},"__metadata__":{}})"), {"two __metadata__"});
}

TEST_CASE("R7: a tensor has dtype, shape and data_offsets, each once", "[model]") {
  Files files;
  files.check_refused(one_tensor(R"({"shape":[1],"data_offsets":[0,4]})"), {"'x'", "no dtype"});
  files.check_refused(one_tensor(R"({"dtype":"F32","data_offsets":[0,4]})"), {"'x'", "no shape"});
  files.check_refused(one_tensor(R"({"dtype":"F32","shape":[1]})"), {"'x'", "no data_offsets"});
  files.check_refused(one_tensor("{}"), {"'x'", "no dtype"});
  for (const char* bad : {"1", "-1", "1.5", "\"F32\"", "[]", "null", "true"}) {
    files.check_refused(one_tensor(bad), {"'x'", "an object is expected"});
  }
  files.check_refused(one_tensor(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})"), {"'dtype'", "a string"});
  files.check_refused(one_tensor(R"({"dtype":["F32"],"shape":[1],"data_offsets":[0,4]})"), {"'dtype'", "a string"});
  for (const char* bad : {"4", "\"4\"", "null", "{}", "false", "-4"}) {
    files.check_refused(one_tensor(tensor("F32", bad, "[0,4]")), {"'x'", "'shape' is", "an array"});
    files.check_refused(one_tensor(tensor("F32", "[1]", bad)), {"'x'", "'data_offsets' is", "an array"});
  }
  files.check_refused(one_tensor(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
                      {"'dtype'", "twice"});
  files.check_refused(one_tensor(R"({"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]})"),
                      {"'shape'", "twice"});
  files.check_refused(one_tensor(R"({"dtype":"F32","data_offsets":[0,4],"shape":[1],"data_offsets":[0,4]})"),
                      {"'data_offsets'", "twice"});
  files.check_refused(one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"size":4})"), {"'size'"});
  CHECK(files.open(one_tensor(R"({"data_offsets":[0,4],"shape":[1],"dtype":"F32"})")).find("x"));
}

TEST_CASE("R8: no name twice", "[model]") {
  Files files;
  const std::string a = tensor("U8", "[2]", "[0,2]"), b = tensor("U8", "[2]", "[2,4]");
  CHECK(files.open(with_header("{\"x\":" + a + ",\"y\":" + b + "}", 4)).tensors().size() == 2);
  files.check_refused(with_header("{\"x\":" + a + ",\"x\":" + b + "}", 4), {"'x' occurs twice"});
  files.check_refused(with_header("{\"x\":" + a + ",\"\\u0078\":" + b + "}", 4), {"'x' occurs twice"});
  const std::string empty = tensor("U8", "[0]", "[0,0]");
  files.check_refused(with_header("{\"x\":" + empty + ",\"x\":" + empty + "}"), {"'x' occurs twice"});
}

TEST_CASE("R9: 22 element types, by their exact names", "[model]") {
  const std::pair<const char*, int> all[] = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  STATIC_REQUIRE(std::size(all) == 22);
  Files files;
  int index = 0;
  for (const auto& [type, width] : all) {
    const std::string end = std::to_string(width);  // eight elements take as many bytes as one has bits
    const SafeTensors file =
        files.open(one_tensor(tensor(type, "[8]", "[0," + end + "]"), static_cast<std::size_t>(width)));
    CHECK(static_cast<int>(file.tensors().at(0).type) == index++);
    CHECK(name(file.tensors().at(0).type) == type);
    CHECK(bits(file.tensors().at(0).type) == width);
  }
  for (const char* bad : {"f32", "", "F128", "F32 ", "float32", "F8", "BF16\\u0000"}) {
    files.check_refused(one_tensor(tensor(bad, "[1]", "[0,4]")), {"'x'", "'dtype' is '", "not a type of the format"});
  }
}

TEST_CASE("R10: a shape is of unsigned integers", "[model]") {
  Files files;
  for (const char* bad : {"-1", "-0", "1.5", "1.0", "1e3", "\"4\"", "null", "true", "[1]", "{}", "18446744073709551616",
                          "-9223372036854775809", "1e999"}) {
    files.check_refused(one_tensor(tensor("F32", "[" + std::string(bad) + "]", "[0,4]")),
                        {bad == std::string("1e999") ? "not JSON" : "'shape' holds"});
  }
  std::string ones = "1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  CHECK(files.open(one_tensor(tensor("F32", "[" + ones + "]", "[0,4]"))).tensors().at(0).shape.size() == 64);
  files.check_refused(one_tensor(tensor("F32", "[" + ones + ",1]", "[0,4]")), {"'shape' has more than 64"});
  CHECK(files.open(one_tensor(tensor("F32", "[]", "[0,4]"))).tensors().at(0).shape.empty());
  const SafeTensors none = files.open(one_tensor(tensor("F32", "[3,0,7]", "[0,0]"), 0));
  CHECK(none.tensors().at(0).shape == std::vector<std::uint64_t>{3, 0, 7});
  CHECK(none.tensors().at(0).size == 0);
}

TEST_CASE("R11: data_offsets are two unsigned integers", "[model]") {
  Files files;
  for (const char* bad : {"[]", "[4]", "[0,4,4]"}) {
    files.check_refused(one_tensor(tensor("F32", "[1]", bad)), {"'x'", "data_offsets, not a begin and an end"});
  }
  for (const char* bad : {"[-1,3]", "[0,4.0]", "[\"0\",4]", "[null,4]", "[0,18446744073709551616]"}) {
    files.check_refused(one_tensor(tensor("F32", "[1]", bad)), {"'data_offsets' holds", "an unsigned integer"});
  }
  std::string many = "0";
  for (int i = 0; i < 100; ++i) many += ",0";
  files.check_refused(one_tensor(tensor("F32", "[1]", "[" + many + "]")), {"'data_offsets' has more than"});
}

TEST_CASE("R12: tensors follow each other without overlap or hole", "[model]") {
  Files files;
  const auto two = [](const char* a, const char* b) {
    return with_header("{\"x\":" + tensor("U8", "[2]", a) + ",\"y\":" + tensor("U8", "[2]", b) + "}", 4);
  };
  CHECK(files.open(two("[0,2]", "[2,4]")).tensors().at(0).name == "x");
  CHECK(files.open(two("[2,4]", "[0,2]")).tensors().at(0).name == "y");  // in any order
  files.check_refused(two("[0,2]", "[1,3]"), {"'y' begins at 1, inside"});
  files.check_refused(two("[0,2]", "[0,2]"), {"begins at 0, inside"});
  files.check_refused(two("[0,2]", "[3,5]"), {"'y' begins at 3", "hole after 2"});
  files.check_refused(two("[1,3]", "[3,5]"), {"'x' begins at 1", "hole after 0"});
  files.check_refused(two("[2,0]", "[2,4]"), {"'x' ends at 0, before its begin at 2"});
  files.check_refused(two("[18446744073709551615,1]", "[0,2]"), {"'x' ends at 1, before"});
  files.check_refused(two("[0,2]", "[2,18446744073709551615]"), {"'y' has 18446744073709551613 bytes"});

  // An empty tensor may be between two others, in any order of the header.
  const std::string a = tensor("U8", "[2]", "[0,2]"), b = tensor("U8", "[0]", "[2,2]"),
                    c = tensor("U8", "[2]", "[2,4]");
  CHECK(files.open(with_header("{\"c\":" + c + ",\"b\":" + b + ",\"a\":" + a + "}", 4)).tensors().size() == 3);
  files.check_refused(with_header("{\"a\":" + a + ",\"b\":" + tensor("U8", "[0]", "[1,1]") + "}", 2),
                      {"'b' begins at 1, inside"});

  std::string same = "{";
  for (int i = 0; i < 100'000; ++i) {
    same += (i ? ",\"" : "\"") + std::to_string(i) + "\":" + tensor("U8", "[4]", "[0,4]");
  }
  files.check_refused(with_header(same + "}", 4), {"inside the previous one"});
}

TEST_CASE("R13: no product of extents overflows", "[model]") {
  Files files;
  for (const char* bad : {"[2,18446744073709551614]", "[4294967296,4294967296]", "[9223372036854775808,2]",
                          "[9223372036854775808,4,0]", "[1152921504606846976]", "[18446744073709551615]"}) {
    files.check_refused(one_tensor(tensor("F32", bad, "[0,4]")), {"'x'", "too many elements"});
    files.check_refused(one_tensor(tensor("F32", bad, "[0,0]"), 0), {"'x'", "too many elements"});
  }
  CHECK(files.open(one_tensor(tensor("F32", "[0,9223372036854775808,4]", "[0,0]"), 0)).tensors().size() == 1);
}

TEST_CASE("R14: a tensor fills whole bytes", "[model]") {
  Files files;
  files.check_refused(one_tensor(tensor("F4", "[3]", "[0,2]"), 2), {"'x'", "F4", "whole bytes"});
  files.check_refused(one_tensor(tensor("F4", "[3]", "[0,1]"), 1), {"whole bytes"});
  files.check_refused(one_tensor(tensor("F6_E2M3", "[1]", "[0,1]"), 1), {"F6_E2M3", "whole bytes"});
  CHECK(files.open(one_tensor(tensor("F4", "[2]", "[0,1]"), 1)).tensors().at(0).size == 1);
  CHECK(files.open(one_tensor(tensor("F6_E3M2", "[2,2]", "[0,3]"), 3)).tensors().at(0).size == 3);
}

TEST_CASE("R15: offsets agree with shape and type", "[model]") {
  Files files;
  for (const int size : {0, 4, 7, 9, 12}) {
    files.check_refused(
        one_tensor(tensor("F32", "[2]", "[0," + std::to_string(size) + "]"), static_cast<std::size_t>(size)),
        {"'x' has " + std::to_string(size) + " bytes", "[2] of F32 takes 8"});
  }
}

TEST_CASE("R16: the file ends with the last tensor", "[model]") {
  Files files;
  const std::string info = tensor("F32", "[2]", "[0,8]");
  files.check_refused(one_tensor(info, 7), {"1 bytes are missing"});
  files.check_refused(one_tensor(info, 0), {"8 bytes are missing"});
  files.check_refused(one_tensor(info, 9), {"1 bytes at its end belong to no tensor"});
  files.check_refused(one_tensor(info, 8) + "PK\x03\x04 another file", {"belong to no tensor"});
  files.check_refused(with_header("{}", 1), {"1 bytes at its end"});
}

TEST_CASE("R17: values are bytes, with any content and offset", "[model]") {
  Files files;
  for (int pad = 0; pad < 8; ++pad) {
    std::string content = with_header("{\"x\":" + tensor("F32", "[2]", "[0,8]") + "}" + std::string(pad, ' '));
    const float values[] = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
    content.append(reinterpret_cast<const char*>(values), sizeof values);
    const SafeTensors file = files.open(content);
    float read[2];
    file.read(file.tensors().at(0), std::as_writable_bytes(std::span(read)));
    CHECK(std::memcmp(read, values, sizeof values) == 0);
  }
}

TEST_CASE("R18: a file without tensors is a file", "[model]") {
  Files files;
  const SafeTensors file = files.open(with_header("{}"));
  CHECK(file.tensors().empty());
  CHECK(file.find("") == nullptr);
}

TEST_CASE("every truncation is rejected", "[model]") {
  Files files;
  const std::string whole = with_header(R"({"__metadata__":{"format":"pt"},"a":)" + tensor("F16", "[3]", "[0,6]") +
                                            ",\"b\":" + tensor("F32", "[2,1]", "[6,14]") + "}",
                                        14);
  REQUIRE(files.open(whole).tensors().size() == 2);
  for (std::size_t size = 0; size < whole.size(); ++size) files.check_refused(whole.substr(0, size), {});
}

TEST_CASE("every flipped bit is rejected or harmless", "[model]") {
  Files files;
  const std::string whole = with_header(R"({"__metadata__":{"format":"pt"},"a":)" + tensor("F16", "[3]", "[0,6]") +
                                            ",\"b\":" + tensor("F32", "[2,1]", "[6,14]") + "}",
                                        14);
  std::size_t refused = 0, loaded = 0, sum = 0;
  for (std::size_t i = 0; i + 14 < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string broken = whole;
      broken[i] = static_cast<char>(broken[i] ^ (1 << bit));
      const std::string message = error_of([&] {
        std::size_t total = 0;
        const SafeTensors& file = files.open(broken);
        for (const StoredTensor& t : file.tensors()) {
          for (const std::byte b : file.read(t)) sum += static_cast<std::size_t>(b);  // other bytes are not 0
          total += t.size;
        }
        CHECK(total == 14);
        ++loaded;
      });
      if (message == "(no error)") continue;
      ++refused;
      INFO(message);
      REQUIRE(says(message, {"safetensors"}));
    }
  }
  CHECK(sum == 0);
  CHECK(loaded > 10);  // for example in names
  CHECK(refused > 5 * loaded);
}

TEST_CASE("a large header takes linear time", "[model]") {
  Files files;
  std::string header = "{";
  constexpr int count = 100'000;
  for (int i = 0; i < count; ++i) {
    header += (i ? ",\"" : "\"") + std::to_string(i) +
              "\":" + tensor("U8", "[1]", "[" + std::to_string(i) + "," + std::to_string(i + 1) + "]");
  }
  const auto start = std::chrono::steady_clock::now();
  const SafeTensors file = files.open(with_header(header + "}", count));
  std::size_t found = 0;
  for (const StoredTensor& t : file.tensors()) found += file.find(t.name) == &t;
  CHECK(found == count);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 20);  // a fraction of a second; anything quadratic takes minutes
}

TEST_CASE("tensors live as long as any copy of the file", "[model]") {
  Files files;
  std::optional<SafeTensors> first = SafeTensors::open(files.write(one_tensor(tensor("U8", "[4]", "[0,4]"))));
  const StoredTensor* x = first->find("x");
  const SafeTensors second = *first;
  first.reset();
  CHECK(second.find("x") == x);
  CHECK(second.read(*x) == std::vector<std::byte>(4));
  std::vector<std::byte> part(3);
  second.read(*x, part, 1);
  CHECK_THROWS_AS(second.read(*x, part, 2), InternalError);
  CHECK_THROWS_AS(second.read(*x, part, 5), InternalError);
}

TEST_CASE("a written file can be read again", "[model]") {
  const TempDir folder;
  const fs::path path = folder / "out.safetensors";
  const std::string half = "abcdef", full = "12345678", nibbles = "x";
  const TensorBytes tensors[] = {
      {"half \"quoted\"\n\xc3\xa4", StoredType::f16, {3}, bytes_of(half)},
      {"", StoredType::f4, {2, 1}, bytes_of(nibbles)},
      {"full", StoredType::f32, {2, 1}, bytes_of(full)},
      {"none", StoredType::u64, {0, 5}, {}},
      {"scalar", StoredType::f64, {}, bytes_of(full)},
  };
  write_safetensors(path, tensors);
  {
    const SafeTensors file = SafeTensors::open(path);
    CHECK(file.tensors().size() == 5);
    for (const TensorBytes& t : tensors) {
      const StoredTensor* read = file.find(t.name);
      REQUIRE(read);
      CHECK(read->type == t.type);
      CHECK(read->shape == t.shape);
      CHECK(text_of(file.read(*read)) == text_of(t.bytes));
      const unsigned alignment = std::max(8, bits(t.type)) / 8;
      CHECK(read->begin % alignment == 0);
    }
    write_safetensors(path, {});  // over the open file
    CHECK(text_of(file.read(*file.find("full"))) == full);
  }
  const SafeTensors empty = SafeTensors::open(path);
  CHECK(empty.tensors().empty());
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("entries of other writers survive a rewrite", "[model]") {
  const TempDir folder;
  for (const char* name :
       {"tests/data/nano-odd/model.safetensors", "tests/data/nano-odd/golden.safetensors",
        "tests/data/mini-192/golden.safetensors", "samples/models/storyteller-6m/model.safetensors"}) {
    const SafeTensors file = SafeTensors::open(fs::path(TESSERA_SOURCE_DIR) / name);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorBytes> tensors;
    for (const StoredTensor& t : file.tensors())
      tensors.push_back({t.name, t.type, t.shape, bytes.emplace_back(file.read(t))});
    write_safetensors(folder / "copy", tensors);
    const SafeTensors copy = SafeTensors::open(folder / "copy");
    REQUIRE(copy.tensors().size() == file.tensors().size());
    for (const StoredTensor& t : file.tensors()) {
      const StoredTensor* c = copy.find(t.name);
      REQUIRE(c);
      CHECK(c->shape == t.shape);
      CHECK(copy.read(*c) == file.read(t));
    }
  }
}

TEST_CASE("a failed write leaves nothing behind", "[model]") {
  const TempDir folder;
  const fs::path path = folder / "out.safetensors";
  write_text(path, "before");
  const std::string four = "1234", big(1 << 20, 'x');
  const auto check_refused =
      [&](const fs::path& to, std::vector<TensorBytes> tensors, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { write_safetensors(to, tensors); });
    INFO(message);
    CHECK(says(message, parts));
    CHECK(says(message, {to.native()}));
    CHECK(read_text(path) == "before");
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  };
  const auto f32 = StoredType::f32;
  check_refused(path, {{"x", f32, {2}, bytes_of(four)}}, {"'x'", "4 bytes", "takes 8"});
  check_refused(path, {{"x", f32, {1}, bytes_of(four)}, {"x", f32, {1}, bytes_of(four)}}, {"'x'", "twice"});
  check_refused(path, {{"__metadata__", f32, {1}, bytes_of(four)}}, {"__metadata__"});
  check_refused(path, {{"\xff", f32, {1}, bytes_of(four)}}, {"UTF-8"});
  check_refused(path, {{"x", f32, {1ull << 63, 2}, {}}}, {"'x'", "too many"});
  check_refused(path, {{"x", StoredType::f4, {3}, bytes_of(four)}}, {"'x'", "whole bytes"});
  check_refused(path, {{"x", f32, std::vector<std::uint64_t>(65, 1), bytes_of(four)}}, {"'x'", "64"});
  check_refused(folder / "missing" / "x", {}, {"No such file"});
  check_refused(folder.path(), {}, {"directory"});

  // A full disk: it takes the same code path as a limit on the size of files.
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit small{1 << 16, old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const TensorBytes tensor{"x", StoredType::u8, {big.size()}, bytes_of(big)};
  const std::string message = error_of([&] { write_safetensors(path, {&tensor, 1}); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(says(message, {path.native(), "File too large"}));
  CHECK(read_text(path) == "before");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("several threads may write one file", "[model]") {
  const TempDir folder;
  const fs::path path = folder / "out.safetensors";
  std::vector<std::future<void>> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(std::async(std::launch::async, [&path, i] {
      const std::string data(10'000, static_cast<char>('a' + i));
      const TensorBytes tensor{"x", StoredType::u8, {data.size()}, bytes_of(data)};
      for (int k = 0; k < 10; ++k) write_safetensors(path, {&tensor, 1});
    }));
  }
  for (auto& writer : writers) writer.get();
  const SafeTensors file = SafeTensors::open(path);
  const std::string data = text_of(file.read(*file.find("x")));
  CHECK(data == std::string(10'000, data.at(0)));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

}  // namespace test_safetensors
