// What a solve computes from the velocity v, and the evaluation of it for one island at a time.
//
//   v_c = J v,   gamma = P_F(-R^-1 (v_c - v_hat)),   grad l = A (v - v*) - J' gamma
//
// Arrays are over all islands, trees and contacts in the order of the contact graph, masses in the
// unit of the island (see SapModel). Four types never share memory:
//
//   SapModel    constant during a solve
//   SapData     functions of v, and v itself
//   SapStep     a direction in which v is moved
//   SapScratch  temporaries of single functions, which no other function reads
#pragma once

#include <vector>

#include "solver/problem/contact_graph.h"
#include "solver/sap/friction_contacts.h"
#include "solver/sap/loop_costs.h"
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

struct SapData {
  std::vector<double> v;                // velocity
  std::vector<double> momentum_change;  // A (v - v*)
  std::vector<double> gradient;         // grad l
  ContactVectors v_c;                   // contact velocity less that of the surface
  ContactVectors gamma;                 // impulse
  ContactMatrices G;                    // -d gamma / d v_c
  DualDirections s;                     // dual directions of the accelerated method

  void Resize(const ContactGraph& graph);
};

struct SapStep {
  std::vector<double> v;         // dv
  std::vector<double> momentum;  // A dv
  ContactVectors v_c;            // J dv

  void Resize(const ContactGraph& graph);
};

// Sums over one chunk of an island, added up in the order of chunks.
struct PartialSums {
  double gradient2{0}, momentum2{0}, impulse2{0}, cost{0};
};

// The same for the certificate: of A^-1/2 grad l and its rounding error.
struct PartialNorms {
  double gradient2{0}, error2{0};
};

struct SapScratch {
  std::vector<double> difference;  // v - v*
  std::vector<double> momentum;    // A v
  // Chunk c of the slots of an island is at slot_begin + c, of its contacts or pairs at
  // contact_begin + c.
  std::vector<PartialSums> slot_sums;
  std::vector<PartialNorms> slot_norms;
  std::vector<LineSlope> slot_slopes;
  std::vector<double> contact_costs;
  std::vector<LineSlope> contact_slopes;
  ContactVectors impulse_errors;  // of the certificate

  void Resize(const ContactGraph& graph);
};

// What the functions of this folder work on: the constants, the part of the arrays that belongs to
// one island, and the arena in which a large island is shared out (null: the calling thread does it
// all).
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

// Everything that follows from data->v but G and s: contact velocities, impulses, gradient and
// norms. They mean nothing after a cancellation.
IslandNorms Evaluate(const IslandView& view, SapData* data, SapScratch* scratch,
                     const StopToken& stop = StopToken());

}  // namespace sap
