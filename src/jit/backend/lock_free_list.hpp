// A list that only grows, for a few values that are each made once and then looked up all the time.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace tessera::internal {

/// Values by key. A lookup takes no lock, and values never move. Newer values are found sooner.
template <class Key, class Value>
class LockFreeList {
 public:
  LockFreeList() = default;
  LockFreeList(const LockFreeList&) = delete;
  LockFreeList& operator=(const LockFreeList&) = delete;
  ~LockFreeList() {
    for (const Node* node = head_; node;) node = std::unique_ptr<const Node>(node)->next;
  }

  bool has(const Key& key) const {
    const Node* const node = find(key);
    return node && node->is_made.load(std::memory_order_acquire);
  }

  /// Stands for the value of `key`, which may not have been made.
  const void* place(const Key& key) {
    const Node* const node = find(key);
    return node ? node : add(key);
  }

  /// The value for `key`, or a new one from make(). It is made once, however many threads ask for it, and values for
  /// other keys can be made meanwhile. If make() throws, the next caller tries again.
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
