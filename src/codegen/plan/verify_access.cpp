// Places in tensors, and products with their buffers.
#include <bit>

#include "codegen/plan/verify.hpp"

namespace tessera::codegen {
namespace {

class Accesses {
 public:
  explicit Accesses(Findings& findings) : findings_(findings), plan_(findings.plan) {}

  void run() {
    for (int i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& buffer = plan_.buffers[BufferId{i}];
      findings_.require(buffer.rows > 0 && buffer.columns > 0 && buffer.stages > 0 &&
                            buffer.columns * info(buffer.type).bytes % 16 == 0,
                        "{}: {} rows of {} elements are not made of chunks of 16 bytes", name_of(plan_, BufferId{i}),
                        buffer.rows, buffer.columns);
    }
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        role_ = &role;
        body(role.body);
      }
    findings_.about(nullptr);
  }

 private:
  void body(const Body& steps) {
    for (const Step& step : steps) {
      findings_.about(&step);
      std::visit(
          Overloaded{
              [&](const Load& s) {
        sweep(s.sweep);
        access(s.access, &s.sweep, false);
              },
              [&](const Store& s) {
        sweep(s.sweep);
        access(s.access, &s.sweep, true);
        findings_.require(s.kind != Store::Kind::scatter || s.access.rows, "a scatter names no rows");
        findings_.require(s.kind == Store::Kind::store || s.access.vector == 1, "it moves {} elements at a time",
                          s.access.vector);
          },
          [&]<OneOf<Compute, Reduce, Argmax, Put, Get> T>(const T& s) { sweep(s.sweep); },
          [&](const Stage& s) {
        sweep(s.sweep);
        stage(s);
          },
          []<OneOf<Replicas, Partials, PutPartials, TakePartials, Scan, Clear, Commit, Wait, Barrier, Branch, Elected,
                   TileLoop>
                 T>(const T&) {},
          []<OfRoles T>(const T&) {}, [&](const Fetch& s) { fetch(s); }, [&](const Multiply& s) { multiply(s); },
          [&](const Loop& s) { loop(s); },
          }, step.action);
      const Loop* const loop = std::get_if<Loop>(&step.action);
      if (loop) loops_.push_back(loop);
      each_body(step, [&](const Body& inner) { body(inner); });
      if (loop) loops_.pop_back();
    }
  }

  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) access(read, &sweep, false);
  }

  void access(const TileAccess& access, const Sweep* sweep, bool writes) {
    const int tensors = static_cast<int>(plan_.tensors.size());
    if (access.parameter < 0 || access.parameter >= tensors)
      return findings_.require(false, "there is no parameter {}", access.parameter);
    const Parameter& tensor = plan_.tensors[static_cast<std::size_t>(access.parameter)];
    const TensorClass& known = plan_.variant.tensors.at(static_cast<std::size_t>(access.parameter));
    const std::string name = tensor_name(plan_, access.parameter);
    findings_.require(tensor.access != Access::scalar, "{} is no tensor", name);
    findings_.require(!writes || tensor.access != Access::in, "{} is written", name);
    findings_.require(access.read_only == (tensor.access == Access::in), "{} is taken to be {}", name,
                      access.read_only ? "read only" : "written");
    unsigned axes = 0;
    for (const TileAccess::Axis& axis : access.axes) {
      if (axis.tensor_axis < 0) continue;
      const bool is_one = axis.tensor_axis < tensor.rank;
      findings_.require(is_one && !(axes >> axis.tensor_axis & 1), "axis {} of {} stands twice or is none",
                        axis.tensor_axis, name);
      axes |= is_one ? 1u << axis.tensor_axis : 0;
      findings_.require(axis.extent >= 1, "a tile of {} elements", axis.extent);
    }
    findings_.require(axes + 1 == 1u << tensor.rank, "not every axis of {} has its place", name);
    vector(access, sweep, tensor, known, name);
  }

  void vector(const TileAccess& access, const Sweep* sweep, const Parameter& tensor, const TensorClass& known,
              const std::string& name) {
    const int rank = static_cast<int>(access.axes.size());
    findings_.require(access.fast < rank, "there is no axis {}", access.fast);
    findings_.require(std::has_single_bit(static_cast<unsigned>(access.vector)), "vectors of {}", access.vector);
    if (access.vector == 1 || access.fast >= rank) return;
    if (access.fast < 0) return findings_.require(false, "vectors of {} along no axis", access.vector);
    const TileAccess::Axis& axis = access.axes[static_cast<std::size_t>(access.fast)];
    const int bytes = access.vector * info(tensor.type).bytes;
    findings_.require(axis.tensor_axis == known.unit_axis, "vectors along axis {} of {}, whose neighbours are along {}",
                      axis.tensor_axis, name, int{known.unit_axis});
    findings_.require(bytes <= 16 && bytes <= known.alignment, "accesses of {} bytes to {}, aligned to {}", bytes, name,
                      int{known.alignment});
    findings_.require(axis.tensor_axis < 0 || (known.divisible >> axis.tensor_axis & 1),
                      "vectors along axis {} of {} may reach over its end", axis.tensor_axis, name);
    findings_.require(axis.slices.empty() && axis.extent % access.vector == 0, "vectors of {} in a tile of {}{}",
                      access.vector, axis.extent, axis.slices.empty() ? "" : ", which a slice moves");
    if (!sweep) return;
    const int along = access.fast + sweep->shape.rank() - rank;
    findings_.require(along >= 0 && sweep->layout.run(along) % access.vector == 0,
                      "vectors of {}, and a thread has runs of {}", access.vector,
                      along >= 0 ? sweep->layout.run(along) : 0);
  }

  // --- products

  void stage(const Stage& s) {
    const Buffer& buffer = plan_.buffers[s.buffer];
    if (s.sweep.shape.rank() != 2) return findings_.require(false, "a buffer has two axes");
    findings_.require(s.sweep.shape[0] <= buffer.rows && s.sweep.shape[1] <= buffer.columns,
                      "a tile of {} in a buffer of [{},{}]", to_string(s.sweep.shape), buffer.rows, buffer.columns);
  }

  void fetch(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) {
      const Buffer& buffer = plan_.buffers[tile.buffer];
      access(tile.access, nullptr, false);
      const std::string name = name_of(plan_, tile.buffer);
      const Parameter& tensor = plan_.tensors.at(static_cast<std::size_t>(tile.access.parameter));
      findings_.require(tensor.type == buffer.type, "{} holds {}, and the tensor {}", name, tessera::name(buffer.type),
                        tessera::name(tensor.type));
      findings_.require(buffer.columns % tile.access.vector == 0, "{} has {} columns, not whole vectors of {}", name,
                        buffer.columns, tile.access.vector);
      if (plan_.progress >= Progress::synchronised) {
        const int bytes = tile.access.vector * info(tensor.type).bytes;
        findings_.require(tile.copy != Fetch::Copy::async || (bytes >= 4 && !buffer.in_workspace),
                          "{} is copied asynchronously, {} bytes at a time", name, bytes);
      }
      if (!s.loop) {
        findings_.require(buffer.stages == 1, "{} has stages, and is fetched in place", name);
        continue;
      }
      const Loop* const loop = loops_.empty() ? nullptr : loops_.back();
      findings_.require(loop && loop->loop == s.loop && buffer.stages == loop->stages,
                        "{} has {} stages, which are not those of the loop", name, buffer.stages);
    }
  }

  void loop(const Loop& s) {
    findings_.require(s.stages >= 1, "{} stages", s.stages);
    const bool ahead = !s.arrive.empty() || !s.ahead.empty() || !s.issued.empty();
    findings_.require(ahead == (s.stages > 1), "{} rounds are under way, and {} is fetched ahead", s.stages,
                      ahead ? "something" : "nothing");
  }

  void multiply(const Multiply& s) {
    const Product& p = s.product;
    if (s.layout.rank() != 2) return findings_.require(false, "a product has two axes");
    findings_.require(plan_.values[s.out].layout == s.layout, "the product is {}, and {} {}", to_string(s.layout),
                      name_of(plan_, s.out), to_string(plan_.values[s.out].layout));
    findings_.require(s.layout.cover(0) >= p.m && s.layout.cover(1) >= p.n, "accumulators reach [{},{}] of [{},{}]",
                      s.layout.cover(0), s.layout.cover(1), p.m, p.n);
    findings_.require(p.warps_m >= 1 && p.warps_n >= 1 && p.warps_m * p.warps_n <= role_->warps,
                      "{} x {} warps in a role of {}", p.warps_m, p.warps_n, role_->warps);
    if (p.kind == ProductKind::thin) {
      findings_.require(p.a.value && p.b.value, "registers are multiplied with registers");
      findings_.require(!p.partial || p.lanes_k || p.warps_k, "sums stay apart that are whole");
      return;
    }
    const int step = p.kind == ProductKind::tensor ? (p.type == ElementType::tf32 ? 8 : 16) : 4;
    const int k = (p.k + step - 1) / step * step;
    operand(p.a, s.layout.cover(0), k, true);
    operand(p.b, s.layout.cover(1), k, false);
    if (p.kind == ProductKind::tensor) {
      findings_.require(s.layout.cover(0) % (16 * p.warps_m) == 0 && s.layout.cover(1) % (8 * p.warps_n) == 0,
                        "accumulators of [{},{}] are no instructions of {} x {} warps", s.layout.cover(0),
                        s.layout.cover(1), p.warps_m, p.warps_n);
      findings_.require(s.layout == accumulator_layout({p.m, p.n}, p.warps_m, p.warps_n),
                        "accumulators lie as {}, and the instruction leaves them as {}", to_string(s.layout),
                        to_string(accumulator_layout({p.m, p.n}, p.warps_m, p.warps_n)));
      if (p.a.value)
        findings_.require(
            plan_.values[p.a.value].layout == accumulator_layout({p.m, p.k}, p.warps_m, 1) && p.warps_n == 1,
            "{} does not lie as the left operand", name_of(plan_, p.a.value));
    }
  }
  void operand(const ProductOperand& o, int other, int k, bool left) {
    if (!o.buffer) return findings_.require(left, "the right operand is in no buffer");
    const Buffer& buffer = plan_.buffers[o.buffer];
    const std::string name = name_of(plan_, o.buffer);
    const int rows = o.k_major ? other : k, columns = o.k_major ? k : other;
    findings_.require(buffer.rows >= rows && buffer.columns >= columns, "{} is [{},{}], and [{},{}] is read", name,
                      buffer.rows, buffer.columns, rows, columns);
    findings_.require(o.stored == buffer.type, "{} holds {}, and {} is read", name, tessera::name(buffer.type),
                      tessera::name(o.stored));
    findings_.require(bool(o.stage) == (buffer.stages > 1), "{} has {} stages, and {} is named", name, buffer.stages,
                      o.stage ? "a loop" : "no loop");
    bool inside = !o.stage;
    for (const Loop* loop : loops_) inside |= loop->loop == o.stage && loop->stages == buffer.stages;
    findings_.require(inside, "{} is read by the stage of a loop that is not around, or has others", name);
  }

  Findings& findings_;
  const Plan& plan_;
  const Role* role_ = nullptr;
  std::vector<const Loop*> loops_;
};

}  // namespace

void check_accesses(Findings& findings) { Accesses(findings).run(); }

}  // namespace tessera::codegen
