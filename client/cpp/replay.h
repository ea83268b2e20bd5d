// Solves the problems of a recording again and compares the answers bit for bit.
//
// Compared are velocities, impulses, velocities of contacts and rows, cost, islands and their
// reports, but not times. An island that a deadline ended is solved again by the same method with
// its recorded iteration count as the limit, which gives the same iterate. If islands of one
// problem were cut at different counts, or by different methods, the problem is solved once per
// pair, and the cost, a sum over all islands, is not compared.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"

namespace sap::client {

struct ReplayReport {
  int records{0};
  int identical{0};
  int different{0};
  // Records without an answer to compare with: the call was cancelled, or rejected by a limit.
  int not_replayable{0};
  // "record 17: velocity[3] is 1.5, recorded as 1.25"; empty: no difference.
  std::string first_difference;
  // "record 4: ended with CANCELLED"
  std::string first_not_replayable;
  // Whether the version and instruction set of every record are those of this server. Equal bits
  // are promised only then.
  bool same_build{true};
  // Whether the file ends within a record, as after a crash. The records before it were replayed.
  bool truncated{false};
};

class Backend;

// Replays the recording, at servers of one build. An error if the file cannot be read, the server
// does not answer, or only servers of another build than the first are left.
tl::expected<ReplayReport, Error> ReplayRecording(const std::string& path, Backend* backend);

}  // namespace sap::client
