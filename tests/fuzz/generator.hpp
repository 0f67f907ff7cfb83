// Generates a random program. Statements ask for values of a type and a shape; the op that makes such a value is chosen
// at random and asks for its operands in turn. So everything is well typed by construction, and little is unused.
#pragma once
#include <optional>
#include <random>
#include <set>

#include "fuzz/program.hpp"

namespace tessera::internal::fuzz {

/// The types for counting and computing in programs.
inline constexpr ElementType i32 = ElementType::i32, f32 = ElementType::f32;

constexpr double comfortable = 1e4;  ///< reals are scaled down beyond this

class Generator {
 public:
  /// Each draw of a seed is another program.
  Generator(std::uint64_t seed, std::uint64_t draw);
  Program run();
  /// The number of elements that all CTAs of the program compute, each counted once.
  double elements() const;

 private:
  /// A value, or the content of a Var.
  struct Value {
    ElementType type{};
    Extents shape = {};
    double most = 0;   ///< bound on the magnitude of all elements, unless NaN and infinities are wanted
    bool used = true;  ///< by a statement whose purpose is not just to use it
  };
  /// Access to a tensor: a view, and which of its axes are bound to the CTA so that CTAs write separately.
  struct Place {
    Name view = nothing;
    int parameter = 0;
    ElementType type{};
    Access access{};
    bool shared = false;            ///< all CTAs change it by one atomic, and nothing else accesses it
    std::vector<Name> at = {};      ///< the tile index along a bound axis; `nothing` along a free one
    Extents tile = {};              ///< the tile's extent along a bound axis; 0 along a free one
    std::vector<int> extents = {};  ///< about those of the view
    Op by = Op::atomic_add;         ///< if shared: the atomic
    /// How its axes were made: unfold takes none that is sliced, flatten only the tensor's.
    enum class Cut : std::uint8_t { none, sliced, windows, window };
    std::vector<Cut> cut = {};
    bool transposed = false;  ///< its axes are not in the tensor's order
    Name base = nothing;      ///< the view of the whole tensor, if the tensor is in a list
    Name tensor() const { return base == nothing ? parameter : base; }
    bool readable() const { return !shared && access != Access::out; }
    bool writable() const { return !shared && access != Access::in; }
  };
  /// The part of an Out or InOut that belongs to each CTA.
  struct Owner {
    int parameter = 0;
    bool flat = false;           ///< one axis for all CTAs, numbered linearly
    std::vector<int> axes = {};  ///< of the tensor: one for each axis of the grid, or one in all
    Extents tile = {};           ///< along those
  };

  /// A view whose tile along the first axis begins 2^31 or more elements before the tensor, with some of the tensor's
  /// elements at the end of the tile: by rows that are far apart, or by large steps.
  struct FarView {
    int parameter = 0;
    Extents tile = {};
    int start = 0, step = 1;
    Name scalar = nothing;  ///< contains the start
  };

  /// Tensors that are one parameter of the kernel.
  struct List {
    int first = 0, tensors = 0;  ///< parameters
  };

  /// An operand of a matmul in a tensor, or a tensor with an operand's extents.
  struct Operand {
    int parameter = 0;
    std::vector<int> axes = {};  ///< by axis of the tensor: that of the operand; -1: a tile has one element of it
  };
  /// A matmul in a loop over k that sm_90a runs warp-specialized.
  struct WarpSpecializedMatmul {
    int m = 0, n = 0, k = 0, rounds = 0;  ///< of a tile
    ElementType factors{};
    Operand left = {}, right = {};
    std::vector<Operand> beside = {};   ///< may be read by the epilogue
    std::vector<Operand> of_left = {};  ///< further inputs of a computed left operand
    /// A second matmul of the loop uses one of the first one's operands transposed, from the same load: its side in the
    /// first matmul and in the second.
    struct Turned {
      bool left_first = true, left_then = true;
    };
    std::optional<Turned> transposed = {};
  };

  // Random choices. Each call is a statement of its own, since otherwise the compiler would choose the order.
  int between(int low, int high);
  bool chance(int percent) { return between(0, 99) < percent; }
  template <class C>
  const auto& one_of(const C& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<int>(std::size(choices)) - 1))];
  }
  template <class C>
  void shuffle(C& things) {  // the same on every machine
    for (std::size_t i = things.size(); i > 1; --i) std::swap(things[i - 1], things[rng_() % i]);
  }
  std::vector<int> shuffled(int count);  // 0, 1, ...
  int extent();                          // of a tile
  Extents shape(int low, int high);      // of a tile, of a rank from low to high
  Extents narrower(const Extents& to);   // one that broadcasts to it
  ElementType type();
  ElementType stored_type();

  // Parameters and grid (parameters.cpp).
  void make_parameters();
  void make_tensor(Access access);
  void add_tensor(Access access, ElementType type, Given given);
  Fill fill();
  void make_layout(Given& given, Access access, std::int64_t reach);
  void share_memory();
  void make_far_view();
  void reach_far();
  void make_list();
  void reach_into_list(Name number);
  void make_grid();
  void make_places();
  void view_of(Place place);  // one more, derived from a place
  bool unfold(Place& place);  // an axis, if possible
  bool flatten(Place& place);
  Name view(Op op, const Place& place, std::size_t rank, std::vector<std::int64_t> attributes);
  Name grid_extent(std::size_t axis);

  // Statements (generate.cpp).
  void hint_further();
  void statements(int depth, int count);
  void statement(int depth);
  void write(Op op, const Place& place, const Extents& tile, std::vector<Name> from);
  void store_to(const Place& place);
  void write_elements(Op op, const Place& place, const Extents& tile, Name value);
  static bool is_free(const Place& place);
  Op commuting_atomic(ElementType type);
  void scatter_to(const Place& place);
  void change(const Place& place);
  void some_effect();
  void append();
  void oversized();
  Name new_var(Name initial, double most);
  void declare_var();
  void assign(Name var, Name value);
  void assign_some_var(const std::vector<Name>& choices);
  void loop(int depth);
  void branch(int depth);
  void require();
  void check();
  void print();
  void use_leftovers(std::size_t first_value);
  Name loop_count();
  Statement loop_of(Name count);
  void within(Statement s, const std::function<void()>& fill);
  std::vector<Place> places_where(bool (*holds)(const Place&)) const;
  std::vector<Place> sources_of(const Extents& shape) const;
  Extents tile_for(const Place& place, int most_elements);
  Extents oversized_tile(const Place& place);

  // Matmuls (products.cpp).
  void product(int rows);
  void make_warp_specialized_matmul();
  Operand make_operand(Access access, ElementType type, const Extents& extents, std::vector<int> axes,
                       int along_last = 50);
  void make_tma_addressable(Given& given, std::size_t inner);
  void warp_specialized_matmul();
  void make_role_chain();
  void chain_by_roles();
  Name mask(Name rows, Name columns);
  void add_product(Name var, Name a, Name b);
  Name left_operand(const std::vector<Name>& at);
  Name load_operand(const Operand& operand, const Extents& tile, const std::vector<Name>& at);
  Name epilogue_of(Name sums, const std::vector<Name>& blocks);
  void store_sums(Name sums, const Place& place);

  // Values (values.cpp).
  Name want(ElementType type, const Extents& shape, int depth);
  Name reuse(ElementType type, const Extents& shape);
  Name make(ElementType type, const Extents& shape, int depth);
  Name cast_from_any(ElementType type, const Extents& shape, int depth);
  Name make_structural(ElementType type, const Extents& shape, int depth);
  Name make_order(Op op, ElementType type, const Extents& shape, int depth);
  Name make_taken(ElementType type, const Extents& shape, int depth);
  Name make_number(ElementType type, const Extents& shape, int depth);
  Name make_real(ElementType type, const Extents& shape, int depth);
  Name make_custom(ElementType type, const Extents& shape, int depth);
  Name make_bits(ElementType type, const Extents& shape, int depth);
  Name make_integer(ElementType type, const Extents& shape, int depth);
  Name make_logical(const Extents& shape, int depth);
  Name leaf(ElementType type, const Extents& shape);
  Name load(ElementType type, const Extents& shape);
  Name load_from(const Place& place, const Extents& shape, Name rows);
  Name gather(ElementType type, const Extents& shape);
  Name elements(ElementType type, const Extents& shape, int depth);
  void name_elements(Statement& s, const Place& place, int depth);
  std::int64_t padding_of(ElementType type);
  Name rows_for(int count, int rows);
  Name oversized_operand(ElementType type, const Extents& shape, bool is_whole);
  Name coordinate(int tiles);
  Name convert(Name value, ElementType type);
  Name adapt(Name value, ElementType type, const Extents& shape);
  Name index();  // a visible small i32 of rank 0; or nothing

  Name literal(ElementType type, double value, const Extents& shape = {});
  Name unary(Op op, Name a, double most);
  Name binary(Op op, Name a, Name b, double most);
  Name ternary(Op op, Name a, Name b, Name c, double most);
  Name reduction(Op op, Name a, int axis);
  Name reshape(Name a, const Extents& shape);
  static double largest_of(ElementType type);  // bound of generated values
  Name limit(Name value, double most);         // a real scaled by a power of two if it may be larger
  Extents common_shape(const std::vector<Name>& names) const;
  Name read(Name var);
  Name emit(Statement statement, double most);

  const Value& of(Name name) const { return values_[static_cast<std::size_t>(name)]; }
  Value& of(Name name) { return values_[static_cast<std::size_t>(name)]; }

  std::mt19937_64 rng_;
  std::mt19937_64 aside_;  ///< draws what was added later, so that each seed's program mostly stays the one from before
  Program program_;
  bool special_ = false;    ///< NaN and infinities are wanted
  bool exact_ = false;      ///< reals hold small integers, so that results are exact
  bool round_ = false;      ///< extents and strides are such that many elements are accessed at once
  bool large_ = false;      ///< matmul tiles have sizes that tensor cores support
  bool oversized_ = false;  ///< some tiles are too large for registers
  bool far_ = false;        ///< rows of a tensor, still to be made, are 2^31 elements or more apart
  bool by_roles_ = false;   ///< the program is a warp-specialized matmul, with little else
  bool by_chain_ = false;   ///< a fused matmul: the masked result of the first is the left operand of the second
  WarpSpecializedMatmul roles_;
  std::optional<FarView> far_view_;
  std::optional<List> list_;
  std::vector<int> palette_;  ///< preferred extents, so that shapes often agree
  std::vector<int> grid_;
  std::vector<Owner> owners_;
  int fuel_ = 0;  ///< statements still to be made

  std::vector<Value> values_;  ///< by name
  std::vector<Name> visible_, vars_, assignable_;
  std::vector<Place> places_;
  std::vector<double> memory_most_;  ///< by parameter: no element is larger
  std::set<int> written_;            ///< parameters
  Body* body_ = nullptr;             ///< statements are appended here
};

}  // namespace tessera::internal::fuzz
