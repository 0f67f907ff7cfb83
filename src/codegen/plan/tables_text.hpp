// The decisions of a plan as text, a line each (to_string of plan.hpp), and the lines of some tables: tensor classes,
// tensor maps, pipelines, roles.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

std::string class_text(const Plan& plan, std::size_t parameter);
std::string map_text(const Plan& plan, const TensorMap& map);
std::string pipeline_text(const Pipeline& pipeline);
std::string role_text(const Role& role);

}  // namespace tessera::internal::codegen
