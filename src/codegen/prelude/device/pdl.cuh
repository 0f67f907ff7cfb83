// Waits until the preceding launches have completed and their writes are visible (PTX ISA, "griddepcontrol").
__device__ inline void griddep_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next launch begin, where resources are free, once all CTAs of this one have called this or ended.
__device__ inline void griddep_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
