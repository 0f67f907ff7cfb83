// Emits each kind of step; the implementations are grouped in files by topic.
#pragma once
#include "codegen/emit/emit_tiles.hpp"

namespace tessera::internal::codegen {

/// emit.cpp: a sequence of steps, preceded by comments with the author's lines
void emit(Writer& w, const Body& body);

// emit_compute.cpp
void emit(Writer& w, const Compute& compute);

// emit_memory.cpp: tensors, and tiles in shared memory
void emit(Writer& w, const Load& load);
void emit(Writer& w, const Store& store);
void emit(Writer& w, const Fetch& fetch);
void emit(Writer& w, const StoreShared& stage);
void emit(Writer& w, const LoadFragment& read);
void emit(Writer& w, const ZeroFill& clear);

// emit_atomic.cpp
void emit(Writer& w, const Atomic& atomic);

// emit_exchange.cpp: data exchange between threads
void emit(Writer& w, const Reduce& reduce);
void emit(Writer& w, const Argmax& argmax);
void emit(Writer& w, const LaneReduce& replicas);
void emit(Writer& w, const CrossWarpReduce& partials);
void emit(Writer& w, const StoreWarpPartials& put);
void emit(Writer& w, const ReduceWarpPartials& take);
void emit(Writer& w, const StoreScratch& put);
void emit(Writer& w, const LoadScratch& get);
void emit(Writer& w, const GatherScratch& gather);

// emit_scan.cpp: scans along an axis
void emit(Writer& w, const Scan& scan);
void emit(Writer& w, const WriteScanTotals& put);
void emit(Writer& w, const AddScanPrefix& add);

// emit_sort.cpp: sorting along an axis, and histograms
void emit(Writer& w, const Sort& sort);
void emit(Writer& w, const Merge& merge);
void emit(Writer& w, const HistogramUpdate& count);
void emit(Writer& w, const HistogramReduce& add);

// emit_matmul.cpp
void emit(Writer& w, const Mma& mma);

// emit_control.cpp: loops, branches and synchronization; HostReport is in emit_tell.cpp, the conditions by thread or
// group in emit_roles.cpp
void emit(Writer& w, const Loop& loop);
void emit(Writer& w, const Branch& branch);
void emit(Writer& w, const HostReport& tell);
void emit(Writer& w, const Barrier& barrier);
void emit(Writer& w, const CpAsyncCommit& commit);
void emit(Writer& w, const CpAsyncWait& wait);

void emit(Writer& w, const ElectOne& elected);
void emit(Writer& w, const IfConsumerGroup& of_consumer_group);
void emit(Writer& w, const IfFirstSplit& of_part);
void emit(Writer& w, const IfInGrid& in_grid);
void emit(Writer& w, const ForEachPeer& each);
void emit(Writer& w, const TileLoop& loop);     // emit.cpp
void emit(Writer& w, const PrefetchBeforeWait& bring);  // emit.cpp
void emit(Writer& w, const IfNotPrefetched& unless);

/// emit_roles.cpp: one of RoleKinds: pipelines, TMA, wgmma, clusters and split-K
void emit_role_step(Writer& w, const Action& action);

/// Text before and after the iterations of a loop whose fetch is inside the matmul: the fragments that are held from
/// one iteration to the next.
void begin_fetching(Writer& w, const Mma& mma);
void end_fetching(Writer& w, const Mma& mma);
/// The fetch for a later iteration, inside a matmul.
void emit_fetch_ahead(Writer& w, const Loop& loop);
/// Address of a buffer; of the stage of the loop's iteration if the buffer has stages.
std::string stage_of(Writer& w, BufferId id, LoopId loop);
/// Address of a buffer; of the stage of a pipeline state if there is one.
std::string stage_at(Writer& w, BufferId id, PipelineStateId state);
/// Id of a consumer group's named barrier, `first` being that of group 0; or of the next group's.
IndexExpression consumer_group_barrier(Writer& w, int first, bool next = false);
/// Number of threads of a role, for a function of the prelude that counts them from the CTA's first thread. Throws if
/// the role does not start there.
int threads_from_first(const Writer& w);

}  // namespace tessera::internal::codegen
