#include "server/solver_service.h"

#include "server/rpc_status.h"

namespace sap {

namespace {

// Starts a call of the engine whose end is that of the call on the wire.
template <typename Call>
auto StartWith(Engine* engine,
               void (Engine::*start)(const typename Call::Request&, const CallLimits&,
                                     typename Call::Response*, Engine::Done, void*)) {
  return [engine, start](Call* call) {
    (engine->*start)(
        call->request(), call->limits(), call->response(),
        [](void* context, const ServiceStatus& status) {
          static_cast<Call*>(context)->Finish(ToRpcStatus(status));
        },
        call);
  };
}

}  // namespace

SolverService::SolverService(Engine* engine, OpenCalls* open_calls, const Callers* callers)
    : solve_(&service_, &Service::RequestSolve,
             StartWith<SolveMethod::Call>(engine, &Engine::Start), open_calls, callers),
      solve_batch_(&service_, &Service::RequestSolveBatch,
                   StartWith<BatchMethod::Call>(engine, &Engine::StartBatch), open_calls, callers),
      stream_batch_(&service_, engine, open_calls, callers),
      session_(&service_, engine, open_calls, callers),
      info_(
          &service_, &Service::RequestGetServerInfo,
          [engine](InfoMethod::Call* call) {
            *call->response() = engine->Info();
            call->Finish(grpc::Status::OK);
          },
          open_calls, callers, InfoMethod::WhileDraining::kAnswered) {}

void SolverService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) {
    solve_.Await(queue);
    solve_batch_.Await(queue);
    stream_batch_.Await(queue);
    session_.Await(queue);
    info_.Await(queue);
  }
}

}  // namespace sap
