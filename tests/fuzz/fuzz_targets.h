// Doors through which strangers' bytes come in. Each target takes any bytes, and must return: a
// crash, a hang or a leak is a finding. What it checks beyond that, it checks by aborting.
//
// libFuzzer drives them (tests/fuzz/run.sh, with clang); the corpora in this directory and bytes
// made from them are run with every test run (fuzz_corpus_test.cc).
#pragma once

#include <cstdint>
#include <span>

namespace sap::test {

using Bytes = std::span<const uint8_t>;

// A SolveRequest from the wire: decoded, checked, and solved for a few iterations.
void FuzzSolve(Bytes bytes);

// The messages of a session, one after the other, each with a length before it.
void FuzzSession(Bytes bytes);

// A problem as a file of JSON.
void FuzzJson(Bytes bytes);

// The command line of the server, one flag a line.
void FuzzFlags(Bytes bytes);

// A file of tokens, and a header.
void FuzzTokens(Bytes bytes);

struct FuzzTarget {
  const char* name;
  void (*run)(Bytes bytes);
};
inline constexpr FuzzTarget kFuzzTargets[] = {{"solve", FuzzSolve},
                                              {"session", FuzzSession},
                                              {"json", FuzzJson},
                                              {"flags", FuzzFlags},
                                              {"tokens", FuzzTokens}};

}  // namespace sap::test
