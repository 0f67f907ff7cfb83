// Models that Hugging Face's tools have downloaded, found where those keep them. Nothing is downloaded here.
#pragma once
#include <filesystem>
#include <string>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Where huggingface_hub keeps what it downloads: $HF_HUB_CACHE, else hub in $HF_HOME, else huggingface/hub in
/// $XDG_CACHE_HOME or ~/.cache. What is empty counts as not set, and ~ is the home.
std::filesystem::path hub_cache();

/// The model folder that a user means by `name`. One of
/// - a folder, as it is;
/// - a folder of the hub's cache, models--ORGANISATION--NAME: the snapshot that its refs/main names;
/// - where there is no such folder, a name on the hub, "organisation/name" or "name", of which the cache holds a
///   snapshot.
/// Error, saying where it was looked for, if a name on the hub is in neither place, or a folder of the cache has no
/// such snapshot. What cannot be one is given back as it is, for whoever opens it to refuse.
std::filesystem::path find_model(const std::string& name);

}  // namespace internal
}  // namespace tessera
