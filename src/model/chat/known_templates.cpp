#include "model/chat/known_templates.hpp"

#include <algorithm>

namespace tessera::internal {
namespace {

constexpr std::string_view blanks = " \t\r\n";

/// Appends what a block `{{ ... }}` or `{% ... %}` contains.
void append_block(std::string& code, std::string_view block) {
  if (block.starts_with('-') || block.starts_with('+')) block.remove_prefix(1);
  if (block.ends_with('-') || block.ends_with('+')) block.remove_suffix(1);
  char quote = '\0';
  for (std::size_t i = 0; i < block.size(); ++i) {
    const char c = block[i];
    if (quote == '\0') {
      if (blanks.find(c) != blanks.npos) continue;
      if (c == '\'' || c == '"') quote = c;
      code += c == '"' ? '\'' : c;
    } else if (c == '\\' && i + 1 < block.size()) {
      code.append(block.substr(i++, 2));
    } else if (c == '\n') {
      code += "\\n";
    } else {
      code += c == quote ? '\'' : c;
      if (c == quote) quote = '\0';
    }
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

using enum KnownTemplate::System;

constexpr KnownTemplate::Role im_role(std::string_view before) { return {.before = before, .after = "<|im_end|>\n"}; }
constexpr KnownTemplate::Role header_role(std::string_view before) {
  return {.before = before, .after = "<|eot_id|>", .trimmed = true};
}
constexpr KnownTemplate::Role turn_role(std::string_view before) {
  return {.before = before, .after = "<end_of_turn>\n", .trimmed = true};
}

KnownTemplate chatml_format(std::string_view name, std::vector<std::string_view> marks,
                            std::vector<std::string_view> others) {
  return {.name = name,
          .marks = std::move(marks),
          .others = std::move(others),
          .system = im_role("<|im_start|>system\n"),
          .user = im_role("<|im_start|>user\n"),
          .assistant = im_role("<|im_start|>assistant\n"),
          .answer = "<|im_start|>assistant\n",
          .end = "<|im_end|>"};
}

KnownTemplate llama3_format(std::string_view name, std::vector<std::string_view> marks) {
  marks.insert(marks.end(),
               {R"('<|start_header_id|>'+message.role+'<|end_header_id|>\n\n'+message.content|trim+'<|eot_id|>')",
                R"('<|start_header_id|>assistant<|end_header_id|>\n\n')", "bos_token"});
  return {.name = name,
          .marks = std::move(marks),
          .begin = "{bos}",
          .system = header_role("<|start_header_id|>system<|end_header_id|>\n\n"),
          .user = header_role("<|start_header_id|>user<|end_header_id|>\n\n"),
          .assistant = header_role("<|start_header_id|>assistant<|end_header_id|>\n\n"),
          .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
          .end = "<|eot_id|>"};
}

KnownTemplate gemma_format(std::string_view name, std::vector<std::string_view> marks, std::string_view after_system) {
  marks.insert(marks.end(), {R"('<start_of_turn>model\n')", "bos_token"});
  return {.name = name,
          .marks = std::move(marks),
          .begin = "{bos}",
          .system = {.before = "", .after = after_system},
          .user = turn_role("<start_of_turn>user\n"),
          .assistant = turn_role("<start_of_turn>model\n"),
          .place = after_system.empty() ? none : first_user,
          .answer = "<start_of_turn>model\n",
          .end = "<end_of_turn>"};
}

/// Mistral's, which differ in blanks and in where the system message goes.
KnownTemplate mistral_format(std::string_view name, std::vector<std::string_view> marks, KnownTemplate::Role user,
                             KnownTemplate::Role assistant, KnownTemplate::System place) {
  marks.insert(marks.end(), {"bos_token"});
  return {.name = name,
          .marks = std::move(marks),
          .others = {"<<SYS>>"},
          .begin = "{bos}",
          .system = {.before = "", .after = "\n\n"},
          .user = user,
          .assistant = assistant,
          .place = place,
          .answer = "",
          .end = "{eos}"};
}

std::vector<KnownTemplate> all_templates() {
  constexpr std::string_view im_message = R"('<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>'+'\n')";
  constexpr std::string_view im_short = R"('<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>\n')";
  constexpr std::string_view im_answer = R"('<|im_start|>assistant\n')";
  std::vector<KnownTemplate> all;
  all.push_back(
      chatml_format("qwen3", {im_message, im_answer, R"(message.content.split('</think>')[-1].lstrip('\n'))"}, {}));
  all.back().drops_thoughts = true;
  all.push_back(chatml_format("chatml", {im_message, im_answer}, {"</think>", "bos_token"}));
  all.push_back(chatml_format("chatml", {im_short, im_answer}, {"</think>", "bos_token"}));

  all.push_back(llama3_format(
      "llama3.1", {R"('Cutting Knowledge Date: December 2023\n')", R"('Today Date: '+date_string+'\n\n')"}));
  all.back().system.before =
      "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: {date}\n\n";
  all.back().always_system = true;
  all.push_back(llama3_format("llama3", {"bos_token+content"}));

  constexpr std::string_view first_prefix = R"('<start_of_turn>'+role+'\n'+(first_user_prefixifloop.firstelse''))";
  all.push_back(gemma_format("gemma3", {first_prefix, R"(first_user_prefix=messages[0].content+'\n\n')"}, "\n\n"));
  all.push_back(gemma_format("gemma3", {first_prefix, R"(first_user_prefix=messages[0].content+'\n')"}, "\n"));
  all.push_back(gemma_format("gemma", {R"('<start_of_turn>'+role+'\n'+message.content|trim+'<end_of_turn>\n')"}, ""));

  all.push_back({.name = "llama2",
                 .marks = {"bos_token+'[INST] '+content.strip()+' [/INST]'", "' '+content.strip()+' '+eos_token",
                           R"('<<SYS>>\n'+system_message+'\n<</SYS>>\n\n'+message.content)"},
                 .system = {.before = "<<SYS>>\n", .after = "\n<</SYS>>\n\n"},
                 .user = {.before = "{bos}[INST] ", .after = " [/INST]", .trimmed = true},
                 .assistant = {.before = " ", .after = " {eos}", .trimmed = true},
                 .place = first_user,
                 .trimmed_together = true,
                 .answer = "",
                 .end = "{eos}"});

  all.push_back(mistral_format("mistral-v2",
                               {"{{' [INST] '+message.content+' [/INST]'", "{{' '+message.content+eos_token",
                                R"(loop.firstandsystem_messageisdefined)"},
                               {.before = " [INST] ", .after = " [/INST]"}, {.before = " ", .after = "{eos}"},
                               first_user));
  all.push_back(mistral_format("mistral-v3",
                               {"{{'[INST] '+message.content+'[/INST]'", "{{' '+message.content|trim+eos_token",
                                R"(loop.lastandsystem_messageisdefined)"},
                               {.before = "[INST] ", .after = "[/INST]"},
                               {.before = " ", .after = "{eos}", .trimmed = true}, last_user));
  all.push_back(mistral_format(
      "mistral-nemo",
      {"{{'[INST]'+message.content+'[/INST]'", "{{message.content+eos_token", R"(loop.lastandsystem_messageisdefined)"},
      {.before = "[INST]", .after = "[/INST]"}, {.before = "", .after = "{eos}"}, last_user));
  all.push_back(mistral_format("mistral", {"{{'[INST] '+message.content+' [/INST]'", "{{message.content+eos_token"},
                               {.before = "[INST] ", .after = " [/INST]"}, {.before = "", .after = "{eos}"}, none));
  return all;
}

}  // namespace

std::span<const KnownTemplate> known_templates() {
  static const std::vector<KnownTemplate> all = all_templates();
  return all;
}

std::string code_of(std::string_view jinja) {
  std::string code;
  while (!jinja.empty()) {
    const std::size_t open = std::min({jinja.find("{{"), jinja.find("{%"), jinja.find("{#"), jinja.size()});
    if (jinja.substr(0, open).find_first_not_of(blanks) != jinja.npos) return {};
    if (open == jinja.size()) break;
    const char kind = jinja[open + 1];
    jinja.remove_prefix(open + 2);
    const std::string_view end = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    // The end may also be within a text.
    std::size_t at = 0;
    for (char quote = '\0'; at < jinja.size() && (quote != '\0' || !jinja.substr(at).starts_with(end)); ++at) {
      const char c = jinja[at];
      if (kind == '#') continue;
      if (quote != '\0' && c == '\\') {
        ++at;
      } else if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '\'' || c == '"')) {
        quote = c;
      }
    }
    if (at >= jinja.size()) return {};
    if (kind != '#') {
      code += kind == '{' ? "{{" : "{%";
      append_block(code, jinja.substr(0, at));
      code += end;
    }
    jinja.remove_prefix(at + 2);
  }
  for (const std::string_view key : {"role", "content"})
    replace_all(code, "['" + std::string(key) + "']", "." + std::string(key));
  return code;
}

}  // namespace tessera::internal
