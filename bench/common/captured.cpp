#include "common/captured.hpp"

#include "common/program.hpp"

namespace tessera::internal::bench {

Captured::Captured(const Device& device, const Turns& turns, Call call, Check check, Call launched)
    : stream_(device.new_stream()),
      turns_(turns),
      call_(std::move(call)),
      check_(std::move(check)),
      launched_(launched ? std::move(launched) : call_) {
  for (int set = 0; set < turns_.sets; ++set) call_(stream_, set);  // compiles, and reports launch errors immediately
  stream_.synchronize();
  graph_ = stream_.capture([&] {
    for (int i = 0; i < turns_.calls; ++i) call_(stream_, i % turns_.sets);
  });
}

double Captured::turn() {
  stream_.launch(*graph_);  // the first run after the peer's turn pays for the GPU's context switch
  const Event start = stream_.record();
  stream_.launch(*graph_);
  return stream_.record().milliseconds_since(start) / turns_.calls;
}

std::optional<double> Captured::launched() {
  const Stopwatch watch;
  for (int i = 0; i < turns_.calls; ++i) launched_(stream_, i % turns_.sets);
  stream_.synchronize();
  return watch.milliseconds() / turns_.calls;
}

}  // namespace tessera::internal::bench
