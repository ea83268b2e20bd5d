#include "server/rpc/world_service.h"

#include "server/rpc/rpc_status.h"

namespace sap {
namespace {

RpcMethod::Description Describe(HeadersFirst* service, Method method,
                                const ServiceContext& context) {
  return {service, static_cast<int>(method) - kNumSolverMethods, context, method};
}

template <typename Call>
void Finish(void* call, const ServiceStatus& status) {
  static_cast<Call*>(call)->Finish(ToRpcStatus(status));
}

}  // namespace

WorldService::WorldService(const ServiceContext& context)
    : worlds_(context.worlds),
      put_(Describe(&service_, Method::kPutModel, context),
           [worlds = worlds_](PutMethod::Call* call) {
             worlds->StartPutModel(call->mutable_request(), call->call_context(), call->response(),
                                   &Finish<PutMethod::Call>, call);
           }),
      advance_(Describe(&service_, Method::kAdvance, context),
               [worlds = worlds_](AdvanceMethod::Call* call) {
                 worlds->StartAdvance(call->request(), call->call_context(), call->response(),
                                      &Finish<AdvanceMethod::Call>, call);
               }) {}

void WorldService::Await(grpc::ServerCompletionQueue* queue, int count) {
  for (int i = 0; i < count; ++i) {
    put_.Await(queue);
    advance_.Await(queue);
  }
}

void WorldService::Sweep() {
  put_.Sweep();
  advance_.Sweep();
  worlds_->Sweep();
}

}  // namespace sap
