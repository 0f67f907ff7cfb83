#include <fmt/format.h>

#include "tessera/dsl/trace.hpp"

namespace tessera::internal {

void Trace::cuda(CudaText text, const std::vector<Handle>& blocks, const std::vector<Handle>& threads,
                 Handle shared_bytes, const std::vector<Handle>& numbers, std::optional<std::size_t> host_numbers,
                 Location location) {
  const auto refuse = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    builder_.fail(location, "cuda_kernel: " + fmt::format(format, std::forward<Args>(args)...));
  };
  for (const Id id : builder_.graph().regions[0].effects)
    if (builder_.graph()[id].op != Op::require)
      refuse("'{}' is called in the function that describes the launch; write the kernel's work in its text",
             name(builder_.graph()[id].op));
  if (!builder_.graph().grid.empty()) refuse("blocks(...) is called; return the grid as .blocks of the CudaLaunch");
  if (blocks.empty() || blocks.size() > CudaText::axes) refuse("{} axes of blocks; CUDA has 1 to 3", blocks.size());
  if (threads.empty() || threads.size() > CudaText::axes) refuse("{} axes of threads; CUDA has 1 to 3", threads.size());
  if (numbers.size() > CudaText::most_numbers)
    refuse("{} numbers; a launch computes {} at most", numbers.size(), CudaText::most_numbers);
  if (host_numbers && *host_numbers != numbers.size())
    refuse("the host function takes {} numbers after the kernel's parameters, and the launch has {}", *host_numbers,
           numbers.size());
  std::vector<Id> values;
  const auto add = [&](const std::vector<Handle>& some, std::size_t least) {
    for (const Handle value : some) {
      if (!builder_.graph()[use(value, location)].uniform)
        refuse("a launch is computed from extents and scalars; this value depends on a tile");
      values.push_back(value.id);
    }
    for (std::size_t i = some.size(); i < least; ++i)
      values.push_back(builder_.constant(ElementType::i32, cell_of(1), {}, location));
  };
  add(blocks, CudaText::axes);
  add(threads, CudaText::axes);
  if (shared_bytes.trace)
    add({shared_bytes}, 1);
  else
    values.push_back(builder_.constant(ElementType::i32, cell_of(0), {}, location));
  add(numbers, 0);
  builder_.set_grid(values, location);
  builder_.set_cuda(std::make_shared<const CudaText>(std::move(text)));
}

}  // namespace tessera::internal
