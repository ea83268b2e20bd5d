// Free rigid bodies as trees of six degrees of freedom: their dynamics matrices and contact
// Jacobians.
//
//   v = (velocity of the center of mass, angular velocity), world axes;   A = diag(m 1, I)
//   v_c = R' (v_a + w_a x r_a - v_b - w_b x r_b),   R = [t1 t2 n],   r = point - center of mass
//
// so that a row e of the frame gives the row (e', (r x e)') of J_a and its negative of J_b. The
// angular velocity R' (w_a - w_b) has the rows (0, e') and their negatives.
#pragma once

#include <Eigen/Core>

namespace sap {

// Right-handed frame with the unit vector n as third column: (t1, t2, n). Continuous except for the
// sign change of n_z [Duff et al. 2017, "Building an Orthonormal Basis, Revisited"].
Eigen::Matrix3d ContactFrame(const Eigen::Vector3d& n);

// The frame (t1, t2, n) whose t1 is the part of `tangent` orthogonal to the unit vector n.
Eigen::Matrix3d ContactFrame(const Eigen::Vector3d& n, const Eigen::Vector3d& tangent);

// Writes the 6 x 6 row-major A of a body of mass m [kg] and inertia xx yy zz xy xz yz [kg m^2].
void WriteBodyDynamicsMatrix(double mass, const double* inertia, double* A);

// Writes the 3 x 6 row-major block sign * (R', (r x R)') of a contact at r from the center of mass.
void WriteBodyJacobian(const Eigen::Matrix3d& R, const Eigen::Vector3d& r, double sign, double* J);

// Writes the 3 x 6 row-major block sign * (0, R') of the angular velocity.
void WriteBodyAngularJacobian(const Eigen::Matrix3d& R, double sign, double* J);

}  // namespace sap
