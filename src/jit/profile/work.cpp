#include "jit/profile/work.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace tessera::internal::profile {
namespace {

double elements_of(const Shape& shape, int rank) {
  double elements = 1;
  for (int axis = 0; axis < rank; ++axis) elements *= shape[axis];
  return elements;
}

double elements_of(const Argument& argument, int rank) {
  double elements = 1;
  for (int axis = 0; axis < rank; ++axis)
    elements *= static_cast<double>(argument.extent[static_cast<std::size_t>(axis)]);
  return argument.data ? elements : 0;
}

/// The multiply-adds of 16-bit operands that take a multiprocessor of sm_90 as long as one of this type (NVIDIA H100
/// Tensor Core GPU Architecture, table 2: dense rates); 0: unknown.
double weight_of(ElementType type) {
  if (type == ElementType::tf32) return 2;
  if (type == ElementType::f32) return 16;  // not by tensor cores
  const int bytes = static_cast<int>(info(type).bytes);
  return bytes == 2 ? 1 : bytes == 1 ? 0.5 : 0;
}

/// A sum, of which -1 means that it is unknown.
template <class T>
T sum_of(T a, T b) {
  return a < 0 || b < 0 ? T{-1} : a + b;
}

}  // namespace

Work operator+(const Work& a, const Work& b) {
  return {.bytes = sum_of(a.bytes, b.bytes),
          .bytes_at_most = a.bytes_at_most || b.bytes_at_most,
          .flops = sum_of(a.flops, b.flops),
          .macs16 = sum_of(a.macs16, b.macs16)};
}

std::vector<WorkCount::Runs> WorkCount::runs_of_regions(const Graph& graph) {
  std::vector<std::optional<Runs>> own(graph.regions.size());  // of each region, in the one around it
  for (const Node& node : graph.nodes) {
    if (info(node.op).role != OpRole::region) continue;
    Runs runs;
    if (node.op == Op::loop && graph[node.in[0]].uniform) {
      runs.counts.push_back(roots_.size());
      roots_.push_back(node.in[0]);
    } else {
      runs.is_known = false;
    }
    own[node.body()] = runs;
  }
  std::vector<Runs> all(graph.regions.size());
  for (RegionId region = 0; region < graph.regions.size(); ++region)
    for (RegionId at = region; at != 0; at = graph.regions[at].parent) {
      if (!own[at]) continue;
      all[region].is_known &= own[at]->is_known;
      all[region].counts.insert(all[region].counts.end(), own[at]->counts.begin(), own[at]->counts.end());
    }
  return all;
}

WorkCount::WorkCount(const Graph& graph) : parameters_(graph.parameters), is_raw_(graph.cuda != nullptr) {
  if (is_raw_) return;
  const std::vector<Runs> runs = runs_of_regions(graph);
  for (const Node& node : graph.nodes) {
    const OpRole role = info(node.op).role;
    if (role == OpRole::read || role == OpRole::write || role == OpRole::atomic) {
      const auto view = std::ranges::find_if(node.in, [&](Id operand) { return is_view(graph[operand].op); });
      const auto parameter = static_cast<std::size_t>(view_parameter(graph, *view));
      for (const bool writes : {false, true})
        if (role == OpRole::atomic || writes == (role == OpRole::write))
          touches_.push_back({parameter, writes, elements_of(node.shape, node.shape.rank()), runs[node.region]});
    } else if (node.op == Op::mma) {
      const Node& left = graph[node.in[0]];
      const double macs = elements_of(node.shape, node.shape.rank()) * left.shape[left.shape.rank() - 1];
      products_.push_back({macs, macs * weight_of(left.type), runs[node.region]});
    }
  }
  uniform_ = UniformProgram(graph, roots_);
}

double WorkCount::times(const Runs& runs, std::span<const Cell> values) const {
  if (!runs.is_known) return std::numeric_limits<double>::infinity();
  double times = 1;
  for (const std::size_t root : runs.counts)
    times *= std::max(0, values[static_cast<std::size_t>(uniform_.position(root))].i32);
  return times;
}

Work WorkCount::of(std::span<const Argument> arguments, std::int64_t tiles) const {
  Work work;
  if (is_raw_ || arguments.size() != parameters_.size()) return work;
  std::vector<Cell> values(uniform_.size());
  uniform_.run(arguments, values);
  std::vector<double> touched(2 * parameters_.size());  // elements read and written, of each
  for (const Touch& touch : touches_) {
    const double times = this->times(touch.runs, values);
    work.bytes_at_most |= !touch.runs.is_known;
    touched[2 * touch.parameter + (touch.writes ? 1 : 0)] += touch.elements * times * static_cast<double>(tiles);
  }
  double bytes = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].access == Access::scalar) continue;
    double all = 0;  // of a list, which begins here, or of the tensor
    const auto most = static_cast<std::size_t>(std::max(1, tensors_of_list(parameters_, i)));
    for (std::size_t j = i; j < i + most; ++j) all += elements_of(arguments[j], parameters_[j].rank);
    // Tiles overlap, repeat, and end beyond the tensor; each of its elements counts once.
    for (const std::size_t side : {0u, 1u})
      bytes += std::min(touched[2 * i + side], all) * static_cast<double>(info(parameters_[i].type).bytes);
  }
  work.bytes = static_cast<std::int64_t>(bytes);
  if (std::ranges::all_of(products_, [](const Product& product) { return product.runs.is_known; })) {
    work.flops = work.macs16 = 0;
    for (const Product& product : products_) {
      const double times = this->times(product.runs, values) * static_cast<double>(tiles);
      work.flops += 2 * product.macs * times;
      work.macs16 += product.macs16 * times;
      if (product.macs16 == 0) work.macs16 = -std::numeric_limits<double>::infinity();
    }
    if (work.macs16 < 0) work.macs16 = -1;
  }
  return work;
}

}  // namespace tessera::internal::profile
