// Every id names something, and what must be named once is.
#include <map>
#include <set>

#include "codegen/plan/verify.hpp"

namespace tessera::codegen {
namespace {

class Ids {
 public:
  explicit Ids(Findings& findings) : findings_(findings), plan_(findings.plan) {}

  void run() {
    for (int i = 0; i < plan_.values.size(); ++i)
      findings_.require(plan_.storages.has(plan_.values[ValueId{i}].storage), "value {} has no storage", i);
    for (int i = 0; i < plan_.storages.size(); ++i) known(i, plan_.storages[StorageId{i}]);
    for (int i = 0; i < plan_.cursors.size(); ++i)
      findings_.require(plan_.rings.has(plan_.cursors[CursorId{i}].ring), "cursor {} is in no ring", i);
    for (const Ring& ring : plan_.rings)
      for (BufferId id : ring.buffers) buffer(id);
    for (const Phase& phase : plan_.phases) {
      body(phase.prologue);
      for (const Role& role : phase.roles) body(role.body);
    }
    for (const auto& [loop, times] : loops_)
      findings_.require(times == 1, "loop {} stands {} times in the plan", loop.index, times);
  }

 private:
  void known(int index, const Storage& storage) {
    const int tensors = static_cast<int>(plan_.tensors.size());
    std::visit(
        Overloaded{
            [](std::monostate) {},
            [&](const ScalarParameter& s) {
      findings_.require(s.argument >= 0 && s.argument < tensors, "storage {} is no parameter's scalar", index);
            },
            [&](const ExtentParameter& s) {
      const bool has = s.argument >= 0 && s.argument < tensors && s.axis >= 0 &&
                       s.axis < plan_.tensors[static_cast<std::size_t>(s.argument)].rank;
      findings_.require(has, "storage {} is no tensor's extent", index);
        },
        [&](const BlockIndex& s) {
      int axes = 0;
      for (const Phase& phase : plan_.phases) axes = std::max(axes, phase.first_axis + phase.axes);
      findings_.require(s.axis >= 0 && s.axis < axes, "storage {} is no block's index", index);
        },
        [&](const Counter& s) { findings_.require(plan_.loops.has(s.loop), "storage {} counts no loop", index); },
        }, storage.known);
  }

  void body(const Body& steps) {
    for (const Step& step : steps) {
      findings_.about(nullptr);  // a step whose ids name nothing has no text
      for (ValueId id : operands(step)) value(id);
      for (ValueId id : results(step)) value(id);
      std::visit(
          Overloaded{
              []<OneOf<Compute, Load, Store, Reduce, Argmax, Replicas, Partials, Commit, Wait, Barrier, Branch, Elected,
                       TileLoop>
                     T>(const T&) {},
              [&]<OfRoles T>(const T& s) {
        if constexpr (requires { s.buffer; }) buffer(s.buffer);
        if constexpr (requires { s.map; })
          findings_.require(plan_.tensor_maps.has(s.map), "a step names tensor map {}, which is none", s.map.index);
        if constexpr (requires { s.ring; }) ring(s.ring);
        if constexpr (OneOf<T, Wgmma>) {
          buffer(s.a);
          buffer(s.b);
          if (s.cursor.index != -1) cursor(s.cursor);
        } else if constexpr (requires { s.cursor; }) {
          cursor(s.cursor);
        }
        if constexpr (OneOf<T, Release>)
          if (s.not_first.index != -1) loop(s.not_first);
              },
              [&]<OneOf<PutPartials, TakePartials, Put, Scan, Get> T>(const T& s) { scratch(s.scratch); },
              [&]<OneOf<Stage, Clear> T>(const T& s) { buffer(s.buffer); },
              [&](const Fetch& s) {
        for (const Fetch::Tile& tile : s.tiles) buffer(tile.buffer);
        if (s.loop.index != -1) loop(s.loop);
          },
          [&](const Multiply& s) {
        for (const ProductOperand* o : {&s.product.a, &s.product.b}) {
          if (o->buffer.index != -1) buffer(o->buffer);
          if (o->stage.index != -1) loop(o->stage);
          findings_.require(bool(o->buffer) != bool(o->value),
                            "an operand of a product is either in a buffer or in registers");
        }
          },
          [&](const Loop& s) {
        loop(s.loop);
        ++loops_[s.loop];
      },
          }, step.action);
      each_body(step, [&](const Body& inner) { body(inner); });
    }
  }
  void value(ValueId id) { findings_.require(plan_.values.has(id), "a step names value {}, which is none", id.index); }
  void buffer(BufferId id) {
    findings_.require(plan_.buffers.has(id), "a step names buffer {}, which is none", id.index);
  }
  void scratch(ScratchId id) {
    findings_.require(plan_.scratch.has(id), "a step names scratch memory {}, which is none", id.index);
  }
  void ring(RingId id) { findings_.require(plan_.rings.has(id), "a step names ring {}, which is none", id.index); }
  void cursor(CursorId id) {
    findings_.require(plan_.cursors.has(id), "a step names cursor {}, which is none", id.index);
  }
  void loop(LoopId id) { findings_.require(plan_.loops.has(id), "a step names loop {}, which is none", id.index); }

  Findings& findings_;
  const Plan& plan_;
  std::map<LoopId, int> loops_;
};

void check_names(Findings& findings) {
  const Plan& plan = findings.plan;
  std::set<std::string> names;
  const auto name = [&](const std::string& name) {
    findings.require(names.insert(name).second, "two things of the plan are called {}", name);
  };
  std::set<std::string> known;  // several storages may be one scalar, extent or index: they are never written
  for (int i = 0; i < plan.storages.size(); ++i)
    if (std::holds_alternative<std::monostate>(plan.storages[StorageId{i}].known))
      name(name_of(plan, StorageId{i}));
    else
      known.insert(name_of(plan, StorageId{i}));
  for (const std::string& one : known) name(one);
  for (int i = 0; i < plan.buffers.size(); ++i) name(name_of(plan, BufferId{i}));
  for (int i = 0; i < plan.rings.size(); ++i) name(name_of(plan, RingId{i}));
  for (int i = 0; i < plan.cursors.size(); ++i) name(name_of(plan, CursorId{i}));
  for (int i = 0; i < plan.tensor_maps.size(); ++i) name(name_of(plan, TensorMapId{i}));
  std::set<std::string> counters;
  for (int i = 0; i < plan.loops.size(); ++i) {
    const std::string counter = name_of(plan, LoopId{i});
    findings.require(counters.insert(counter).second, "two loops count by {}", counter);
  }
}

}  // namespace

bool check_ids(Findings& findings) {
  Ids(findings).run();
  if (!findings.found.empty()) return false;
  check_names(findings);
  return true;
}

}  // namespace tessera::codegen
