// A barrier of all CTAs of a persistent kernel: their arrivals in this launch so far, in global memory, and the number
// of them with which the barrier is complete.
struct GridBarrier {
  u32* arrivals;
  u32 expected;
};

// The head of a launch in the table of a persistent kernel; the parameters of the launch follow.
struct LaunchHead {
  int code;
  u32 tiles;
  template <class T>
  __device__ const T& parameters() const {
    return *reinterpret_cast<const T*>(this + 1);
  }
};
