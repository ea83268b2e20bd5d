// The arrays of a contact problem as structs, made from the list in problem_fields.inc.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace sap {

// How w is estimated: |J A^-1 J'|_F / 3 with the inverse of A, or with that of its diagonal; or the
// first, and no more than the load that the contact carries allows.
enum class DelassusRule : uint8_t { kFull, kDiagonal, kLoadPath };

// Which function gives the impulse of a contact from its velocity; values as on the wire.
enum class ContactLaw : uint8_t { kSap = 1, kHuntCrossleyLagged = 2, kHuntCrossleySimilar = 3 };

// Entities that an array has values for.
enum class Per : uint8_t {
  kEntry,            // each tree, body, contact or row of its group
  kVelocity,         // each dof of each tree
  kMatrix,           // each entry of the n_t x n_t matrix of each tree
  kCoupling,         // each pair of coupled trees
  kCouplingBlock,    // each entry of the n_a x n_b matrix of each of these
  kContactPart,      // each tree that each contact touches
  kJacobian,         // each entry of the 3 x n blocks of each contact
  kAngularContact,   // each contact with a torsional or rolling coefficient > 0
  kAngularJacobian,  // each entry of the blocks of these contacts
  kTerm,             // each non-zero of each row
};

// Meaning of an empty array.
enum class Absent : uint8_t {
  kRequired,  // nothing: it is empty where there is nothing to describe, or where it is not read
  kRule,      // a rule takes its place, so that there is no derivative with respect to it
  kNumber,    // a number, so that a derivative with respect to it is as long as if it were given
};

inline constexpr bool kInput = true;
inline constexpr bool kNoInput = false;

// A line of problem_fields.inc.
template <typename Type>
struct ProblemField {
  using Value = Type;

  std::string_view name;
  int columns;
  Per per;
  Absent absent;
  bool input;
};

struct Regularization {
  double beta{1};
  double sigma{1e-3};
  DelassusRule rule{DelassusRule::kFull};
  double row_beta{0.1};
  double stiction_speed{1e-4};  // m/s
  // u_ref of kLoadPath [m/s]; infinite: none
  double load_reference_speed{std::numeric_limits<double>::infinity()};
  // h [s]: time step whose dashpots and near-rigid springs R stands for; 0, as where it is absent:
  // that of the problem.
  double reference_time_step{0};

  // Hardly any sag and creep.
  static Regularization Rigid() { return {.beta = 0.01, .sigma = 1e-6, .row_beta = 1e-3}; }

  // visit(name, is_input, numbers.name...) for each number, of any structs with these members.
  template <typename Visit, typename... Numbers>
  static void ForEach(const Visit& visit, Numbers&... numbers) {
#define SAP_NUMBER(name, input) visit(#name, input, numbers.name...);
#include "solver/problem/problem_fields.inc"
  }
};

// Each group has, for any structs with members of the same names,
//
//   ForEach(visit, groups...)    visit(field, groups.name...) for each array of the group
#define SAP_MEMBER(type, name, ...) Array<type> name{};
#define SAP_VISIT(type, name, columns, per, absent, input) \
  visit(ProblemField<type>{#name, columns, Per::per, Absent::absent, input}, groups.name...);

// The arrays of one problem: spans where they are read, vectors where they are owned. An optional
// array that is absent is empty.
template <template <typename> typename Array>
struct ContactProblemArrays {
  struct Trees {
#define SAP_TREE SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_TREE SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  struct RigidBodies {
#define SAP_BODY SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_BODY SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  struct HuntCrossley {
#define SAP_HUNT_CROSSLEY SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_HUNT_CROSSLEY SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  struct Law {
#define SAP_LAW SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    HuntCrossley hunt_crossley;
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_LAW SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  struct Contacts {
#define SAP_CONTACT SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    Law law;
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_CONTACT SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  struct BodyContacts {
#define SAP_BODY_CONTACT SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    Law law;
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_BODY_CONTACT SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  struct Rows {
#define SAP_ROW SAP_MEMBER
#include "solver/problem/problem_fields.inc"
    template <typename Visit, typename... Groups>
    static void ForEach(const Visit& visit, Groups&... groups) {
#define SAP_ROW SAP_VISIT
#include "solver/problem/problem_fields.inc"
    }
  };
  using Regularization = sap::Regularization;

  double time_step{0};  // dt > 0 [s]
  Trees trees;
  RigidBodies bodies;
  Contacts contacts;
  BodyContacts body_contacts;
  Rows rows;
  Regularization regularization;
};

#undef SAP_MEMBER
#undef SAP_VISIT

template <typename Value>
using ConstSpan = std::span<const Value>;
template <typename Value>
using OwnedArray = std::vector<Value>;
using ContactProblemView = ContactProblemArrays<ConstSpan>;
using OwnedContactProblem = ContactProblemArrays<OwnedArray>;

// The number of contacts by Jacobian, of which every one names its trees in `parts` or every one in
// tree_a and tree_b.
template <typename Contacts>
int64_t CountContacts(const Contacts& contacts) {
  const size_t count = contacts.parts.empty() ? contacts.tree_a.size() : contacts.parts.size();
  return static_cast<int64_t>(count);
}

// visit(prefix, problems.group...) for each group of arrays, in the order of the problem; `prefix`
// is what stands before the name of an array on the wire, as "contacts.".
template <typename Visit, typename... Problems>
void ForEachGroup(const Visit& visit, Problems&... problems) {
  visit("trees.", problems.trees...);
  visit("bodies.", problems.bodies...);
  visit("contacts.", problems.contacts...);
  visit("contacts.", problems.contacts.law...);
  visit("contacts.hunt_crossley.", problems.contacts.law.hunt_crossley...);
  visit("body_contacts.", problems.body_contacts...);
  visit("body_contacts.", problems.body_contacts.law...);
  visit("body_contacts.hunt_crossley.", problems.body_contacts.law.hunt_crossley...);
  visit("rows.", problems.rows...);
}

// visit(prefix, field, problems.group.name...) for each array; all are ContactProblemArrays.
template <typename Visit, typename... Problems>
void ForEachArray(const Visit& visit, Problems&... problems) {
  ForEachGroup(
      [&visit]<typename Group>(std::string_view prefix, Group& group, auto&... groups) {
        Group::ForEach([&](const auto& field, auto&... arrays) { visit(prefix, field, arrays...); },
                       group, groups...);
      },
      problems...);
}

// The problem is not copied.
inline ContactProblemView ViewOf(const OwnedContactProblem& problem) {
  ContactProblemView view;
  view.time_step = problem.time_step;
  view.regularization = problem.regularization;
  ForEachArray([](std::string_view, const auto&, auto& span, const auto& array) { span = array; },
               view, problem);
  return view;
}

}  // namespace sap
