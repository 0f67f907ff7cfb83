// Which of a long list of configurations are tried.
#pragma once
#include <cstddef>
#include <vector>

namespace tessera::internal {

/// Places in a list of `count`: all of them, if they are at most `most`; otherwise the first two thirds of `most`, as
/// lists begin with what somebody, or a cost model, thinks best, and the rest in equal steps from the rest of the list,
/// which a model that is wrong would never try. Ascending.
std::vector<std::size_t> tried_configs(std::size_t count, std::size_t most);

}  // namespace tessera::internal
