// Finds models that Hugging Face's tools have downloaded. Nothing is downloaded here.
#pragma once
#include <filesystem>
#include <string>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The cache folder of huggingface_hub: $HF_HUB_CACHE, else hub in $HF_HOME, else huggingface/hub in $XDG_CACHE_HOME or
/// ~/.cache. An empty variable counts as unset; ~ is the home folder.
std::filesystem::path hub_cache();

/// The model folder that `name` refers to. One of
/// - a folder, returned unchanged;
/// - a folder of the hub's cache, models--ORGANIZATION--NAME: the snapshot that its refs/main names;
/// - if there is no such folder, a name on the hub, "organization/name" or "name", of which the cache holds a
///   snapshot.
/// Error that lists the places searched, if a name on the hub is in neither place, or if a folder of the cache has
/// no such snapshot. Other text is returned unchanged, and opening it will fail.
std::filesystem::path find_model(const std::string& name);

}  // namespace internal
}  // namespace tessera
