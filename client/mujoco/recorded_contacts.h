// Contacts with which a recorded step is judged: the simulator's own, and MuJoCo's for pairs of
// geoms that overlap and have none. A simulator that has lost pairs is thus wrong, and one whose
// collision detection finds other points is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client/mujoco/fields.h"

namespace sap::mujoco {

class RecordedContacts {
 public:
  // Takes the recorded contacts, as mjContact, and contacts of lost pairs from a state with
  // MuJoCo's contacts.
  //   touching   overlap from which a pair is lost [m]
  void Merge(const Fields& fields, std::span<const std::byte> recorded, double touching);

  std::span<const std::byte> merged() const { return merged_; }  // valid until the next Merge
  int64_t lost_pairs() const { return static_cast<int64_t>(lost_.size()); }

 private:
  using Pair = std::pair<int32_t, int32_t>;

  std::vector<std::byte> merged_;
  std::vector<Pair> pairs_;  // of the recorded contacts, ascending
  std::vector<Pair> lost_;
};

// Contacts of a state that have constraints.
int64_t CountActingContacts(const Fields& fields);

}  // namespace sap::mujoco
