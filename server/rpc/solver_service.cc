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
UnaryMethod OnHandler(typename UnaryMethod::HeadersFirst* service, Method method,
                      StartOnHandler<UnaryMethod> start, const ServiceContext& context) {
  using Call = typename UnaryMethod::Call;
  const auto handle = [handler = context.handler, start](Call* call) {
    (handler->*start)(
        call->request(), call->call_context(), call->response(),
        [](void* context, const ServiceStatus& status) {
          static_cast<Call*>(context)->Finish(ToRpcStatus(status));
        },
        call);
  };
  return UnaryMethod(service, static_cast<int>(method), handle, context.in_flight_calls,
                     context.authenticator, UnaryMethod::WhileDraining::kRefused,
                     {context.observer, method},
                     {context.handler, context.rejection_limiter, context.transfers});
}

}  // namespace

SolverService::SolverService(const ServiceContext& context)
    : read_timeout_(context.handler->config().read_timeout_s),
      write_timeout_(context.handler->config().session.write_timeout_s),
      solve_(OnHandler<SolveMethod>(&service_, Method::kSolve, &RequestHandler::Start, context)),
      solve_batch_(OnHandler<BatchMethod>(&service_, Method::kSolveBatch,
                                          &RequestHandler::StartBatch, context)),
      stream_batch_(&service_, context),
      session_(&service_, context),
      differentiate_(OnHandler<DifferentiateMethod>(&service_, Method::kDifferentiate,
                                                    &RequestHandler::StartDifferentiate, context)),
      differentiate_batch_(
          OnHandler<DifferentiateBatchMethod>(&service_, Method::kDifferentiateBatch,
                                              &RequestHandler::StartDifferentiateBatch, context)),
      info_(&service_, static_cast<int>(Method::kGetServerInfo),
            [handler = context.handler](InfoMethod::Call* call) {
              *call->response() = handler->Info(call->call_context().account);
              call->Finish(grpc::Status::OK);
            },
            context.in_flight_calls, context.authenticator, InfoMethod::WhileDraining::kAnswered,
            {context.observer, Method::kGetServerInfo},
            {context.handler, context.rejection_limiter, context.transfers,
             /*reserves=*/false}) {}

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
  solve_.Sweep(read_timeout_, write_timeout_);
  solve_batch_.Sweep(read_timeout_, write_timeout_);
  differentiate_.Sweep(read_timeout_, write_timeout_);
  differentiate_batch_.Sweep(read_timeout_, write_timeout_);
  info_.Sweep(read_timeout_, write_timeout_);
}

}  // namespace sap
