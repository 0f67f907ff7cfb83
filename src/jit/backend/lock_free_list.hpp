// A list that only grows: for the few things that each is made once and then looked for all the time.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace tessera::internal {

/// Values by key. Finding one takes no lock, and values stay where they are. Newer ones are found sooner.
template <class Key, class Value>
class LockFreeList {
 public:
  LockFreeList() = default;
  LockFreeList(const LockFreeList&) = delete;
  LockFreeList& operator=(const LockFreeList&) = delete;
  ~LockFreeList() {
    for (const Node* node = head_; node;) node = std::unique_ptr<const Node>(node)->next;
  }

  /// The value of `key`, or else the new one that make() returns. However many threads ask, it is made once, and values
  /// of other keys are made meanwhile; if make() throws, the next to ask tries again.
  template <class Make>
  const Value& find_or_make(const Key& key, const Make& make) {
    Node* node = find(key);
    if (!node) node = add(key);
    if (node->is_made.load(std::memory_order_acquire)) return *node->value;
    const std::lock_guard lock(node->making);
    if (!node->is_made.load(std::memory_order_relaxed)) {
      node->value.emplace(make());
      node->is_made.store(true, std::memory_order_release);
    }
    return *node->value;
  }

 private:
  struct Node {
    const Key key;
    Node* const next;
    std::atomic<bool> is_made = false;
    std::optional<Value> value = {};
    std::mutex making = {};
  };

  Node* find(const Key& key) const {
    for (Node* node = head_.load(std::memory_order_acquire); node; node = node->next)
      if (node->key == key) return node;
    return nullptr;
  }

  Node* add(const Key& key) {
    const std::lock_guard lock(adding_);
    if (Node* found = find(key)) return found;
    Node* added = new Node{key, head_.load(std::memory_order_relaxed)};
    head_.store(added, std::memory_order_release);
    return added;
  }

  std::atomic<Node*> head_ = nullptr;
  std::mutex adding_;
};

}  // namespace tessera::internal
