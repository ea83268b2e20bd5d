// Recordings solved again: whether the answers are the recorded ones, bit for bit.
//
// Compared are velocities, impulses, contact velocities, cost, islands and what is reported of
// them, not times. An island that a deadline ended is solved again for as many iterations as
// recorded, by the same method, which gives the same iterate. Where that takes several solves of a
// problem, because its islands were cut after different numbers of iterations, the cost, a sum over
// all islands, is not compared.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"

namespace sap::client {

struct ReplayReport {
  int records{0};
  int identical{0};
  int different{0};
  // Nothing to compare with: the call was cancelled, or refused for want of time or room.
  int not_replayable{0};
  // "record 17: velocity[3] is 1.5, recorded as 1.25"; empty without a difference.
  std::string first_difference;
  // "record 4: ended with CANCELLED"
  std::string first_not_replayable;
  // Whether all was recorded by a server of the version and instruction set of this one, for which
  // alone equal bits are promised.
  bool same_build{true};
  // Whether the file ends within a record, as after a crash; what comes before it was replayed.
  bool truncated{false};
};

class Transport;

// Solves every problem of the recording again. An error if the file cannot be read or the server is
// not there.
tl::expected<ReplayReport, Error> ReplayRecording(const std::string& path, Transport* transport);

}  // namespace sap::client
