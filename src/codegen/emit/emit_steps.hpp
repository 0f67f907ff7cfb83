// How each kind of step is printed, in the file of its idea.
#pragma once
#include "codegen/emit/emit_tiles.hpp"

namespace tessera::internal::codegen {

/// emit.cpp: steps one after another, with the author's lines above them.
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

// emit_exchange.cpp: what goes across threads
void emit(Writer& w, const Reduce& reduce);
void emit(Writer& w, const Argmax& argmax);
void emit(Writer& w, const LaneReduce& replicas);
void emit(Writer& w, const CrossWarpReduce& partials);
void emit(Writer& w, const StoreWarpPartials& put);
void emit(Writer& w, const ReduceWarpPartials& take);
void emit(Writer& w, const StoreScratch& put);
void emit(Writer& w, const LoadScratch& get);

// emit_scan.cpp: sums along an axis
void emit(Writer& w, const Scan& scan);
void emit(Writer& w, const WriteScanTotals& put);
void emit(Writer& w, const AddScanPrefix& add);

// emit_sort.cpp: orders along an axis, and counts
void emit(Writer& w, const Sort& sort);
void emit(Writer& w, const Merge& merge);
void emit(Writer& w, const HistogramUpdate& count);
void emit(Writer& w, const HistogramReduce& add);

// emit_products.cpp
void emit(Writer& w, const Mma& mma);

// emit_control.cpp: loops and branches, and what orders steps
void emit(Writer& w, const Loop& loop);
void emit(Writer& w, const Branch& branch);
void emit(Writer& w, const HostReport& tell);
void emit(Writer& w, const Barrier& barrier);
void emit(Writer& w, const CpAsyncCommit& commit);
void emit(Writer& w, const CpAsyncWait& wait);

void emit(Writer& w, const ElectOne& elected);
void emit(Writer& w, const IfConsumerGroup& of_consumer_group);
void emit(Writer& w, const IfFirstSplit& of_part);
void emit(Writer& w, const ForEachPeer& each);
void emit(Writer& w, const TileLoop& loop);     // emit.cpp
void emit(Writer& w, const PrefetchBeforeWait& bring);  // emit.cpp
void emit(Writer& w, const IfNotPrefetched& unless);

// emit_roles.cpp: pipelines, the copy engine, wgmma, and clusters
void emit(Writer& w, const SplitKRange& share);
void emit(Writer& w, const StorePartial& put);
void emit(Writer& w, const ReducePartials& add);
void emit(Writer& w, const ClusterBarrier& barrier);
void emit(Writer& w, const SignalPartial& tell);
void emit(Writer& w, const WaitPartial& await);
void emit(Writer& w, const WarpBarrier& barrier);
void emit(Writer& w, const OrderedBarrier& turn);
void emit(Writer& w, const SetMaxNReg& set);
void emit(Writer& w, const PrefetchMap& prefetch);
void emit(Writer& w, const ZeroFillRows& clear);
void emit(Writer& w, const ZeroFillPastEnd& clear);
void emit(Writer& w, const InitPipeline& init);
void emit(Writer& w, const WaitEmpty& acquire);
void emit(Writer& w, const ArriveExpectTx& expect);
void emit(Writer& w, const TmaLoad& load);
void emit(Writer& w, const Arrive& arrive);
void emit(Writer& w, const WaitFull& wait);
void emit(Writer& w, const ArriveEmpty& release);
void emit(Writer& w, const AdvanceStage& advance);
void emit(Writer& w, const DeclareAccumulator& reserve);
void emit(Writer& w, const RegisterFence& fence);
void emit(Writer& w, const WgmmaFence& fence);
void emit(Writer& w, const Wgmma& matmul);
void emit(Writer& w, const WgmmaCommit& commit);
void emit(Writer& w, const WgmmaWait& wait);
void emit(Writer& w, const ProxyFence& fence);
void emit(Writer& w, const TmaStore& store);
void emit(Writer& w, const TmaStoreCommit& commit);
void emit(Writer& w, const TmaStoreWait& wait);
void emit(Writer& w, const NamedBarrier& barrier);
void emit(Writer& w, const GridDependencyWait& wait);
void emit(Writer& w, const GridDependencyTrigger& let);

/// Ahead of a loop's rounds, and behind them: what of the product that has the fetch within goes over rounds.
void begin_fetching(Writer& w, const Mma& mma);
void end_fetching(Writer& w, const Mma& mma);
/// The fetch of a later round, within a product.
void emit_fetch_ahead(Writer& w, const Loop& loop);
/// Where a buffer starts; of one with stages that of a loop's round.
std::string stage_of(Writer& w, BufferId id, LoopId loop);
/// The same of the stage at a cursor, if there is one.
std::string stage_at(Writer& w, BufferId id, PipelineStateId state);
/// The number of a team's barrier, of which there is one for each from `first` on; or that of the next team.
IndexExpression consumer_group_barrier(Writer& w, int first, bool next = false);
/// Threads of a role, for a function of the prelude that counts them from the block's first.
int threads_from_first(const Writer& w);

}  // namespace tessera::internal::codegen
