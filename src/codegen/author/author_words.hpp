// The author's words for a kernel: the names of its values and parameters, and the lines of its source. Dumps use them;
// the text that is compiled does not depend on them, nor on whether the source is readable.
#pragma once
#include "codegen/analysis/graph_analysis.hpp"
#include "codegen/plan/words.hpp"

namespace tessera::internal::author {

/// The words for a plan made from the graph; none where a file cannot be read or does not say.
AuthorWords author_words(const lowering::GraphAnalysis& analysis, const codegen::Plan& plan, const ReadSource& read);

}  // namespace tessera::internal::author
