// Reads one view into one problem, field by field in the order of the schema, and refuses the first
// field that is wrong.
#pragma once

#include <Eigen/Core>
#include <mutex>
#include <utility>

#include "solver/parallel/task_arena.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/input_checker.h"

namespace sap {

inline constexpr std::string_view kAngularContacts =
    "contacts with a torsional or rolling coefficient > 0";

// Entry i of an optional array.
inline double ValueOr(std::span<const double> values, int64_t i, double otherwise) {
  return values.empty() ? otherwise : values[i];
}

// The arrays that contacts and body contacts share, of one of these messages.
struct LawMessage {
  std::string_view group;  // "contacts."
  const ContactProblemView::Law& law;
  Needed why;
  int first_contact;  // of the problem
  int first_angular;  // the same among contacts with angular Jacobians

  FieldName Field(std::string_view array) const { return {group, array}; }
  // False beyond the end of `law`, whose length may not have been checked.
  bool IsHuntCrossley(int64_t i) const;
  bool HasHuntCrossley() const;
  bool IsAngular(int64_t i) const;
};

class ContactProblemReader {
 public:
  // `arena`: null: the calling thread reads all.
  ContactProblemReader(const ContactProblemView& view, const ProblemLimits& limits,
                       TaskArena* arena, ContactProblem* problem)
      : view_(view), limits_(limits), arena_(arena), p_(*problem) {}

  // After an error the problem is the empty one. `islands`: those of the problem; null: they are to
  // be found.
  tl::expected<void, ProblemError> Read(const Islands* islands);

 private:
  // Calls read(i, check) for i in [0, count), ranges of them on the threads of the arena. What is
  // refused of the first range that has anything is the first of all.
  template <typename ReadOne>
  void ForAll(int count, const Chunks& cut, const ReadOne& read);

  // Each returns at once where something has been refused before.
  void ReadScalars();
  void ReadCounts();
  // Trees and bodies (read_trees.cc).
  void ReadTrees();
  void ReadTreeSizes();
  void ReadDynamicsMatrix(int tree);
  // Blocks of A between trees (read_couplings.cc).
  void ReadCouplings();
  void CheckCouplings(int64_t* block_size);
  void FactorCoupledTrees();
  void ReadBodies();
  void ReadBodyMatrix(int body, InputChecker* check);
  void CheckNames();
  void AppendTree(int dofs);
  void CheckInitialVelocity(const FieldName& field, std::span<const double> v_0, int64_t needed,
                            const Needed& why);
  void AppendVelocities(std::span<const double> v_star, std::span<const double> guess,
                        std::span<const double> v_0);
  void AppendNames(std::span<const uint32_t> names, int count);
  // Contacts and body contacts (read_contacts.cc).
  void ReadContacts();
  void ReadBodyContacts();
  void ReadBodyContact(int64_t i, int contact, InputChecker* check);
  Eigen::Matrix3d ReadFrame(int64_t i, InputChecker* check) const;
  void ReadPairsOfTrees(const Needed& why);
  void ReadParts(const Needed& why);
  void CheckParts();
  void AppendPairs(std::span<const int32_t> a, std::span<const int32_t> b, int first_tree);
  void SizeJacobians(int first_contact);
  // Checks that both kinds of contacts have in common (read_law.cc), in the order of the calls.
  LawMessage MessageOf(std::string_view group, const ContactProblemView::Law& law,
                       const Needed& why) const;
  void CheckCompliance(const LawMessage& m);
  void CheckStiffness(const LawMessage& m);
  void CheckFriction(const LawMessage& m);
  void CheckCoefficients(const LawMessage& m, std::string_view array,
                         std::span<const double> values, int per_contact,
                         std::span<const double> isotropic);
  void AppendAngular(const LawMessage& m);
  void CheckTargets(const LawMessage& m);
  void CheckLaws(const LawMessage& m);
  void CheckHuntCrossley(const LawMessage& m);
  void AppendLaw(const LawMessage& m);
  void AppendKinds(const LawMessage& m);
  void AppendHuntCrossley(const LawMessage& m, int64_t i);
  // Constraint rows (read_rows.cc).
  void ReadRows();
  void ReadRowEntries();
  int64_t ReadEntriesOfRow(int64_t row);
  void RefuseRowEntry(int64_t entry);
  void CheckRowArrays(const Needed& why);
  void CheckRowBounds();
  void ReadRow(int64_t row);
  void CheckRowRegularization(int64_t row);

  const ContactProblemView& view_;
  const ProblemLimits& limits_;
  TaskArena* const arena_;
  ContactProblem& p_;
  InputChecker check_;
  int num_trees_{0};
  int num_bodies_{0};
  std::vector<int64_t> last_contact_;  // of each tree, where contacts are checked by parts
};

template <typename ReadOne>
void ContactProblemReader::ForAll(int count, const Chunks& cut, const ReadOne& read) {
  std::mutex mutex;
  int refused = count;  // where the first range begins that has been refused
  ForChunks(arena_, 0, count, cut, [&](int begin, int end, int) {
    InputChecker check;
    for (int i = begin; i < end && check.ok(); ++i) read(i, &check);
    if (check.ok()) return;
    const std::lock_guard lock(mutex);
    if (begin >= refused) return;
    refused = begin;
    check_ = std::move(check);
  });
}

}  // namespace sap
