// Shrinks a failing program, step by step, as long as it still fails.
#include <algorithm>
#include <set>

#include "fuzz/program.hpp"

namespace tessera::internal::fuzz {
namespace {

using Kind = Statement::Kind;

/// Statements by their index in the order of each_statement, to be changed.
void collect(Body& body, std::vector<std::pair<Body*, std::size_t>>& places) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    places.emplace_back(&body, i);
    collect(body[i].body, places);
  }
}
std::vector<std::pair<Body*, std::size_t>> places(Program& program) {
  std::vector<std::pair<Body*, std::size_t>> found;
  collect(program.body, found);
  return found;
}

class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& still_fails,
           const std::function<bool()>& time_left)
      : best_(std::move(program)), still_fails_(still_fails), time_left_(time_left) {}

  Program run() {
    for (bool smaller = true; smaller && time_left_();) {
      smaller = false;
      smaller |= remove_runs();
      smaller |= unwrap();
      smaller |= drop_hints();
      smaller |= replace_values();
      smaller |= make_constants();
      smaller |= shrink_counts();
      smaller |= shrink_shapes();
      smaller |= shrink_tensors();
      smaller |= remove_parameters();
    }
    return std::move(best_);
  }

 private:
  /// Accepts the candidate if it fails as before, preferably without its unused statements.
  bool accept(const Program& candidate) {
    for (const bool vars : {true, false}) {
      Program lean = candidate;
      remove_unused(lean, vars);
      if (take(lean)) return true;
    }
    return take(candidate);
  }
  /// Only if it is smaller without its unused statements: otherwise two values would replace each other forever.
  bool accept_smaller(const Program& candidate) {
    for (const bool vars : {true, false}) {
      Program lean = candidate;
      remove_unused(lean, vars);
      if (size(lean) < size(best_) && take(lean)) return true;
    }
    return false;
  }
  bool take(const Program& candidate) {
    if (!time_left_()) return false;
    try {
      trace(candidate);
    } catch (const std::exception&) {  // not well typed
      return false;
    }
    if (!still_fails_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  /// Values without uses, one after the other; Vars that are only assigned too, if requested.
  static void remove_unused(Program& program, bool vars) {
    for (bool removed = true; removed;) {
      std::set<Name> used, assigned;
      each_statement(program.body, [&](const Statement& s) {
        used.insert(s.from.begin(), s.from.end());
        if (s.kind == Kind::assign) assigned.insert(s.to);
      });
      const auto is_unused = [&](const Statement& s) {
        if (s.kind == Kind::assign) return vars && !used.contains(s.to);
        const bool control = s.kind == Kind::blocks || s.kind == Kind::loop || s.kind == Kind::branch;
        return !control && s.to != nothing && !used.contains(s.to) && !assigned.contains(s.to);
      };
      removed = false;
      const auto sweep = [&](const auto& self, Body& body) -> void {
        for (Statement& s : body) self(self, s.body);
        removed |= std::erase_if(body, is_unused) > 0;
      };
      sweep(sweep, program.body);
    }
  }

  /// Removes effects, assignments, loops and branches, many at once, then one by one.
  bool remove_runs() {
    bool smaller = false;
    const auto removable = [](const Statement& s) {
      return s.kind == Kind::assign || s.kind == Kind::loop || s.kind == Kind::branch || s.kind == Kind::blocks ||
             (s.kind == Kind::apply && s.to == nothing);
    };
    const auto count = [&] {
      std::size_t n = 0;
      each_statement(best_.body, [&](const Statement& s) { n += removable(s); });
      return n;
    };
    for (std::size_t run = std::max<std::size_t>(count() / 2, 1); run >= 1; run /= 2) {
      for (std::size_t first = 0; first < count() && time_left_();) {
        Program candidate = best_;
        std::size_t at = 0;
        const auto sweep = [&](auto&& self, Body& body) -> void {
          for (std::size_t i = 0; i < body.size();) {
            const std::size_t mine = removable(body[i]) ? at++ : first + run;
            if (mine >= first && mine < first + run) {
              std::size_t inner = 0;
              each_statement(body[i].body, [&](const Statement& s) { inner += removable(s); });
              at += inner;
              body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
              self(self, body[i].body);
              ++i;
            }
          }
        };
        sweep(sweep, candidate.body);
        if (accept(candidate))
          smaller = true;
        else
          first += run;
      }
    }
    return smaller;
  }

  /// Replaces a loop or branch by its body, with 0 for the counter.
  bool unwrap() {
    return each_place([](Program&, Body& body, std::size_t i) {
      if (body[i].kind != Kind::loop && body[i].kind != Kind::branch) return false;
      Statement outer = std::move(body[i]);
      Body inner = std::move(outer.body);
      if (outer.kind == Kind::loop)
        inner.insert(inner.begin(),
                     Statement{.op = Op::constant, .type = ElementType::i32, .to = outer.to, .attributes = {0}});
      body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
      body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), inner.begin(), inner.end());
      return true;
    });
  }

  /// Removes statements that no result depends on.
  bool drop_hints() {
    Program candidate = best_;
    candidate.hints.clear();
    bool smaller = !best_.hints.empty() && accept(candidate);
    smaller |= each_place([](Program&, Body& body, std::size_t i) {
      if (body[i].kind != Kind::loop || body[i].attributes.size() != 2) return false;
      body[i].attributes.clear();
      return true;
    });
    return smaller;
  }

  /// Replaces an operand by an earlier value of the same type and shape.
  bool replace_values() {
    bool smaller = false;
    for (std::size_t at = 0; at < places(best_).size() && time_left_(); ++at) {
      const std::size_t operands = statement(best_, at).from.size();
      for (std::size_t operand = 0; operand < operands; ++operand) {
        const Statement s = statement(best_, at);
        if (operand >= s.from.size() || s.kind == Kind::read || s.kind == Kind::blocks || (s.fixed >> operand & 1))
          continue;
        const Statement* const made = maker(best_, s.from[operand]);
        if (!made) continue;
        // First its own operands, then anything before it.
        std::vector<Name> simpler;
        for (const Name name : made->from)
          if (const Statement* other = maker(best_, name); other && alike(*other, *made)) simpler.push_back(name);
        each_statement(best_.body, [&](const Statement& other) {
          if (other.to != nothing && other.to < made->to && alike(other, *made) && simpler.size() < 6)
            simpler.push_back(other.to);
        });
        for (const Name name : simpler) {
          Program candidate = best_;
          statement(candidate, at).from[operand] = name;
          if (accept_smaller(candidate)) {
            smaller = true;
            break;
          }
        }
        if (at >= places(best_).size()) return smaller;
      }
    }
    return smaller;
  }

  /// Replaces a computed value by a constant.
  bool make_constants() {
    return each_place([](Program& candidate, Body& body, std::size_t i) {
      Statement& s = body[i];
      const bool value =
          (s.kind == Kind::apply && s.to != nothing && !is_view(s.op) && s.op != Op::constant) || s.kind == Kind::read;
      if (!value || is_fixed(candidate, s.to)) return false;
      const Cell one = with_host(host_type(s.type), []<class T>(T) { return cell_of(T(1)); });
      s = {.op = Op::constant, .type = s.type, .shape = s.shape, .to = s.to, .attributes = {encode(s.type, one)}};
      return true;
    });
  }

  /// Reduces loops to one or two iterations, and grids to as many CTAs.
  bool shrink_counts() {
    bool smaller = false;
    for (const std::int64_t count : {1, 2}) {
      for (const std::size_t axis : {0, 1, 2}) {
        smaller |= each_place([&](Program& candidate, Body& body, std::size_t i) {
          const Kind kind = body[i].kind;
          if ((kind != Kind::loop && kind != Kind::blocks) || axis >= body[i].from.size()) return false;
          const Statement* const made = maker(candidate, body[i].from[axis]);
          const bool constant = made && made->kind == Kind::apply && made->op == Op::constant;
          if (constant && made->attributes[0] <= count) return false;
          if (!constant && kind == Kind::blocks) return false;  // it depends on a tensor or a scalar
          const Name name = 1 + largest_name(candidate);
          body[i].from[axis] = name;
          const Statement fewer{.op = Op::constant, .type = ElementType::i32, .to = name, .attributes = {count}};
          body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), fewer);
          return true;
        });
      }
    }
    return smaller;
  }

  /// Replaces one extent of tiles by a smaller one, everywhere.
  bool shrink_shapes() {
    bool smaller = false;
    std::set<int> extents;
    each_statement(best_.body, [&](const Statement& s) { extents.insert(s.shape.begin(), s.shape.end()); });
    for (const int extent : extents) {
      for (const int shorter : {1, 2, extent / 2, extent - 1}) {
        if (shorter < 1 || shorter >= extent) continue;
        Program candidate = best_;
        for (auto [body, i] : places(candidate)) std::ranges::replace((*body)[i].shape, extent, shorter);
        if (accept(candidate)) {
          smaller = true;
          break;
        }
      }
    }
    return smaller;
  }

  /// Tensors: shorter, dense, of whole numbers; scalars nearer to 0.
  bool shrink_tensors() {
    bool smaller = false;
    const auto attempt = [&](std::size_t i, const auto& change) {
      Program candidate = best_;
      if (change(candidate.given[i])) smaller |= accept(candidate);
    };
    for (std::size_t i = 0; i < best_.given.size(); ++i) {
      if (best_.parameters[i].access == Access::scalar) {
        for (const double value : {0.0, 1.0, 2.0})
          attempt(i, [&](Given& g) { return std::abs(value) < std::abs(g.scalar) && (g.scalar = value, true); });
        continue;
      }
      attempt(i, [](Given& g) { return !g.strides.empty() && g.shares < 0 && (g.strides.clear(), true); });
      attempt(i, [](Given& g) { return g.offset != 0 && g.shares < 0 && (g.offset = 0, true); });
      attempt(i, [](Given& g) { return g.fill != Fill::whole && (g.fill = Fill::whole, true); });
      for (std::size_t axis = 0; axis < best_.given[i].extents.size(); ++axis) {
        for (const int way : {0, 1, 2}) {
          attempt(i, [&](Given& g) {
            std::int64_t& extent = g.extents[axis];
            const std::int64_t shorter = way == 0 ? 1 : way == 1 ? extent / 2 : extent - 1;
            return shorter >= 1 && shorter < extent && (extent = shorter, true);
          });
        }
      }
    }
    return smaller;
  }

  /// Removes unused parameters.
  bool remove_parameters() {
    bool smaller = false;
    for (std::size_t i = best_.parameters.size(); i-- > 0;) {
      // A list is removed as a whole.
      const int count = static_cast<int>(argument_size(best_.parameters, i)), first = static_cast<int>(i);
      const auto is_one = [&](std::int64_t name) { return name >= first && name < first + count; };
      bool used = count == std::ssize(best_.parameters) || (best_.parameters[i].list > 0 && count == 1);
      each_statement(best_.body, [&](const Statement& s) {
        used |= std::ranges::any_of(s.from, is_one) || (s.op == Op::member && s.attributes[0] == first);
      });
      for (const Given& given : best_.given) used |= is_one(given.shares);
      if (used) continue;
      Program candidate = best_;
      const auto erase = [&](auto& all) { all.erase(all.begin() + first, all.begin() + first + count); };
      erase(candidate.parameters);
      erase(candidate.given);
      for (Given& given : candidate.given) given.shares -= given.shares > first ? count : 0;
      const auto rename = [&](auto& name) { name -= name > first ? count : 0; };
      for (auto [body, at] : places(candidate)) {
        Statement& s = (*body)[at];
        rename(s.to);
        for (Name& name : s.from) rename(name);
        if (s.kind == Kind::apply && s.op == Op::member) rename(s.attributes[0]);
      }
      smaller |= accept(candidate);
    }
    return smaller;
  }

  /// Applies a change to each statement in turn, from the last; keeps changes after which the program still fails.
  template <class Change>
  bool each_place(const Change& change) {
    bool smaller = false;
    for (std::size_t at = places(best_).size(); at-- > 0 && time_left_();) {
      Program candidate = best_;
      const auto found = places(candidate);
      if (at >= found.size()) continue;
      if (change(candidate, *found[at].first, found[at].second)) smaller |= accept(candidate);
    }
    return smaller;
  }

  static Statement& statement(Program& program, std::size_t at) {
    const auto [body, i] = places(program)[at];
    return (*body)[i];
  }
  static const Statement* maker(const Program& program, Name name) {
    const Statement* found = nullptr;
    each_statement(program.body, [&](const Statement& s) {
      if (s.to == name && s.kind != Kind::assign && s.kind != Kind::declare) found = &s;
    });
    return found;
  }
  /// Is the program only defined because of this value?
  static bool is_fixed(const Program& program, Name name) {
    bool fixed = false;
    each_statement(program.body, [&](const Statement& s) {
      for (std::size_t i = 0; i < s.from.size(); ++i)
        fixed |= s.from[i] == name && (s.kind == Kind::blocks || (s.fixed >> i & 1));
    });
    return fixed;
  }
  static bool alike(const Statement& a, const Statement& b) {
    const auto view = [](const Statement& s) { return s.kind == Kind::apply && is_view(s.op); };
    const bool values =
        a.kind != Kind::assign && a.kind != Kind::declare && a.kind != Kind::branch && a.kind != Kind::blocks;
    return values && a.type == b.type && a.shape == b.shape && !view(a) && !view(b);
  }
  static std::size_t size(const Program& program) {
    std::size_t count = 0;
    each_statement(program.body, [&](const Statement&) { ++count; });
    return count;
  }
  static Name largest_name(const Program& program) {
    Name largest = static_cast<Name>(program.parameters.size());
    each_statement(program.body, [&](const Statement& s) {
      largest = std::max(largest, s.to + (s.kind == Kind::blocks ? static_cast<Name>(s.from.size()) : 0));
    });
    return largest;
  }

  Program best_;
  const std::function<bool(const Program&)>& still_fails_;
  const std::function<bool()>& time_left_;
};

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& still_fails,
               const std::function<bool()>& time_left) {
  return Shrinker(std::move(program), still_fails, time_left).run();
}

}  // namespace tessera::internal::fuzz
