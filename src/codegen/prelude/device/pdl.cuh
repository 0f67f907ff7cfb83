// Waits until the launches before this one have ended, and what they wrote is seen (PTX ISA, "griddepcontrol").
__device__ inline void griddep_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The next launch may begin where there is room, once all blocks of this one have come here or ended.
__device__ inline void griddep_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
