// Tiles of tensors: where they lie, and steps that run over the elements a thread holds.
#pragma once
#include "codegen/emit_values.hpp"

namespace tessera {

class TileEmitter : public ValueEmitter {
 protected:
  using ValueEmitter::ValueEmitter;

  // Start, window and pointer of a tile.
  void place(const TileAccess& access, bool writes);

  struct Spot {
    std::string inside, offset;
  };
  // In a debug build of a kernel every access is checked against the tensor's reach.
  Spot checked(const TileAccess& access, Spot spot);
  // Condition and offset of the element at the given coordinates of the tile.
  Spot spot(const TileAccess& access, const std::vector<std::string>& at, const std::string& row);

  using Each = std::function<void(const std::string& index)>;
  // Runs over the elements a thread holds; each(index) spells what happens to one, with its reads at hand. `begin` and
  // `end` stand around a group of neighbours.
  void sweep(const Step& step, const Each& each, const Each& begin = {}, const Each& end = {});

  void compute(const Step& step);
  void load(const Step& step);
  void store(const Step& step);

  unsigned line_ = 0;  // of the author

 private:
  Spot spot(const Step& step, const TileAccess& access, const std::string& index);
  void elements(const Step& step, const Each& each, const Each& begin, const Each& end);
  bool is_input(const TileAccess& access) const { return tensor(access.parameter).access == Access::in; }
  std::string padding(const TileAccess& access) const;
  // Place and mask of a read, and what stands for the elements outside; of an input that is 0 if not said.
  std::string source(const TileAccess& access, const Spot& at) const;
  std::string read_vector(const TileAccess& access, const Spot& at, std::string_view to) const;
  std::string read_element(const TileAccess& access, const Spot& at) const;
};

}  // namespace tessera
