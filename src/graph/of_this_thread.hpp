// Thread-local values that remain usable until the thread has ended.
#pragma once

namespace tessera::internal {

/// The thread's own value of a type, created on first use and destroyed with the thread. The main thread runs static
/// destructors and std::atexit functions after that: for these it is created again, and never destroyed.
template <class T>
T& of_this_thread() {
  thread_local T* value = nullptr;  // needs no destructor, so it exists to the end
  if (!value) {
    struct Owner {
      ~Owner() {
        delete value;
        value = nullptr;
      }
    };
    value = new T;
    thread_local const Owner owner;
  }
  return *value;
}

}  // namespace tessera::internal
