// The text of a role, line by line, and what it turned out to need: the declarations above it are made from that.
#pragma once
#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/emit/emit_index.hpp"
#include "codegen/plan/called.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// A number that follows from a thread's place: "t0", declared once.
struct ThreadTerm {
  std::string name;
  std::vector<std::pair<Factor, int>> digits;
};

/// A place in shared memory or the workspace.
IndexExpression place_in(bool workspace, std::int64_t offset);

struct Writer {
  Writer(const Plan& plan, const Phase& phase, const Role& role, int depth)
      : plan(plan), phase(phase), role(role), calls_functions(codegen::calls_functions(plan)), depth(depth) {}

  const Plan& plan;
  const Phase& phase;
  const Role& role;
  const bool calls_functions;  ///< those of many instructions

  std::string text;
  int depth;
  int temporaries = 0;
  std::vector<ThreadTerm> terms;
  struct {
    bool shared = false, thread = false, lane = false, warp = false;
    std::set<int> kept = {};  // tensors whose reads have a priority in the L2 cache
  } uses;                        ///< of the kernel's own variables
  std::set<StorageId> storages;  ///< that the text names
  std::set<BufferId> buffers;
  std::set<PipelineId> pipelines;
  std::set<PipelineStateId> states;
  unsigned author_line = 0;
  const Loop* fetching = nullptr;  ///< around the step at hand, one of whose products has the fetch within
  IndexExpression fetched_if = IndexExpression::always();  ///< else fetches read nothing
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
    line(format, std::forward<Args>(args)...);
    ++depth;
    scopes_.push_back(order_.size());
  }
  void close();
  /// True where the text has no declaration of it yet, and is to have one now.
  bool declares(StorageId id);
  /// Text that declares whatever it names, as if nothing around it did.
  template <class Inside>
  void apart(const Inside& inside) {
    const std::set<StorageId> around = std::exchange(declared_, {});
    inside();
    declared_ = around;
  }
  void unroll(bool unrolled);
  void unroll(const Sweep& sweep);
  void unroll_by(int factor);  ///< 0: all
  /// each(counter) in a loop of `factor`, all written out by the compiler; of one round there is none.
  template <class Each>
  void unrolled(const char* counter, int factor, const Each& each) {
    if (factor == 1) return each(IndexExpression(0));
    unroll_by(0);
    open("for (int {0} = 0; {0} < {1}; ++{0}) {{", counter, factor);
    each(IndexExpression::variable(counter, factor));
    close();
  }

  // --- the kernel's own variables

  IndexExpression lane();
  IndexExpression warp();
  void use_memory(bool in_workspace);

  // --- the plan's, by name

  const Parameter& tensor(int parameter) const { return plan.tensors[static_cast<std::size_t>(parameter)]; }
  std::string name(ValueId value);
  const Buffer& buffer(BufferId id);
  IndexExpression extent(int parameter, int axis) const;
  IndexExpression stride(int parameter, int axis) const;  ///< in elements; 1 along the axis of neighbours
  std::string scratch(ScratchId id, ElementType type);    ///< a pointer to elements of the type

 private:
  std::set<StorageId> declared_;
  std::vector<StorageId> order_;     // in which they were
  std::vector<std::size_t> scopes_;  // how many were, where each that is open began

  void add_line(fmt::string_view format, fmt::format_args args);  // once, not for each kind of line: that compiles long
};

}  // namespace tessera::internal::codegen
