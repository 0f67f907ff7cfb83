// A call that returns when it is done, timed on the CPU.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

class Timed final : public Workload {
 public:
  using Call = std::function<void()>;
  /// Makes one call immediately. `error` is Workload::error(), or nothing.
  explicit Timed(Call call, std::function<double()> error = {});

  double turn() override;
  std::optional<double> launched() override { return {}; }
  std::optional<double> error() override;
  std::optional<double> cpu() override;

 private:
  Call call_;
  std::function<double()> error_;
  std::vector<double> cpu_;
};

}  // namespace tessera::internal::bench
