// GGUF files: what good ones contain, how each bad one is rejected, and the values of blocks.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

#include "model/unpack_kernels.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/model/gguf.hpp"
#include "tessera/model/safetensors.hpp"

namespace test_gguf {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const fs::path data = fs::path(TESSERA_SOURCE_DIR) / "tests/data/gguf";

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(std::string_view characters) {
  return raw<std::uint64_t>(characters.size()) + std::string(characters);
}
template <class T>
std::string entry(std::string_view key, std::uint32_t type, T value) {
  return text(key) + raw(type) + raw(value);
}
std::string entry_text(std::string_view key, std::string_view value) {
  return text(key) + raw<std::uint32_t>(8) + text(value);
}
std::string array(std::uint32_t type, std::uint64_t count) { return raw(type) + raw(count); }
std::string tensor(std::string_view name, const std::vector<std::uint64_t>& extents, std::uint32_t type,
                   std::uint64_t begin) {
  std::string described = text(name) + raw(static_cast<std::uint32_t>(extents.size()));
  for (const std::uint64_t extent : extents) described += raw(extent);
  return described + raw(type) + raw(begin);
}

constexpr std::uint32_t f32_type = 0, f16_type = 1, q4_0_type = 2, q8_0_type = 8, q5_k_type = 13;

/// A file with these entries and tensors, and `bytes` of data behind the padding.
std::string file_of(const std::vector<std::string>& entries, const std::vector<std::string>& tensors,
                    std::size_t bytes = 0, std::uint32_t version = 3, std::size_t alignment = 32) {
  std::string file = "GGUF" + raw(version) + raw<std::uint64_t>(tensors.size()) + raw<std::uint64_t>(entries.size());
  for (const std::string& part : entries) file += part;
  for (const std::string& part : tensors) file += part;
  file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
  for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(i + 1);
  return file;
}

class Files {
 public:
  fs::path write(const std::string& content) {
    write_text(path_, content);
    return path_;
  }
  const Gguf& open(const std::string& content) { return last_.emplace(Gguf::open(write(content))); }
  /// Rejected in one line that names the file and contains `parts`.
  void check_refused(const std::string& content, std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { open(content); });
    INFO("message: " << message);
    CHECK(says(message, parts));
    CHECK(says(message, {path_.native()}));
  }

 private:
  TempDir folder_;
  fs::path path_ = folder_ / "model.gguf";
  std::optional<Gguf> last_;
};

/// A file with each type of metadata, and two tensors.
std::string whole_file() {
  return file_of(
      {entry<std::uint8_t>("a.u8", 0, 200), entry<std::int8_t>("a.i8", 1, -3), entry<std::uint16_t>("a.u16", 2, 65535),
       entry<std::int16_t>("a.i16", 3, -30000), entry<std::uint32_t>("a.u32", 4, 4000000000u),
       entry<std::int32_t>("a.i32", 5, -7), entry<float>("a.f32", 6, 0.5f), entry<std::uint8_t>("a.bool", 7, 1),
       entry_text("a.text", "caf\xc3\xa9"), entry<std::uint64_t>("a.u64", 10, ~std::uint64_t{0}),
       entry<std::int64_t>("a.i64", 11, -5), entry<double>("a.f64", 12, 1e300),
       text("a.texts") + raw<std::uint32_t>(9) + array(8, 2) + text("x") + text(""),
       text("a.bools") + raw<std::uint32_t>(9) + array(7, 2) + std::string("\1\0", 2),
       text("a.nested") + raw<std::uint32_t>(9) + array(9, 2) + array(2, 1) + raw<std::uint16_t>(9) + array(6, 0)},
      {tensor("first", {3, 2}, f32_type, 0), tensor("second", {32, 2}, q8_0_type, 32)}, 32 + 68);
}

template <class T>
std::vector<T> values_of(const StoredFile& file, const StoredTensor& stored) {
  std::vector<T> values(stored.size / sizeof(T));
  file.read(stored, std::as_writable_bytes(std::span(values)));
  return values;
}

template <class Action>
double seconds_of(Action&& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("a GGUF file has metadata of each type, and tensors", "[model][gguf]") {
  Files files;
  const Gguf file = files.open(whole_file());
  CHECK(file.metadata().size() == 15);
  CHECK(file.integer("a.u8") == 200);
  CHECK(file.integer("a.i8") == -3);
  CHECK(file.integer("a.u16") == 65535);
  CHECK(file.integer("a.i16") == -30000);
  CHECK(file.integer("a.u32") == 4000000000);
  CHECK(file.integer("a.i32") == -7);
  CHECK(file.integer("a.i64") == -5);
  CHECK(std::get<double>(file.entry("a.f32")->value) == 0.5);
  CHECK(std::get<double>(file.entry("a.f64")->value) == 1e300);
  CHECK(std::get<std::uint64_t>(file.entry("a.u64")->value) == ~std::uint64_t{0});
  CHECK(file.flag("a.bool") == true);
  CHECK(*file.text("a.text") == "caf\xc3\xa9");
  CHECK(*file.texts("a.texts") == std::vector<std::string>{"x", ""});
  const auto& nested = std::get<std::vector<GgufArray>>(std::get<GgufArray>(file.entry("a.nested")->value).items);
  REQUIRE(nested.size() == 2);
  CHECK(std::get<std::vector<std::uint64_t>>(nested[0].items) == std::vector<std::uint64_t>{9});
  CHECK(nested[1].type == GgufType::f32);
  CHECK_FALSE(file.integer("a.none"));
  CHECK(file.text("a.none") == nullptr);
  CHECK(says(error_of([&] { file.integer("a.text"); }), {"model.gguf", "a.text", "string", "an integer"}));
  CHECK(says(error_of([&] { file.integer("a.u64"); }), {"a.u64", "18446744073709551615", "too large"}));
  CHECK(says(error_of([&] { file.text("a.u8"); }), {"a.u8", "u8", "a string"}));
  CHECK(says(error_of([&] { file.texts("a.bools"); }), {"a.bools", "array of bool", "an array of strings"}));
  CHECK(says(error_of([&] { file.numbers("a.f32"); }), {"a.f32", "an array of numbers"}));
  CHECK(says(error_of([&] { file.flag("a.i8"); }), {"a.i8", "a bool"}));

  REQUIRE(file.tensors().size() == 2);
  const StoredTensor& first = file.tensors()[0];
  CHECK(first.name == "first");
  CHECK(first.shape == std::vector<std::uint64_t>{2, 3});  // in the file, the other way around
  CHECK(first.size == 24);
  CHECK(values_of<std::uint8_t>(file, first)[0] == 1);
  const StoredTensor& second = *file.find("second");
  CHECK(second.type == StoredType::q8_0);
  CHECK(second.size == 68);
  CHECK(values_of<std::uint8_t>(file, second)[0] == 33);
}

TEST_CASE("GGUF: versions, byte orders and other files", "[model][gguf]") {
  Files files;
  CHECK(files.open(file_of({}, {}, 0, 2)).tensors().empty());
  files.check_refused(file_of({}, {}, 0, 1), {"version is 1", "2 and 3"});
  files.check_refused(file_of({}, {}, 0, 4), {"version is 4", "2 and 3"});
  files.check_refused(file_of({}, {}, 0, 0x03000000), {"byte order", "big-endian"});
  files.check_refused("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 548105171\n",
                      {"Git-LFS pointer"});
  files.check_refused("<!DOCTYPE html><html></html>", {"web page"});
  files.check_refused("something else", {"does not begin with 'GGUF'"});
  files.check_refused("GG", {"2 bytes"});
}

TEST_CASE("GGUF: counts and lengths that the file cannot hold", "[model][gguf]") {
  Files files;
  const std::string head = "GGUF" + raw<std::uint32_t>(3);
  for (const std::uint64_t count : {std::uint64_t{100}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    files.check_refused(head + raw(count) + raw<std::uint64_t>(0), {"list of tensors", std::to_string(count)});
    files.check_refused(head + raw<std::uint64_t>(0) + raw(count), {"metadata", std::to_string(count)});
    for (const std::uint32_t type : {0u, 7u, 8u, 9u, 12u})
      files.check_refused(file_of({text("k") + raw<std::uint32_t>(9) + array(type, count)}, {}),
                          {"'k'", std::to_string(count)});
  }
  for (const std::uint64_t size : {std::uint64_t{1000}, ~std::uint64_t{0}})
    files.check_refused(file_of({text("k") + raw<std::uint32_t>(8) + raw(size)}, {}), {"'k'"});
  files.check_refused(file_of({raw<std::uint64_t>(70000) + std::string(70000, 'x') + raw<std::uint32_t>(0) + "x"}, {}),
                      {"entry 0", "70000", "65535"});
  files.check_refused(file_of({}, {tensor(std::string(65, 'x'), {1}, f32_type, 0)}, 4), {"tensor 0", "65", "64"});
}

TEST_CASE("GGUF: metadata that breaks the rules", "[model][gguf]") {
  Files files;
  files.check_refused(file_of({entry<std::uint8_t>("k", 13, 0)}, {}), {"'k'", "type 13", "0 to 12"});
  files.check_refused(file_of({entry<std::uint8_t>("k", 7, 2)}, {}), {"'k'", "2", "0 or 1"});
  files.check_refused(file_of({text("k") + raw<std::uint32_t>(9) + array(13, 0)}, {}), {"'k'", "type 13"});
  files.check_refused(file_of({entry<std::uint8_t>("k", 0, 1), entry<std::uint8_t>("k", 0, 1)}, {}),
                      {"'k' occurs twice"});
  files.check_refused(file_of({entry<std::uint8_t>("", 0, 1)}, {}), {"entry 0", "empty"});
  files.check_refused(file_of({entry<std::uint8_t>("\xff", 0, 1)}, {}), {"not UTF-8"});
  std::string deep = text("k") + raw<std::uint32_t>(9);
  for (int i = 0; i < 100; ++i) deep += array(9, 1);
  files.check_refused(file_of({deep + array(0, 0)}, {}), {"'k'", "8 levels"});
  for (const std::uint32_t bad : {0u, 7u, 12u, 1u << 21})
    files.check_refused(file_of({entry<std::uint32_t>("general.alignment", 4, bad)}, {}), {"general.alignment"});
  files.check_refused(file_of({entry_text("general.alignment", "32")}, {}), {"general.alignment"});
  const Gguf file = files.open(file_of({entry<std::uint32_t>("general.alignment", 4, 64)},
                                       {tensor("a", {1}, f32_type, 0), tensor("b", {1}, f32_type, 64)}, 68, 3, 64));
  CHECK(values_of<std::uint8_t>(file, *file.find("b"))[0] == 65);
}

TEST_CASE("GGUF: tensors that break the rules", "[model][gguf]") {
  Files files;
  files.check_refused(file_of({}, {tensor("x", {1}, 99, 0)}, 4), {"'x'", "type 99", "Q4_K"});
  files.check_refused(file_of({}, {tensor("x", {256}, q5_k_type, 0)}, 200),
                      {"'x' is Q5_K", "supported are F32, F16, Q4_0"});
  files.check_refused(file_of({}, {tensor("x", {1, 1, 1, 1, 1}, f32_type, 0)}, 4), {"'x' has 5 extents"});
  files.check_refused(file_of({}, {tensor("x", {33}, q4_0_type, 0)}, 64), {"'x'", "[33]", "Q4_0", "multiple of 32"});
  files.check_refused(file_of({}, {tensor("x", {16, 2}, q8_0_type, 0)}, 64), {"'x'", "[2, 16]", "multiple of 32"});
  files.check_refused(file_of({}, {tensor("x", {1ull << 32, 1ull << 32}, f32_type, 0)}, 4),
                      {"'x'", "too many elements"});
  files.check_refused(file_of({}, {tensor("x", {1ull << 62}, f32_type, 0)}, 4), {"'x'", "too many elements"});
  files.check_refused(file_of({}, {tensor("x", {0, ~0ull, 2}, f32_type, 0)}, 4),
                      {"too many elements"});  // also beside 0
  CHECK(files.open(file_of({}, {tensor("x", {0, 5}, f32_type, 0)}, 4)).tensors()[0].size == 0);
  files.check_refused(file_of({}, {tensor("x", {1}, f32_type, 4)}, 8), {"'x' begins at 4", "alignment, 32"});
  files.check_refused(file_of({}, {tensor("x", {2}, f32_type, 0)}, 7), {"'x' has 8 bytes from 0 on", "7 bytes"});
  files.check_refused(file_of({}, {tensor("x", {1}, f32_type, 64)}, 4), {"'x' has 4 bytes from 64"});
  files.check_refused(file_of({}, {tensor("x", {1}, f32_type, ~0ull - 31)}, 4), {"'x' has 4 bytes"});
  files.check_refused(file_of({}, {tensor("a", {16}, f32_type, 0), tensor("b", {1}, f32_type, 32)}, 64),
                      {"'b' begins at 32, inside"});
  files.check_refused(file_of({}, {tensor("a", {1}, f32_type, 0), tensor("b", {1}, f32_type, 0)}, 64),
                      {"begins at 0, inside"});
  files.check_refused(file_of({}, {tensor("a", {1}, f32_type, 0), tensor("b", {1}, f32_type, 64)}, 96),
                      {"'b' begins at 64, and the previous one ends at 4", "shape is wrong"});
  files.check_refused(file_of({}, {tensor("a", {1}, f32_type, 0), tensor("a", {1}, f32_type, 32)}, 64),
                      {"'a' occurs twice"});
  files.check_refused(file_of({}, {tensor("\xc3", {1}, f32_type, 0)}, 64), {"not UTF-8"});
  CHECK(
      files.open(file_of({}, {tensor("b", {1}, f32_type, 32), tensor("a", {1}, f16_type, 0)}, 36)).tensors()[0].name ==
      "a");
}

TEST_CASE("GGUF: every truncation is rejected", "[model][gguf]") {
  Files files;
  const std::string whole = whole_file();
  REQUIRE(files.open(whole).tensors().size() == 2);
  for (std::size_t size = 0; size < whole.size(); ++size) files.check_refused(whole.substr(0, size), {});
}

TEST_CASE("GGUF: every flipped bit is rejected or harmless", "[model][gguf]") {
  Files files;
  const std::string whole = whole_file();
  std::size_t refused = 0, loaded = 0;
  for (std::size_t i = 0; i + 100 < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string broken = whole;
      broken[i] = static_cast<char>(broken[i] ^ (1 << bit));
      const std::string message = error_of([&] {
        const Gguf& file = files.open(broken);
        for (const StoredTensor& t : file.tensors()) CHECK(file.read(t).size() == t.size);
        ++loaded;
      });
      if (message == "(no error)") continue;
      ++refused;
      INFO(message);
      REQUIRE(says(message, {"model.gguf"}));
    }
  }
  CHECK(loaded > 100);  // for example in texts and numbers
  CHECK(refused > 500);
}

TEST_CASE("GGUF: a large header takes linear time", "[model][gguf]") {
  Files files;
  std::vector<std::string> entries{text("texts") + raw<std::uint32_t>(9) + array(8, 200'000)}, tensors;
  for (int i = 0; i < 200'000; ++i) entries[0] += text(std::to_string(i));
  for (std::uint64_t i = 0; i < 50'000; ++i) tensors.push_back(tensor(std::to_string(i), {1}, f32_type, 32 * i));
  std::size_t found = 0;
  CHECK(seconds_of([&] {
          const Gguf file = files.open(file_of(entries, tensors, 32 * 50'000));
          CHECK(file.texts("texts")->at(199'999) == "199999");
          for (const StoredTensor& t : file.tensors()) found += file.find(t.name) == &t;
        }) < 20);  // a fraction of a second; anything quadratic takes minutes
  CHECK(found == 50'000);
}

TEST_CASE("GGUF: a model in parts", "[model][gguf]") {
  const TempDir folder;
  const auto part = [&](std::uint16_t number, std::uint16_t count, int tensors, std::int32_t all) {
    std::vector<std::string> entries{entry("split.no", 2, number), entry("split.count", 2, count),
                                     entry("split.tensors.count", 5, all)};
    if (number == 0) entries.push_back(entry_text("general.architecture", "llama"));
    std::vector<std::string> described;
    for (int i = 0; i < tensors; ++i)
      described.push_back(
          tensor("t" + std::to_string(number) + std::to_string(i), {1}, f32_type, 32 * static_cast<std::uint64_t>(i)));
    return file_of(entries, described, 64);
  };
  const auto path = [&](const char* name) { return folder / name; };
  const fs::path first = path("m-00001-of-00003.gguf"), second = path("m-00002-of-00003.gguf"),
                 third = path("m-00003-of-00003.gguf");
  write_text(first, part(0, 3, 0, 3));
  write_text(second, part(1, 3, 2, 3));
  const std::string missing = error_of([&] { Gguf::open(first); });
  CHECK(says(missing, {third.native(), "no such file", "part 3 of 3"}));
  write_text(third, part(2, 3, 1, 3));
  for (const fs::path& any : {first, second, third}) {
    const Gguf file = Gguf::open(any);
    CHECK(file.tensors().size() == 3);
    CHECK(file.read(*file.find("t20")).size() == 4);
    CHECK(*file.text("general.architecture") == "llama");
  }
  write_text(third, part(1, 3, 1, 3));
  CHECK(says(error_of([&] { Gguf::open(first); }), {third.native(), "split.no", "part 3 of 3"}));
  write_text(third, part(2, 3, 2, 3));
  CHECK(says(error_of([&] { Gguf::open(first); }), {first.native(), "have 4 tensors", "split.tensors.count", "3"}));
  write_text(path("other.gguf"), part(0, 3, 0, 3));
  CHECK(says(error_of([&] { Gguf::open(path("other.gguf")); }), {"other.gguf", "part 1 of 3", "-00001-of-00003.gguf"}));
  write_text(first, part(5, 3, 0, 3));
  CHECK(says(error_of([&] { Gguf::open(first); }), {"split.no", "0 to 2"}));
}

TEST_CASE("blocks have the values of ggml's reference", "[model][gguf]") {
  const Gguf file = Gguf::open(data / "blocks.gguf");
  const Device device = test_device();
  for (const std::string_view name : {"q8_0", "q4_0", "q4_1", "q4_k", "q6_k"}) {
    INFO(name);
    const StoredTensor& packed = *file.find(name);
    const auto expected = values_of<float>(file, *file.find(std::string(name) + ".values"));
    const std::int64_t elements = elements_of_block(packed.type), size = bits(packed.type) / 8;
    const std::int64_t count = static_cast<std::int64_t>(expected.size()) / elements;
    const Tensor<u8, 2> bytes(device, {count, size});
    bytes.copy_from(values_of<std::uint8_t>(file, packed));
    const Tensor<f32, 2> values(device, {count, elements});
    const Tensor<bf16, 2> narrow(device, {count, elements});
    launch(device.stream(), kernels::unpack<f32>(packed.type, 4), bytes, values);
    launch(device.stream(), kernels::unpack<bf16>(packed.type, 4), bytes, narrow);
    const std::vector<float> found = values.to_vector();
    const std::vector<bf16> rounded = narrow.to_vector();
    std::size_t same = 0, finite = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      finite += std::isfinite(expected[i]);
      same += std::isnan(expected[i])
                  ? std::isnan(found[i])
                  : std::bit_cast<std::uint32_t>(found[i]) == std::bit_cast<std::uint32_t>(expected[i]);
      if (std::isfinite(expected[i])) REQUIRE(static_cast<float>(rounded[i]) == static_cast<float>(bf16(expected[i])));
    }
    CHECK(same == expected.size());
    CHECK(finite > expected.size() / 2);
  }
}

TEST_CASE("values become blocks of Q8_0 as in ggml's reference", "[model][gguf]") {
  const Gguf file = Gguf::open(data / "blocks.gguf");
  const Device device = test_device();
  const auto values = values_of<float>(file, *file.find("plain"));
  const auto count = static_cast<std::int64_t>(values.size()) / 32;
  const Tensor<f32, 2> plain(device, {count, 32});
  plain.copy_from(values);
  const Tensor<u8, 2> packed(device, {count, 34});
  launch(device.stream(), kernels::pack_q8_0(4), plain, packed);
  CHECK(packed.to_vector() == values_of<std::uint8_t>(file, *file.find("plain.q8_0")));
}

TEST_CASE("GGUF: a written file can be read again", "[model][gguf]") {
  Files files;
  const TempDir folder;
  const Gguf whole = files.open(whole_file());
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorBytes> tensors;
  for (const StoredTensor& t : whole.tensors())
    tensors.push_back({t.name, t.type, t.shape, bytes.emplace_back(whole.read(t))});
  write_gguf(folder / "copy.gguf", whole.metadata(), tensors);
  const Gguf copy = Gguf::open(folder / "copy.gguf");
  CHECK(copy.metadata() == whole.metadata());
  REQUIRE(copy.tensors().size() == 2);
  for (const StoredTensor& t : whole.tensors()) {
    CHECK(copy.find(t.name)->shape == t.shape);
    CHECK(copy.read(*copy.find(t.name)) == whole.read(t));
  }

  const auto refused = [&](const GgufEntry& bad, std::initializer_list<std::string_view> parts) {
    CHECK(says(error_of([&] { write_gguf(folder / "bad.gguf", std::span(&bad, 1), {}); }), parts));
    CHECK_FALSE(fs::exists(folder / "bad.gguf"));
  };
  refused({"k", GgufType::u8, std::uint64_t{256}}, {"bad.gguf", "'k'", "u8"});
  refused({"k", GgufType::u8, std::int64_t{1}}, {"'k'", "u8"});
  refused({"k", GgufType::string, true}, {"'k'", "string"});
  refused({"k", GgufType::array, std::string()}, {"'k'", "array"});
  refused({"", GgufType::boolean, true}, {"not a key"});
  const auto refused_tensor = [&](const TensorBytes& bad, std::initializer_list<std::string_view> parts) {
    CHECK(says(error_of([&] { write_gguf(folder / "bad.gguf", {}, std::span(&bad, 1)); }), parts));
  };
  refused_tensor({"t", StoredType::u8, {0}, {}}, {"'t' is U8", "does not have"});
  refused_tensor({"t", StoredType::f32, {1}, {}}, {"'t' has 0 bytes"});
  refused_tensor({"t", StoredType::q8_0, {16, 2}, bytes[0]}, {"'t'", "Q8_0"});
  refused_tensor({std::string(65, 'x'), StoredType::f32, {0}, {}}, {"64 bytes"});
  CHECK(says(error_of([&] {
               write_safetensors(folder / "bad", std::vector<TensorBytes>{{"t", StoredType::q8_0, {0, 32}, {}}});
             }),
             {"'t' is Q8_0", "does not have"}));
}

}  // namespace test_gguf
