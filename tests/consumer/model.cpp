// A program of a project that uses the model: it reads a model's folder, tokenizer included.
#include <cstdio>

#include <tessera/model.hpp>

int main(int, char** argv) {
  const auto config = tessera::read_config(argv[1]);
  const auto tokenizer = tessera::Tokenizer::open(argv[1]);
  std::printf("%d tokens\n", tokenizer.size());
  return tokenizer.size() == config.vocab ? 0 : 1;
}
