// Stands in for transport/ in libsap_islands, which calls no server.
#include "client/c/files.h"
#include "client/cpp/backend/backend.h"

namespace sap::c {
namespace {

tl::unexpected<Error> HasNoFiles() {
  return Fail(SAP_UNIMPLEMENTED,
              "this library reads and writes no messages; use libsap_islands_client");
}

}  // namespace

bool HasTransport() { return false; }

Status FormatProblem(const sap_problem*, int32_t, AnswerContent*) { return HasNoFiles(); }
Status FormatSolution(const sap_solution*, int32_t, AnswerContent*) { return HasNoFiles(); }
Status ParseProblem(const std::string&, int32_t, AnswerContent*) { return HasNoFiles(); }
Status ParseSolution(const std::string&, int32_t, AnswerContent*) { return HasNoFiles(); }
Status SaveProblem(const sap_problem*, const std::string&, AnswerContent*) { return HasNoFiles(); }
Status LoadProblem(const std::string&, AnswerContent*) { return HasNoFiles(); }

tl::expected<std::unique_ptr<Recording>, Error> OpenRecording(const std::string&, RecordingUse) {
  return HasNoFiles();
}

}  // namespace sap::c

namespace sap::client {

tl::expected<std::unique_ptr<Backend>, Error> Connect(const std::string& address,
                                                      const ConnectOptions& options) {
  if (address == "embedded:") return EmbeddedBackend(options);
  return tl::unexpected(Error{ErrorCode::kUnimplemented,
                              "address is '" + address +
                                  "'; this library knows \"embedded:\" alone; to call servers use "
                                  "libsap_islands_client",
                              ""});
}

}  // namespace sap::client
