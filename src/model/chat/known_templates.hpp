// The formats of conversations that are known, and how to recognize their templates.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

/// In all texts, {bos} and {eos} stand for the model's tokens, {date} for a date.
struct KnownTemplate {
  enum class System { message, first_user, last_user, none };
  struct Role {
    std::string_view before, after;  ///< the content
    bool trimmed = false;            ///< white space around the content is dropped
  };

  std::string_view name;
  /// Parts of the template's code, without white space outside of its texts: it has all of `marks` and none of
  /// `others`.
  std::vector<std::string_view> marks, others{};
  std::string_view begin{};
  Role system{}, user, assistant;
  System place = System::message;  ///< where the system message goes; in a user's, `system` is put before the content
  bool trimmed_together = false;   ///< content is trimmed after that, not before
  bool always_system = false;      ///< there is a system message even if its content is empty
  bool drops_thoughts = false;     ///< of earlier answers, only what follows </think> is kept
  std::string_view answer;         ///< what the answer follows
  std::string_view end;            ///< of an answer
};

/// In the order in which they are tried.
std::span<const KnownTemplate> known_templates();

/// The code of a Jinja template without comments, without white space and signs of white space control outside of texts
/// in quotes, with single quotes, and `a['b']` as `a.b`. Empty if it prints other text than that of its expressions.
std::string code_of(std::string_view jinja);

}  // namespace tessera::internal
