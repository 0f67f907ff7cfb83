#include "codegen/plan/remarks.hpp"

#include <algorithm>
#include <array>

namespace tessera::internal::codegen {
namespace {

using Status = Remark::Status;

/// Which remarks are notes of a plan, and what introduces them there.
struct NoteForm {
  std::string_view kind;
  Status status;
  std::string_view before;
};
constexpr std::array note_forms = {
    NoteForm{remark_kind::wgmma, Status::passed, "roles share the work: "},
    NoteForm{remark_kind::wgmma, Status::analysis, "a way before it was left: "},
    NoteForm{remark_kind::wgmma, Status::missed, "one role does all: "},
    NoteForm{remark_kind::hint, Status::missed, "a hint is left out: "},
    NoteForm{remark_kind::shared, Status::missed, ""},
    NoteForm{remark_kind::registers, Status::missed, ""},
};

}  // namespace

std::vector<std::string> notes(const Plan& plan) {
  std::vector<std::string> result;
  for (const Remark& remark : plan.remarks)
    for (const NoteForm& form : note_forms)
      if (form.kind == remark.kind && form.status == remark.status)
        result.push_back(std::string(form.before) + remark.message);
  return result;
}

std::string slow_tiles(std::string_view kernel, const std::vector<Remark>& remarks) {
  const auto is_slow = [](const Remark& remark) {
    return remark.status == Status::missed &&
           (remark.kind == remark_kind::registers || remark.kind == remark_kind::shared);
  };
  const auto first = std::ranges::find_if(remarks, is_slow);
  if (first == remarks.end()) return {};
  const auto more = std::ranges::count_if(first + 1, remarks.end(), is_slow);
  return fmt::format("kernel '{}', {}:{}: {}{}", kernel, first->file, first->line, first->message,
                     more == 0 ? "" : fmt::format(" ({} more: TESSERA_DUMP=remarks)", more));
}

}  // namespace tessera::internal::codegen
