// Constants of up to four islands of one free body and friction contacts with the world each, one
// island per lane of a vector.
#pragma once

#include <array>

#include "solver/laws/friction_cone.h"
#include "solver/parallel/simd.h"

namespace sap {

// All islands have as many contacts. A lane without an island has the constants of the last one.
struct SingleBodies {
  static constexpr int kDofs = 6;
  static constexpr int kLanes = kNumLanes<double>;
  static constexpr int kMaxContacts = 16;

  struct Contact {
    std::array<Lanes4, 3 * kDofs> J;
    ConeParameters<Lanes4> law;
    ContactVector<Lanes4> target_size;
  };

  std::array<Lanes4, kDofs * kDofs> A, A_factor;
  std::array<Lanes4, kDofs> D, v_star;
  int num_contacts{0};
  std::array<Contact, kMaxContacts> contacts;
};

// Copies arrays of the islands into lanes.
template <size_t size>
void Interleave(const std::array<const double*, SingleBodies::kLanes>& from,
                std::array<Lanes4, size>* to) {
  for (size_t i = 0; i < size; ++i) {
    (*to)[i] = Lanes4{from[0][i], from[1][i], from[2][i], from[3][i]};
  }
}

}  // namespace sap
