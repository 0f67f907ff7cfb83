#include "codegen/prelude/identifier.hpp"

namespace tessera::internal {

std::string kernel_identifier(std::string_view name) {
  std::string text = "k_";
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    text += letter || (c >= '0' && c <= '9') ? c : '_';
  }
  return text;
}

}  // namespace tessera::internal
