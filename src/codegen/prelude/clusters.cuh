// Index of this CTA's cluster in the launch. The CTAs of a cluster have consecutive indices.
__device__ inline u32 cluster_index() { return block_index() / static_cast<u32>(cluster_size()); }

// Number of clusters in the launch.
__device__ inline u32 clusters() { return grid_size() / static_cast<u32>(cluster_size()); }

// All CTAs of the cluster, as a mask of multicast.
__device__ inline unsigned short all_of_cluster() { return static_cast<unsigned short>((1 << cluster_size()) - 1); }

// The CTAs of a cluster share `k_iterations`; returns the first one of CTA `rank`.
__device__ inline int share_of(int k_iterations, int rank) {
  const int each = k_iterations / cluster_size(), more = k_iterations % cluster_size();
  return each * rank + (rank < more ? rank : more);
}

// Stores a thread's partial accumulators where the same thread of another CTA finds them.
template <int threads, int count>
__device__ inline void put_part(float* part, const float (&sums)[count], int thread) {
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    const Vector<float, 4> four = {{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}};
    *reinterpret_cast<Vector<float, 4>*>(part + i * threads + thread * 4) = four;
  }
}

// Adds the partials of the cluster's other CTAs, one CTA after another, and so always in the same order. (Reading
// several CTAs at a time took up to a fifth longer on an H200.)
template <int threads, int count>
__device__ inline void add_parts(float (&sums)[count], const float* part, int thread) {
  constexpr int some = count % 16 ? 8 : count % 32 ? 16 : 32;  // loads in flight
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
