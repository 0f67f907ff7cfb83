#include "opcheck/trial.hpp"

namespace tessera::internal::opcheck {

Trial::Trial(const Case& of)
    : case_(of),
      tensors_(of),
      grid_(reference::grid(of.graph, tensors_.arguments())),
      expected_(reference::run(of.graph, tensors_.arguments(), grid_)) {}

std::string Trial::difference() const {
  const std::string wrong = reference::difference(case_.graph, tensors_.arguments(), expected_);
  return wrong.empty() ? tensors_.damage() : wrong;
}

}  // namespace tessera::internal::opcheck
