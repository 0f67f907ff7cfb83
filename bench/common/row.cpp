#include "common/row.hpp"

#include <fmt/format.h>

#include "common/join.hpp"

namespace tessera::internal::bench {

std::string Row::name() const {
  return fmt::format("{}{}{}-{}-{}{}{}", group, group.empty() ? "" : "-", op, type, join(shape, "x"),
                     form.empty() ? "" : "-", form);
}

}  // namespace tessera::internal::bench
