// What goes across the threads of a block: reductions, and tiles that move from layout to layout.
#pragma once
#include "codegen/emit_tiles.hpp"

namespace tessera {

class ExchangeEmitter : public TileEmitter {
 protected:
  using TileEmitter::TileEmitter;

  void reduce(const Step& step);
  void replicas(const Step& step);
  void argmax(const Step& step);
  void put(const Step& step);
  void get(const Step& step);
  void scan(const Step& step);

 private:
  std::string scratch(const Step& step, ElementType type);
  // Calls each(index) for the first `count` registers of a value.
  void over_results(const Value& out, int count, const Each& each);
  // Calls each(warp) for every warp whose index differs from this warp's in the bits only, those of one factor, in
  // rising order.
  void over_members(int bits, const Each& each);
  using Put = std::function<void(const std::string& slot, const std::string& index)>;
  using Take = std::function<void(const std::string& slot, const std::string& index, bool first)>;
  // The warps that hold parts of one result: each puts its own into a slot, and takes all in the same order.
  void over_warps(const Value& out, int count, int bits, const Put& put, const Take& take);
  void combine_lanes(const Step& step, ElementType type, int count, std::span<const int> masks);
  void combine_warps(const Step& step, ElementType type, int count, int bits);
  std::string linear(const Step& step, const std::string& index);
};

}  // namespace tessera
