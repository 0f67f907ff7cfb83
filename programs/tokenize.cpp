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
      "The text; put it in quotes, and after -- if it begins with a\ndash. Without one, it is what comes through a "
      "pipe to stdin");
  line.option("-f,--file", file, "FILE", "Reads the text from a file, or stdin if it is -");
  line.option("--decode", ids, "IDS", "Prints the text of these ids, 1,2,3, and a newline");
  line.option("--tokenizer", folder, "DIR",
              "Folder with vocab.json and merges.txt, or the name of a model\nin the hub's cache; without it, the "
              "shipped model's");
  line.footer("Prints the ids as a JSON list, which --decode takes back.");
  line.parse();
  line.at_most_one({"--text", "--file", "--decode"});
  if (!ids && !text && !file) {
    text = given_text({}, {});
    if (text->empty()) line.refuse("there is nothing to tokenize; give a text in quotes, or one through a pipe");
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
  return run_program(argc, argv, "tokenize", "Text to the token ids of a GPT-2 model, and back.", tokenize);
}
