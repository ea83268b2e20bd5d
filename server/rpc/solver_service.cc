#include "server/rpc/solver_service.h"

#include "server/rpc/rpc_status.h"

namespace sap {

namespace {

// Handler that starts an engine call and finishes the RPC when it completes.
template <typename Call>
auto StartWith(Engine* engine,
               void (Engine::*start)(const typename Call::Request&, const CallContext&,
                                     typename Call::Response*, Engine::Done, void*)) {
  return [engine, start](Call* call) {
    (engine->*start)(
        call->request(), call->call_context(), call->response(),
        [](void* context, const ServiceStatus& status) {
          static_cast<Call*>(context)->Finish(ToRpcStatus(status));
        },
        call);
  };
}

}  // namespace

SolverService::SolverService(const ServiceContext& context)
    : read_timeout_(context.engine->config().read_timeout_s),
      write_timeout_(context.engine->config().session.write_timeout_s),
      solve_(&service_, static_cast<int>(Method::kSolve),
             StartWith<SolveMethod::Call>(context.engine, &Engine::Start), context.in_flight_calls,
             context.authenticator, SolveMethod::WhileDraining::kRefused,
             {context.observer, Method::kSolve},
             {context.engine, context.rejection_limiter, context.transfers}),
      solve_batch_(&service_, static_cast<int>(Method::kSolveBatch),
                   StartWith<BatchMethod::Call>(context.engine, &Engine::StartBatch),
                   context.in_flight_calls, context.authenticator,
                   BatchMethod::WhileDraining::kRefused, {context.observer, Method::kSolveBatch},
                   {context.engine, context.rejection_limiter, context.transfers}),
      stream_batch_(&service_, context),
      session_(&service_, context),
      info_(&service_, static_cast<int>(Method::kGetServerInfo),
            [engine = context.engine](InfoMethod::Call* call) {
              *call->response() = engine->Info(call->call_context().account);
              call->Finish(grpc::Status::OK);
            },
            context.in_flight_calls, context.authenticator, InfoMethod::WhileDraining::kAnswered,
            {context.observer, Method::kGetServerInfo},
            {nullptr, context.rejection_limiter, context.transfers}) {}

void SolverService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) {
    solve_.Await(queue);
    solve_batch_.Await(queue);
    stream_batch_.Await(queue);
    session_.Await(queue);
    info_.Await(queue);
  }
}

void SolverService::Sweep() {
  session_.Sweep();
  stream_batch_.Sweep();
  solve_.Sweep(read_timeout_, write_timeout_);
  solve_batch_.Sweep(read_timeout_, write_timeout_);
  info_.Sweep(read_timeout_, write_timeout_);
}

}  // namespace sap
