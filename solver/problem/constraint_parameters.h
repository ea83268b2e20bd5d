// Numbers of a checked problem that contacts, rows and pairs of coupled trees have by themselves.
#pragma once

#include <array>
#include <cstdint>

namespace sap {

// A contact in a cone with more than one coefficient, or with adhesion.
struct GeneralFriction {
  double mu_2{0};                   // along t2 [-]
  std::array<double, 3> angular{};  // about t1, t2 (rolling) and n (torsional) [m]
  double adhesion{0};               // a >= 0 [N]
  int angular_contact{-1};          // its number among contacts with angular Jacobians; -1: none
};

// A contact with a law of Hunt & Crossley.
struct HuntCrossleyParameters {
  double elastic_force{0};          // f_e [N]
  double dissipation{0};            // d [s/m]
  double lagged_normal_impulse{0};  // n_0 [N s]
};

// A constraint row, without its entries.
struct RowParameters {
  double v_hat{0};            // target, the offset b not subtracted [m/s, rad/s]
  double offset{0};           // b [m/s, rad/s]
  double stiffness{0};        // k, may be infinite
  double relaxation_time{0};  // tau [s]
  double force_lower{0};      // may be -infinity [N, N m]
  double force_upper{0};      // may be infinity [N, N m]
  double force_offset{0};     // u [N, N m]
  double given_R{0};          // 0: not given
  double given_w{0};          // 0: not given
  double slip_parameter{0};   // 0: R by stiffness
};

// One non-zero of a constraint row.
struct RowEntry {
  int tree;
  int dof;  // of the tree

  bool operator==(const RowEntry&) const = default;
};

// Two trees a > b with the block A_ab, n_a x n_b row-major.
struct CoupledPair {
  int a, b;
  int64_t block_start;  // into the blocks of all pairs

  bool operator==(const CoupledPair&) const = default;
};

}  // namespace sap
