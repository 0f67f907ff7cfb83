// The other side of each row: a program that does the same work another way, on the same device, in turns with us.
//
// It is asked, and answers, one line of JSON at a time, unasked first with {"name": "PyTorch 2.11.0"}:
//   {"do": "prepare", "op": ..., "type": ..., "shape": [...], "sets": n, "calls": n}  ->  {"peer": "how it computes"}
//   {"do": "turn"}      ->  {"ms": as Workload::turn()}
//   {"do": "launched"}  ->  {"ms": as Workload::launched(), or null}
// and with {"error": "why"} where it cannot.
#pragma once
#include "common/child.hpp"
#include "common/row.hpp"

namespace tessera::internal::bench {

class Peer {
 public:
  /// Starts `program`, a Python script, for a device by its name. Throws Error with the reason if there is no such peer
  /// here. So do all others.
  Peer(const std::string& program, const Device& device);

  /// "PyTorch 2.11.0"
  const std::string& name() const { return name_; }
  /// How it will compute the row: "torch.matmul".
  std::string prepare(const Row& row, const Turns& turns);
  double turn();
  std::optional<double> launched();

 private:
  Child child_;
  std::string name_;
};

}  // namespace tessera::internal::bench
