// Does a while_ have one more round, behind so many? Elsewhere than on a GPU one without an end is found.
__device__ inline bool continues(bool condition, u32) { return condition; }
