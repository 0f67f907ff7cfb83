// Classes of launches that are harder for a kernel than dense, aligned tensors.
#pragma once
#include "codegen/target/variant.hpp"
#include "tessera/graph/graph.hpp"

/// Dense tensors with odd extents, aligned to their elements only.
inline tessera::internal::Variant ragged_variant(const tessera::internal::Graph& graph) {
  tessera::internal::Variant variant = tessera::internal::dense_variant(graph);
  for (std::size_t i = 0; i < variant.tensors.size(); ++i) {
    if (graph.parameters[i].access == tessera::internal::Access::scalar) continue;
    variant.tensors[i].alignment = static_cast<std::int8_t>(tessera::internal::info(graph.parameters[i].type).bytes);
    variant.tensors[i].row_alignment = variant.tensors[i].alignment;
    variant.tensors[i].tma_addressable = false;
  }
  return variant;
}

/// The same, with gaps between all elements, and huge.
inline tessera::internal::Variant strided_variant(const tessera::internal::Graph& graph) {
  tessera::internal::Variant variant = ragged_variant(graph);
  for (tessera::internal::TensorClass& tensor : variant.tensors) tensor.contiguous_axis = -1;
  variant.index64 = true;
  return variant;
}
