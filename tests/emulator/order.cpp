#include "emulator/order.hpp"

#include <fmt/format.h>

#include <utility>

namespace tessera::internal::emulator {

constexpr int warp = 32;

Order::Order(int threads) : warp_barriers_(index(threads / warp)), times_(index(threads), clock_) {}

Now Order::now(int thread) const {
  return {.event = {.time = time(thread), .thread = static_cast<std::uint16_t>(thread)},
          .thread = static_cast<std::uint16_t>(thread),
          .barrier = barrier_,
          .warp_barrier = warp_barriers_[index(thread / warp)],
          .knowledge = knowledge_.empty() ? nullptr : &knowledge_[index(thread)]};
}

Now Order::now(int thread, int unit) {
  of(thread);
  Now now = std::as_const(*this).now(thread);
  now.event.time = clock_;
  now.event.thread = static_cast<std::uint16_t>(unit);
  now.event.by_unit = true;
  return now;
}

void Order::barrier() {
  if (!knowledge_.empty()) knowledge_.assign(knowledge_.size(), all());
  barrier_ = ++clock_;
  for (std::uint32_t& time : warp_barriers_) time = barrier_;
}

Knowledge Order::all() const {
  Knowledge all;
  for (const Knowledge& one : knowledge_) all.join(one);
  return all;
}

void Order::warp_barrier(int index) {
  if (!knowledge_.empty()) {
    Knowledge all;
    for (int i = index * warp; i < (index + 1) * warp; ++i) all.join(release(i));
    for (int i = index * warp; i < (index + 1) * warp; ++i) of(i) = all;
  }
  warp_barriers_[Order::index(index)] = ++clock_;
}

const Knowledge& Order::release(int thread) {
  Knowledge& knowledge = of(thread);
  knowledge.known.raise(index(thread), time(thread));
  times_[index(thread)] = ++clock_;
  return knowledge;
}

Knowledge Order::publish(int thread, std::uint32_t block) {
  const Knowledge& knowledge = release(thread);
  Knowledge published;
  published.of_others = knowledge.of_others;
  Known& own = published.of_others[block] = knowledge;
  if (barrier_ > 0)
    for (std::size_t i = 0; i < times_.size(); ++i) own.known.raise(i, barrier_ - 1);
  return published;
}

void Order::acquire(int thread, const Knowledge& knowledge) { of(thread).join(knowledge); }

void Order::fence(int thread) {
  release(thread);
  Knowledge& knowledge = of(thread);
  if (barrier_ > 0)
    for (std::size_t i = 0; i < times_.size(); ++i) knowledge.known.raise(i, barrier_ - 1);
  knowledge.fenced.join(knowledge.known);
}

int Order::new_unit(std::string name) {
  units_.push_back(std::move(name));
  return static_cast<int>(times_.size() + units_.size()) - 1;
}

std::string Order::name(int who) const {
  const std::size_t threads = times_.size();
  return index(who) < threads ? fmt::format("thread {}", who) : units_[index(who) - threads];
}

Knowledge& Order::of(int thread) {
  if (knowledge_.empty()) {
    knowledge_.resize(times_.size());
    for (std::size_t i = 0; i < times_.size(); ++i)  // from the warp barriers so far
      for (std::size_t mate = i / warp * warp; mate < (i / warp + 1) * warp; ++mate)
        if (const std::uint32_t time = warp_barriers_[i / warp]) knowledge_[i].known.raise(mate, time - 1);
  }
  return knowledge_[index(thread)];
}

}  // namespace tessera::internal::emulator
