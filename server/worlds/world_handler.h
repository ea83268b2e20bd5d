// WorldService without its transport: models are put, worlds are advanced.
//
//   PutModel   request -> admitted -> hashed and loaded by a worker, as a task -> held by hash
//   Advance    request -> checked -> admitted by the work that is predicted -> slices
//
// No call blocks; `done` is called when the answer is complete. Requests and responses must live
// until then.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "sap/v1/solver_service.pb.h"
#include "sap/v1/world_service.pb.h"
#include "server/service/request_handler.h"
#include "server/worlds/model_cache.h"
#include "server/worlds/worker_pool.h"
#include "server/worlds/worker_process.h"
#include "server/worlds/world_call.h"

namespace sap {

// The answer to calls of WorldService by a server without the flag.
inline constexpr const char* kNoWorlds =
    "this server steps no worlds: it was started without --mujoco-library";

// Thread-safe.
class WorldHandler {
 public:
  using Done = RequestHandler::Done;

  // An error: the library, the program or its jail is not available. The handler of other calls,
  // whose admission and queue it uses, must outlive it; metrics may be null.
  static tl::expected<std::unique_ptr<WorldHandler>, std::string> Start(const ServerConfig& config,
                                                                        RequestHandler* handler,
                                                                        Metrics* metrics);

  // With workers of any kind.
  WorldHandler(RequestHandler* handler, Metrics* metrics, const WorkerGreeting& greeting,
               WorkerPool::StartWorker start);
  ~WorldHandler();

  // The content of the request is taken out of it.
  void StartPutModel(v1::PutModelRequest* request, const CallContext& call,
                     v1::PutModelResponse* response, Done done, void* context);
  void StartAdvance(const v1::AdvanceRequest& request, const CallContext& call,
                    v1::AdvanceResponse* response, Done done, void* context);

  // For GetServerInfo: version and library.
  void Describe(v1::GetServerInfoResponse* info) const;
  const WorkerGreeting& greeting() const { return greeting_; }

  // Periodic work: ends workers that are not used.
  void Sweep();

  const ModelCache& models() const { return models_; }
  const WorkerPool& workers() const { return workers_; }

 private:
  struct Put;

  ClientAccount* AccountOf(const CallContext& call) const {
    return call.account != nullptr ? call.account : handler_->this_process();
  }
  // Bad requests and models are no limits.
  void CountIfLimit(const ServiceError& error) const {
    if (error.code == ServiceCode::kResourceExhausted) telemetry_.CountRefusal(error);
  }
  ServiceStatus Admit(ClientAccount* account, const Demand& demand);
  ServiceStatus CheckEntitled(const ClientAccount& account) const;
  ServiceStatus MakePut(v1::PutModelRequest* request, const CallContext& call,
                        v1::PutModelResponse* response, Done done, void* context);
  ServiceStatus RunPut(Put* put);
  void EndPut(std::unique_ptr<Put> put, const ServiceStatus& status);
  ServiceStatus MakeAdvance(const v1::AdvanceRequest& request, const CallContext& call,
                            v1::AdvanceResponse* response, Done done, void* context);

  RequestHandler* const handler_;
  const Telemetry telemetry_;
  const WorkerGreeting greeting_;
  ModelCache models_;
  WorkerPool workers_;
};

}  // namespace sap
