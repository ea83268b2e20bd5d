// How frame, Jacobians and velocities of a contact between bodies follow its point, its normal and
// tangent, and the centers of mass; in both directions.
//
// The frame turns with the normal by the small rotation theta, d e = theta x e for each axis e:
//
//   theta = n x dn + (t2 . d t1) n,   dn = (1 - n n') d(normal) / |normal|
//
// The second term is the spin about the normal that the rule for t1 implies. A row e of the frame
// has the entries (e, r x e) in the Jacobian, and R' b of a velocity b in world axes.
#pragma once

#include "solver/problem/contact_problem.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/problem_differential.h"

namespace sap {

// Adds to the numbers of all body contacts what a direction of their inputs moves them by.
void FromBodyContacts(const ContactProblemView& inputs, const ContactProblem& problem,
                      const ContactProblemView& direction, ProblemDifferential* change);

// The transpose: adds to the derivatives with respect to the inputs, which are sized.
void ToBodyContacts(const ContactProblemView& inputs, const ContactProblem& problem,
                    const ProblemDifferential& derivative, InputDifferential* gradient);

}  // namespace sap
