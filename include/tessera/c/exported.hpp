// The interface between a library that exports kernels and libtessera_c, which opens it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>

#include "tessera/graph/op.hpp"
#include "tessera/jit/executable.hpp"
#include "tessera/jit/version.hpp"

namespace tessera::internal {
namespace [[gnu::visibility("default")]] detail {

/// One kernel. `make` traces it; if that fails, it sets `failure` to the error, so that no exception leaves the
/// library.
struct ExportedKernel {
  const char* name;
  void (*make)(std::shared_ptr<const Executable>& made, std::string& failure);
  const ExportedKernel* next;
};

/// All kernels of a library. `made_with` is compared before anything else is read.
struct ExportedKernels {
  const char* made_with;
  const ExportedKernel* first;
};

/// The properties that must match on both sides: the version, the names of the ops, and the sizes of shared types.
inline std::string exported_layout() {
  std::uint64_t ops = 14695981039346656037u;  // FNV-1a
  for (const OpInfo& op : table::ops)
    for (const char c : op.name) ops = (ops ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::string text = std::string(version()) + ", ops " + std::to_string(ops) + ", bytes";
  for (const std::size_t bytes :
       {sizeof(Executable), sizeof(Graph), sizeof(Node), sizeof(Region), sizeof(Argument),
        sizeof(ElementInfo), sizeof(std::string), std::size(element_table)})
    text += " " + std::to_string(bytes);
  return text;
}

}  // namespace detail
}  // namespace tessera::internal
