#include "codegen/target/stamps.hpp"

namespace tessera::internal {

std::string_view name(StampTable::Activity::Kind kind) {
  constexpr std::string_view names[] = {"wait", "load", "matmul", "compute", "store"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace tessera::internal
