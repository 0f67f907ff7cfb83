// Values of a thread that may be asked for to its very end.
#pragma once

namespace tessera::internal {

/// The thread's own value of a type, made when it is first asked for and destroyed with the thread. The main thread runs
/// static destructors and what std::atexit was given after that: to these it is made anew, and stays.
template <class T>
T& of_this_thread() {
  thread_local T* value = nullptr;  // needs no destructor, so it is there to the end
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
