// What is constant during a solve, gathered in the order of the contact graph.
//
//   l(v) = 1/2 |v - v*|_A^2 + sum_i 1/2 gamma_i' R_i gamma_i    the paper's primal cost, Sec. III-C
//   R_n  = max(beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau_d)))    Sec. V-B
//   R_t  = sigma w
//   w    = |J A^-1 J'|_F / 3
//
// Masses are in a unit of the island's own, the power of two next to its largest diagonal entry of
// A, so that the solve never meets numbers far from one and a problem whose masses and stiffnesses
// are scaled by a power of two is solved with the same bits. Velocities do not change with the
// unit; impulses, costs and 1/R are in it.
#pragma once

#include <span>
#include <vector>

#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/contact_graph.h"
#include "solver/problem/contact_problem.h"
#include "solver/sap/friction_contacts.h"

namespace sap {

struct IslandConstants {
  double mass_unit{1};       // in units of the problem
  double trace_A{0};         // of the scaled A
  bool representable{true};  // false: a constant of a tree or contact left the range of doubles
};

// Arrays over all islands. Storage only grows; islands are filled independently of each other, also
// concurrently.
class SapModel {
 public:
  // Makes room for every island of the graph, which must outlive the model's use.
  void Resize(const ContactGraph& graph);

  // Fills the ranges of one island, a large one with the threads of the arena (may be null). What
  // is cancelled meanwhile is left half filled.
  void Gather(const ContactProblem& problem, const ContactGraph& graph, int island,
              const StopToken& stop, TaskArena* arena);

  const IslandConstants& constants(int island) const { return constants_[island]; }
  const FrictionContacts& contacts() const { return contacts_; }

  const double* A(const ContactGraph& graph, int slot) const {
    return A_.data() + graph.matrix_start()[slot];
  }
  // L D L' of A: L below the diagonal, the inverse of D on it.
  const double* A_factor(const ContactGraph& graph, int slot) const {
    return A_factor_.data() + graph.matrix_start()[slot];
  }
  std::span<const double> D() const { return D_; }  // diag(A)^-1/2, per velocity
  std::span<const double> v_star() const { return v_star_; }
  // J_low, then J_high, of a contact.
  const double* J(const ContactPair& pair, int contact) const {
    return J_.data() + JacobianStart(pair, contact);
  }
  const double* J(const ContactPair& pair, int contact, bool high) const {
    return J(pair, contact) + (high ? 3 * pair.dofs_low : 0);
  }

 private:
  static int64_t JacobianStart(const ContactPair& pair, int contact) {
    return pair.jacobian_start + static_cast<int64_t>(contact - pair.contact_begin) * 3 *
                                     (pair.dofs_low + pair.dofs_high);
  }
  void GatherTrees(const ContactProblem& problem, const ContactGraph& graph, int island);
  // Of pairs [pair_begin, pair_end) of the island; false if a constant left the range of doubles.
  bool GatherContacts(const ContactProblem& problem, const ContactGraph& graph, int island,
                      int pair_begin, int pair_end, const StopToken& stop);
  // The law of contact i in graph order, of which the Jacobian has been gathered.
  bool GatherLaw(const ContactProblem& problem, const ContactGraph& graph, int island,
                 const ContactPair& pair, int i);
  double DelassusEstimate(const ContactGraph& graph, const ContactPair& pair, int contact,
                          DelassusRule rule) const;

  std::vector<IslandConstants> constants_;
  GrowingBuffer<double> A_;
  GrowingBuffer<double> A_factor_;
  std::vector<double> D_;
  std::vector<double> v_star_;
  GrowingBuffer<double> J_;
  FrictionContacts contacts_;
};

}  // namespace sap
