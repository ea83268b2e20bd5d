// Between the arrays of a client and those of the ContactProblem made from them: how a direction of
// the former moves the latter, and how a derivative with respect to the latter becomes one with
// respect to the former.
//
//   v_hat_n = -phi0 / (dt + tau_d),   A of a body from mass and inertia,
//   J of its contacts from point, normal and center of mass
//
// The two functions are each other's transpose: <ToInputs(g), d> = <g, FromInputs(d)>. Which arrays
// have a derivative: input_arrays.h. dynamics_matrix is symmetrized, so that its derivative is; xy,
// xz and yz of an inertia stand for two entries each. normal is normalized and tangent made
// orthogonal to it, and their derivatives are orthogonal to them. The frame of a contact without a
// tangent turns with its normal, the sign of n_z held. Where friction_2 is absent, friction moves
// both coefficients.
#pragma once

#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "solver/problem/derivatives.h"
#include "solver/problem/problem_differential.h"

namespace sap {

class ContactProblem;

// Derivatives in the shape of the client's arrays: each full-sized or, where it has none, empty.
// Arrays of indices, identifiers and guesses are empty.
using InputDifferential = OwnedContactProblem;

// Checks the doubles of a direction against the problem that it belongs to, which has been read:
// each array empty or of full length, and finite. An array without a derivative must be empty;
// guesses and arrays of indices are not read. Field names are those of the problem
// ("contacts.friction").
tl::expected<void, ProblemError> CheckDirection(const ContactProblemView& problem,
                                                const ContactProblemView& direction);

// *change: how the problem read from `inputs` moves along a checked direction of them. Empty arrays
// of the direction are 0; its regularization is that of the direction, zeros where it has none.
void FromInputs(const ContactProblemView& inputs, const ContactProblem& problem,
                const ContactProblemView& direction, ProblemDifferential* change);

// *gradient: the derivative with respect to the arrays of `inputs`, of which `problem` was read.
// Storage only grows.
void ToInputs(const ContactProblemView& inputs, const ContactProblem& problem,
              const ProblemDifferential& derivative, InputDifferential* gradient);

// Moves gradient k of *derivatives to the inputs. Reading mixes numbers of the problem, whose
// products and sums may leave the range of double precision where they themselves do not: then all
// of gradient k is 0, and every island is a numerical failure.
void GradientToInputs(const ContactProblemView& inputs, const ContactProblem& problem, size_t k,
                      Derivatives* derivatives, InputDifferential* gradient);

}  // namespace sap
