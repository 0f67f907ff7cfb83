// Command lines: misspelled options, and the texts that are generated from the declared options for shells and manual
// pages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>

#include "common/command_line.hpp"
#include "common/declared.hpp"
#include "support/catch.hpp"
#include "support/running.hpp"
#include "support/support.hpp"

namespace test_command_line {

namespace fs = std::filesystem;

namespace {

const Arguments programs{"generate",   "score", "tokenize",      "inspect", "demo", "throughput",
                         "perplexity", "tune",  "01_vector_add", "opcheck", "fuzz"};

bool is_installed(const std::string& command) {
  if (run("/bin/sh", {"-c", "command -v " + command}).status == 0) return true;
  WARN("skipped: there is no " + command);
  SUCCEED();
  return false;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The names of options that --help lists.
std::set<std::string> options_of(const std::string& program) {
  std::set<std::string> names;
  std::istringstream lines(output(program, {"--help"}));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream list(line.substr(2, line.find(' ', 2) - 2));
    for (std::string name; std::getline(list, name, ',');) names.insert(name);
  }
  return names;
}

std::string path_of(const std::string& program) { return fs::path(TESSERA_BIN_DIR) / program; }

/// Bash's completions for the last of `words`, which follow the program's name.
std::set<std::string> completed(const std::string& program, const Arguments& words) {
  std::string line = program;
  for (const std::string& word : words) line += fmt::format(" '{}'", word);
  return words_of(
      output("/bin/bash", {"--norc", "-c",
                           fmt::format("source <({} --completion bash) || exit; COMP_WORDS=({}); COMP_CWORD={}; "
                                       "_complete_{}; printf '%s\n' \"${{COMPREPLY[@]}}\"",
                                       path_of(program), line, words.size(), program)}));
}

using Words = std::set<std::string>;

}  // namespace

TEST_CASE("An unknown option is named, together with the one that was probably meant", "[programs]") {
  const auto meant = [](const std::string& program, const Arguments& arguments, const char* said, const char* option) {
    check_refused(program, arguments,
                  {fmt::format("there is no option {}; did you mean {}? (see {} --help)", said, option, program)});
  };
  meant("generate", {"--tmep", "0", "Hi"}, "--tmep", "--temp");
  meant("generate", {"--tempurature=0", "Hi"}, "--tempurature", "--temperature");
  meant("generate", {"Hi", "--max-tokens", "3"}, "--max-tokens", "--max-new-tokens");
  meant("generate", {"-temp", "0", "Hi"}, "-temp", "--temp");
  meant("score", {"--dtyp", "f32", "Hi"}, "--dtyp", "--dtype");
  meant("score", {"--pre"}, "--pre", "--preset");
  meant("tokenize", {"--deocde", "1"}, "--deocde", "--decode");
  meant("inspect", {"--lst"}, "--lst", "--list");
  meant("01_vector_add", {"--prnt"}, "--prnt", "--print");

  // Nothing is similar to it. A text may begin with a dash.
  check_refused("generate", {"--colour", "Hi"},
                {"there is no option --colour; a text that begins with a dash comes after --"});
  check_refused("generate", {"-5"}, {"there is no option -5", "after --"});
  check_refused("generate", {"---"}, {"there is no option ---"});
  check_refused("generate", {"--" + std::string(100000, 'x')}, {"there is no option"});
  const std::string help_of_lesson = run("01_vector_add", {"-x"}).err;
  CHECK(help_of_lesson == "01_vector_add: error: there is no option -x (see 01_vector_add --help)\n");
}

TEST_CASE("Words that are like a wrong one are found, and numbers are rejected in words", "[programs]") {
  using tessera::internal::convert;
  using tessera::internal::did_you_mean;
  const std::vector<std::string> names{"softmax", "layer_norm-f32", "layer_norm-bf16", "linear-64-f32",
                                       "linear-128-f32"};
  CHECK(did_you_mean("sotfmax", names) == "; did you mean softmax?");
  CHECK(did_you_mean("layer_nrom-f32", names) == "; did you mean layer_norm-f32?");
  CHECK(did_you_mean("layer_norm", names) == "; did you mean layer_norm-f32 or layer_norm-bf16?");
  CHECK(did_you_mean("linear-256-f32", names) == "; did you mean linear-64-f32 or linear-128-f32?");
  CHECK(did_you_mean("attention", names).empty());
  CHECK(did_you_mean("s", names).empty());
  CHECK(did_you_mean(std::string(100000, 's'), names).empty());
  std::uint32_t count = 7;
  std::int32_t number = 7;
  CHECK(error_of([&] { convert("-5", count); }) == "'-5' is negative; give 0 or more");
  CHECK(error_of([&] { convert("-5x", count); }) == "'-5x' is not an integer");
  CHECK(error_of([&] { convert("-", count); }) == "'-' is not an integer");
  CHECK(error_of([&] { convert("", count); }) == "'' is not an integer");
  CHECK(error_of([&] { convert("5.0", count); }) == "'5.0' is not an integer");
  CHECK(error_of([&] { convert("4294967296", count); }) == "'4294967296' is too large; give 4294967295 at most");
  CHECK(error_of([&] { convert("-2147483649", number); }) == "'-2147483649' is too small; give -2147483648 at least");
  convert("4294967295", count), convert("-2147483648", number);
  CHECK(count == 4294967295u);
  CHECK(number == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("inspect names the kernels and words that were probably meant", "[programs]") {
  const auto meant = [](const Arguments& arguments, std::string_view text) {
    check_refused("inspect", arguments, {text});
    CHECK(run("inspect", arguments).err.size() < 300);
  };
  meant({"layer_nrom-f32"},
        "there is no kernel 'layer_nrom-f32'; did you mean layer_norm-f32? (inspect --list shows all ");
  meant({"softmx"}, "; did you mean softmax?");
  meant({"layer_norm"}, "; did you mean layer_norm-");
  meant({"nothing_like_it_at_all"}, "there is no kernel 'nothing_like_it_at_all' (inspect --list");
  meant({"nothing*"}, "there is no kernel 'nothing*' (inspect --list");
  meant({"softmax", "--show", "plna"}, "a kernel has no stage 'plna'; choose from graph, plan, ");
  meant({"softmax", "--show", "plna"}, "; did you mean plan?");
  meant({"softmax", "--show", "graph,cudda"}, "; did you mean cuda?");
  meant({"softmax", "--arch", "sm90a"}, "; did you mean sm_90a");
}

TEST_CASE("Letters after one dash are options, all of them or none", "[programs]") {
  check_refused("generate", {"-hello"}, {"there is no option -hello"});
  check_refused("generate", {"-qx", "Hi"}, {"there is no option -qx"});
  check_refused("score", {"-qh5"}, {"there is no option -qh5"});
  CHECK(output("generate", {"-qn0", "Hi"}) == "Hi\n");
  CHECK(output("generate", {"-qh"}) == output("generate", {"--help"}));
}

TEST_CASE("Help takes precedence over later errors, and over invalid values", "[programs]") {
  const std::string help = output("generate", {"--help"});
  CHECK(output("generate", {"--temp", "hot", "--help"}) == help);
  CHECK(output("generate", {"-h", "--nope"}) == help);
  CHECK(output("generate", {"Once", "upon", "-h"}) == help);
  check_refused("generate", {"--nope", "--help"}, {"there is no option --nope"});
  check_refused("generate", {"--", "--help", "--nope"}, {"\"--help --nope\""});
}

TEST_CASE("Several words must be quoted and in order", "[programs]") {
  check_refused("generate", {"Once", "upon", "a", "time"},
                {"put a text of several words in quotes: \"Once upon a time\""});
  check_refused("score", {"Once", "-q", "upon", "--dtype", "f32", "a time"}, {"in quotes: \"Once upon a time\""});
  check_refused("tokenize", {"--", "-a", "-b"}, {"in quotes: \"-a -b\""});
  check_refused("inspect", {"softmax", "fft"}, {"expected one KERNEL at most, not 2: softmax fft"});
  check_refused("fuzz", {"1", "2", "3"}, {"expected one COUNT and one SEED at most, not 3: 1 2 3"});
  check_refused("01_vector_add", {"some", "words"}, {"only options are expected, not some words"});
}

TEST_CASE("Positional arguments are taken in their order", "[programs]") {
  CHECK(output("fuzz", {"2", "7", "--keep", "none"}) == "2 programs, 0 mismatches\n");
  CHECK(output("fuzz", {"--print", "2", "7"}).starts_with("// Seed 7."));
  CHECK(output("fuzz", {"--man"}).find("] [\\fICOUNT\\fR] [\\fISEED\\fR]\n") != std::string::npos);
  CHECK(output("fuzz", {"--completion", "zsh"}).find("'2:SEED: '") != std::string::npos);
}

TEST_CASE("bash completes what --help lists", "[programs]") {
  for (const std::string& program : programs) {
    INFO(program);
    CHECK(completed(program, {"-"}) == options_of(program));
  }
  CHECK(completed("generate", {"--te"}) == Words{"--temp", "--temperature"});
  CHECK(completed("generate", {"Hi", "--dtype", ""}) == Words{"f32", "tf32", "bf16"});
  CHECK(completed("generate", {"--dtype", "=", "b"}) == Words{"bf16"});
  CHECK(completed("generate", {"--dtype", "="}) == Words{"f32", "tf32", "bf16"});
  CHECK(completed("score", {"--preset", "gpt2-"}) == Words{"gpt2-medium", "gpt2-large", "gpt2-xl"});
  CHECK(completed("generate", {"-n", "--te"}).empty());
  CHECK(completed("generate", {"--", "--te"}).empty());
  CHECK(completed("inspect", {"soft"}) == Words{"softmax"});
  CHECK(completed("demo", {"k"}) == Words{"kernel"});
  const TempDir folder;
  fs::create_directory(folder / "models");
  write_text(folder / "most", "");
  const std::string models = folder / "models", most = folder / "most";
  CHECK(completed("generate", {"-m", folder / "mo"}) == Words{models});
  CHECK(completed("generate", {"-f", folder / "mo"}) == Words{models, most});
}

TEST_CASE("emulated is among the devices that help and completion name", "[programs]") {
  for (const char* program : {"generate", "score"}) {
    CHECK(output(program, {"--help"}).find("cuda:N or emulated") != std::string::npos);
    CHECK(completed(program, {"--device", "emu"}) == Words{"emulated"});
  }
}

TEST_CASE("zsh completes what --help lists", "[programs]") {
  if (!is_installed("zsh")) return;
  for (const std::string& program : programs) {
    INFO(program);
    const std::string specs =
        output("/usr/bin/env",
               {"zsh", "-f", "-c",
                fmt::format("compdef() {{ : }}; _arguments() {{ print -l -- $@ }}; source <({} --completion zsh); "
                            "_complete_{}",
                            path_of(program), program)});
    for (const std::string& name : options_of(program)) {
      INFO(name << '\n' << specs);
      CHECK(std::ranges::any_of(std::array{"[", "=[", "+["}, [&](const char* end) {
        return specs.find(")" + name + end) != specs.npos || specs.find("*" + name + end) != specs.npos;
      }));
    }
  }
}

TEST_CASE("fish completes what --help lists", "[programs]") {
  if (!is_installed("fish")) return;
  const TempDir home;  // fish writes to it
  const auto offered = [&](const std::string& program, const std::string& line) {
    const std::string text =
        output("/usr/bin/env",
               {"HOME=" + home.path().string(), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "fish", "--no-config", "-c",
                fmt::format("{} --completion fish | source; complete -C'{} {}'", path_of(program), program, line)});
    Words words;
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) words.insert(each.substr(0, each.find('\t')));
    return words;
  };
  for (const std::string program : {"generate", "inspect"}) {
    Words expected;
    for (const std::string& name : options_of(program))
      if (name.starts_with("--")) expected.insert(name);
    CHECK(offered(program, "--") == expected);
  }
  CHECK(offered("score", "--dtype b") == Words{"bf16"});
  CHECK(offered("inspect", "softm") == Words{"softmax"});
}

TEST_CASE("--man is a manual page, with all that --help lists", "[programs]") {
  for (const std::string& program : programs) {
    const std::string page = output(program, {"--man"});
    INFO(page);
    for (const char* heading : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT"})
      CHECK(page.find(fmt::format("\n.SH {}\n", heading)) != page.npos);
    for (std::string name : options_of(program)) {
      for (std::size_t at = 0; (at = name.find('-', at)) != name.npos; at += 2) name.insert(at, "\\");
      CHECK(page.find(fmt::format("\\fB{}\\fR", name)) != page.npos);
    }
    CHECK(page.find("\\fBTESSERA_DEVICE\\fR") != page.npos);
  }
  if (!is_installed("groff")) return;
  for (const std::string& program : programs) {
    const Run made = run("/bin/sh", {"-c", path_of(program) + " --man | groff -man -Tutf8 -ww"});
    CHECK(made.status == 0);
    CHECK(made.err.empty());
    CHECK(made.out.size() > 1000);
  }
}

TEST_CASE("A program uses the name by which it was called", "[programs]") {
  const TempDir folder;
  const fs::path link = folder / "tessera-score";
  fs::create_symlink(path_of("score"), link);
  CHECK(output(link, {"--help"}).find("Usage: tessera-score [OPTIONS]") != std::string::npos);
  CHECK(output(link, {"--version"}).starts_with("tessera-score (Tessera "));
  CHECK(output(link, {"--man"}).find(".TH \"TESSERA\\-SCORE\" 1 ") != std::string::npos);
  CHECK(output(link, {"--completion", "bash"}).ends_with("complete -F _complete_tessera_score tessera-score\n"));
  CHECK(run(link, {"--nope"}).err.starts_with("tessera-score: error: "));
  fs::rename(link, folder / "a 'b'");
  CHECK(run(folder / "a 'b'", {"--nope"}).err.starts_with("score: error: "));
}

TEST_CASE("Texts of a command line go to stdout, or are rejected", "[programs]") {
  check_refused("generate", {"--completion", "csh"}, {"--completion", "'csh'", "bash, zsh or fish"});
  check_refused("generate", {"--completion"}, {"--completion"});
  check_refused("generate", {"--man"}, {"stdout", "No space left"}, {.output = "/dev/full"});
  check_refused("generate", {"--completion", "bash"}, {"stdout", "No space left"}, {.output = "/dev/full"});
}

TEST_CASE("inspect ends with an error where it cannot show the requested stage", "[programs]") {
  const TempDir tools;
  const auto shown = [&](const char* nvdisasm) {
    write_text(tools / "nvdisasm", nvdisasm);
    fs::permissions(tools / "nvdisasm", fs::perms::owner_all);
    return run("/usr/bin/env", {"PATH=" + tools.path().string() + ":/usr/bin:/bin", path_of("inspect"), "softmax",
                                "--show", "graph,sass"});
  };
  const Run failed = shown("#!/bin/sh\nexit 3\n");
  INFO(failed.err);
  CHECK(failed.status == 2);
  CHECK(failed.out.empty());
  CHECK(failed.err.starts_with("inspect: error: "));
  if (failed.err.find("nvdisasm failed") == failed.err.npos) return;  // without NVRTC there is nothing to disassemble
  const Run made = shown("#!/bin/sh\necho EXIT\n");
  CHECK(made.status == 0);
  CHECK(made.out.find("EXIT") != made.out.npos);
}

TEST_CASE("The commands on pages and in scripts exist", "[programs]") {
  const fs::path source = TESSERA_SOURCE_DIR;
  std::vector<fs::path> files{source / "README.md", source / "bench/check_dlpack.py"};
  for (const char* folder : {"docs", "samples/python"})
    for (const auto& entry : fs::directory_iterator(source / folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
  std::set<std::string> named;
  for (const fs::path& file : files) {
    const std::string text = read_text(file), folder = "build/release/bin/";
    for (std::size_t at = 0; (at = text.find(folder, at)) != text.npos;) {
      at += folder.size();
      const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
      named.emplace(text.begin() + at, std::find_if_not(text.begin() + at, text.end(), is_name));
    }
  }
  CHECK(named.erase("0") == 1);      // the lessons
  CHECK(named.erase("bench") == 1);  // only built on request
  CHECK(named.size() >= 4);
  for (const std::string& name : named) {
    INFO(name);
    CHECK(fs::exists(fs::path(TESSERA_BIN_DIR) / name));
  }
}

}  // namespace test_command_line
