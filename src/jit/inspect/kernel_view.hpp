// One kernel as the data of the inspector's page.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/generate.hpp"
#include "jit/inspect/sass_listing.hpp"

namespace tessera::internal {

/// Machine code and PTX of a kernel, as far as they are known. They were made of compiled_text().
struct InspectedCode {
  std::string ptx;                    ///< empty: see why_no_ptx
  std::vector<SassInstruction> sass;  ///< empty: see why_no_sass
  std::string why_no_ptx, why_no_sass;
};

struct InspectedKernel {
  const KernelSource& source;
  Arch arch;
  std::string label;        ///< of this view, if a page has several
  std::string command;      ///< that makes the page again
  bool with_source = true;  ///< with the author's text and the names of his files
  InspectedCode code = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< name and value
  std::vector<std::string> notes = {};                          ///< what a reader of the page must know
};

/// The text of a kernel with an empty line in place of each #line directive: compiled with line information, its lines
/// are those of the generated text.
std::string compiled_text(const KernelSource& source);

/// The view as JSON: page/page.js reads it.
std::string view_json(const InspectedKernel& kernel);

}  // namespace tessera::internal
