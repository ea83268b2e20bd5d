#include "solver/model/load_paths.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/pools/jacobian_kernels.h"
#include "solver/pools/loop_costs.h"

namespace sap {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Levels that masses are passed along, at most.
constexpr int kMostRounds = 64;
// Relative change of the masses of a component below which they are settled.
constexpr double kSettled = 1e-3;
// Contacts that a tree presses on less squarely than this, as steep walls, carry nothing of it.
constexpr double kLeastSquareness = 0.2;

// Calls body(layout, contact group) for each kind of contact that two trees have. Under this rule
// no contact touches more.
template <typename Body>
void ForContactsOfPair(const ConstraintGraph& graph, int pair, Body&& body) {
  for (int kind = 0; kind < kNumContactKinds; ++kind) {
    const auto constraint_kind = static_cast<ConstraintKind>(kind);
    const ContactLayout& layout = graph.contacts(constraint_kind);
    const IndexRange range = graph.couplings(constraint_kind, pair);
    for (int c = range.begin; c < range.end; ++c) {
      body(layout, layout.groups()[layout.couplings()[c].unit]);
    }
  }
}

// Calls body(layout, contact group) for each kind of contact between a tree and the world.
template <typename Body>
void ForWorldContacts(const ConstraintGraph& graph, int slot, Body&& body) {
  for (int kind = 0; kind < kNumContactKinds; ++kind) {
    const ContactLayout& layout = graph.contacts(static_cast<ConstraintKind>(kind));
    for (const ContactSide& side : layout.sides_of(slot)) {
      const ContactGroup& group = layout.groups()[side.group];
      if (group.num_parts() == 1) body(layout, group);
    }
  }
}

}  // namespace

void LoadPaths::Resize(const ContactProblem& problem, const ConstraintGraph& graph) {
  d_.resize(graph.velocity_start().back());
  pairs_.resize(graph.pairs().size());
  world_pairs_.resize(graph.num_slots());
  trees_.resize(graph.num_slots());
  bounds_.resize(problem.num_contacts());
}

void LoadPaths::Find(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                     const double* A, const StopToken& stop, TaskArena* arena) {
  const Island of{problem, graph, A, graph.island_ranges()[island], arena};
  MeasurePairs(of);
  if (stop.Cancelled()) return;
  ShareLoads(of);
  JoinComponents(of);
  PassLoads(of, stop);
  if (stop.Cancelled()) return;
  BoundContacts(of);
}

template <typename Body>
void LoadPaths::ForPairs(const Island& island, Body&& body) {
  for (int p = island.range.pair_begin; p < island.range.pair_end; ++p) {
    if (pairs_[p].contacts > 0) body(&pairs_[p]);
  }
  for (int slot = island.range.slot_begin; slot < island.range.slot_end; ++slot) {
    if (world_pairs_[slot].contacts > 0) body(&world_pairs_[slot]);
  }
}

// body(pair, side of the tree).
template <typename Body>
void LoadPaths::ForPairsOf(const Island& island, int slot, Body&& body) {
  for (const PairSide& side : island.graph.sides_of(slot)) {
    Pair& pair = pairs_[side.pair];
    if (pair.contacts > 0) body(pair, &pair.sides[side.is_high ? 1 : 0]);
  }
  Pair& pair = world_pairs_[slot];
  if (pair.contacts > 0) body(pair, &pair.sides[0]);
}

// d, and of every pair the number of contacts and what d does there.
void LoadPaths::MeasurePairs(const Island& island) {
  const ContactProblem& problem = island.problem;
  const ConstraintGraph& graph = island.graph;
  const IslandRange& range = island.range;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int from = problem.velocity_start()[graph.islands().tree_of_slot()[slot]];
    for (int i = 0; i < graph.dofs()[slot]; ++i) {
      d_[graph.velocity_start()[slot] + i] = problem.v_star()[from + i] - problem.v_0()[from + i];
    }
  }
  ForChunks(island.arena, range.pair_begin, range.pair_end, kEvaluateGroups,
            [&](int begin, int end, int) {
              for (int p = begin; p < end; ++p) {
                pairs_[p] = {.low = graph.pairs()[p].low, .high = graph.pairs()[p].high};
                ForContactsOfPair(graph, p,
                                  [&](const ContactLayout& layout, const ContactGroup& c) {
                                    AddContacts(island, layout, c, &pairs_[p]);
                                  });
              }
            });
  ForChunks(
      island.arena, range.slot_begin, range.slot_end, kEvaluateSlots, [&](int begin, int end, int) {
        for (int slot = begin; slot < end; ++slot) {
          Pair& pair = world_pairs_[slot];
          pair = {.low = slot, .high = -1};
          ForWorldContacts(graph, slot, [&](const ContactLayout& layout, const ContactGroup& c) {
            AddContacts(island, layout, c, &pair);
          });
        }
      });
}

void LoadPaths::AddContacts(const Island& island, const ContactLayout& layout,
                            const ContactGroup& contacts, Pair* pair) {
  const ContactProblem& problem = island.problem;
  const ConstraintGraph& graph = island.graph;
  const auto add = [&](const double* J, int slot, Side* side) {
    ContactVector<double> v{};
    ForSize(graph.dofs()[slot],
            [&](auto n) { AddJv(J, n, &d_[graph.velocity_start()[slot]], &v); });
    side->speed = std::max(side->speed, std::hypot(v.x, v.y, v.n));
    side->approach -= v.n;
  };
  pair->contacts += contacts.contact_end - contacts.contact_begin;
  for (int i = contacts.contact_begin; i < contacts.contact_end; ++i) {
    const double* J = problem.jacobian().data() + problem.jacobian_start()[layout.order()[i]];
    for (int side = 0; side < contacts.num_parts(); ++side) {
      const int part = contacts.part_begin + side;
      add(J + 3 * layout.source_column(contacts, i, part), layout.parts()[part].slot,
          &pair->sides[side]);
    }
  }
}

void LoadPaths::ShareLoads(const Island& island) {
  ForChunks(island.arena, island.range.slot_begin, island.range.slot_end, kEvaluateSlots,
            [&](int begin, int end, int) {
              for (int slot = begin; slot < end; ++slot) ShareLoadOf(island, slot);
            });
}

// u and m of a tree, and f and f own of its sides. Speeds are in units of u, so that their squares
// stay in the range of doubles.
void LoadPaths::ShareLoadOf(const Island& island, int slot) {
  Tree& tree = trees_[slot];
  tree = {.parent = slot};
  ForPairsOf(island, slot,
             [&](const Pair&, Side* side) { tree.speed = std::max(tree.speed, side->speed); });
  if (!(tree.speed > 0)) return;
  const int n = island.graph.dofs()[slot];
  const double* A = island.A + island.graph.matrix_start()[slot];
  const double* d = &d_[island.graph.velocity_start()[slot]];
  for (int i = 0; i < n; ++i) {
    double momentum = 0;
    for (int j = 0; j < n; ++j) momentum += A[i * n + j] * (d[j] / tree.speed);
    tree.mass += momentum * (d[i] / tree.speed);
  }
  double sum = 0;
  ForPairsOf(island, slot, [&](const Pair& pair, Side* side) {
    if (!(side->approach > 0)) return;
    const double squareness = side->approach / (pair.contacts * side->speed);
    const double root = std::max(0.0, (squareness - kLeastSquareness) / (1 - kLeastSquareness)) *
                        (side->speed / tree.speed);
    side->share = root * root;
    sum += side->share;
  });
  ForPairsOf(island, slot, [&](const Pair& pair, Side* side) {
    if (!(side->share > 0)) return;
    side->share /= sum;
    side->own = side->share * tree.mass * (tree.speed / side->speed) * (tree.speed / pair.speed());
  });
}

// Roots are the lowest slots of their components.
void LoadPaths::JoinComponents(const Island& island) {
  ForPairs(island, [&](Pair* pair) {
    if (pair->high < 0) return;
    const auto [lower, higher] = std::minmax({Root(pair->low), Root(pair->high)});
    trees_[higher].parent = lower;
  });
  for (int slot = island.range.slot_begin; slot < island.range.slot_end; ++slot) {
    trees_[Root(slot)].component_mass += trees_[slot].mass;
  }
}

int LoadPaths::Root(int slot) {
  while (trees_[slot].parent != slot) {
    trees_[slot].parent = trees_[trees_[slot].parent].parent;
    slot = trees_[slot].parent;
  }
  return slot;
}

// Each component has as many rounds as it would have alone.
void LoadPaths::PassLoads(const Island& island, const StopToken& stop) {
  for (int round = 0; round < kMostRounds && !stop.Cancelled(); ++round) {
    ForPairs(island, [&](Pair* pair) {
      if (pair->high < 0 || !trees_[Root(pair->low)].active) return;
      const auto& [low, high] = pair->sides;
      trees_[pair->high].next += low.own + low.share * trees_[pair->low].received;
      trees_[pair->low].next += high.own + high.share * trees_[pair->high].received;
    });
    if (!EndRound(island)) return;
  }
}

// Whether any component goes on. Bodies that lean on each other in a circle would pass their masses
// round and round; the mass of the component is the end of it.
bool LoadPaths::EndRound(const Island& island) {
  const auto [slot_begin, slot_end] = std::pair(island.range.slot_begin, island.range.slot_end);
  for (int slot = slot_begin; slot < slot_end; ++slot) {
    Tree& tree = trees_[slot];
    Tree& root = trees_[Root(slot)];
    if (!root.active) continue;
    const double received = std::min(tree.next, root.component_mass);
    root.changed |= std::abs(received - tree.received) > kSettled * received;
    tree.received = received;
    tree.next = 0;
  }
  bool any = false;
  for (int slot = slot_begin; slot < slot_end; ++slot) {
    Tree& tree = trees_[slot];
    tree.active = tree.changed;
    tree.changed = false;
    any |= tree.active;
  }
  return any;
}

void LoadPaths::BoundContacts(const Island& island) {
  const ConstraintGraph& graph = island.graph;
  const double u_ref = island.problem.regularization().load_reference_speed;
  ForPairs(island, [&](Pair* pair) {
    double M = 0;
    for (const auto& [side, slot] :
         {std::pair(pair->sides[0], pair->low), std::pair(pair->sides[1], pair->high)}) {
      if (slot >= 0) M += side.own + side.share * trees_[slot].received;
    }
    M = std::min(M, trees_[Root(pair->low)].component_mass);
    DelassusBounds bounds{kInfinity, kInfinity};
    if (M > 0 && std::isfinite(M)) {
      bounds.by_load = pair->contacts / M;
      if (pair->high >= 0) bounds.by_squeeze = bounds.by_load * (u_ref / pair->speed());
    }
    const auto set = [&](const ContactLayout& layout, const ContactGroup& contacts) {
      for (int i = contacts.contact_begin; i < contacts.contact_end; ++i) {
        bounds_[layout.order()[i]] = bounds;
      }
    };
    if (pair->high < 0) {
      ForWorldContacts(graph, pair->low, set);
    } else {
      ForContactsOfPair(graph, static_cast<int>(pair - pairs_.data()), set);
    }
  });
}

}  // namespace sap
