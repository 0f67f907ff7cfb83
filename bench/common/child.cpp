#include "common/child.hpp"

#include <fmt/format.h>

#include <system_error>

#include "common/join.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::bench {

Child::Child(const std::vector<std::string>& argv) try
    : name_(join(argv, " ")), process_(argv, {.talks = true, .reports_errors = true}) {
} catch (const std::system_error& error) {
  throw Error(error.what());
}

Child::~Child() { process_.how_it_ended(false); }

void Child::gone(std::string_view how) const { throw Error(fmt::format("'{}' {}", name_, how)); }

void Child::write_line(std::string_view line) {
  if (!process_.write(fmt::format("{}\n", line))) gone("does not read its input any more");
}

std::string Child::read_line(std::chrono::seconds patience) {
  if (std::optional<std::string> line = process_.read_line(patience)) return *std::move(line);
  if (process_.output_ended()) gone("ended without an answer");
  process_.how_it_ended(true);
  gone(fmt::format("said nothing for {} seconds, and was ended", patience.count()));
}

}  // namespace tessera::internal::bench
