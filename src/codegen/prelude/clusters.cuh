// The number of this block's cluster in the launch, whose blocks follow one another.
__device__ inline u32 cluster_index() { return block_index() / static_cast<u32>(cluster_size()); }

// Clusters in the launch.
__device__ inline u32 clusters() { return grid_size() / static_cast<u32>(cluster_size()); }

// Of `k_iterations` that the blocks of a cluster share, the first that falls to block `rank`.
__device__ inline int share_of(int k_iterations, int rank) {
  const int each = k_iterations / cluster_size(), more = k_iterations % cluster_size();
  return each * rank + (rank < more ? rank : more);
}

// A thread's sums, put where the same thread of another block finds them.
template <int threads, int count>
__device__ inline void put_part(float* part, const float (&sums)[count], int thread) {
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    const Vector<float, 4> four = {{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}};
    *reinterpret_cast<Vector<float, 4>*>(part + i * threads + thread * 4) = four;
  }
}

// Adds what the cluster's other blocks have put, one block after another: always in the same order. (To ask several
// blocks at a time took up to a fifth longer on an H200.)
template <int threads, int count>
__device__ inline void add_parts(float (&sums)[count], const float* part, int thread) {
  constexpr int some = count % 32 ? 16 : 32;  // under way at a time
  for (int rank = 1; rank < cluster_size(); ++rank) {
#pragma unroll
    for (int first = 0; first < count; first += some) {
      float others[some];
#pragma unroll
      for (int i = 0; i < some; i += 4) load_from_block(others + i, part + (first + i) * threads + thread * 4, rank);
#pragma unroll
      for (int i = 0; i < some; ++i) sums[first + i] += others[i];
    }
  }
}
