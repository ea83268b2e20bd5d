// The calls of calls.json, and their answers in a form that does not tell which interface gave
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/c/sap_islands.h"
#include "client/cpp/client.h"
#include "sap/v1/recording.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "tests/support/solution_bits.h"

namespace sap::test {

struct DoorCall {
  enum class Kind : uint8_t { kSolve, kSolveBatch, kDifferentiate, kDifferentiateBatch, kSession };

  std::string name;
  Kind kind;
  // One, those of a batch, or the steps of a session. Solves read problem and options alone, a
  // batch the options of its first one.
  std::vector<v1::DifferentiateRequest> requests;
  std::optional<double> deadline_s;
  std::vector<std::string> errors;            // of each answer, see Reply
  std::vector<std::string> errors_of_server;  // which has limits
};

std::vector<DoorCall> DoorCalls();

struct Reply {
  AnswerBits bits{};    // of solution and derivatives, and whether a step was warm-started
  std::string error{};  // "INVALID_ARGUMENT [field] message"; empty: none

  bool operator==(const Reply&) const = default;
};

std::vector<Reply> CallCpp(client::Client* client, const DoorCall& call);
std::vector<Reply> CallC(sap_client* client, const DoorCall& call);

// A solve with its answer.
v1::RecordedSolve RecordOf(sap_client* client, const DoorCall& call);

}  // namespace sap::test
