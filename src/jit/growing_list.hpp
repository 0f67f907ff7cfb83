// A list that only grows: for the few things that each is made once and then looked for all the time.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

namespace tessera {

/// Reading takes no lock, and elements stay where they are. Newer ones are found sooner.
template <class T>
class GrowingList {
 public:
  GrowingList() = default;
  GrowingList(const GrowingList&) = delete;
  GrowingList& operator=(const GrowingList&) = delete;
  ~GrowingList() {
    for (const Node* node = head_; node;) node = std::unique_ptr<const Node>(node)->next;
  }

  /// The element for which matches(element) holds, or else the new one that make() returns. However many threads ask,
  /// it is made once; if make() throws, the next to ask tries again.
  template <class Matches, class Make>
  const T& find_or_make(const Matches& matches, const Make& make) {
    if (const T* found = find(matches)) return *found;
    const std::lock_guard lock(making_);
    if (const T* found = find(matches)) return *found;
    const Node* made = new Node{make(), head_.load(std::memory_order_relaxed)};
    head_.store(made, std::memory_order_release);
    return made->value;
  }

 private:
  struct Node {
    T value;
    const Node* next;
  };

  template <class Matches>
  const T* find(const Matches& matches) const {
    for (const Node* node = head_.load(std::memory_order_acquire); node; node = node->next)
      if (matches(node->value)) return &node->value;
    return nullptr;
  }

  std::atomic<const Node*> head_ = nullptr;
  std::mutex making_;
};

}  // namespace tessera
