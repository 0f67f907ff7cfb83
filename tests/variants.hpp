// Classes of launches that ask more of a kernel than dense, aligned tensors do.
#pragma once
#include "codegen/variant.hpp"
#include "graph/graph.hpp"

/// Dense tensors that nothing divides, aligned to their elements.
inline tessera::Variant ragged_variant(const tessera::Graph& graph) {
  tessera::Variant variant = tessera::dense_variant(graph);
  for (std::size_t i = 0; i < variant.tensors.size(); ++i) {
    if (graph.parameters[i].access == tessera::Access::scalar) continue;
    variant.tensors[i].alignment = static_cast<std::int8_t>(tessera::info(graph.parameters[i].type).bytes);
    variant.tensors[i].granule = variant.tensors[i].alignment;
    variant.tensors[i].boxable = false;
  }
  return variant;
}

/// The same, with gaps between all elements, and huge.
inline tessera::Variant strided_variant(const tessera::Graph& graph) {
  tessera::Variant variant = ragged_variant(graph);
  for (tessera::TensorClass& tensor : variant.tensors) tensor.unit_axis = -1;
  variant.wide = true;
  return variant;
}
