// Weights in several files: the same model as in one, and how inconsistent files are rejected.
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "tessera/model/safetensors.hpp"
#include "tessera/model/session.hpp"

namespace test_shards {

using namespace tessera::internal;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const fs::path mini = fs::path(TESSERA_SOURCE_DIR) / "tests/data/mini-192";
constexpr const char* index_name = "model.safetensors.index.json";

std::string shard_name(std::size_t i, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count);
}

/// mini-192 with its tensors distributed over so many files.
class Sharded {
 public:
  explicit Sharded(std::size_t count) : files_(count) {
    fs::copy_file(mini / "config.json", folder_ / "config.json");
    const SafeTensors whole = SafeTensors::open(mini / "model.safetensors");
    std::uint64_t total = 0;
    for (const StoredTensor& t : whole.tensors()) {
      const std::size_t file = bytes_.size() % count;
      files_[file].push_back({t.name, t.type, t.shape, bytes_.emplace_back(whole.read(t))});
      index["weight_map"][t.name] = shard_name(file, count);
      total += t.size;
    }
    index["metadata"]["total_size"] = total;
    for (std::size_t i = 0; i < count; ++i) write(i, files_[i]);
    write_index(index.dump(2));
  }

  const fs::path& path() const { return folder_.path(); }
  fs::path operator/(std::string_view name) const { return folder_ / name; }
  void write_index(std::string_view text) const { write_text(folder_ / index_name, text); }
  /// Replaces a file.
  void write(std::size_t i, std::span<const TensorBytes> tensors) const {
    write_safetensors(folder_ / shard_name(i, files_.size()), tensors);
  }
  const std::vector<TensorBytes>& tensors(std::size_t i) const { return files_[i]; }

  /// The error on opening it; it names the index.
  std::string refusal() const {
    const std::string message = error_of([&] { Checkpoint::open(path()); });
    CHECK(says(message, {(folder_ / index_name).native()}));
    return message;
  }

  json index;

 private:
  TempDir folder_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::vector<TensorBytes>> files_;
};

std::vector<float> logits(const fs::path& folder) {
  const Model model(test_device(), Checkpoint::open(folder));
  Session session(model, 1, 8);
  session.append(std::vector<std::vector<std::int32_t>>{{3, 1, 4, 1, 5, 9, 2, 6}});
  return session.all_logits();
}

}  // namespace

TEST_CASE("weights in several files give the logits of those in one, bit by bit", "[model]") {
  const std::vector<float> expected = logits(mini);
  for (const std::size_t count : {3, 28}) {
    const Sharded model(count);
    const Checkpoint opened = Checkpoint::open(model.path());
    CHECK(opened.file.path() == model / index_name);
    CHECK(opened.file.tensors().size() == 28);
    CHECK(opened.file.tensors().back().file == count - 1);
    CHECK(logits(model.path()) == expected);
  }
}

TEST_CASE("optional and additional keys of an index", "[model]") {
  const Sharded model(2);
  const auto opens = [&](const json& index) {
    model.write_index("\n " + index.dump() + "\n");
    CHECK(error_of([&] { Checkpoint::open(model.path()); }) == "(no error)");
  };
  json index = model.index;
  index["metadata"]["total_parameters"] = 951168.0;
  index["metadata"]["format"] = {{"weight_map", {{"total_size", -1}}}, {"list", {1, {2}, nullptr}}};
  index["other"] = {{"weight_map", 1}, {"metadata", {{"total_size", "none"}}}};
  index["another"] = {json::array(), true, 1.5};
  opens(index);
  index["metadata"].erase("total_size");
  opens(index);
  index.erase("metadata");
  opens(index);
  // Skipped values use no stack, however deeply nested.
  std::string deep = index.dump();
  const std::string open(1 << 20, '['), close(1 << 20, ']');
  model.write_index("{\"deep\":" + open + close + "," + deep.substr(1));
  CHECK(error_of([&] { Checkpoint::open(model.path()); }) == "(no error)");
}

TEST_CASE("an index that is not valid is rejected in one sentence", "[model]") {
  const Sharded model(2);
  const auto refused = [&](std::string_view text, std::string_view reason) {
    model.write_index(text);
    const std::string message = model.refusal();
    INFO(message);
    CHECK(says(message, {reason}));
  };
  refused("", "empty");
  refused("   ", "is not a JSON object");
  refused("[]", "is not a JSON object");
  refused("null", "is not a JSON object");
  refused("<!DOCTYPE html>", "is not a JSON object");
  refused("\xef\xbb\xbf{}", "is not a JSON object");
  refused("{", "is not JSON at byte");
  refused("{\"weight_map\":{\"a\":\"b\",}}", "is not JSON at byte 24");
  refused("{\"weight_map\":{\"a\":\"\xff\"}}", "is not JSON at byte 21");
  refused("{\"weight_map\":{}} {}", "is not JSON at byte 19");
  refused(std::string("{\"weight_map\":{}}\0", 18), "is not JSON at byte 18");
  refused("{\"other\":1e999}", "is not JSON at byte");
  refused("{\"other\":" + std::string(1 << 20, '['), "is not JSON at byte");
  refused("{}", "has no weight_map");
  refused("{\"metadata\":{\"total_size\":0}}", "has no weight_map");
  refused("{\"weight_map\":{}}", "holds no weights");
  for (const std::string_view value : {"null", "true", "5", "-5", "1.5", "'text'", "an array"}) {
    const std::string text = value == "'text'" ? "\"text\"" : value == "an array" ? "[{}]" : std::string(value);
    const std::string shown = value == "'text'" ? "the string 'text'" : std::string(value);
    refused("{\"weight_map\":" + text + "}", "has weight_map " + shown + ", where an object is expected");
    refused("{\"metadata\":" + text + "}", "has metadata " + shown + ", where an object is expected");
    if (value == "'text'") continue;
    refused("{\"weight_map\":{\"a\":" + text + "}}",
            "assigns tensor 'a' to " + shown + ", where the name of a file is expected");
  }
  refused("{\"weight_map\":{\"a\":{}}}", "assigns tensor 'a' to an object, where");
  refused("{\"weight_map\":{},\"weight_map\":{}}", "has two weight_map");
  refused("{\"metadata\":{},\"metadata\":{}}", "has two metadata");
  refused("{\"metadata\":{\"total_size\":1,\"total_size\":1}}", "has two total_size");
  refused(R"({"weight_map":{"a":"x","b":"x","a":"x"}})", "has tensor 'a' twice");
  refused(R"({"weight_map":{"a":"x","\u0061":"y"}})", "has tensor 'a' twice");
  model.write_index("{}");
  fs::resize_file(model / index_name, (std::uintmax_t{1} << 26) + 1);
  CHECK(says(model.refusal(), {"67108865 bytes", "more than the limit of 67108864 bytes"}));
  fs::remove(model / index_name);
  fs::create_directory(model / index_name);
  CHECK(says(model.refusal(), {"folder"}));
}

TEST_CASE("an index names files beside it, and nothing else", "[model]") {
  const Sharded model(2);
  const std::string name = model.tensors(1)[0].name;
  const auto refused = [&](const std::string& file, const std::string& shown) {
    json index = model.index;
    index["weight_map"][name] = file;
    model.write_index(index.dump());
    const std::string message = model.refusal();
    INFO(message);
    CHECK(says(message, {"assigns tensor '" + name + "' to " + shown, "is not the plain name of a file beside it"}));
  };
  const std::string shard = shard_name(1, 2);
  refused("", "''");
  refused(".", "'.'");
  refused("..", "'..'");
  for (const std::string before : {"/", "./", "../", "/etc/", "a/../", "..\\", "C:\\"})
    refused(before + shard, "'" + before + shard);
  refused(shard + "/", "'" + shard + "/'");
  refused(shard + std::string("\0", 1), "'" + shard + "\\x00'");
  refused("a\nb", "'a\\x0ab'");
  refused((model / shard).native(), "'/");
  refused(std::string(256, 'a'), "'aaa");
}

TEST_CASE("an index and its files must agree", "[model]") {
  const Sharded model(3);
  const std::string first = shard_name(0, 3), second = shard_name(1, 3);
  const TensorBytes one = model.tensors(0)[2], other = model.tensors(1)[3];
  const auto refused = [&](std::initializer_list<std::string_view> parts) {
    const std::string message = model.refusal();
    INFO(message);
    CHECK(says(message, parts));
  };
  const auto refused_index =
      [&](const std::function<void(json&)>& edit, std::initializer_list<std::string_view> parts) {
    json index = model.index;
    edit(index);
    model.write_index(index.dump());
    refused(parts);
    model.write_index(model.index.dump());
  };
  const auto refused_file = [&](std::vector<TensorBytes> tensors, std::initializer_list<std::string_view> parts) {
    model.write(0, tensors);
    refused(parts);
    model.write(0, model.tensors(0));
  };

  refused_index(
      [&](json& index) { index["weight_map"][one.name] = second; },
      {"do not agree", "'" + first + "' holds tensor '" + one.name + "', which the index assigns to '" + second + "'"});
  refused_index([&](json& index) { index["weight_map"].erase(one.name); },
                {"'" + first + "' holds tensor '" + one.name + "', which the index does not name"});
  refused_index([&](json& index) { index["weight_map"]["ghost"] = second; },
                {"'" + second + "' does not hold tensor 'ghost', which the index assigns to it"});
  std::vector<TensorBytes> tensors = model.tensors(0);
  tensors.push_back(other);  // as in the second file
  refused_file(tensors,
               {"'" + first + "' holds tensor '" + other.name + "', which the index assigns to '" + second + "'"});
  tensors.pop_back(), tensors.pop_back();
  refused_file(tensors,
               {"'" + first + "' does not hold tensor '" + model.tensors(0).back().name + "', which the index"});
  CHECK(error_of([&] { Checkpoint::open(model.path()); }) == "(no error)");

  // A file that lists a tensor twice.
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  const std::uint64_t size = header.size();
  write_text(model / "twice", std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + "xy");
  model.write_index(R"({"weight_map":{"a":"twice"}})");
  refused({"'twice' holds tensor 'a' twice"});
}

TEST_CASE("a total_size that is not the tensors' costs a warning", "[model]") {
  const Sharded model(2);
  const std::uint64_t total = model.index["metadata"]["total_size"];
  const auto warning = [&](const json& total_size) {
    json index = model.index;
    index["metadata"]["total_size"] = total_size;
    model.write_index(index.dump());
    return stderr_of([&] { CHECK(error_of([&] { Checkpoint::open(model.path()); }) == "(no error)"); });
  };
  CHECK(warning(total).empty());
  const auto warned = [&](const json& total_size, const std::string& shown) {
    const std::string text = warning(total_size);
    INFO(text);
    CHECK(says(text.substr(0, text.find('\n')),
               {(model / index_name).native(), "has total_size " + shown, fmt::format("have {} bytes", total)}));
  };
  warned(total + 1, std::to_string(total + 1));  // the files' total
  warned(static_cast<double>(total) - 0.5, std::to_string(total - 1) + ".5");
  warned(-1, "-1");
  warned("many", "the string 'many'");
  warned(json::array({1}), "an array");
}

TEST_CASE("a shard that is missing or corrupted is named", "[model]") {
  const Sharded model(3);
  const fs::path shard = model / shard_name(1, 3);
  const auto refused = [&](std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { Checkpoint::open(model.path()); });
    INFO(message);
    CHECK(says(message, {shard.native()}));
    CHECK(says(message, parts));
  };
  fs::resize_file(shard, fs::file_size(shard) - 100);
  refused({"100 bytes are missing at its end"});
  write_text(shard, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  refused({"git lfs pull"});
  fs::remove(shard);
  refused({"no such file", index_name, "download it, too"});
  fs::create_symlink("../nowhere", shard);
  refused({"no such file", index_name, "download it, too"});
  fs::remove(shard);
  fs::create_directory(shard);
  refused({"folder"});

  fs::remove(model / index_name);
  const std::string message = error_of([&] { Checkpoint::open(model.path()); });
  CHECK(says(message, {"model.safetensors': no such file", "in several files, but no model.safetensors.index.json"}));
}

TEST_CASE("errors in the weights of shards are reported for the index", "[model]") {
  const Sharded model(2);
  auto config = json::parse(read_text(mini / "config.json"));
  config["n_layer"] = 3;
  write_text(model / "config.json", config.dump());
  CHECK(says(model.refusal(), {"missing: h.2.ln_1.weight"}));
}

TEST_CASE("a single file takes precedence over an index, as with transformers", "[model]") {
  const Sharded model(2);
  fs::copy_file(mini / "model.safetensors", model / "model.safetensors");
  model.write_index("spoilt");
  const Checkpoint opened = Checkpoint::open(model.path());  // and a warning reports it
  CHECK(opened.file.path() == model / "model.safetensors");
}

}  // namespace test_shards
