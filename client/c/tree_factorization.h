// Linear systems with the mass matrix of a kinematic tree.
#pragma once

#include <span>

namespace sap {

// Solves a symmetric positive definite system in place: `b` [n] becomes the solution, the row-major
// matrix [n, n] its factors. The factorization is L' D L from the last row on. For the mass matrix
// of a tree whose parents precede their children it has no fill-in, and zero entries are skipped.
void SolveInPlace(std::span<double> matrix, std::span<double> b);

}  // namespace sap
