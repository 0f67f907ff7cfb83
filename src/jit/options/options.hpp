// The environment variables, read once per process.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/codegen/arch.hpp"

namespace tessera::internal {

/// The choices of TESSERA_PROFILE.
struct ProfileOption {
  bool table = false;
  std::string file = {};    ///< empty: no trace is written
  std::string inside = {};  ///< names of the kernels to look into, as a glob pattern; empty: none
};

namespace option_type {
using text = std::string;
using list = std::vector<std::string>;
using count = int;
using flag = bool;
using arch = Arch;
using profile = ProfileOption;
}  // namespace option_type

struct Options {
#define OPTION(type, member, ...) option_type::type member;
#include "jit/options/options.def"
};

/// The value of TESSERA_PROFILE. Throws Error that names `source`, the value and the choices.
ProfileOption parse_profile(const std::string& text, std::string_view source);

struct OptionInfo {
  std::string_view variable, fallback, values, meaning;
};
std::span<const OptionInfo> option_table();

/// Reads every option through `lookup` (variable -> value, "" if unset). Throws Error that names the variable, its
/// value and the choices.
Options read_options(const std::function<std::string(std::string_view)>& lookup);

/// The options of the process, from its environment at the time of the first call.
const Options& options();

}  // namespace tessera::internal
