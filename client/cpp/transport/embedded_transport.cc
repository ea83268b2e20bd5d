#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/transport.h"
#include "server/service/engine.h"

namespace sap::client {
namespace {

ServerConfig MakeConfig(int threads) {
  ServerConfig config;
  if (threads > 0) config.threads = threads;
  return config;
}

Transport::Status FromServiceStatus(const ServiceStatus& status) {
  if (status) return {};
  const ServiceError& error = status.error();
  return tl::unexpected(Error{FromCode(static_cast<int>(error.code)), error.message, error.field,
                              error.reason,
                              std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::duration<double>(error.retry_after_s))});
}

CallContext ContextUntil(Transport::Timeout deadline) {
  CallContext context;
  if (deadline) context.deadline = context.arrival + *deadline;
  return context;
}

// Send solves the step; Receive hands out its outcome.
class EmbeddedSession final : public SessionStream {
 public:
  EmbeddedSession(std::shared_ptr<Engine> engine, std::unique_ptr<sap::Session> session,
                  CallContext::Clock::time_point deadline)
      : engine_(std::move(engine)), session_(std::move(session)), deadline_(deadline) {}

  int max_steps_in_flight() const override { return engine_->config().session.max_steps_in_flight; }

  bool draining() const override { return false; }

  bool Send(v1::SolveSessionRequest* request) override {
    CallContext context;
    context.deadline = deadline_;
    v1::StepOutcome outcome;
    session_->Step(request->step(), context, &outcome);
    // As over gRPC, the deadline is that of the session, not of the step.
    if (!CheckLive(context)) return false;
    outcomes_.push_back(std::move(outcome));
    return true;
  }

  Transport::Status Receive(v1::SolveSessionResponse* response) override {
    if (outcomes_.empty()) return FromServiceStatus(CheckLive({.deadline = deadline_}));
    response->mutable_step()->Swap(&outcomes_.front());
    outcomes_.pop_front();
    return {};
  }

  Transport::Status Close() override { return {}; }

 private:
  const std::shared_ptr<Engine> engine_;
  const std::unique_ptr<sap::Session> session_;
  const CallContext::Clock::time_point deadline_;
  std::deque<v1::StepOutcome> outcomes_;
};

class EmbeddedTransport final : public Transport {
 public:
  explicit EmbeddedTransport(int threads)
      : engine_(std::make_shared<Engine>(MakeConfig(threads))) {}

  Status Solve(const v1::SolveRequest& request, Timeout deadline,
               v1::SolveResponse* response) override {
    return FromServiceStatus(engine_->Solve(request, ContextUntil(deadline), response));
  }

  Status SolveBatch(const v1::SolveBatchRequest& request, Timeout deadline,
                    v1::SolveBatchResponse* response) override {
    return FromServiceStatus(engine_->SolveBatch(request, ContextUntil(deadline), response));
  }

  Status StreamBatch(const v1::StreamBatchRequest& request, Timeout deadline,
                     const BatchSink& sink) override {
    std::mutex mutex;
    const auto answer = [&](int index, v1::Outcome outcome) {
      v1::StreamBatchResponse response;
      response.set_index(static_cast<uint32_t>(index));
      response.mutable_outcome()->Swap(&outcome);
      const std::lock_guard lock(mutex);
      sink(response);
    };
    return FromServiceStatus(engine_->StreamBatch(request, ContextUntil(deadline), answer));
  }

  Status Differentiate(const v1::DifferentiateRequest& request, Timeout deadline,
                       v1::DifferentiateResponse* response) override {
    return FromServiceStatus(engine_->Differentiate(request, ContextUntil(deadline), response));
  }

  Status DifferentiateBatch(const v1::DifferentiateBatchRequest& request, Timeout deadline,
                            v1::DifferentiateBatchResponse* response) override {
    return FromServiceStatus(
        engine_->DifferentiateBatch(request, ContextUntil(deadline), response));
  }

  tl::expected<std::unique_ptr<SessionStream>, Error> OpenSession(
      const v1::SolveSessionRequest& request, Timeout deadline) override {
    auto session = engine_->NewSession();
    if (!session) {
      return tl::unexpected(FromServiceStatus(tl::unexpected(session.error())).error());
    }
    if (const ServiceStatus opened = (*session)->Open(request.open()); !opened) {
      return tl::unexpected(FromServiceStatus(opened).error());
    }
    return std::make_unique<EmbeddedSession>(engine_, std::move(*session),
                                             ContextUntil(deadline).deadline);
  }

  Status Info(Timeout, v1::GetServerInfoResponse* response) override {
    *response = engine_->Info();
    return {};
  }

  tl::expected<bool, Error> Health() override { return true; }

 private:
  const std::shared_ptr<Engine> engine_;  // shared with the sessions, which may outlive this
};

}  // namespace

std::unique_ptr<Transport> Embed(int threads) {
  return std::make_unique<EmbeddedTransport>(threads);
}

}  // namespace sap::client
