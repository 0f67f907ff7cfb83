// The ground of emission: lines of text, the values of a plan by name, and expressions of them.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit_text.hpp"
#include "codegen/plan.hpp"

namespace tessera {

/// Emission is in layers, each a class that adds what it can write to the one before it.
class ValueEmitter {
 protected:
  explicit ValueEmitter(const Plan& plan) : plan_(plan) { scopes_.emplace_back(); }
  ~ValueEmitter() = default;
  ValueEmitter(const ValueEmitter&) = delete;
  ValueEmitter& operator=(const ValueEmitter&) = delete;

  // --- text

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
    scopes_.push_back(scopes_.back());
  }
  void close(std::string_view end = "}");
  void unroll(bool unrolled);

  // --- what the plan holds

  const Value& value(ValueId id) const { return plan_.values[static_cast<std::size_t>(id)]; }
  const Parameter& tensor(int parameter) const { return plan_.tensors[static_cast<std::size_t>(parameter)]; }
  std::string tensor_name(int parameter) const;
  std::string stride(int parameter, int axis) const;
  void use(std::string_view what) { used_.insert(std::string(what)); }
  void mention(const std::string& name) { mentioned_.insert(name); }

  // --- coordinates and values

  std::string coordinate(const Layout& layout, int axis, const std::string& index);
  std::string element(const Value& v, const std::string& index);
  std::string mapped(const Operand& operand, const std::string& index, int count);
  std::string scalar(const Operand& operand);
  // Declares the value a step makes, unless a loop around declared it.
  void declare(ValueId id, bool array_only = true);
  // "x[r] = " or "const float x = ".
  std::string assign(ValueId id, const std::string& index);
  // Which thread of those that hold copies acts for all.
  std::string first_copy(const Layout& layout);
  // Elements beyond the tile that a layout covers.
  std::string inside_tile(const Step& step, const std::string& index);

  // --- expressions

  // The step's expression for one element. Terms that are used twice, or are long, get a name.
  std::string expression(const Step& step, const std::string& index);

  const Plan& plan_;
  std::string text_;
  int depth_ = 0;
  std::vector<std::set<std::string>> scopes_;  // names declared so far
  std::set<std::string> used_, mentioned_;     // of the kernel's own variables, and of the plan's
  std::vector<ThreadTerm> terms_;

 private:
  std::string thread_term(const std::vector<std::pair<Factor, int>>& digits);
  std::string operand(const Step& step, const std::vector<std::string>& made, const Operand& o, ElementType type,
                      const std::string& index, int count);

  int temporaries_ = 0;
};

}  // namespace tessera
