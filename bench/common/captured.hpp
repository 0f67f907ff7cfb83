// A kernel's launches over rotating buffers, captured once.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

class Captured final : public Workload {
 public:
  using Call = std::function<void(const Stream&, int set)>;
  using Check = std::function<double()>;
  /// `call` is captured; `launched`, if it is given, does the same work in launched().
  Captured(const Device& device, const Turns& turns, Call call, Check check, Call launched = {});

  double turn() override;
  std::optional<double> launched() override;
  std::optional<double> error() override { return check_(); }

 private:
  Stream stream_;
  Turns turns_;
  Call call_;
  Check check_;
  Call launched_;
  std::optional<CapturedGraph> graph_;
};

}  // namespace tessera::internal::bench
