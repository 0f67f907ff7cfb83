#include "codegen/plan/remarks.hpp"

#include <algorithm>
#include <array>

namespace tessera::internal::codegen {
namespace {

using Status = Remark::Status;

/// A kind of remark that becomes a note in a plan's text, and the note's prefix.
struct NoteForm {
  std::string_view kind;
  Status status;
  std::string_view before;
};
constexpr std::array note_forms = {
    NoteForm{remark_kind::wgmma, Status::passed, "warp-specialized: "},
    NoteForm{remark_kind::wgmma, Status::analysis, "schedule candidate rejected: "},
    NoteForm{remark_kind::wgmma, Status::missed, "not warp-specialized: "},
    NoteForm{remark_kind::hint, Status::missed, "hint ignored: "},
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
