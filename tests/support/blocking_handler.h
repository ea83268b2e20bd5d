// A request handler whose calls wait for their answers.
#pragma once

#include <semaphore>

#include "server/service/request_handler.h"

namespace sap::test {

// Waits until the completion callback of a call has been called.
class Completion {
 public:
  static void Done(void* completion, const ServiceStatus& status) {
    static_cast<Completion*>(completion)->status_ = status;
    static_cast<Completion*>(completion)->done_.release();
  }
  static void StepDone(void* completion) { Done(completion, {}); }

  ServiceStatus Await() {
    done_.acquire();
    return status_;
  }

 private:
  std::binary_semaphore done_{0};
  ServiceStatus status_;
};

// Thread-safe.
class BlockingHandler : public RequestHandler {
 public:
  using RequestHandler::RequestHandler;

  ServiceStatus Solve(const v1::SolveRequest& request, const CallContext& call,
                      v1::SolveResponse* response) {
    return Await([&](void* done) { Start(request, call, response, Completion::Done, done); });
  }
  ServiceStatus SolveBatch(const v1::SolveBatchRequest& request, const CallContext& call,
                           v1::SolveBatchResponse* response) {
    return Await([&](void* done) { StartBatch(request, call, response, Completion::Done, done); });
  }
  ServiceStatus StreamBatch(const v1::StreamBatchRequest& request, const CallContext& call,
                            const BatchSink& sink) {
    return Await(
        [&](void* done) { StartStreamBatch(request, call, sink, Completion::Done, done); });
  }
  ServiceStatus Differentiate(const v1::DifferentiateRequest& request, const CallContext& call,
                              v1::DifferentiateResponse* response) {
    return Await(
        [&](void* done) { StartDifferentiate(request, call, response, Completion::Done, done); });
  }
  ServiceStatus DifferentiateBatch(const v1::DifferentiateBatchRequest& request,
                                   const CallContext& call,
                                   v1::DifferentiateBatchResponse* response) {
    return Await([&](void* done) {
      StartDifferentiateBatch(request, call, response, Completion::Done, done);
    });
  }

 private:
  template <typename Start>
  static ServiceStatus Await(const Start& start) {
    Completion completion;
    start(&completion);
    return completion.Await();
  }
};

// Solves a step of a session and waits for its outcome.
inline void Step(sap::Session* session, const v1::SessionStep& step, const CallContext& call,
                 v1::StepOutcome* outcome) {
  Completion completion;
  if (!session->StartStep(step, call, outcome, Completion::StepDone, &completion)) {
    (void)completion.Await();
  }
}

}  // namespace sap::test
