// Answers that took a measurement, kept in the cache of compiled kernels: in memory and on disk.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace tessera::internal {

/// The answer to `question`, which names all that it depends on but for the options of kernels: kept, or from
/// `measure`, which is called once however many threads ask. Throws only what `measure` throws; the next caller then
/// tries again.
[[gnu::visibility("default")]] std::string kept_choice(std::string_view question,
                                                       const std::function<std::string()>& measure);

}  // namespace tessera::internal
