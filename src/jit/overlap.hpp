// Do two tensors share memory?
#pragma once
#include "graph/argument.hpp"
#include "graph/graph.hpp"

namespace tessera {

/// Exact for tensors laid out alike, as parts of one larger tensor are; else two tensors overlap if the ranges of
/// addresses from their first to their last byte do. A tensor without elements overlaps nothing.
bool overlap(const Parameter& a_parameter, const Argument& a, const Parameter& b_parameter, const Argument& b);

}  // namespace tessera
