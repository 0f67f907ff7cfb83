#include <fmt/format.h>

#include <iterator>

#include "graph/in_literal.hpp"
#include "tessera/graph/cuda_text.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

std::string number_text(ElementType type, std::int64_t attribute) {
  const Cell cell = decode(type, attribute);
  return with_host(host_type(type), [&]<class T>(T) { return fmt::format("{}", value_in<T>(cell)); });
}

namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\x{:02x}", c);
    else
      result += c;
  }
  return result;
}

class Printer {
 public:
  Printer(const Graph& graph, bool locations)
      : graph_(graph), locations_(locations), order_(schedule(graph)), number_(graph.nodes.size(), -1) {}

  std::string run() {
    out("kernel {}({})\n", graph_.name, to_string(graph_.parameters));
    for (const Hints& hints : graph_.hints) out("  hints {{{}}}\n", to_string(hints));
    region(0, 1);
    if (!graph_.grid.empty()) {
      out("  grid");
      operands(graph_.grid);
      out("\n");
    }
    if (graph_.cuda) out("  cuda \"{}\"\n", escaped(graph_.cuda->source));
    return std::move(text_);
  }

 private:
  template <class... Args>
  void out(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void operands(const std::vector<Id>& ids) {
    for (Id id : ids) out(" %{}", number_[id]);
  }

  void attributes(const Node& node) {
    switch (info(node.op).attribute) {
      case Attribute::none:
        return;
      case Attribute::region:
        if (const int factor = graph_.regions[node.body()].unroll) out(" {{unroll {}}}", factor);
        return;
      case Attribute::parameter:
        return out(" {{{}}}", argument_number(graph_.parameters, node.parameter()) - 1);
      case Attribute::number:
        return out(" {{{}}}", number_text(node.type, node.bits()));
      case Attribute::stepped:
        if (node.step() == 1) return out(" {{{}}}", node.axis());
        return out(" {{{},by {}}}", node.axis(), node.step());
      case Attribute::scan:
        return out(" {{{}{}{}}}", node.axis(), node.scan_options().reverse ? ",reverse" : "",
                   node.scan_options().exclusive ? ",exclusive" : "");
      case Attribute::order:
        if (node.order() == MemoryOrder::relaxed && node.scope() == MemoryScope::device) return;
        return out(" {{{},{}}}", tessera::internal::name(node.order()), tessera::internal::name(node.scope()));
      case Attribute::sorted:
        return out(" {{{}{}}}", node.axis(), node.sort_options().descending ? ",descending" : "");
      case Attribute::function: {
        const CustomFunction& function = graph_.functions[node.function()];
        return out(" {} \"{}\"", function.name, escaped(function.expression));
      }
      case Attribute::text:
        return out(" \"{}\"", escaped(graph_.texts[node.text()]));
      default:
        return out(" {{{}}}", fmt::join(node.attr, ","));
    }
  }

  void region(RegionId id, int depth) {
    for (Id node : order_[id]) line(node, depth);
    const Region& body = graph_.regions[id];
    if (body.yields.empty()) return;
    out("{:{}}yield", "", depth * 2);
    operands(body.yields);
    out("\n");
  }

  void line(Id id, int depth) {
    const Node& node = graph_[id];
    number_[id] = next_++;
    out("{:{}}%{} = {}", "", depth * 2, number_[id], name(node.op));
    operands(node.in);
    attributes(node);
    if (is_view(node.op) || has_value(node.op))
      out(" : {}{}", name(node.type), is_view(node.op) ? "" : to_string(node.shape));
    if (locations_) out("   // {}:{}", in_literal(node.location.file), node.location.line);
    out("\n");
    if (has_region(node.op)) region(node.body(), depth + 1);
  }

  const Graph& graph_;
  bool locations_;
  std::vector<std::vector<Id>> order_;
  std::vector<int> number_;
  int next_ = 0;
  std::string text_;
};

}  // namespace

std::string to_string(const Graph& graph, bool locations) { return Printer(graph, locations).run(); }

}  // namespace tessera::internal
