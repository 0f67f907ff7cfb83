// Products: tiles brought to shared memory, and multiplied from there or from registers.
#pragma once
#include "codegen/emit_exchange.hpp"

namespace tessera {

class ProductEmitter : public ExchangeEmitter {
 protected:
  using ExchangeEmitter::ExchangeEmitter;

  void stage(const Step& step);
  void fetch(const Step& step);
  void clear(const Step& step);
  void product(const Step& step);

 private:
  const Buffer& buffer(int id);
  std::string tile_of(const ProductOperand& operand);
  // Accumulators of a warp, in tiles of one instruction.
  struct Tiles {
    int m, n;
  };
  Tiles tiles(const Step& step) const;
  std::string warp_row(const Product& product, int rows);
  std::string warp_column(const Product& product, int columns);
  // Registers of a left operand are named by k, so all rounds are written out; else two at a time overlap enough.
  void rounds_of_k(const Product& product, int rounds);
  // Calls each(c), c being four accumulators of one instruction, in loops over those of a thread: i and j. Those in
  // memory are worked on one instruction at a time.
  void over_accumulators(const Step& step, Tiles t, const Each& each);
  void matrix_product(const Step& step);
  // k is permuted within an instruction, for both operands alike: a lane's two positions are neighbours.
  void tf32_product(const Step& step);
  // Two neighbours along k.
  void pair(const ProductOperand& operand, std::string_view tile, const std::string& out, const std::string& other);
  void block_product(const Step& step);
  // Four neighbours along k at one position of the other axis.
  void four(const ProductOperand& operand, std::string_view tile, const std::string& out, const std::string& other);
  // What a thread needs of an operand for four steps of k: out[position][k].
  void fragment(const ProductOperand& operand, std::string_view tile, std::string_view out, const Layout& layout,
                int axis, int count);
  // Registers times registers: what a thread holds of k adds up in it.
  void thin_product(const Step& step);
};

}  // namespace tessera
