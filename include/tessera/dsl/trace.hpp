// The kernel being traced. The templates of expr.hpp and tile.hpp call only this.
#pragma once
#include <concepts>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/graph/builder.hpp"
#include "tessera/graph/cuda_text.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
template <class N, class... Others>
inline constexpr bool is_one_of = (std::same_as<N, Others> || ...);
/// An integer type that stands for a number, unlike bool and the character types.
template <class N>
inline constexpr bool is_integer =
    std::integral<N> && !is_one_of<std::remove_cv_t<N>, bool, char, wchar_t, char8_t, char16_t, char32_t>;
}  // namespace detail

/// A C++ number in a kernel: it takes the element type of the other operand.
class Number {
 public:
  template <std::integral N>
  constexpr Number(N value)
      : integer_(static_cast<std::int64_t>(value)), real_(static_cast<long double>(value)), integral_(true) {
    static_assert(detail::is_integer<N>, "tessera: a bool or a character is not a number here; write an integer");
    if constexpr (detail::is_integer<N>) representable_ = std::in_range<std::int64_t>(value);
  }
  template <std::floating_point N>
  constexpr Number(N value) : real_(static_cast<long double>(value)) {}
  constexpr bool integral() const { return integral_; }
  constexpr std::int64_t integer() const { return integer_; }
  constexpr long double real() const { return real_; }
  /// Does integer() hold the value? An unsigned one may be too large.
  constexpr bool representable() const { return representable_; }

 private:
  std::int64_t integer_ = 0;
  long double real_ = 0;
  bool integral_ = false, representable_ = true;
};

/// A count, an extent, an offset or a step: a C++ integer. A value that does not fit int becomes the nearest int, which
/// no tile has.
class Count {
 public:
  template <class N>
  constexpr Count(N value) {
    static_assert(detail::is_integer<N>,
                  "tessera: a start, an extent, a step or a count is a C++ integer here, not a real number or a value "
                  "that the kernel computes");
    if constexpr (detail::is_integer<N>)
      value_ = std::in_range<int>(value) ? static_cast<int>(value)
               : value < 0               ? std::numeric_limits<int>::min()
                                         : std::numeric_limits<int>::max();
  }
  constexpr operator int() const { return value_; }

 private:
  int value_ = 0;
};

/// An axis of a tile or a tensor, and the source location that named it.
struct Axis {
  int number = 0;
  Location location;
  template <class N>
  constexpr Axis(N axis, Location at = Location::current()) : location(at) {
    static_assert(detail::is_integer<N>,
                  "tessera: an axis is a C++ integer; for two values, maximum(a, b) is the larger and minimum(a, b) "
                  "the smaller");
    if constexpr (detail::is_integer<N>) number = static_cast<int>(axis);
  }
};

/// A value of the kernel being traced.
struct Handle {
  Id id = no_id;
  std::uint32_t trace = 0;  ///< identifies the trace that made it
};

class Trace {
 public:
  Trace(std::string name, std::vector<Parameter> parameters, Location location);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The trace of this thread; Error outside of a kernel.
  static Trace& current(Location location);
  static Trace* current_or_null();
  /// Error if this thread traces a kernel: a launch runs on the host now, while traced ops run later.
  static void refuse_launch(const std::string& kernel);

  /// Ends the trace: checks that every loop was closed, and returns the verified graph.
  Graph finish();

  /// The node behind a handle; Error if it belongs to another kernel or to a loop that is closed.
  Id use(Handle value, Location location) const;
  Handle apply(Op op, ElementType type, std::initializer_list<Handle> in, Location location);
  Handle apply(Op op, ElementType type, std::initializer_list<Handle> in, std::initializer_list<std::int64_t> attr,
               Location location, const Shape& shape = {});
  Handle apply(Op op, ElementType type, const std::vector<Handle>& in, const std::vector<std::int64_t>& attr,
               Location location, const Shape& shape = {});
  /// A number as a constant of a type; Error if it does not fit.
  Handle literal(ElementType type, Number value, Location location, const Shape& shape = {});
  std::int64_t literal_bits(ElementType type, Number value, Location location);
  /// Tiles broadcast to one shape.
  std::vector<Handle> stretched(Op op, std::vector<Handle> tiles, Location location);
  /// Normalizes an axis in [-rank, rank) to [0, rank); Error otherwise, whose text ends with `hint`.
  int axis(Axis axis, int rank, std::string_view what, std::string_view hint = "") const;
  /// Normalizes several axes, each named once, and sorts them in ascending order: a reduction combines outer axes
  /// within threads, and along rows, before lanes combine inner ones.
  std::vector<Axis> axes(std::span<const int> named, int rank, std::string_view what, Location location) const;
  /// Throws Error with the kernel and the location.
  [[noreturn]] void fail(Location location, std::string_view text) const { builder_.fail(location, text); }
  const Shape& shape(Handle value, Location location) const { return builder_.graph()[use(value, location)].shape; }
  ElementType type(Handle value, Location location) const { return builder_.graph()[use(value, location)].type; }
  /// The number, from 1, of the launch argument behind a tensor or a view.
  int argument_of(Handle view) const {
    const Graph& graph = builder_.graph();
    return argument_number(graph.parameters, static_cast<std::size_t>(view_parameter(graph, view.id)));
  }

  // Vars: numbered slots that hold the current value of a Var during tracing.
  struct VarSlot {
    std::size_t index;
    std::uint32_t trace;
  };
  VarSlot make_var(Handle value, Location location);
  void drop_var(VarSlot slot);
  void assign_var(VarSlot slot, Handle value, Location location);
  Handle var(VarSlot slot, Location location);
  /// The same without checks: for a Var of another kernel it returns a handle of that kernel.
  Handle snapshot(VarSlot slot);

  /// Begins a loop and returns its counter. Every Var that is used inside becomes a carried value; those that the body
  /// does not change are dropped later.
  Handle begin_loop(Handle count, Location location, int unroll = 0);
  /// Begins a branch or a repeat, which have no counter.
  void begin_branch(Handle condition, Location location);
  void begin_repeat(Handle condition, Location location);
  /// Ends the innermost region; a repeat continues where `again` holds.
  void end_region(Handle again = {});
  /// The loop was left by break or return, which cannot be traced.
  void abandon_loop(Location location);

  std::vector<Handle> blocks(const std::vector<Handle>& extents, Location location);
  /// Makes this a raw CUDA kernel with the given launch. A `shared_bytes` handle of no trace means none.
  void cuda(CudaText text, const std::vector<Handle>& blocks, const std::vector<Handle>& threads, Handle shared_bytes,
            const std::vector<Handle>& numbers, std::optional<std::size_t> host_numbers, Location location);
  void hints(const Hints& hints) { builder_.add_hints(hints); }
  void require(Handle condition, std::string text, Location location);
  /// `condition` is a pred of any shape.
  void check(Handle condition, std::string text, Location location);
  /// A custom elementwise function.
  Handle custom(const CustomFunction& function, const std::vector<Handle>& in, Location location) {
    return apply(Op::custom, function.type, in, {builder_.add_function(function, location)}, location);
  }
  void print(std::string text, std::vector<Handle> values, Location location);

 private:
  struct Slot {
    Id value = no_id;  // no_id: free
    RegionId region = 0;
    Location declared;
    std::size_t carriers = 0;  // the number of open loops and branches that carry it, or that were open when it was
                               // made
  };
  struct Carried {
    std::size_t slot;
    Id argument, initial;
  };
  struct Open {  // a loop, branch or repeat
    Id first;    // its count or condition
    Location location;
    RegionId region;
    std::vector<Carried> carried;
  };

  bool may_change(Id value, const Open& open, const std::vector<Id>& yields) const;
  Handle handle(Id id) const { return {id, serial_}; }
  RegionId begin_region(Op owner, Handle first, Location location);
  /// The value of a Var in the innermost region.
  Id current_value(Slot& slot);

  GraphBuilder builder_;
  std::uint32_t serial_;
  std::vector<Slot> slots_;
  std::set<std::size_t> free_slots_;
  std::map<std::pair<std::string_view, unsigned>, unsigned> vars_of_line_;
  std::vector<Open> open_;
  std::string broken_;
  int uncaught_;
};

/// Error if the kernel stores nothing to one of its Outs, which would keep its old contents.
void check_outs(const Graph& graph);

}  // namespace internal
}  // namespace tessera
