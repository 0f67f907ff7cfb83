// Text to token ids and back: tokenize "Once upon a time"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/program.hpp"
#include "tessera/graph/error.hpp"
#include "tessera/model/hub.hpp"

using namespace tessera::internal;

namespace {

void tokenize(CommandLine& line) {
  std::optional<std::string> folder, text, file;
  std::optional<std::vector<std::int32_t>> ids;
  line.option(
      "-t,--text,text", text, "TEXT",
      "The text, in quotes, and after -- if it begins with a dash. Without\nit, the text is read from stdin, if that "
      "is a pipe or a file");
  line.option("-f,--file", file, "FILE", "Reads the text from a file, or from stdin if FILE is -");
  line.option("--decode", ids, "IDS", "Prints the text of these ids, as in 1,2,3, and a newline");
  line.option("--tokenizer", folder, "DIR",
              "Folder with tokenizer.json, or with vocab.json and merges.txt; a\nGGUF file; or the name of a model in "
              "the hub's cache "
              "[that of the shipped model]");
  line.footer("Prints the ids as a JSON list, which --decode accepts.");
  line.parse();
  line.at_most_one({"--text", "--file", "--decode"});
  if (!ids && !text && !file) {
    text = given_text({}, {});
    if (text->empty()) line.refuse("there is nothing to tokenize; give a text in quotes, or pipe one to stdin");
  }

  const Tokenizer tokenizer = Tokenizer::open(folder ? find_model(*folder) : shipped_model());
  if (ids) {
    print(tokenizer.decode(*ids) + "\n");
  } else {
    print(fmt::format("[{}]\n", fmt::join(tokenizer.encode(given_text(text, file)), ", ")));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, "tokenize", "Converts text to the token ids of a model, and back.", tokenize);
}
