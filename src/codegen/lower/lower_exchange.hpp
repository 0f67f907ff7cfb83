// Exchanges between threads through scratch memory: reductions, layout conversions, and ops that permute elements.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// The value of node `id` in a layout. If it has another layout, threads that hold elements write them to scratch
/// memory and threads that need them read them.
ValueId moved(Steps& steps, ValueId from, Id id, const Layout& layout);

/// The node's value in its layout, from the first thread that holds each element.
void spread(Steps& steps, ValueId first, Id id);

/// Lowers a reduction.
void reduce(Steps& steps, Id id);
/// Lowers argmax and, unless `max` is no_id, the max of the same elements in the same sweep.
void argmax(Steps& steps, Id id, Id max);
/// Adds up the partial sums of node `id` that lanes and warps hold.
void add_replicas(Steps& steps, Id id, ValueId out, const PartialSums& partial);
/// Lowers cumsum and other scans.
void scan(Steps& steps, Id id);
/// Lowers reshape, permute and concat.
void through_scratch(Steps& steps, Id id);
/// Lowers extract.
void extract(Steps& steps, Id id);
/// Lowers take_along_axis.
void take_along_axis(Steps& steps, Id id);

/// Lowers a check, or a print, whose values go through scratch memory.
void tell(Steps& steps, Id id);

}  // namespace tessera::internal::lowering
