// The other side of each row: a program that does the same work another way, on the same device, in alternation with
// us.
//
// It answers each request with one line of JSON, and first sends {"name": "PyTorch 2.11.0"} unprompted:
//   {"do": "prepare", "op": ..., "type": ..., "shape": [...], "sets": n, "calls": n}  ->  {"peer": "how it computes"}
//     and, if it compiled something, "first_ms": what the first call took
//     the shape is followed by Row::details
//   {"do": "turn"}      ->  {"ms": as Workload::turn()}, or, of a row that it computes in several ways,
//                           {"ways": {"eager": {"ms": ...}, "compiled": {"failure": "why"}}}
//   {"do": "launched"}  ->  {"ms": as Workload::launched(), or null}
// and with {"error": "why"} where it cannot.
#pragma once
#include <map>

#include "common/child.hpp"
#include "common/row.hpp"

namespace tessera::internal::bench {

class Peer {
 public:
  /// Starts `program`, a Python script, for a device by its name. Throws Error with the reason if that peer is not
  /// available here, as do all other functions.
  Peer(const std::string& program, const Device& device);

  /// "PyTorch 2.11.0"
  const std::string& name() const { return name_; }
  struct Prepared {
    std::string way;                      ///< how it will compute the row: "torch.matmul"
    std::optional<double> first_ms = {};  ///< of the first call, compilation included
  };
  Prepared prepare(const Row& row, const Turns& turns);
  struct Way {
    std::optional<double> ms = {};
    std::string failure = {};  ///< why it has none
  };
  /// Ways of computing the row, by name; a single one has no name.
  std::map<std::string, Way> turn();
  std::optional<double> launched();

 private:
  Child child_;
  std::string name_;
};

}  // namespace tessera::internal::bench
