// The program that tuning starts: it compiles and runs candidates for the process at its stdin (src/jit/tune/job.hpp).
#include "jit/tune/job.hpp"

int main() { return tessera::internal::run_tune_worker(); }
