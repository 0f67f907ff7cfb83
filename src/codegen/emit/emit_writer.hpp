// The text of a role, line by line, and what it turned out to need: the declarations above it are made from that.
#pragma once
#include <fmt/format.h>

#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/emit_index.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// A number that follows from a thread's place: "t0", declared once.
struct ThreadTerm {
  std::string name;
  std::vector<std::pair<Factor, int>> digits;
};

struct Writer {
  Writer(const Plan& plan, const Phase& phase, const Role& role, int depth)
      : plan(plan), phase(phase), role(role), depth(depth) {}

  const Plan& plan;
  const Phase& phase;
  const Role& role;

  std::string text;
  int depth;
  std::vector<std::set<StorageId>> scopes{1};  ///< what is declared so far
  int temporaries = 0;
  std::vector<ThreadTerm> terms;
  struct {
    bool shared = false, thread = false, lane = false, warp = false;
  } uses;                        ///< of the kernel's own variables
  std::set<StorageId> storages;  ///< that the text names
  std::set<BufferId> buffers;
  std::set<RingId> rings;
  std::set<CursorId> cursors;
  unsigned author_line = 0;
  struct {
    std::string directive, ops;
    int depth = -1;
  } last_comment;

  // --- text

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text.append(static_cast<std::size_t>(depth) * 2, ' ');
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth;
    scopes.push_back(scopes.back());
  }
  void close();
  void unroll(bool unrolled);
  void unroll_by(int rounds);  ///< 0: all

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
};

}  // namespace tessera::codegen
