#include "jit/tune/archive_graph.hpp"

#include <mutex>
#include <set>

#include "jit/tune/archive.hpp"
#include "tessera/graph/cuda_text.hpp"

namespace tessera::internal {
namespace {

/// Lives as long as the process, as the string literals of Location do.
const char* literal(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string>& kept = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return kept.insert(text).first->c_str();
}

}  // namespace

void fields(ArchiveWriter& archive, const Location& location) {
  archive(std::string(location.file), location.line, location.order);
}
void fields(ArchiveReader& archive, Location& location) {
  std::string file;
  archive(file, location.line, location.order);
  location.file = literal(file);
}

void fields(ArchiveWriter& archive, const Shape& shape) { archive(std::vector<int>(shape.begin(), shape.end())); }
void fields(ArchiveReader& archive, Shape& shape) {
  std::vector<int> extents;
  archive(extents);
  if (extents.size() > static_cast<std::size_t>(max_rank)) throw Error("an archive has a shape of too many axes");
  shape = Shape(std::span<const int>(extents));
}

template <class Archive>
void fields(Archive& archive, ArchivedAs<Node> auto& n) {
  archive(n.op, n.type, n.uniform, n.ordered, n.region, n.shape, n.in, n.attr, n.location, n.var);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<Region> auto& r) {
  archive(r.kind, r.parent, r.arguments, r.effects, r.yields, r.unroll);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<Parameter> auto& p) {
  archive(p.access, p.type, p.rank, p.optional, p.list);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<CustomFunction> auto& f) {
  archive(f.name, f.expression, f.type, f.operands);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<Hints> auto& h) {
  archive(h.warps, h.stages, h.cluster, h.occupancy, h.deterministic, h.launch_dependents, h.arch);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<CudaText> auto& c) {
  archive(c.source, c.location);
}
template <class Archive>
void fields(Archive& archive, ArchivedAs<Graph> auto& g) {
  archive(g.name, g.location, g.parameters, g.nodes, g.regions, g.grid, g.texts, g.functions, g.hints);
}

std::string archive(const Graph& graph) {
  ArchiveWriter writer;
  writer(graph, graph.cuda != nullptr);
  if (graph.cuda) writer(*graph.cuda);
  return std::move(writer).bytes();
}

Graph unarchive(std::string_view bytes) {
  ArchiveReader reader(bytes);
  Graph graph;
  bool has_cuda = false;
  reader(graph, has_cuda);
  if (has_cuda) {
    CudaText text;
    reader(text);
    graph.cuda = std::make_shared<const CudaText>(std::move(text));
  }
  if (!reader.at_end()) throw Error("an archive has more bytes than its graph");
  return graph;
}

bool has_host_functions(const Graph& graph) { return !graph.functions.empty() || (graph.cuda && graph.cuda->host); }

}  // namespace tessera::internal
