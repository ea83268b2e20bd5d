// Reads one view into one problem, field by field in the order of the schema, and refuses the first
// field that is wrong.
#pragma once

#include "solver/problem/contact_problem.h"
#include "solver/problem/input_checker.h"

namespace sap {

class ContactProblemReader {
 public:
  ContactProblemReader(const ContactProblemView& view, const ProblemLimits& limits,
                       ContactProblem* problem)
      : view_(view), limits_(limits), p_(*problem) {}

  // After an error the problem is the empty one.
  tl::expected<void, ProblemError> Read();

 private:
  // Each returns at once where something has been refused before.
  void ReadScalars();
  void ReadCounts();
  // Trees and bodies (read_trees.cc).
  void ReadTrees();
  void ReadTreeSizes();
  void ReadDynamicsMatrix(int tree);
  void ReadBodies();
  void ReadBodyMatrices();
  void CheckNames();
  void AppendTree(int dofs);
  void AppendVelocities(std::span<const double> v_star, std::span<const double> guess);
  void AppendNames(std::span<const uint32_t> names, int count);
  // Contacts and body contacts (read_contacts.cc).
  void ReadContacts();
  void ReadBodyContacts();
  void ReadBodyContact(int64_t i, int contact);
  void ReadLaw(std::string_view group, const ContactProblemView::Law& law, const Needed& why);
  void AppendContact(int tree_a, int tree_b);

  const ContactProblemView& view_;
  const ProblemLimits& limits_;
  ContactProblem& p_;
  InputChecker check_;
  int num_trees_{0};
  int num_bodies_{0};
};

}  // namespace sap
