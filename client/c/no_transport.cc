// Stands in for transport/ in libsap_islands, which calls no server.
#include "client/c/backend.h"
#include "client/c/files.h"

namespace sap::c {
namespace {

tl::unexpected<CallError> HasNoFiles() {
  return Fail(SAP_UNIMPLEMENTED,
              "this library reads and writes no messages; use libsap_islands_client");
}

}  // namespace

BackendOrError ConnectRemote(const char* address, const sap_connect_options&, const CallSettings&) {
  return Fail(SAP_UNIMPLEMENTED,
              "address is '" + std::string(address) +
                  "'; this library knows \"embedded:\" alone; to call servers use "
                  "libsap_islands_client");
}

bool HasTransport() { return false; }

Status FormatProblem(const sap_problem*, int32_t, AnswerContent*) { return HasNoFiles(); }
Status FormatSolution(const sap_solution*, int32_t, AnswerContent*) { return HasNoFiles(); }
Status ParseProblem(const std::string&, int32_t, AnswerContent*) { return HasNoFiles(); }
Status ParseSolution(const std::string&, int32_t, AnswerContent*) { return HasNoFiles(); }
Status SaveProblem(const sap_problem*, const std::string&, AnswerContent*) { return HasNoFiles(); }
Status LoadProblem(const std::string&, AnswerContent*) { return HasNoFiles(); }

tl::expected<std::unique_ptr<Recording>, CallError> OpenRecording(const std::string&,
                                                                  RecordingUse) {
  return HasNoFiles();
}

}  // namespace sap::c
