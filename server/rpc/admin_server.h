// sap.v1.AdminService on its own listen address: drain, log level, recording.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tl/expected.hpp>

#include "sap/v1/admin_service.grpc.pb.h"
#include "server/auth/authenticator.h"
#include "server/auth/bearer_tokens.h"
#include "server/auth/tls_credentials.h"
#include "server/listen_address.h"
#include "server/ops/call_log.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/unknown_methods.h"
#include "server/scheduling/admission.h"
#include "server/server_config.h"
#include "server/service/request_recorder.h"

namespace sap {

class AdminServer {
 public:
  // Components that the calls control; all must outlive the server.
  struct Subjects {
    std::function<void()> drain;  // starts the shutdown; may be called several times
    CallLog* log;
    RequestRecorder* recorder;
    RecordingConfig recording;  // rule and limits of new recordings
    BearerTokens* tokens;       // operator tokens; null: every connected client is an operator
  };

  // Serves from the return of this call on, with the certificates of the main address (null: plain
  // text; they must outlive this object). Fails with an error message if the address is not
  // available, also if another server uses it. Only the owner of the process can connect to a Unix
  // socket.
  static tl::expected<std::unique_ptr<AdminServer>, std::string> Start(
      const std::string& address, const ServerCertificates* certificates, Subjects subjects);
  ~AdminServer();

  const std::string& address() const { return address_; }

 private:
  using DrainMethod = UnaryMethod<v1::DrainRequest, v1::DrainResponse>;
  using LogMethod = UnaryMethod<v1::SetLogLevelRequest, v1::SetLogLevelResponse>;
  using RecordingMethod = UnaryMethod<v1::SetRecordingRequest, v1::SetRecordingResponse>;

  explicit AdminServer(Subjects subjects);

  RpcMethod::Description Describe(int index);
  void Drain(DrainMethod::Call* call);
  void SetLogLevel(LogMethod::Call* call);
  void SetRecording(RecordingMethod::Call* call);

  const Subjects subjects_;
  std::string address_;
  std::optional<AddressClaim> claim_;  // until all else has ended
  InFlightCalls in_flight_calls_;
  Admission admission_;  // for accounts only: admin calls are not limited
  Authenticator authenticator_;
  HeadersFirstService<v1::AdminService::Service> service_{3};
  UnknownMethods unknown_methods_{
      &in_flight_calls_,
      "there is no such method; this is the address of operators, --admin-listen"};
  DrainMethod drain_;
  LogMethod log_level_;
  RecordingMethod recording_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

}  // namespace sap
