// Models in the hub's cache: its location, how a name is resolved, and the message if it cannot be.
#include <stdlib.h>

#include <map>
#include <optional>

#include "support/catch.hpp"
#include "support/support.hpp"
#include "tessera/model/checkpoint.hpp"
#include "tessera/model/hub.hpp"

namespace test_hub {

using namespace tessera::internal;
namespace fs = std::filesystem;

namespace {

const fs::path nano = fs::path(TESSERA_SOURCE_DIR) / "tests/data/nano-odd";

/// The variables that locate the cache, all unset except the given ones; restored at the end.
class Environment {
 public:
  explicit Environment(std::initializer_list<std::pair<const char*, std::string>> set) {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : set) ::setenv(name, value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }

 private:
  std::map<const char*, std::optional<std::string>> before_;
};

/// A model as huggingface_hub downloads it: files are links to blobs.
fs::path add_snapshot(const fs::path& repository, const std::string& hash) {
  const fs::path snapshot = repository / "snapshots" / hash;
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  fs::create_directories(repository / "refs");
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
    const std::string blob = hash + "-" + name;
    fs::copy_file(nano / name, repository / "blobs" / blob);
    fs::create_symlink(fs::path("../../blobs") / blob, snapshot / name);
  }
  write_text(repository / "refs/main", hash);
  return snapshot;
}

}  // namespace

TEST_CASE("the hub's cache is where huggingface_hub puts it", "[model]") {
  using Set = std::initializer_list<std::pair<const char*, std::string>>;
  const auto cache = [](Set set) {
    const Environment environment(set);
    return hub_cache();
  };
  CHECK(cache({{"HOME", "/h"}}) == "/h/.cache/huggingface/hub");
  CHECK(cache({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}) == "/x/huggingface/hub");
  CHECK(cache({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/f"}}) == "/f/hub");
  CHECK(cache({{"HF_HOME", "/f"}, {"HUGGINGFACE_HUB_CACHE", "/o"}}) == "/o");
  CHECK(cache({{"HF_HOME", "/f"}, {"HUGGINGFACE_HUB_CACHE", "/o"}, {"HF_HUB_CACHE", "/c"}}) == "/c");
  CHECK(cache({{"HOME", "/h"}, {"HF_HUB_CACHE", ""}, {"HF_HOME", ""}, {"XDG_CACHE_HOME", ""}}) ==
        "/h/.cache/huggingface/hub");
  CHECK(cache({{"HOME", "/h"}, {"HF_HOME", "~/f"}}) == "/h/f/hub");
  CHECK(cache({{"HOME", "/h"}, {"HF_HUB_CACHE", "~other/f"}}) == "~other/f");
}

TEST_CASE("a model is found by its name on the hub, by its folder in the cache, and by its snapshot", "[model]") {
  const TempDir home;
  const Environment environment({{"HF_HUB_CACHE", home.path().native()}});
  add_snapshot(home / "models--org--name", "0123abcd");
  const fs::path main = add_snapshot(home / "models--org--name", "4567cdef");
  const fs::path bare = add_snapshot(home / "models--name", "89ab");
  CHECK(find_model("org/name") == main);
  CHECK(find_model("name") == bare);
  CHECK(find_model((home / "models--org--name").native()) == main);
  CHECK(find_model((home / "models--org--name/").native()) == home / "models--org--name/snapshots/4567cdef");
  CHECK(find_model(main.native()) == main);
  CHECK(find_model(nano.native()) == nano);
  CHECK(Checkpoint::open(find_model("org/name")).config.vocab == 101);
  write_text(home / "models--org--name/refs/main", "0123abcd\n");
  CHECK(find_model("org/name").filename() == "0123abcd");
}

TEST_CASE("a folder takes precedence over a hub name, and names that cannot be on the hub are left unchanged",
          "[model]") {
  const TempDir home, work;
  const Environment environment({{"HF_HUB_CACHE", home.path().native()}});
  add_snapshot(home / "models--org--name", "0123");
  const fs::path before = fs::current_path();
  fs::current_path(work.path());
  fs::create_directories("org/name");
  const fs::path found = find_model("org/name");
  write_text("file", "");
  const fs::path file = find_model("file");
  fs::current_path(before);
  CHECK(found == "org/name");
  CHECK(file == "file");
  for (const char* name : {"", "/", "a/b/c", "/org/name", "org/", "/name", "org//name", "./name", "../name", ".name",
                           "name.", "-name", "name-", "a--b", "a..b", "org name", "org/n\xc3\xa4me", "a\nb"}) {
    CHECK(find_model(name) == name);
  }
  CHECK(find_model(std::string(97, 'a')) == std::string(97, 'a'));
  // A model that has a folder of this name does not come from the cache.
  fs::create_directory(work / "snapshots");
  fs::copy_file(nano / "config.json", work / "config.json");
  CHECK(find_model(work.path().native()) == work.path());
}

TEST_CASE("an unresolved name reports where it was searched, and that nothing is downloaded", "[model]") {
  const TempDir home;
  const Environment environment({{"HF_HUB_CACHE", home.path().native()}});
  const fs::path repository = home / "models--org--name";
  const auto refused = [&](std::initializer_list<std::string_view> parts) {
    const std::string message = error_of([&] { find_model("org/name"); });
    INFO(message);
    CHECK(says(message, {repository.native()}));
    CHECK(says(message, parts));
  };
  refused({"'org/name': no such folder", "nothing is downloaded", "hf download org/name"});
  fs::create_directory(repository);
  refused({"refs/main': no such file", "no snapshot", "download the model again"});
  const fs::path snapshot = add_snapshot(repository, "0123");
  fs::remove(repository / "refs/main");
  refused({"refs/main': no such file", "specify a snapshot: '" + snapshot.native() + "'"});
  for (const std::string text : {" \n", "../0123", "/etc", "0123/../0123", "..", "a b"}) {
    write_text(repository / "refs/main", text);
    refused({"refs/main' holds '", "names no snapshot", snapshot.native()});
  }
  write_text(repository / "refs/main", "4567");
  refused({"refs/main' names snapshot 4567, which is not in", snapshot.native()});
  write_text(repository / "refs/main", std::string(256, 'a'));
  refused({"256 bytes"});
  // An interrupted download leaves dangling links.
  write_text(repository / "refs/main", "0123");
  fs::remove(repository / "blobs/0123-model.safetensors");
  const std::string message = error_of([&] { Checkpoint::open(find_model("org/name")); });
  CHECK(
      says(message, {(snapshot / "model.safetensors").native(), "no such file", "it is a broken link"}));
}

}  // namespace test_hub
