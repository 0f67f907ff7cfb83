#include "jit/options/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "jit/options/options.hpp"

namespace tessera::internal {
namespace {

spdlog::logger& logger() {
  static spdlog::logger& logger = *[] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_pattern("%n: %^%l%$: %v");
    auto* const made = new spdlog::logger("tessera", std::move(sink));
    made->set_level(spdlog::level::from_str(options().log));
    return made;
  }();
  return logger;
}

}  // namespace

void log_debug(std::string_view message) { logger().debug("{}", message); }
void log_warn(std::string_view message) { logger().warn("{}", message); }
bool logs_debug() { return logger().should_log(spdlog::level::debug); }

}  // namespace tessera::internal
