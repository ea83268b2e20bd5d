#include "server/solver_service.h"

#include "server/rpc_status.h"

namespace sap {

SolverService::SolverService(Engine* engine)
    : solve_(&service_, &Service::RequestSolve,
             [engine](SolveMethod::Call* call) {
               engine->Start(
                   call->request(), call->limits(), call->response(),
                   [](void* context, const ServiceStatus& status) {
                     static_cast<SolveMethod::Call*>(context)->Finish(ToRpcStatus(status));
                   },
                   call);
             }),
      info_(&service_, &Service::RequestGetServerInfo, [engine](InfoMethod::Call* call) {
        *call->response() = engine->Info();
        call->Finish(grpc::Status::OK);
      }) {}

void SolverService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) {
    solve_.Await(queue);
    info_.Await(queue);
  }
}

}  // namespace sap
