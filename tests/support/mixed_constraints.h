// Constraints that can be added to MixedProblem (tests/support/scenes.h): rows, and contacts that
// are not plain friction. Every array is filled by allowed values.
#pragma once

#include <string>

#include "sap/v1/problem.pb.h"

namespace sap::test {

// Three rows with seven entries: over two trees, over two trees and two bodies, of one velocity.
// Seven pairs of trees. No optional array.
void AddRows(v1::ContactProblem* problem);

// A block of the dynamics matrix between the first two trees.
void AddCoupling(v1::ContactProblem* problem);

// Contacts by Jacobian that name their trees in `parts` in place of tree_a and tree_b.
void NameTreesByParts(v1::ContactProblem* problem);

// Torsional and rolling friction of every contact of the group, "contacts" or "body_contacts", with
// angular Jacobians and targets.
void AddAngularFriction(const std::string& group, v1::ContactProblem* problem);

// A tangent of every body contact.
void AddTangents(v1::ContactProblem* problem);

// The lagged law of Hunt & Crossley for every contact of the group.
void MakeHuntCrossley(const std::string& group, v1::ContactProblem* problem);

}  // namespace sap::test
