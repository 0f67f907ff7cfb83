// Work in a process of its own, so that what crashes or never ends takes nothing with it.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::internal::fuzz {

/// Runs `work` in a child of this process, which must have no other threads. Each line that `work` says reaches
/// `on_line` here. Returns what ended the child: empty if `work` returned; "it crashed: Segmentation fault"; "it threw:
/// ..."; "it hangs: 20 s without a sign of life".
std::string isolated(const std::function<void(const std::function<void(std::string_view line)>& say)>& work,
                     std::chrono::seconds silence, const std::function<void(std::string_view line)>& on_line);

}  // namespace tessera::internal::fuzz
