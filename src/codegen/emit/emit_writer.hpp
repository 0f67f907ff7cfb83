// Writes the text of a role, line by line, and records what it uses; the declarations before it are derived from that.
#pragma once
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emit/emit_index.hpp"
#include "codegen/plan/called.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// A number computed from a thread's lane and warp: "t0", declared once.
struct ThreadTerm {
  std::string name;
  std::vector<std::pair<Factor, int>> digits;
};

/// The address of an object in shared memory, where its offset has a name, or in the workspace.
IndexExpression place_in(bool workspace, std::int64_t offset, std::string_view object);
/// Bytes of a buffer's stage.
IndexExpression stage_bytes(const Plan& plan, BufferId id);
/// Declares the offsets and sizes in shared memory that a kernel's body names, in the order of the offsets.
std::string shared_offsets(const Plan& plan, std::string_view body);
/// Takes from a text what its writers noted of the steps behind its lines.
StepLines step_lines(std::string_view noted);
/// Returns true if `text` uses the variable `name`.
bool names(std::string_view text, std::string_view name);

struct Writer {
  Writer(const Plan& plan, const Phase& phase, const Role& role, int depth)
      : plan(plan), phase(phase), role(role), calls_functions(codegen::calls_functions(plan)), depth(depth) {}

  const Plan& plan;
  const Phase& phase;
  const Role& role;
  const bool calls_functions;  ///< long functions are called, not inlined

  std::string text;
  int depth;
  int temporaries = 0;
  std::set<std::string> taken;  ///< names of values and of temporaries
  std::vector<ThreadTerm> terms;
  struct {
    bool shared = false, thread = false, lane = false, warp = false, stamps = false;
    std::set<int> kept = {};     // tensors that are read with an L2 cache policy
  } uses;                        ///< of the kernel's own variables
  std::set<StorageId> storages;  ///< used by the text
  std::set<BufferId> buffers;
  std::set<PipelineId> pipelines;
  std::set<PipelineStateId> states;
  unsigned author_line = 0;
  const Step* step = nullptr;                                ///< lines that are written now spell it
  std::map<StorageId, std::string> inlined;                  ///< expressions of conditions
  std::map<std::string, IndexExpression, std::less<>> once;  ///< what the text names once, and so not at all
  const Loop* fetching = nullptr;  ///< the enclosing loop whose fetch is inside one of its matmuls
  IndexExpression fetched_if = IndexExpression::always();  ///< otherwise fetches read nothing
  struct {
    std::string directive, ops;
    int depth = -1;
  } last_comment;

  // --- text

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add_line(format, fmt::make_format_args(args...));
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t header = text.size();
    line(format, std::forward<Args>(args)...);
    ++depth;
    scopes_.push_back({order_.size(), header, text.size()});
  }
  /// A body of one statement loses its braces.
  void close();
  /// Returns true if the value is not declared yet; the caller then declares it.
  bool declares(StorageId id);
  /// Emits text that declares everything it uses, regardless of the declarations around it.
  template <class Inside>
  void apart(const Inside& inside) {
    const std::set<StorageId> around = std::exchange(declared_, {});
    inside();
    declared_ = around;
  }
  void unroll(bool unrolled);
  void unroll(const Sweep& sweep);
  void unroll_by(int factor);  ///< 0: full unroll
  /// Calls each(counter) in a fully unrolled loop of `count` iterations; a single iteration needs no loop.
  template <class Each>
  void unrolled(const char* counter, int count, const Each& each) {
    if (count == 1) return each(IndexExpression(0));
    unroll_by(0);
    open("for (int {0} = 0; {0} < {1}; ++{0}) {{", counter, count);
    each(IndexExpression::variable(counter, count));
    close();
  }

  // --- the kernel's own variables

  IndexExpression lane();
  IndexExpression warp();
  void use_memory(bool in_workspace);

  // --- objects of the plan, by name

  const Parameter& tensor(int parameter) const { return plan.tensors[static_cast<std::size_t>(parameter)]; }
  std::string name(ValueId value);
  const Buffer& buffer(BufferId id);
  IndexExpression extent(int parameter, int axis) const;
  IndexExpression extent(const TileAccess& access, int axis) const;
  IndexExpression stride(const TileAccess& access, int axis) const;  ///< in elements; 1 along the contiguous axis
  IndexExpression grid(int axis) const;                              ///< extent of the grid along an axis of the phase
  std::string scratch(ScratchId id, ElementType type);               ///< a pointer to elements of the type
  std::string temporary(const Term& term, std::string_view op);      ///< a new name for it

 private:
  std::set<StorageId> declared_;
  struct Scope {
    std::size_t declared;      // how many storages were declared before it
    std::size_t header, body;  // where they begin in the text
  };
  std::vector<StorageId> order_;  // declared storages, in order of declaration
  std::vector<Scope> scopes_;     // open ones

  void add_line(fmt::string_view format, fmt::format_args args);  // not a template: compiles faster
};

}  // namespace tessera::internal::codegen
