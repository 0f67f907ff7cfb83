// Work in a child process, so that a crash or an endless loop affects nothing else.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::internal::fuzz {

/// Runs `work` in a child of this process, which must have no other threads. Each line that `work` reports is passed to
/// `on_line` here. Returns how the child ended: empty if `work` returned; "it crashed: Segmentation fault"; "it threw:
/// ..."; "it hangs: 20 s without a sign of life".
std::string isolated(const std::function<void(const std::function<void(std::string_view line)>& say)>& work,
                     std::chrono::seconds silence, const std::function<void(std::string_view line)>& on_line);

}  // namespace tessera::internal::fuzz
