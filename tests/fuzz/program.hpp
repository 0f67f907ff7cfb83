// A random program as plain data: its launch arguments, and a tree of statements.
//
// Everything is named by a number: the parameters 0, 1, ..., then the results of statements: values, views, Vars. A
// value is an op of the graph with the graph's own attributes, so a program can represent the whole language.
#pragma once
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "fuzz/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::fuzz {

using Name = int;
using Extents = std::vector<int>;
inline int size_of(const Extents& shape) { return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()); }
inline constexpr Name nothing = -1;

struct Statement {
  enum class Kind : std::uint8_t {
    apply,    ///< to = op(from); an effect has no `to`
    blocks,   ///< to, to + 1, ... = blocks(from)
    declare,  ///< Var to = from
    assign,   ///< to, a Var, = from
    read,     ///< to = from, a Var
    loop,     ///< for (to : range(from)) body; with attribute 1 the same by a while_ and a Var of its own; with 0, n
              ///< unrolled
    branch,   ///< if_(from) body
  };
  Kind kind = Kind::apply;
  Op op{};
  ElementType type{};  ///< of the result; for an effect: of the tensor
  Extents shape = {};  ///< of the result
  Name to = nothing;
  std::vector<Name> from = {};
  std::vector<std::int64_t> attributes = {};  ///< the same as those of a graph node
  /// Bit i: the program is only defined because of operand i (CTAs write separately, loops end). Transformations of the
  /// program must keep it.
  std::uint32_t fixed = 0;
  std::vector<Statement> body = {};
};
using Body = std::vector<Statement>;

struct Program {
  std::uint64_t seed = 0;  ///< seeds the inputs, and is the number in its name
  std::vector<Parameter> parameters;
  std::vector<Given> given;
  std::vector<Hints> hints = {};
  Body body;
};

/// The program of a seed: the same on every machine.
Program generate(std::uint64_t seed);

/// Its graph, through the untyped calls that the language's templates make. Throws Error if it is not well typed.
Graph trace(const Program& program);

/// The text that a print in it prints.
std::string print_text(const Statement& print);

/// Its kernel in the language, as an author would write it: a lambda.
std::string print_kernel(const Program& program);
/// A whole test for it: a file of the corpus. `finding` becomes its first line.
std::string print_test(const Program& program, const std::string& finding);

/// A smaller program that still fails, searched for as long as `time_left` allows.
Program shrink(Program program, const std::function<bool(const Program&)>& still_fails,
               const std::function<bool()>& time_left);

/// Every statement, outer ones before nested ones.
template <class Visit>
void each_statement(const Body& body, const Visit& visit) {
  for (const Statement& statement : body) {
    visit(statement);
    each_statement(statement.body, visit);
  }
}

}  // namespace tessera::internal::fuzz
