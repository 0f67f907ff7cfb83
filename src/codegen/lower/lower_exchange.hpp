// What crosses threads through scratch memory: reductions, moves between layouts, and ops that permute elements.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// A value, of node `id`, in a layout: if it has another, written to scratch memory by those who hold it and read by
/// those who need it.
ValueId moved(Steps& steps, ValueId from, Id id, const Layout& layout);

/// The node's value, in its layout: what the first of those who hold copies of an element has of it.
void spread(Steps& steps, ValueId first, Id id);

/// A reduction.
void reduce(Steps& steps, Id id);
/// argmax, and beside it, unless there is none, the max of the same elements: they are looked at once.
void argmax(Steps& steps, Id id, Id max);
/// Sums of node `id` that lanes and warps have parts of are added up.
void add_replicas(Steps& steps, Id id, ValueId out, const Matmul& matmul);
/// cumsum and its like
void scan(Steps& steps, Id id);
/// reshape, permute, concat
void through_scratch(Steps& steps, Id id);
/// extract
void extract(Steps& steps, Id id);

/// A check, or a print, whose values go through scratch memory.
void tell(Steps& steps, Id id);

}  // namespace tessera::internal::lowering
