// An atomic operation that orders nothing else.
struct Relaxed {
  static constexpr bool acquires = false, releases = false;
};

// Accesses of the block behind it come behind what is released by the operation that it reads from.
struct Acquire {
  static constexpr bool acquires = true, releases = false;
};

// Accesses of the block ahead of it come ahead of what acquires what it writes.
struct Release {
  static constexpr bool acquires = false, releases = true;
};

// Both.
struct AcquireRelease {
  static constexpr bool acquires = true, releases = true;
};

// An operation is atomic, and in order, for threads of the block.
struct BlockScope {
  static constexpr int reach = 0;
};

// For all threads of the device.
struct DeviceScope {
  static constexpr int reach = 1;
};

// For those of other devices and the host as well.
struct SystemScope {
  static constexpr int reach = 2;
};
