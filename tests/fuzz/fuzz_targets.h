// Entry points for untrusted bytes. Each target takes any bytes and must return: a crash, a hang or
// a leak is a finding. Further checks of a target abort.
//
// libFuzzer calls them (tests/fuzz/run.sh, with clang). Every test run calls them with the corpora
// in this directory and mutations of those (fuzz_corpus_test.cc).
#pragma once

#include <cstdint>
#include <span>

namespace sap::test {

using Bytes = std::span<const uint8_t>;

// A SolveRequest from the wire: decoded, checked, and solved for a few iterations.
void FuzzSolve(Bytes bytes);

// A DifferentiateRequest from the wire. No number of an answer is NaN or infinite.
void FuzzDifferentiate(Bytes bytes);

// The messages of a session, one after the other, each with a length before it.
void FuzzSession(Bytes bytes);

// A batch, of solves or of derivatives by its first byte. Each problem has its outcome.
void FuzzBatch(Bytes bytes);

// A message of any request, chosen by the first byte. What passes its bounds takes no more memory
// than they say, and passes them again as the parser writes it.
void FuzzMessages(Bytes bytes);

// A model that is put, or a call of Advance of another one, by the first byte; the workers are
// those of tests. An answer has the lengths that the request asks for.
void FuzzWorlds(Bytes bytes);

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
inline constexpr FuzzTarget kFuzzTargets[] = {
    {"solve", FuzzSolve},       {"differentiate", FuzzDifferentiate},
    {"session", FuzzSession},   {"batch", FuzzBatch},
    {"messages", FuzzMessages}, {"json", FuzzJson},
    {"flags", FuzzFlags},       {"tokens", FuzzTokens},
    {"worlds", FuzzWorlds}};

}  // namespace sap::test
