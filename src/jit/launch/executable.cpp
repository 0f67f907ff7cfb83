#include "tessera/jit/executable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "codegen/passes.hpp"
#include "graph/evaluate.hpp"
#include "graph/of_this_thread.hpp"
#include "graph/views.hpp"
#include "jit/backend/backend.hpp"
#include "jit/backend/lock_free_list.hpp"
#include "jit/backend/overlap.hpp"
#include "jit/compile/compiler.hpp"
#include "jit/cpu/host_function.hpp"
#include "jit/launch/specialize.hpp"
#include "jit/options/log.hpp"
#include "jit/profile/profile.hpp"
#include "tessera/codegen/arch.hpp"
#include "tessera/graph/cuda_text.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();  // per grid, as per CUDA launch

/// The axis whose stride is the step of flattened axes: the innermost axis with more than one element. The stride of an
/// axis of one element has no effect.
std::size_t step_axis(const Flattened& flattened, const Argument& argument) {
  for (std::size_t i = flattened.axes.size(); i-- > 0;)
    if (const auto axis = static_cast<std::size_t>(flattened.axes[i]); argument.extent[axis] != 1) return axis;
  return static_cast<std::size_t>(flattened.axes.back());
}

bool is_written(const Parameter& parameter) {
  return parameter.access == Access::out || parameter.access == Access::in_out;
}

// One sentence for each hint that no kernel can have.
std::vector<std::string> impossible(const Hints& hints) {
  std::vector<std::string> texts;
  const auto expect = [&]<class... A>(bool possible, fmt::format_string<A...> text, A&&... values) {
    if (!possible) texts.push_back(fmt::format(text, std::forward<A>(values)...));
  };
  expect(hints.warps == 0 || (hints.warps > 0 && hints.warps <= 32 && (hints.warps & (hints.warps - 1)) == 0),
         ".warps = {}, and a CTA has 1, 2, 4, 8, 16 or 32", hints.warps);
  expect(hints.stages >= 0, ".stages = {}, and a loop has 1 or more", hints.stages);
  expect(hints.cluster >= 0 && hints.cluster <= 16, ".cluster = {}, and a cluster has 1 to 16 CTAs", hints.cluster);
  expect(hints.occupancy >= 0 && hints.occupancy <= 32,
         ".occupancy = {}, and a multiprocessor runs 1 to 32 CTAs at a time", hints.occupancy);
  try {
    if (!hints.arch.empty()) Arch::parse(hints.arch);
  } catch (const Error&) {
    expect(false, ".arch = \"{}\" is not an architecture; \"sm_90a\" is one", hints.arch);
  }
  return texts;
}

// Throws Error for hints that no kernel can have.
void check_hints(const Graph& graph) {
  for (const Hints& hints : graph.hints)
    if (const std::vector<std::string> what = impossible(hints); !what.empty())
      throw Error(fmt::format("kernel '{}', {}:{}: hints: {}", graph.name, graph.location.file, graph.location.line,
                              fmt::join(what, "; ")));
}

}  // namespace

std::string arguments_text(std::span<const Parameter> parameters, std::span<const Argument> arguments) {
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (parameter.list > 0 && !arguments[i].data) continue;  // most lists are not full
    text += fmt::format("{}argument {} is ", text.empty() ? "" : ", ", argument_name(parameters, i));
    if (parameter.access == Access::scalar)
      text += number_text(parameter.type, encode(parameter.type, arguments[i].scalar));
    else
      text += fmt::format("{} [{}]", name(parameter.type),
                          fmt::join(arguments[i].extent.begin(), arguments[i].extent.begin() + parameter.rank, ","));
  }
  return text;
}

void refuse_for_memory(const Graph& graph, std::span<const Argument> arguments) {
  throw OutOfMemory(fmt::format("there is no host memory left for a launch of kernel '{}' ({})", graph.name,
                                arguments_text(graph.parameters, arguments)));
}

struct Executable::State {
  std::vector<std::string> requirements;
  std::vector<Flattened> flattened;
  UniformProgram uniform;                                                     // the requirements, then the grid
  LockFreeList<const DeviceBackend*, std::unique_ptr<DeviceKernel>> kernels;  // by the devices launched on
  // An Out that may be given the tensor of an In, or why it may not.
  struct InPlace {
    std::size_t in, out;
    std::string why_not;
  };
  std::vector<InPlace> in_place;
  bool may_be_special = false;    // has it an optional parameter, or such a pair?
  Specialization specialization;  // that it was made for
  LockFreeList<Specialization, std::unique_ptr<Executable>> special;

  void find_special(const Graph& graph) {
    const auto& parameters = graph.parameters;
    if (parameters.size() > Specialization::most_parameters) return;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      may_be_special |= parameters[i].optional;
      if (parameters[i].access != Access::in || parameters[i].list > 0) continue;
      for (std::size_t o = 0; o < parameters.size(); ++o)
        if (parameters[o].access == Access::out && parameters[o].list == 0 &&
            parameters[o].type == parameters[i].type && parameters[o].rank == parameters[i].rank &&
            specialization.memory[i] == Specialization::own)
          in_place.push_back({i, o, why_not_in_place(graph, static_cast<int>(i), static_cast<int>(o))});
    }
    may_be_special |= std::ranges::any_of(in_place, [](const InPlace& pair) { return pair.why_not.empty(); });
  }
};

Executable::~Executable() = default;

Executable::Executable(Graph graph) : Executable(std::move(graph), Specialization()) {}
Executable::Executable(const Executable& general, const Specialization& specialization)
    : Executable(specialize(general.traced_, specialization), specialization) {}

Executable::Executable(Graph graph, const Specialization& specialization)
    : traced_(std::move(graph)), graph_(run_passes(traced_)), state_(std::make_unique<State>()) {
  check_hints(traced_);
  state_->specialization = specialization;
  state_->find_special(traced_);
  std::vector<Id> roots;
  for (Id id : graph_.regions[0].effects)
    if (graph_[id].op == Op::require) {
      roots.push_back(graph_[id].in[0]);
      state_->requirements.push_back(fmt::format("{}:{}: {}", graph_[id].location.file, graph_[id].location.line,
                                                 graph_.texts[graph_[id].text()]));
    }
  state_->flattened = flattened_axes(graph_);
  roots.insert(roots.end(), graph_.grid.begin(), graph_.grid.end());
  state_->uniform = UniformProgram(graph_, roots);
  dump_graph(graph_);
  if (logs_debug())
    log_debug(fmt::format("kernel '{}': {} nodes traced, {} after the passes", graph_.name, traced_.nodes.size(),
                          graph_.nodes.size()));
}

void Executable::refuse(std::span<const Argument> arguments, std::string_view why) const {
  throw launch_refused(graph_.name, fmt::format("{} ({})", why, arguments_text(graph_.parameters, arguments)));
}

namespace {

/// Is it left out, or has it no elements at all?
bool is_absent(const Parameter& parameter, const Argument& argument) {
  return parameter.optional && !argument.data &&
         std::all_of(argument.extent.begin(), argument.extent.begin() + parameter.rank,
                     [](std::int64_t extent) { return extent == 0; });
}
/// Have two arguments of one rank the same elements in the same places?
bool is_same_tensor(const Argument& a, const Argument& b, int rank) {
  if (a.data != b.data || !a.data) return false;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis)
    if (a.extent[axis] != b.extent[axis] || (a.extent[axis] > 1 && a.stride[axis] != b.stride[axis])) return false;
  return true;
}

}  // namespace

// The executable for these arguments, if it is another one.
const Executable* Executable::specialized(std::span<const Argument> arguments) const {
  if (!state_->may_be_special || arguments.size() != graph_.parameters.size()) return nullptr;
  std::optional<Specialization> special;  // most launches have none
  const auto set = [&](std::size_t parameter, std::int8_t memory) {
    if (!special) special.emplace();
    special->memory[parameter] = memory;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (is_absent(graph_.parameters[i], arguments[i])) set(i, Specialization::none);
  for (const State::InPlace& pair : state_->in_place)
    if (pair.why_not.empty() &&
        is_same_tensor(arguments[pair.in], arguments[pair.out], graph_.parameters[pair.in].rank))
      set(pair.in, static_cast<std::int8_t>(pair.out));
  if (!special) return nullptr;
  return state_->special.find_or_make(*special, [&] { return std::make_unique<Executable>(*this, *special); }).get();
}

// Only tensors whose address ranges meet are compared: a launch may have hundreds.
void Executable::check_overlap(std::span<const Argument> arguments) const {
  struct Place {
    AddressRange range;
    std::size_t argument;
  };
  const std::vector<Parameter>& parameters = graph_.parameters;
  auto& places = of_this_thread<std::vector<Place>>();
  places.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (parameters[i].access == Access::scalar) continue;
    if (is_written(parameters[i]) && overlaps_itself(parameters[i], arguments[i]))
      refuse(arguments, fmt::format("argument {} is written, and its strides let elements share memory",
                                    argument_name(parameters, i)));
    if (const std::optional<AddressRange> range = addresses(parameters[i], arguments[i])) places.push_back({*range, i});
  }
  std::ranges::sort(places, {}, [](const Place& place) { return place.range.first; });
  std::optional<std::pair<std::size_t, std::size_t>> found;  // the first one is written
  for (auto a = places.begin(); a != places.end(); ++a)
    for (auto b = a + 1; b != places.end() && b->range.first <= a->range.last; ++b)
      for (const auto& [written, other] : {std::pair(a->argument, b->argument), std::pair(b->argument, a->argument)})
        if (is_written(parameters[written]) && (!found || std::pair(written, other) < *found) &&
            !runs_in_place(other, written) &&
            overlap(parameters[written], arguments[written], parameters[other], arguments[other]))
          found.emplace(written, other);
  if (found) refuse_overlap(arguments, found->first, found->second);
}

// Was the kernel made for launches where the second argument has the tensor of the first?
bool Executable::runs_in_place(std::size_t in, std::size_t out) const {
  return in < Specialization::most_parameters && state_->specialization.memory[in] == static_cast<int>(out);
}

void Executable::refuse_overlap(std::span<const Argument> arguments, std::size_t written, std::size_t other) const {
  const auto pair = std::ranges::find_if(
      state_->in_place, [&](const State::InPlace& pair) { return pair.in == other && pair.out == written; });
  const bool same = pair != state_->in_place.end() &&
                    is_same_tensor(arguments[other], arguments[written], graph_.parameters[other].rank);
  refuse(arguments,
         fmt::format("argument {} is written and overlaps argument {} in memory{}; give it memory of its own",
                     argument_name(graph_.parameters, written), argument_name(graph_.parameters, other),
                     same ? fmt::format(", and the kernel cannot run in place ({})", pair->why_not) : ""));
}

// The flattened rows must follow one another without gaps, and the result is limited as an extent is. If there is one
// row or none, strides have no effect.
void Executable::check_flattened(std::span<const Argument> arguments, const Flattened& flattened) const {
  const Argument& argument = arguments[static_cast<std::size_t>(flattened.parameter)];
  const Location location = graph_[flattened.view].location;
  const std::int64_t step = argument.stride[step_axis(flattened, argument)];
  std::int64_t elements = 1;
  for (std::size_t i = flattened.axes.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(flattened.axes[i]);
    const std::int64_t extent = argument.extent[axis];
    std::int64_t apart = 0;
    if (extent > 1 && elements > 0 &&
        (__builtin_mul_overflow(elements, step, &apart) || apart != argument.stride[axis]))
      refuse(arguments,
             fmt::format("{}:{}: axes {} of argument {} are flattened, but with strides [{}] a row does not "
                         "begin where the previous one ends; pass a dense tensor, or address the axes one by one",
                         location.file, location.line, fmt::join(flattened.axes, ", "),
                         argument_name(graph_.parameters, flattened.parameter),
                         fmt::join(argument.stride.begin(),
                                   argument.stride.begin() +
                                       graph_.parameters[static_cast<std::size_t>(flattened.parameter)].rank,
                                   ",")));
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > std::numeric_limits<std::int32_t>::max())
      refuse(arguments, fmt::format("{}:{}: axes {} of argument {} are flattened to more than 2^31 - 1 elements",
                                    location.file, location.line, fmt::join(flattened.axes, ", "),
                                    argument_name(graph_.parameters, flattened.parameter)));
  }
}

void Executable::check(std::span<const Argument> arguments) const {
  if (arguments.size() != graph_.parameters.size())
    throw launch_refused(graph_.name,
                         fmt::format("{} arguments for {} parameters", arguments.size(), graph_.parameters.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = graph_.parameters[i];
    if (parameter.access == Access::scalar) continue;
    if (const int most = tensors_of_list(graph_.parameters, i); most > 0) {
      const std::int32_t tensors = arguments[i + static_cast<std::size_t>(most)].scalar.i32;
      if (tensors < 0 || tensors > most)
        refuse(arguments, fmt::format("argument {} is a list of {} tensors; it takes 0 to {}",
                                      argument_number(graph_.parameters, i), tensors, most));
    }
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(parameter.rank); ++axis)
      if (arguments[i].extent[axis] < 0 || arguments[i].extent[axis] > std::numeric_limits<std::int32_t>::max())
        refuse(arguments,
               fmt::format("an extent of argument {} is not in [0, 2^31)", argument_name(graph_.parameters, i)));
    if (!is_addressable(parameter, arguments[i]))
      refuse(arguments, fmt::format("the strides of argument {} lead outside of the address space",
                                    argument_name(graph_.parameters, i)));
  }
  for (const Flattened& flattened : state_->flattened) check_flattened(arguments, flattened);
  check_overlap(arguments);
}

// A CUDA function receives addresses and no strides. The limits of a launch are CUDA's (CUDA C++ Programming Guide,
// compute capabilities).
void Executable::check_text(std::span<const Argument> arguments, const Grid& grid) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (graph_.parameters[i].access == Access::scalar) continue;
    std::int64_t dense = 1;
    bool is_dense = true, has_elements = true;
    for (auto axis = static_cast<std::size_t>(graph_.parameters[i].rank); axis-- > 0;) {
      is_dense &= arguments[i].extent[axis] == 1 || arguments[i].stride[axis] == dense;
      has_elements &= arguments[i].extent[axis] != 0;
      dense *= arguments[i].extent[axis];
    }
    if (has_elements && !is_dense)
      refuse(arguments,
             fmt::format("argument {} is not dense, and a kernel in CUDA C++ receives only its address; pass "
                         "a dense tensor",
                         i + 1));
  }
  constexpr std::int64_t most_threads = 1024, most_blocks_of_y = 65535;
  const auto& numbers = grid.extent;
  std::int64_t threads = 1;
  for (std::size_t axis = 0; axis < CudaText::axes; ++axis) {
    const std::int64_t along = numbers[CudaText::first_thread + axis];
    if (along < 1 || along > most_threads || (threads *= along) > most_threads)
      refuse(arguments, fmt::format("a CTA of [{}] threads; it has 1 to {}",
                                    fmt::join(numbers.begin() + CudaText::first_thread,
                                              numbers.begin() + CudaText::shared_bytes, ","),
                                    most_threads));
    if (axis > 0 && numbers[axis] > most_blocks_of_y)
      refuse(arguments, fmt::format("{} CTAs along axis {}; CUDA allows at most {} along y and z", numbers[axis], axis,
                                    most_blocks_of_y));
  }
  if (numbers[CudaText::shared_bytes] < 0)
    refuse(arguments, fmt::format("{} bytes of shared memory", numbers[CudaText::shared_bytes]));
}

Grid Executable::prepare(std::span<const Argument> arguments) const {
  if (const Executable* const special = specialized(arguments)) return special->prepare(arguments);
  check(arguments);
  const UniformProgram& uniform = state_->uniform;
  const std::vector<std::string>& requirements = state_->requirements;
  constexpr std::size_t few = 64;
  Cell fixed[few];
  std::vector<Cell> many(uniform.size() > few ? uniform.size() : 0);
  const std::span<Cell> values(many.empty() ? fixed : many.data(), std::max(few, many.size()));
  uniform.run(arguments, values);
  const auto value = [&](std::size_t root) { return values[static_cast<std::size_t>(uniform.position(root))].i32; };
  for (std::size_t i = 0; i < requirements.size(); ++i)
    if (value(i) == 0) refuse(arguments, fmt::format("it requires: {}", requirements[i]));
  Grid grid{.extent = {}, .rank = graph_.grid.size(), .axes = graph_.cuda ? CudaText::axes : graph_.grid.size()};
  auto& extent = grid.extent;
  if (grid.rank > extent.size()) throw InternalError(fmt::format("a grid of {} numbers", grid.rank));
  for (std::size_t i = 0; i < grid.rank; ++i) {
    extent[i] = value(requirements.size() + i);
    if (extent[i] < 0 && i < grid.axes)
      refuse(arguments, fmt::format("axis {} of the grid has the extent {}", i, extent[i]));
  }
  if (graph_.cuda) check_text(arguments, grid);
  if (grid.is_empty()) return grid;
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < grid.axes; ++i)
    if ((blocks *= extent[i]) > most_blocks)
      refuse(arguments, fmt::format("a grid of [{}] blocks; it has 2^31 - 1 at most: give each block a larger tile, or "
                                    "several in a loop",
                                    fmt::join(extent.begin(), extent.begin() + grid.axes, ",")));
  return grid;
}

void Executable::launch(const Stream& stream, std::span<const Argument> arguments, const Grid& grid) const {
  if (grid.is_empty()) return;
  if (const Executable* const special = specialized(arguments)) return special->launch(stream, arguments, grid);
  try {
    DeviceKernel& kernel = kernel_on(stream.backend().device());
    const std::vector<Argument> changed = with_steps(arguments);
    kernel.launch(stream.backend(), changed.empty() ? arguments : changed, {grid.extent.data(), grid.rank});
  } catch (const std::bad_alloc&) {
    refuse_for_memory(graph_, arguments);
  }
}

DeviceKernel& Executable::kernel_on(DeviceBackend& device) const {
  return *state_->kernels.find_or_make(&device, [&] {
    const profile::Span span = device.shares_host_memory()
                                   ? profile::Span(profile::Kind::compile, [&] { return profile::Subject::of(graph_); })
                                   : profile::Span();
    return graph_.cuda && device.shares_host_memory() ? host_function(graph_) : device.kernel(graph_);
  });
}

LaunchCode Executable::code(const Stream& stream, std::span<const Argument> arguments, const Grid& grid) const {
  if (const Executable* const special = specialized(arguments)) return special->code(stream, arguments, grid);
  DeviceBackend& device = stream.backend().device();
  // On the host a kernel is its code. On a GPU it is made at once, and its code is not.
  if (grid.is_empty()) return {nullptr, [] {}};
  if (device.shares_host_memory()) return {this, [this, &device] { kernel_on(device); }};
  const std::vector<Argument> changed = with_steps(arguments);
  return kernel_on(device).code(changed.empty() ? arguments : changed, {grid.extent.data(), grid.rank});
}

DeviceLaunch Executable::on_device(DeviceBackend& device, std::span<const Argument> arguments, const Grid& grid) const {
  if (const Executable* const special = specialized(arguments)) return special->on_device(device, arguments, grid);
  std::vector<Argument> given = with_steps(arguments);
  if (given.empty()) given.assign(arguments.begin(), arguments.end());
  return {&kernel_on(device),
          &graph_,
          std::move(given),
          {grid.extent.begin(), grid.extent.begin() + static_cast<std::ptrdiff_t>(grid.rank)}};
}

// Devices take the step of flattened axes from the last axis. Where that axis has one element, this stores the step in
// it.
std::vector<Argument> Executable::with_steps(std::span<const Argument> arguments) const {
  std::vector<Argument> changed;
  const auto each = [&](const auto& visit) {
    for (const Flattened& flattened : state_->flattened) {
      const auto parameter = static_cast<std::size_t>(flattened.parameter),
                 last = static_cast<std::size_t>(flattened.axes.back()),
                 step_of = step_axis(flattened, arguments[parameter]);
      if (arguments[parameter].extent[step_of] > 1)
        visit(flattened, parameter, last, arguments[parameter].stride[step_of]);
    }
  };
  each([&](const Flattened&, std::size_t parameter, std::size_t last, std::int64_t step) {
    if (step == arguments[parameter].stride[last]) return;
    if (changed.empty()) changed.assign(arguments.begin(), arguments.end());
    changed[parameter].stride[last] = step;
  });
  if (changed.empty()) return changed;
  each([&](const Flattened& flattened, std::size_t parameter, std::size_t last, std::int64_t step) {
    if (changed[parameter].stride[last] == step) return;
    const Location location = graph_[flattened.view].location;
    refuse(arguments, fmt::format("{}:{}: axis {} of argument {}, of one element, is flattened with axes of different "
                                  "strides; address the axes one by one",
                                  location.file, location.line, last, argument_name(graph_.parameters, parameter)));
  });
  return changed;
}

}  // namespace tessera::internal
