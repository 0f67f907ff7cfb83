// A file of a project whose own names mean other things inside of Tessera.
#include <tessera/tessera.hpp>

using namespace tessera;

struct Node {
  int id;
};
struct Value : Node {};
struct Axis : Node {};
struct Handle : Node {};
struct Leaf : Node {};
struct Shape : Node {};
struct Graph : Node {};
struct Region : Node {};
struct Parameter : Node {};
struct Argument : Node {};
struct Options : Node {};
enum class Op { name, own };
using Id = int;

int name(const Node& node) { return node.id; }
int own(const Node& node) { return node.id; }
int info(const Node& node) { return node.id; }

int sum_of_names() {
  const Value value{{1}};
  const Axis axis_of_mine{{2}};
  const Id id = name(value) + own(axis_of_mine) + info(Leaf{{3}});
  return id + static_cast<int>(Op::own);
}
