#include "server/rpc/solver_service.h"

#include "server/rpc/rpc_status.h"

namespace sap {

namespace {

// Starts a call on the handler.
template <typename Method>
using StartOnHandler = void (RequestHandler::*)(const typename Method::Call::Request&,
                                                const CallContext&,
                                                typename Method::Call::Response*,
                                                RequestHandler::Done, void*);

// A method whose calls the handler answers.
template <typename UnaryMethod>
UnaryMethod OnHandler(HeadersFirst* service, Method method, StartOnHandler<UnaryMethod> start,
                      const ServiceContext& context) {
  using Call = typename UnaryMethod::Call;
  const auto handle = [handler = context.handler, start](Call* call) {
    (handler->*start)(
        call->request(), call->call_context(), call->response(),
        [](void* context, const ServiceStatus& status) {
          static_cast<Call*>(context)->Finish(ToRpcStatus(status));
        },
        call);
  };
  return UnaryMethod({service, static_cast<int>(method), context, method}, handle);
}

}  // namespace

SolverService::SolverService(const ServiceContext& context)
    : solve_(OnHandler<SolveMethod>(&service_, Method::kSolve, &RequestHandler::Start, context)),
      solve_batch_(OnHandler<BatchMethod>(&service_, Method::kSolveBatch,
                                          &RequestHandler::StartBatch, context)),
      stream_batch_(&service_, context),
      session_(&service_, context),
      differentiate_(OnHandler<DifferentiateMethod>(&service_, Method::kDifferentiate,
                                                    &RequestHandler::StartDifferentiate, context)),
      differentiate_batch_(
          OnHandler<DifferentiateBatchMethod>(&service_, Method::kDifferentiateBatch,
                                              &RequestHandler::StartDifferentiateBatch, context)),
      info_({&service_, static_cast<int>(Method::kGetServerInfo), context, Method::kGetServerInfo,
             /*answered_while_draining=*/true, /*reserves=*/false},
            [handler = context.handler, worlds = context.worlds](InfoMethod::Call* call) {
              *call->response() = handler->Info(call->call_context().account);
              if (worlds != nullptr) worlds->Describe(call->response());
              call->Finish(grpc::Status::OK);
            }) {}

void SolverService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) {
    solve_.Await(queue);
    solve_batch_.Await(queue);
    stream_batch_.Await(queue);
    session_.Await(queue);
    differentiate_.Await(queue);
    differentiate_batch_.Await(queue);
    info_.Await(queue);
  }
}

void SolverService::Sweep() {
  session_.Sweep();
  stream_batch_.Sweep();
  solve_.Sweep();
  solve_batch_.Sweep();
  differentiate_.Sweep();
  differentiate_batch_.Sweep();
  info_.Sweep();
}

}  // namespace sap
