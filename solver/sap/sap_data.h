// What changes with the velocity v during a solve, over all islands, and its evaluation for one
// island at a time.
//
//   v_c = J v,   gamma = P_F(-R^-1 (v_c - v_hat)),   grad l = A (v - v*) - J' gamma
//
// Trees and contacts are in the order of the contact graph, masses in the unit of the island (see
// SapModel).
#pragma once

#include <vector>

#include "solver/parallel/task_arena.h"
#include "solver/problem/contact_graph.h"
#include "solver/sap/friction_contacts.h"
#include "solver/sap/sap_model.h"

namespace sap {

// Norms of one island at the current v, scaled by D = diag(A)^-1/2 as in the paper's stopping test
// (Section IV-E).
struct IslandNorms {
  double gradient{0};  // |D grad l|
  double momentum{0};  // |D A v|
  double impulse{0};   // |D J' gamma|
  double cost{0};      // l(v)
  bool finite{true};
};

// Sums over one chunk of an island, added up in the order of chunks.
struct PartialSums {
  double gradient2{0}, momentum2{0}, impulse2{0}, cost{0};
};

// The same for the certificate: of A^-1/2 grad l and its rounding error.
struct PartialNorms {
  double gradient2{0}, error2{0};
};

struct SapData {
  std::vector<double> v;                // velocity
  std::vector<double> v_before;         // velocity before the last step
  std::vector<double> v_before_sweep;   // and before the sweep after it
  std::vector<double> momentum_change;  // A (v - v*)
  std::vector<double> gradient;         // grad l
  std::vector<double> step;             // Newton step dv
  std::vector<double> momentum_step;    // A dv
  ContactVectors v_c;                   // contact velocity less that of the surface
  ContactVectors gamma;                 // impulse
  ContactVectors v_c_step;              // J dv
  ContactMatrices G;                    // -d gamma / d v_c
  DualDirections w;                     // of the accelerated method

  // Scratch of sums by chunks: chunk c of slots at slot_sums[slot_begin + c], of contacts or pairs
  // likewise.
  std::vector<PartialSums> slot_sums;
  std::vector<PartialNorms> slot_norms;
  std::vector<LineSlope> slot_slopes;
  std::vector<double> contact_costs;
  std::vector<LineSlope> contact_slopes;

  void Resize(const ContactGraph& graph);
};

// Sizes of chunks, on which the order of sums depends.
constexpr int kSlotsPerChunk = 32;
constexpr int kPairsPerChunk = 64;
constexpr int kContactsPerChunk = 512;
// The cone of so many contacts.
constexpr Chunks kConeChunks{kContactsPerChunk, 2500};

// What the evaluations work on: the constants, the part of the arrays that belongs to one island,
// and the arena in which a large island is shared out (null: the calling thread does it all).
struct IslandView {
  const ContactGraph& graph;
  const SapModel& model;
  int island;
  TaskArena* arena;

  const IslandRange& range() const { return graph.island_ranges()[island]; }
  const IslandConstants& constants() const { return model.constants(island); }
};

// v_c := J u for velocities u of the island; part of it if it was stopped.
void ContactVelocities(const IslandView& view, const std::vector<double>& u, const StopToken& stop,
                       ContactVectors* v_c);

// Everything that follows from data->v: contact velocities, impulses, gradient and norms. They mean
// nothing after a cancellation.
IslandNorms Evaluate(const IslandView& view, SapData* data, const StopToken& stop = StopToken());

}  // namespace sap
