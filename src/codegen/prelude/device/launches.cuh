// Waits until the launches before this one have ended, and what they wrote is seen (PTX ISA, "griddepcontrol").
__device__ inline void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The next launch may begin where there is room, once all blocks of this one have come here or ended.
__device__ inline void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
