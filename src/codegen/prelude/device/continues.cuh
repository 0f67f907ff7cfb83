// Condition of a while_ for another iteration, after the given number of them. Targets other than a GPU detect endless
// loops here.
__device__ inline bool continues(bool condition, u32) { return condition; }
