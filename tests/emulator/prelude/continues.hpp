// Called at the author's while_, whose line is `line`.
__device__ inline bool continues(bool condition, u32 round, int line = __builtin_LINE()) {
  if (round >= 1u << 20) emulated_fail("a while_ has not ended after 1048576 iterations", line);
  return condition;
}
