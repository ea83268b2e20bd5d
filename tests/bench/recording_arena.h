// A program that links recording_arena.cc has a TaskArena that runs every loop on the thread that
// opens it, one index after the other, and records the times.
#pragma once

#include "tests/bench/task_graph.h"

namespace sap::bench {

// Returns the recording since the last call: time spent outside StartRecording .. TakeRecording
// counts for nothing.
void StartRecording();
TaskGraph TakeRecording();

}  // namespace sap::bench
