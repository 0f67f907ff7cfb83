// The atomic operation orders no other accesses.
struct Relaxed {
  static constexpr bool acquires = false, releases = false;
};

// Later accesses of the CTA happen after the release by the operation whose result this one reads.
struct Acquire {
  static constexpr bool acquires = true, releases = false;
};

// Earlier accesses of the CTA happen before an operation that acquires what this one writes.
struct Release {
  static constexpr bool acquires = false, releases = true;
};

// Both acquire and release.
struct AcquireRelease {
  static constexpr bool acquires = true, releases = true;
};

// The operation is atomic, and ordered, with respect to the threads of the CTA.
struct BlockScope {
  static constexpr int reach = 0;
};

// The same for all threads of the device.
struct DeviceScope {
  static constexpr int reach = 1;
};

// The same for all threads of the system: of this device, other devices and the host.
struct SystemScope {
  static constexpr int reach = 2;
};
