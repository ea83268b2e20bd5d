// Small and large contact problems, generated.
#pragma once

#include "client/cpp/problem.h"
#include "sap/v1/problem.pb.h"

namespace sap::test {

// Both problem forms at once: two trees of 2 and 3 dofs and two bodies; contacts tree to tree, tree
// to world and tree to body; contacts body to body and body to world. Every required array of the
// schema is filled, and it has one well-conditioned solution.
v1::ContactProblem MixedProblem();

// The members of MixedProblem with a constraint of every kind: SAP contacts, general cones, both
// laws of Hunt & Crossley, and a limit, a coupler, a weld, a tendon, a motor and dry friction as
// rows.
client::Problem EveryConstraint();

// A block of count^3 spheres, each pressed against its neighbours and the lowest layer against the
// floor: one island. Solving a block of 1000 takes long enough to be interrupted, since no warm
// start is near its solution.
client::Problem SphereBlock(int count);

// Stacks of balls next to each other: as many islands. One of 12 balls is worth some 60 us.
client::Problem Stacks(int stacks, int height);

}  // namespace sap::test
