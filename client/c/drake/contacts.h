// Contacts of a problem from contact points.
//
// The normal n points from geometry A to geometry B, and v_c = J_B v - J_A v at the contact point p
// in the frame (t1, t2, n), with
//
//   J v = V + omega x (p - p_o),   V: velocity of the body's origin p_o
#pragma once

#include <cstdint>

#include "client/c/drake/python_calls.h"

namespace sap::drake {

struct ContactPoints {
  int64_t count;  // C
  const sap_drake_point* points;
  const int32_t* bodies;  // [C, 2] A and B
};

// Arrays of C contacts.
struct ContactArrays {
  int32_t* tree_a;
  int32_t* tree_b;
  double* jacobian;
  double* signed_distance;
  double* stiffness;
  double* relaxation_time;
  double* friction;
  double* delassus_estimate;      // w
  double* elastic_force;          // of Hunt & Crossley
  double* dissipation;            // d of Hunt & Crossley
  double* lagged_normal_impulse;  // n_0, of Hunt & Crossley at v_0
  double* frames;                 // [C, 3, 3] rows t1, t2, n
};

// Sets the flags [bodies] of those in contact that move and are not free, and returns the number of
// values in the Jacobian of all contacts.
int64_t MeasureContacts(const sap_drake_plant& plant, const ContactPoints& contacts,
                        uint8_t* needs_jacobian);

void WriteContacts(const sap_drake_plant& plant, const ContactPoints& contacts,
                   const sap_drake_state& state, const ContactArrays& arrays);

}  // namespace sap::drake
