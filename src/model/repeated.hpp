// A sequence of launches that often runs in the same memory, in one of several forms.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/jit/sequence.hpp"
#include "tessera/model/session.hpp"

namespace tessera::internal {

class Repeated {
 public:
  explicit Repeated(Sequence launches) : launches_(std::move(launches)) {}

  /// The form from the next run on, which is not `automatic`. A graph is recorded at the second run, of kernels that
  /// have run; a persistent kernel is made for the first one.
  void choose(DecodeForm form) {
    if (form == form_) return;
    form_ = form;
    made_.reset();
    report_ = {};
    tried_ = false;
  }

  void run(const Stream& stream) {
    if (!tried_ && (has_run_ || form_ == DecodeForm::persistent)) make();
    if (made_ && report_.form == DecodeForm::persistent)
      launch_persistent(stream);
    else if (made_)
      stream.launch(*made_);
    else
      launches_.run(stream);
    has_run_ = true;
  }
  /// Makes what the form needs, for kernels that have run. The device's stream may be in use by other threads, whose
  /// launches would be recorded, too. If that fails, the launches run one by one from the next run on.
  void make() {
    if (std::exchange(tried_, true)) return;
    report_.form = DecodeForm::plain;
    if (form_ == DecodeForm::persistent) try {
        made_ = launches_.persistent("decode_step");
        report_.form = form_;
        return;
      } catch (const PersistentRefused& error) {
        fall_back(error);
        if (!has_run_) return;
        tried_ = true;
      }
    if (form_ == DecodeForm::plain || launches_.device().shares_host_memory()) return;
    made_ = launches_.record(launches_.device().new_stream());
    report_.form = DecodeForm::graph;
  }
  DecodeForm form() const { return form_; }
  /// Have its kernels run, and is what its form needs made?
  bool is_ready() const { return has_run_ && tried_; }
  const Sequence& launches() const { return launches_; }
  const DecodeReport& report() const { return report_; }

 private:
  // The driver may refuse a cooperative launch. If anything else is wrong, plain launches report it.
  void launch_persistent(const Stream& stream) try { stream.launch(*made_); } catch (const PersistentRefused& error) {
    made_.reset();
    fall_back(error);
    launches_.run(stream);
  }
  void fall_back(const Error& error) {
    report_ = {DecodeForm::plain, error.what()};
    form_ = DecodeForm::graph;
    tried_ = false;
  }

  Sequence launches_;
  DecodeForm form_ = DecodeForm::graph;
  std::optional<CapturedGraph> made_;
  DecodeReport report_;
  bool has_run_ = false, tried_ = false;  // to make what the form needs
};

}  // namespace tessera::internal
